"""What the command line asks for, and the data sets that it gives."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from papers.svcradit import datasets

QUICK_ROWS = 600


@dataclass(frozen=True)
class Options:
    """How much to run.

    Attributes
    ----------
    folder : Path, the data sets
    quick : bool, few rows and one run each: shows that all works, measures nothing
    repeat : int, runs of which the median counts
    limit : float, processor seconds that one solve may take
    seeds : int, seeds of the random selection
    svm_light : Path or None, the program svm_learn
    """

    folder: Path
    quick: bool = False
    repeat: int = 3
    limit: float = 300.0
    seeds: int = 1
    svm_light: Path | None = None

    def sets(self, rows, say=print):
        """(row, X, y) of the rows of a table whose data are there; says the others."""
        for row in rows:
            try:
                X, y = datasets.read(self.folder, row.name)
            except FileNotFoundError as error:
                say(f"{row.label} is skipped: {error}.")
                continue
            if self.quick and len(y) > QUICK_ROWS:
                some = np.random.default_rng(0).permutation(len(y))[:QUICK_ROWS]
                X, y = X[some], y[some]
            yield row, X, y
