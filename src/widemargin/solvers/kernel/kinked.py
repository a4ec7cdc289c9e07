"""One variable for both rows of a sample: what regression is for working sets.

A sample x has the rows (x, +1, q) and (x, -1, q'). In a solution only one of their
signed dual variables c >= 0 and c' <= 0 is not zero, so that beta = c + c' says both:

    minimize   1/2 beta'(K + p + diag(r)) beta - t'beta + sum k abs(beta),
    t = (q - q') / 2,   k = -(q + q') / 2 >= 0,

which has a kink at zero: the slope is k more above it, and k less below. There are half
as many variables, and none whose step meets no curvature, as those of the same x do.
"""

import numpy as np

from widemargin.arrays import Index, Vector
from widemargin.problems.kernel import KernelProblem


class Kinks:
    """The samples of a problem, each there twice.

    Parameters
    ----------
    problem : KernelProblem, for which `are_in` says yes

    Attributes
    ----------
    count : int, m
    sizes : ndarray (m,), k of each sample
    """

    def __init__(self, problem: KernelProblem) -> None:
        self.count = len(problem.signs) // 2
        self.sizes = -0.5 * problem.margins.reshape(2, -1).sum(axis=0)

    @staticmethod
    def are_in(problem: KernelProblem, ridge: Vector) -> bool:
        """Whether one variable says what both do.

        Not where the sum of alpha is given: there it would not be what it was.
        """
        if problem.columns.twins is None or problem.mass is not None:
            return False
        first, second = np.split(ridge, 2)
        q = np.broadcast_to(problem.margins, problem.signs.shape).reshape(2, -1)
        return bool((q.sum(axis=0) <= 0.0).all() and np.array_equal(first, second))

    def rows(self, samples: Index) -> Index:
        """Both rows of some samples: those with +1, then the others."""
        return np.concatenate([samples, samples + self.count])

    def split(self, beta: Vector) -> Vector:
        """The signed dual variables of both rows of some samples."""
        return np.concatenate([np.maximum(beta, 0.0), np.minimum(beta, 0.0)])
