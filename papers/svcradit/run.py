"""Run the experiments of Section 4 of IRWLS-SVC: tables, numbers and pictures.

python papers/svcradit/run.py --data FOLDER [--parts table_2] [--quick] [--output DIR]

Perez-Cruz, Alarcon-Diana, Navia-Vazquez, Artes-Rodriguez, "Fast training of support
vector classifiers", NIPS 13 (2001) 734-740. `claim.md` compares what comes out with the
paper.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from papers import driver
from papers.svcradit.options import Options
from papers.svcradit.parts import selection, table_1, table_2, table_3

PARTS = {part.NAME: part for part in (table_1, table_2, table_3, selection)}


def arguments(argv):
    """The command line."""
    parser = driver.parser(__doc__, HERE, PARTS)
    add = parser.add_argument
    add("--repeat", type=int, default=3, help="the median counts")
    add("--limit", type=float, default=60.0, help="processor seconds a solve")
    add("--seeds", type=int, default=6, help="of the random selection")
    add("--svm-light", type=Path, metavar="FILE", help="the program svm_learn")
    return parser.parse_args(argv)


def main(argv=None):
    """Run, write and show the parts that are asked for."""
    chosen = arguments(argv)
    repeat, seeds = (1, 2) if chosen.quick else (chosen.repeat, chosen.seeds)
    light = chosen.svm_light
    options = Options(chosen.data, chosen.quick, repeat, chosen.limit, seeds, light)
    driver.show(chosen.parts, options, chosen.output, chosen.redraw)


if __name__ == "__main__":
    main()
