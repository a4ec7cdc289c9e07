"""Run the experiments of budget SVMs: Figure 1, the theorems, the equivalences, SMO.

python papers/budget/run.py --data FOLDER [--parts figure_1] [--quick] [--output DIR]

O. Dekel, Y. Singer, "Support vector machines on a budget", NIPS 19 (2006) 345-352.
`claim.md` compares what comes out with the paper.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from papers import driver
from papers.budget.options import Options
from papers.budget.parts import equivalences, figure_1, smo, theorems

PARTS = {part.NAME: part for part in (figure_1, theorems, equivalences, smo)}


def arguments(argv):
    """The command line."""
    parser = driver.parser(__doc__, HERE, PARTS, "few points, budgets and splits")
    add = parser.add_argument
    add("--splits", type=int, default=50, help="of the digits; 50 in the paper")
    add(
        "--step",
        type=int,
        default=20,
        help="from a budget to the next; 20 in the paper",
    )
    add("--processes", type=int, default=1, help="that share the splits of Figure 1")
    return parser.parse_args(argv)


def main(argv=None):
    """Run, write and show the parts that are asked for."""
    chosen = arguments(argv)
    grid = chosen.splits, chosen.step, chosen.processes
    options = Options(chosen.data, chosen.quick, *grid)
    driver.show(chosen.parts, options, chosen.output, chosen.redraw)


if __name__ == "__main__":
    main()
