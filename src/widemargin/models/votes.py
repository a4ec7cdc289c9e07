"""What the decisions of several classes say of a class: votes, or a walk.

One against one ("ovo") counts votes. A directed acyclic graph ("dag") has the same
pairs of classes and walks: it begins with all classes, and the pair of the first and
the last of those that are left drops one of them, c - 1 times. Every class is in some
pair of a walk, so that a walk takes the kernel values of all support vectors, as votes
do; the sums for all pairs are a small part of the work.

References
----------
[platt2000]_, section 3.
"""

import numpy as np
from numpy.typing import NDArray

from widemargin import _core

Vector = NDArray[np.float64]


def by_class(values: Vector, scheme: str, c: int) -> Vector:
    """Scores of c classes from the decisions of a scheme, (m, k): (m, c)."""
    made = {"ovo": votes, "dag": drops}.get(scheme)
    return values if made is None else made(values, c)


def votes(values: Vector, c: int) -> Vector:
    """Votes of the pairs of c classes, plus a part of less than 1/3: (m, c)."""
    scores = np.empty((len(values), c))
    _core.votes(values, scores)
    return scores


def drops(values: Vector, c: int) -> Vector:
    """How many classes a walk drops before each class, plus the part of `votes`.

    That is c - 1 for the class that is left.
    """
    scores = votes(values, c)
    scores -= np.rint(scores)
    pair = np.zeros((c, c), np.intp)
    pair[np.triu_indices(c, 1)] = np.arange(values.shape[1])
    rows, first = np.arange(len(values)), np.zeros(len(values), np.intp)
    last = first + c - 1
    for step in range(c - 1):
        speaks = values[rows, pair[first, last]] >= 0.0  # for the first of the two
        scores[rows, np.where(speaks, last, first)] += step
        last -= speaks
        first += ~speaks
    scores[rows, first] += c - 1
    return scores
