"""Run the experiments of Section 4 of ASVM: tables, numbers and pictures.

python papers/asvm/run.py --data FOLDER [--parts ndc,uci] [--quick] [--output DIR]

Mangasarian, Musicant, "Active support vector machine classification", NIPS 13 (2001)
577-583. `claim.md` compares what comes out with the paper.
"""

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from papers import driver
from papers.asvm.options import Options
from papers.asvm.parts import adult, faces, growth, ndc, sweeps, uci

PARTS = {part.NAME: part for part in (ndc, growth, sweeps, faces, uci, adult)}
QUICK = {"sizes": (20_000,), "growth": (20_000, 60_000), "repeat": 1}


def arguments(argv):
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--data", type=Path, default=Path("data"), metavar="FOLDER")
    add("--parts", default=",".join(PARTS), metavar="LIST")
    add("--sizes", type=_sizes, default=Options.sizes, help="rows of part ndc")
    add("--growth", type=_sizes, default=Options.growth, help="rows of part growth")
    add("--output", type=Path, default=HERE / "results")
    add("--quick", action="store_true", help="few rows, one run each")
    add("--redraw", action="store_true", help="from the numbers there")
    add("--repeat", type=int, default=3, help="the median counts")
    chosen = parser.parse_args(argv)
    chosen.parts = chosen.parts.split(",")
    unknown = [name for name in chosen.parts if name not in PARTS]
    if unknown:
        parser.error(f"there is no part {', '.join(unknown)}: {', '.join(PARTS)}")
    return chosen


def _sizes(text):
    return tuple(int(float(part)) for part in text.split(","))


def main(argv=None):
    """Run, write and show the parts that are asked for."""
    chosen = arguments(argv)
    names = ("sizes", "growth", "quick", "repeat")
    settings = {name: getattr(chosen, name) for name in names}
    if chosen.quick:
        settings |= QUICK
    options = Options(chosen.data, **settings)
    parts = [PARTS[name] for name in chosen.parts]
    driver.show(parts, options, chosen.output, chosen.redraw)


if __name__ == "__main__":
    main()
