"""Measure the claims of a paper again: its parts one after the other.

    python -m papers NAME [--data FOLDER] [--parts LIST] [--quick] [--output FOLDER]

NAME is a folder beside this file: `NAME/claim.md` compares what comes out with what the
paper says, and `NAME/results` has the numbers. `NAME/paper.py` has `PARTS`, the modules
of the parts, and `Options`. A part has ``NAME``, ``run(options)`` -> records,
``table(records)`` -> lines, and ``draw(records, folder)``.
"""

import argparse
import importlib
import json
import os
import platform
import sys
from pathlib import Path

from papers import claims

HERE = Path(__file__).parent
NAMES = sorted(path.parent.name for path in HERE.glob("*/claim.md"))


def main(argv=None):
    """Run, write and show the parts of a paper that are asked for."""
    argv = sys.argv[1:] if argv is None else argv
    first = argparse.ArgumentParser(
        prog="python -m papers",
        usage="%(prog)s NAME [options]; %(prog)s NAME --help says which",
        description=__doc__.splitlines()[0],
    )
    first.add_argument("paper", choices=NAMES, metavar="NAME", help=", ".join(NAMES))
    name = first.parse_args(argv[:1]).paper
    paper = importlib.import_module(f"papers.{name}.paper")
    given = arguments(paper, argv[1:])
    given.output = given.output or HERE / name / "results"
    show(given.parts, paper.Options.of(given), given.output, given.redraw)


def arguments(paper, argv):
    """The command line of one paper."""
    known = {part.NAME: part for part in paper.PARTS}

    def chosen(text):
        names = text.split(",")
        unknown = ", ".join(name for name in names if name not in known)
        if unknown:
            there = ", ".join(known)
            raise argparse.ArgumentTypeError(f"there is no part {unknown}: {there}")
        return [known[name] for name in names]

    program = f"python -m {paper.__name__.rpartition('.')[0].replace('.', ' ')}"
    parser = argparse.ArgumentParser(prog=program, description=paper.__doc__)
    add = parser.add_argument
    add("--data", type=Path, default=Path("data"), metavar="FOLDER")
    names = ",".join(known)
    add("--parts", type=chosen, default=list(known.values()), help=names)
    add("--output", type=Path, help="results of the paper, unless another is given")
    add("--quick", action="store_true", help="little of everything: does all work?")
    add("--redraw", action="store_true", help="from the numbers there")
    paper.Options.add_to(parser)
    return parser.parse_args(argv)


def machine():
    """Cores and processor: times mean little without."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = [x for x in info.read_text().splitlines() if x.startswith("model name")]
        name = lines[0].split(":")[1].strip() if lines else name
    return f"{os.cpu_count()} cores, {name}"


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


def show(parts, options, folder, redraw=False):
    """Measure each part, write FOLDER/NAME.json, .txt and .png, and print its table.

    The tables of a claim beside the folder follow.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for part in parts:
        records = numbers(part, options, folder, redraw)
        if not records:
            print(f"{part.NAME} is skipped: it has no data.")
            continue
        part.draw(records, folder)
        text = "\n".join(part.table(records))
        (folder / f"{part.NAME}.txt").write_text(text + "\n")
        print(f"\n{part.NAME}\n{text}", flush=True)
    claim = folder.parent / "claim.md"
    if claim.exists():
        claim.write_text(claims.refreshed(claim))


if __name__ == "__main__":
    main()
