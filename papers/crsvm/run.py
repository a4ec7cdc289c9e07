"""Run the experiments of Section 5 of CRSVM: figures, numbers and a text table.

python papers/crsvm/run.py --data FOLDER [--figures 5.1,5.2] [--quick] [--output DIR]

Jung, O'Leary, Tits, "Adaptive constraint reduction for training support vector
machines", ETNA 31 (2008) 156-177. `claim.md` compares what comes out with the paper.
"""

import argparse
import json
import os
import platform
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from papers.crsvm.figures import adult, iterations, printed, rules, sweeps, table, toy
from papers.crsvm.options import Options

PARTS = {
    "table": table,
    "printed": printed,
    "5.1": rules,
    "5.2": sweeps.BALANCE,
    "5.3": sweeps.ADAPTIVE,
    "5.4": sweeps.RULE,
    "5.5": iterations,
    "5.6": adult,
    "5.9": toy,
}


def machine():
    """Cores and processor: times mean little without."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = [x for x in info.read_text().splitlines() if x.startswith("model name")]
        name = lines[0].split(":")[1].strip() if lines else name
    return f"{os.cpu_count()} cores, {name}"


def arguments(argv):
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("data"), metavar="FOLDER")
    parser.add_argument("--figures", default=",".join(PARTS), metavar="LIST")
    parser.add_argument("--output", type=Path, default=HERE / "results")
    parser.add_argument("--quick", action="store_true", help="few rows, one run each")
    parser.add_argument("--redraw", action="store_true", help="from the numbers there")
    parser.add_argument("--repeat", type=int, default=3, help="the median counts")
    parser.add_argument("--timeout", type=float, default=120.0, metavar="SECONDS")
    chosen = parser.parse_args(argv)
    chosen.figures = chosen.figures.split(",")
    unknown = [name for name in chosen.figures if name not in PARTS]
    if unknown:
        parser.error(f"there is no figure {', '.join(unknown)}: {', '.join(PARTS)}")
    return chosen


def numbers(part, options, folder, redraw):
    """The records of a part, measured or as they lie there."""
    file = folder / f"{part.NAME}.json"
    if redraw:
        return json.loads(file.read_text())["records"] if file.exists() else []
    records = part.run(options)
    if records:
        rows = ",\n".join(json.dumps(r) for r in records)
        head = json.dumps(machine())
        file.write_text(f'{{"machine": {head},\n"records": [\n{rows}\n]}}\n')
    return records


def main(argv=None):
    """Run, write and show the parts that are asked for."""
    chosen = arguments(argv)
    chosen.output.mkdir(parents=True, exist_ok=True)
    repeat = 1 if chosen.quick else chosen.repeat
    options = Options(chosen.data, chosen.quick, repeat, chosen.timeout)
    for name in chosen.figures:
        part = PARTS[name]
        records = numbers(part, options, chosen.output, chosen.redraw)
        if not records:
            print(f"{part.NAME} is skipped: it has no data.")
            continue
        part.draw(records, chosen.output)
        text = "\n".join(part.table(records))
        (chosen.output / f"{part.NAME}.txt").write_text(text + "\n")
        print(f"\n{part.NAME}\n{text}", flush=True)


if __name__ == "__main__":
    main()
