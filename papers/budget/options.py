"""What the command line asks for, and the splits of the digits that it gives."""

from dataclasses import dataclass
from pathlib import Path

from papers.budget import digits

# Training points of a quick run, and its budgets as shares of them.
QUICK_POINTS, QUICK_SHARES = 100, (0.1, 0.3, 1.0)


@dataclass(frozen=True)
class Options:
    """How much to run.

    Attributes
    ----------
    folder : Path, the data sets
    quick : bool, few points, budgets and splits: shows that all works, measures nothing
    splits : int, random splits of the ten digits
    step : int, from a budget to the next
    processes : int, that share the splits of Figure 1
    """

    folder: Path
    quick: bool = False
    splits: int = 50
    step: int = 20
    processes: int = 1

    @property
    def points(self):
        """Training points of a split."""
        return QUICK_POINTS if self.quick else digits.TRAINING

    @property
    def budgets(self):
        """B = 20, 20 + step, ..., and the number of training points: no cap."""
        m = self.points
        if self.quick:
            return [round(share * m) for share in QUICK_SHARES]
        return sorted({*range(digits.STEP, m, self.step), m})

    def problems(self, points=None, say=print):
        """The `digits.Split` of each random split whose data are there; says if not."""
        training = min(points or self.points, self.points)
        try:
            pixels, labels = digits.read(self.folder)
        except FileNotFoundError as error:
            say(f"The digits are skipped: {error}.")
            return
        for seed in range(min(self.splits, 2) if self.quick else self.splits):
            testing = 4 * training if self.quick else digits.TEST
            yield digits.split(pixels, labels, seed, training, testing)
