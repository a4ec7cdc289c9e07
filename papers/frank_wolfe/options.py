"""What the command line asks for, and the data sets that it gives."""

from dataclasses import dataclass, replace
from pathlib import Path

from papers.frank_wolfe import datasets

QUICK_ROWS = 200


@dataclass(frozen=True)
class Options:
    """How much to run.

    Attributes
    ----------
    folder : Path, the data sets
    quick : bool, few rows and one run each: shows that all works, measures nothing
    repeat : int, runs of each method, with other random numbers
    limit : float, seconds that one training may take
    names : names of the sets; None: all
    """

    folder: Path
    quick: bool = False
    repeat: int = 5
    limit: float = 60.0
    names: tuple[str, ...] | None = None

    def sets(self, names, say=print):
        """(row of the paper's tables, data) of the sets that are there; says others."""
        for name in names:
            if self.names is not None and name not in self.names:
                continue
            try:
                data = datasets.read(self.folder, name)
            except FileNotFoundError as error:
                say(f"{name} is skipped: {error}.")
                continue
            if self.quick:
                data = data.part(QUICK_ROWS)
            yield datasets.BY_NAME[name], data

    def least(self, seconds):
        """The same, with a limit of at most so many seconds."""
        return replace(self, limit=min(self.limit, seconds))
