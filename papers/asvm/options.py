"""What the command line asks for, and the data sets that it gives."""

from dataclasses import dataclass
from pathlib import Path

from papers.asvm import datasets

QUICK_SHARE = 8


@dataclass(frozen=True)
class Options:
    """How much to run.

    Attributes
    ----------
    folder : Path, the data sets
    sizes : rows of the NDC problems
    growth : rows of the problems whose growth is measured
    quick : bool, few rows and one run each: shows that all works, measures nothing
    repeat : int, runs of which the median counts
    """

    folder: Path
    sizes: tuple[int, ...] = (4_000_000, 7_000_000)
    growth: tuple[int, ...] = (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
    quick: bool = False
    repeat: int = 3

    def sets(self, names, say=print):
        """Those of the data sets that are there; says what is skipped."""
        for name in names:
            try:
                data = datasets.read(self.folder, name)
            except FileNotFoundError as error:
                say(f"{name} is skipped: {error}.")
            else:
                yield data.thin(QUICK_SHARE) if self.quick else data
