"""Run the experiments of Section 5 of the Frank-Wolfe paper: tables, numbers, pictures.

python papers/frank_wolfe/run.py --data FOLDER [--parts tables_2_3] [--quick]

Frandi, Nanculef, Gasparo, Lodi, Sartori, "Training support vector machines using
Frank-Wolfe optimization methods", 2012. `claim.md` compares what comes out with the
paper.
"""

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
    parser = driver.parser(__doc__, HERE, PARTS)
    add = parser.add_argument
    add("--repeat", type=int, default=5, help="runs of a method")
    add("--limit", type=float, default=30.0, help="seconds a training")
    add("--sets", type=_names, metavar="LIST", help="names; all by default")
    return parser.parse_args(argv)


def _names(text):
    return tuple(text.split(","))


def main(argv=None):
    """Run, write and show the parts that are asked for."""
    chosen = arguments(argv)
    repeat, limit = chosen.repeat, chosen.limit
    if chosen.quick:
        repeat, limit = 1, min(limit, QUICK_LIMIT)
    options = Options(chosen.data, chosen.quick, repeat, limit, chosen.sets)
    driver.show(chosen.parts, options, chosen.output, chosen.redraw)


if __name__ == "__main__":
    main()
