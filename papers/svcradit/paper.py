"""Section 4 of IRWLS-SVC: tables of times and support vectors, working sets.

Perez-Cruz, Alarcon-Diana, Navia-Vazquez, Artes-Rodriguez, "Fast training of support
vector classifiers", NIPS 13 (2001) 734-740.
"""

from dataclasses import dataclass

import numpy as np

from papers.options import Options as Common
from papers.options import asked
from papers.svcradit import datasets
from papers.svcradit.parts import selection, table_2, table_3

PARTS = (table_2, table_3, selection)
QUICK_ROWS = 600


@dataclass(frozen=True)
class Options(Common):
    """How much to run; quick: few rows, and one run each."""

    repeat: int = asked(3, "runs of which the median counts")
    limit: float = asked(60.0, "seconds that one solve may take")

    def sets(self, rows, say=print):
        """(row, X, y) of the rows of a table whose data are there; says the others."""
        for row in rows:
            name = row.name
            data = self.found(
                row.label, lambda n=name: datasets.read(self.folder, n), say
            )
            if data is not None:
                yield row, *self._some(*data)

    def _some(self, X, y):
        """All rows, or a quick run's, drawn by chance."""
        if not self.quick or len(y) <= QUICK_ROWS:
            return X, y
        some = np.random.default_rng(0).permutation(len(y))[:QUICK_ROWS]
        return X[some], y[some]
