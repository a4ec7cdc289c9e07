"""Run the experiments of Section 4 of IRWLS-SVC: tables, numbers and pictures.

python papers/svcradit/run.py --data FOLDER [--parts table_2] [--quick] [--output DIR]

Perez-Cruz, Alarcon-Diana, Navia-Vazquez, Artes-Rodriguez, "Fast training of support
vector classifiers", NIPS 13 (2001) 734-740. `claim.md` compares what comes out with the
paper.
"""

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from papers import driver
from papers.svcradit.options import Options
from papers.svcradit.parts import selection, table_2, table_3

PARTS = {part.NAME: part for part in (table_2, table_3, selection)}


def arguments(argv):
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--data", type=Path, default=Path("data"), metavar="FOLDER")
    add("--parts", default=",".join(PARTS), metavar="LIST")
    add("--output", type=Path, default=HERE / "results")
    add("--quick", action="store_true", help="few rows, one run each")
    add("--redraw", action="store_true", help="from the numbers there")
    add("--repeat", type=int, default=3, help="the median counts")
    add("--limit", type=float, default=60.0, help="seconds a solve")
    chosen = parser.parse_args(argv)
    chosen.parts = chosen.parts.split(",")
    unknown = [name for name in chosen.parts if name not in PARTS]
    if unknown:
        parser.error(f"there is no part {', '.join(unknown)}: {', '.join(PARTS)}")
    return chosen


def main(argv=None):
    """Run, write and show the parts that are asked for."""
    chosen = arguments(argv)
    repeat = 1 if chosen.quick else chosen.repeat
    options = Options(chosen.data, chosen.quick, repeat, chosen.limit)
    parts = [PARTS[name] for name in chosen.parts]
    driver.show(parts, options, chosen.output, chosen.redraw)


if __name__ == "__main__":
    main()
