"""What the command line asks for, and the data sets that it gives."""

from dataclasses import dataclass
from pathlib import Path

from papers.crsvm import datasets

QUICK_ROWS, QUICK_SHARE = 600, 8
SMALL = 10_000  # rows up to which a run may be repeated: see `Options.runs`


@dataclass(frozen=True)
class Options:
    """How much to run.

    Attributes
    ----------
    folder : Path, the data sets
    quick : bool, few rows and few settings: shows that all works, measures nothing
    repeat : int, runs of which the median counts
    timeout : float, seconds after which a run is given up
    """

    folder: Path
    quick: bool = False
    repeat: int = 3
    timeout: float = 120.0

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
            try:
                found = [self._read(name, split) for split in splits]
            except FileNotFoundError as error:
                say(f"{name} is skipped: {error}.")
            else:
                yield found

    def _read(self, name, split):
        """A set of Table 5.1, whole, or of the Adult series, which stays a series."""
        if name in datasets.TABLE:
            data = datasets.TABLE[name](self.folder)
            step = -(-len(data.y) // QUICK_ROWS)
        else:
            data, step = datasets.adult(self.folder, name, split), QUICK_SHARE
        return data.thin(step) if self.quick else data
