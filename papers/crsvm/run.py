"""Run the experiments of Section 5 of CRSVM: figures, numbers and a text table.

python papers/crsvm/run.py --data FOLDER [--parts 5.1,5.2] [--quick] [--output DIR]

Jung, O'Leary, Tits, "Adaptive constraint reduction for training support vector
machines", ETNA 31 (2008) 156-177. `claim.md` compares what comes out with the paper.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from papers import driver
from papers.crsvm.figures import (
    adult,
    approximation,
    gaussian,
    iterations,
    printed,
    ranks,
    rules,
    sweeps,
    table,
    toy,
)
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
    "5.7": approximation,
    "5.8": gaussian,
    "ranks": ranks,
    "5.9": toy,
}


def arguments(argv):
    """The command line."""
    parser = driver.parser(__doc__, HERE, PARTS)
    add = parser.add_argument
    add("--repeat", type=int, default=3, help="the median counts")
    add("--timeout", type=float, default=120.0, metavar="SECONDS")
    return parser.parse_args(argv)


def main(argv=None):
    """Run, write and show the parts that are asked for."""
    chosen = arguments(argv)
    repeat = 1 if chosen.quick else chosen.repeat
    options = Options(chosen.data, chosen.quick, repeat, chosen.timeout)
    driver.show(chosen.parts, options, chosen.output, chosen.redraw)


if __name__ == "__main__":
    main()
