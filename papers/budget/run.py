"""Run the experiments of budget SVMs: Figure 1, the theorems, the equivalences, SMO.

python papers/budget/run.py --data FOLDER [--parts figure_1] [--quick] [--output DIR]

O. Dekel, Y. Singer, "Support vector machines on a budget", NIPS 19 (2006) 345-352.
`claim.md` compares what comes out with the paper.
"""

import argparse
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
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--data", type=Path, default=Path("data"), metavar="FOLDER")
    add("--parts", default=",".join(PARTS), metavar="LIST")
    add("--output", type=Path, default=HERE / "results")
    add("--quick", action="store_true", help="few points, budgets and splits")
    add("--redraw", action="store_true", help="from the numbers there")
    add("--splits", type=int, default=10, help="of the digits; the paper: 50")
    add("--step", type=int, default=60, help="from a budget to the next; the paper: 20")
    chosen = parser.parse_args(argv)
    chosen.parts = chosen.parts.split(",")
    unknown = [name for name in chosen.parts if name not in PARTS]
    if unknown:
        parser.error(f"there is no part {', '.join(unknown)}: {', '.join(PARTS)}")
    return chosen


def main(argv=None):
    """Run, write and show the parts that are asked for."""
    chosen = arguments(argv)
    options = Options(chosen.data, chosen.quick, chosen.splits, chosen.step)
    parts = [PARTS[name] for name in chosen.parts]
    driver.show(parts, options, chosen.output, chosen.redraw)


if __name__ == "__main__":
    main()
