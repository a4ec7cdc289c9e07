"""What the command line asks for, and the data sets that it gives."""

from dataclasses import dataclass
from pathlib import Path

from papers.crsvm import datasets

QUICK_ROWS, QUICK_SHARE = 600, 8


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
        for name in names:
            try:
                data = self._read(name)
            except FileNotFoundError as error:
                say(f"{name} is skipped: {error}.")
            else:
                yield data

    def _read(self, name):
        """A set of Table 5.1 or of the Adult series, which stays a series."""
        if name in datasets.TABLE:
            data = datasets.TABLE[name](self.folder)
            step = -(-len(data.y) // QUICK_ROWS)
        else:
            data, step = datasets.adult(self.folder, name), QUICK_SHARE
        return data.thin(step) if self.quick else data
