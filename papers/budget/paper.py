"""Support vector machines on a budget: Figure 1, the theorems, equivalences, SMO.

O. Dekel, Y. Singer, "Support vector machines on a budget", NIPS 19 (2006) 345-352.
"""

from dataclasses import dataclass

from papers.budget import digits
from papers.budget.parts import equivalences, figure_1, smo, stopped, theorems, tuned
from papers.options import Options as Common
from papers.options import asked

PARTS = (figure_1, stopped, tuned, theorems, equivalences, smo)
# Training points of a quick run, and its budgets as shares of them.
QUICK_POINTS, QUICK_SHARES = 100, (0.1, 0.3, 1.0)


@dataclass(frozen=True)
class Options(Common):
    """How much to run; quick: few points, budgets and splits."""

    splits: int = asked(50, "random splits of the ten digits; 50 in the paper")
    step: int = asked(20, "from a budget to the next; 20 in the paper")
    processes: int = asked(1, "that share the splits of Figure 1")

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
        images = self.found("mnist", lambda: digits.read(self.folder), say)
        if images is None:
            return
        for seed in range(min(self.splits, 2) if self.quick else self.splits):
            testing = 4 * training if self.quick else digits.TEST
            yield digits.split(*images, seed, training, testing)
