"""Section 5 of the Frank-Wolfe paper: balls that a few points hold, beside CVM.

Frandi, Nanculef, Gasparo, Lodi, Sartori, "Training support vector machines using
Frank-Wolfe optimization methods", 2012.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

from papers.frank_wolfe import datasets
from papers.frank_wolfe.parts import (
    certified,
    certified_small,
    figures_7_8,
    rates,
    samples,
    table_1,
    table_8,
    tables_2_3,
    tuning,
)
from papers.options import Options as Common
from papers.options import asked

PARTS = (
    table_1,
    tuning,
    tables_2_3,
    samples,
    certified,
    certified_small,
    figures_7_8,
    table_8,
    rates,
)
QUICK_ROWS = 200


def _names(text):
    return tuple(text.split(","))


@dataclass(frozen=True)
class Options(Common):
    """How much to run; quick: few rows, and one run of half a second each."""

    repeat: int = asked(5, "runs of each method, with other random numbers")
    limit: float = asked(30.0, "seconds that one training may take")
    names: tuple[str, ...] | None = asked(None, "data sets; all of them", _names)
    QUICK: ClassVar = {"repeat": 1, "limit": 0.5}

    def sets(self, names, say=print):
        """(row of the paper's tables, data) of the sets that are there; says others."""
        for name in names:
            if self.names is not None and name not in self.names:
                continue
            data = self.found(name, lambda n=name: datasets.read(self.folder, n), say)
            if data is not None:
                data = data.part(QUICK_ROWS) if self.quick else data
                yield datasets.BY_NAME[name], data

    def least(self, seconds):
        """The same, with a limit of at most so many seconds."""
        return replace(self, limit=min(self.limit, seconds))
