"""Section 5 of CRSVM: the figures, and a table.

Jung, O'Leary, Tits, "Adaptive constraint reduction for training support vector
machines", ETNA 31 (2008) 156-177.
"""

from dataclasses import dataclass

from papers.crsvm import datasets
from papers.crsvm.parts import (
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
from papers.options import Options as Common
from papers.options import asked

PARTS = (
    *(table, printed, rules, sweeps.BALANCE, sweeps.ADAPTIVE, sweeps.RULE, iterations),
    *(adult, approximation, gaussian, ranks, toy),
)
QUICK_ROWS, QUICK_SHARE = 600, 8
SMALL = 10_000  # rows up to which a run may be repeated: see `Options.runs`


@dataclass(frozen=True)
class Options(Common):
    """How much to run; quick: few rows, and one run each."""

    repeat: int = asked(3, "runs of which the median counts")
    timeout: float = asked(120.0, "seconds after which a run is given up")

    def sets(self, names, say=print):
        """Those of the data sets that are there; says what is skipped."""
        for (data,) in self._there(names, ("train",), say):
            yield data

    def pairs(self, names, say=print):
        """Training and test sets of the Adult series, where both are there."""
        return self._there(names, ("train", "test"), say)

    def runs(self, data):
        """How often what grows as the square of the rows is run."""
        return self.repeat if len(data.y) <= SMALL else 1

    def _there(self, names, splits, say):
        for name in names:
            data = self.found(name, lambda n=name: self._read(n, splits), say)
            if data is not None:
                yield data

    def _read(self, name, splits):
        return [self._split(name, split) for split in splits]

    def _split(self, name, split):
        """A set of Table 5.1, whole, or of the Adult series, which stays a series."""
        if name in datasets.TABLE:
            data = datasets.TABLE[name](self.folder)
            step = -(-len(data.y) // QUICK_ROWS)
        else:
            data, step = datasets.adult(self.folder, name, split), QUICK_SHARE
        return data.thin(step) if self.quick else data
