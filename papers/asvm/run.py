"""Run the experiments of Section 4 of ASVM: tables, numbers and pictures.

python papers/asvm/run.py --data FOLDER [--parts ndc,uci] [--quick] [--output DIR]

Mangasarian, Musicant, "Active support vector machine classification", NIPS 13 (2001)
577-583. `claim.md` compares what comes out with the paper.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from papers import driver
from papers.asvm.options import Options
from papers.asvm.parts import adult, faces, growth, ndc, quadratic, sweeps, uci

PARTS = {
    part.NAME: part for part in (ndc, growth, sweeps, faces, uci, quadratic, adult)
}
QUICK = {"sizes": (20_000,), "growth": (20_000, 60_000), "repeat": 1}


def arguments(argv):
    """The command line."""
    parser = driver.parser(__doc__, HERE, PARTS)
    add = parser.add_argument
    add("--sizes", type=_sizes, default=Options.sizes, help="rows of part ndc")
    add("--growth", type=_sizes, default=Options.growth, help="rows of part growth")
    add("--repeat", type=int, default=3, help="the median counts")
    return parser.parse_args(argv)


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
    driver.show(chosen.parts, options, chosen.output, chosen.redraw)


if __name__ == "__main__":
    main()
