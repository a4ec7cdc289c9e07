"""Samples of random rows: a step goes toward the best row of a sample."""

import numpy as np

from widemargin import _core
from widemargin.arrays import Index, Vector


class Draws:
    """Where samples come from; the core draws them, for steps in either language.

    Parameters
    ----------
    signs : ndarray (m,), +1 or -1
    size : int, rows of a sample
    balanced : bool
        Whether both classes take turns, and only rows without weight are drawn.
    tries : int
        Samples to draw before the ball is near, because none has a row outside.
    seed : int

    Attributes
    ----------
    size, balanced, tries : as given
    order : int64 ndarray (m,), rows, of the first class in front where they take turns
    split : int, how many are in front, or 0
    state : uint64 ndarray (1,), of the random numbers
    room : int64 ndarray (size,), for a sample
    """

    def __init__(
        self, signs: Vector, size: int, balanced: bool, tries: int, seed: int
    ) -> None:
        self.size, self.balanced, self.tries = size, balanced, tries
        front = np.flatnonzero(signs > 0)
        self.order = np.concatenate([front, np.flatnonzero(signs <= 0)])
        self.split = len(front) if balanced and len(front) < len(signs) else 0
        self.state = np.array([seed], np.uint64)
        self.room = np.empty(size, np.int64)

    def draw(self, weight: Vector) -> Index:
        """Some rows, given the weights (m,) of all: (at most size,)."""
        count = _core.draw_rows(self.order, self.split, self.state, weight, self.room)
        return self.room[:count].copy()
