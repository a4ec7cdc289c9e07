"""Run the experiments of Section 5 of the Frank-Wolfe paper: tables, numbers, pictures.

python papers/frank_wolfe/run.py --data FOLDER [--parts tables_2_3] [--quick]

Frandi, Nanculef, Gasparo, Lodi, Sartori, "Training support vector machines using
Frank-Wolfe optimization methods", 2012. `claim.md` compares what comes out with the
paper.
"""

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from papers import driver
from papers.frank_wolfe.options import Options
from papers.frank_wolfe.parts import (
    certified,
    figures_7_8,
    table_1,
    table_8,
    tables_2_3,
    tuning,
)

ORDER = (table_1, tuning, tables_2_3, certified, figures_7_8, table_8)
QUICK_LIMIT = 0.5
PARTS = {part.NAME: part for part in ORDER}


def arguments(argv):
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--data", type=Path, default=Path("data"), metavar="FOLDER")
    add("--parts", default=",".join(PARTS), metavar="LIST")
    add("--output", type=Path, default=HERE / "results")
    add("--quick", action="store_true", help="few rows, one run each")
    add("--redraw", action="store_true", help="from the numbers there")
    add("--repeat", type=int, default=5, help="runs of a method")
    add("--limit", type=float, default=30.0, help="seconds a training")
    add("--sets", default=None, metavar="LIST", help="names; all by default")
    chosen = parser.parse_args(argv)
    chosen.parts = chosen.parts.split(",")
    chosen.sets = None if chosen.sets is None else tuple(chosen.sets.split(","))
    unknown = [name for name in chosen.parts if name not in PARTS]
    if unknown:
        parser.error(f"there is no part {', '.join(unknown)}: {', '.join(PARTS)}")
    return chosen


def main(argv=None):
    """Run, write and show the parts that are asked for."""
    chosen = arguments(argv)
    repeat, limit = chosen.repeat, chosen.limit
    if chosen.quick:
        repeat, limit = 1, min(limit, QUICK_LIMIT)
    options = Options(chosen.data, chosen.quick, repeat, limit, chosen.sets)
    parts = [PARTS[name] for name in chosen.parts]
    driver.show(parts, options, chosen.output, chosen.redraw)


if __name__ == "__main__":
    main()
