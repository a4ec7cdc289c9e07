"""Which rows lie outside of a ball: the boundary of a share, and warnings."""

import numpy as np

from widemargin.arrays import Vector
from widemargin.solution import Status
from widemargin.solvers.kernel.enclosing_ball import Ball

# Share by which a share of a sum may be above what its digits say (0.29 of 100 is 29).
SLACK = 1e-12


def lowest_inside(scores: Vector, weights: Vector, share: float) -> float:
    """The boundary below which at most a share of the scores (m,) is, by weight.

    As large as can be, in the middle between two scores where there is one below; equal
    scores are on one side.
    """
    order = np.argsort(scores, kind="stable")
    scores, sums = scores[order], np.cumsum(weights[order])
    first = int(np.searchsorted(sums, share * sums[-1] * (1.0 + SLACK), side="right"))
    inside = float(scores[first])
    below = int(np.searchsorted(scores, inside))
    middle = inside - 0.5 * (inside - float(scores[max(0, below - 1)]))
    return middle if middle > scores[max(0, below - 1)] else inside


def warnings_of(
    C: float, ball: Ball, weights: Vector
) -> list[tuple[str, type[Warning]]]:
    """Warnings of a C that leaves most rows, or all rows, outside of the ball."""
    if ball.is_empty:
        return [(_too_small(C, ball, weights), RuntimeWarning)]
    share = float(weights[ball.distances > ball.rho].sum() / weights.sum())
    if share > 0.5 and ball.status is Status.SOLVED:
        return [(_mostly_outside(C, share), UserWarning)]
    return []


def _mostly_outside(C: float, share: float) -> str:
    """That most rows are outside, and what helps."""
    return (
        f"{share:.0%} of the rows lie outside of the ball: C={C:g} is a low price for "
        "that. Raise C, or set contamination to the share that is to be outside."
    )


def _too_small(C: float, ball: Ball, weights: Vector) -> str:
    """That C leaves no point inside, and which would."""
    enough = 0.5 / float((weights * ball.distances).sum())
    return (
        f"No point lies inside: C={C:g} is too small, and the radius is 0. It becomes "
        f"positive at about C={enough:.2g}."
    )
