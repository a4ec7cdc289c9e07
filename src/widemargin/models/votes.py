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

from collections.abc import Iterator

import numpy as np

from widemargin import _core
from widemargin.arrays import Index, Mask, Vector
from widemargin.models.schemes import PAIRED, SINGLE


def by_class(values: Vector, scheme: str, c: int) -> Vector:
    """Scores of c classes from the decisions of a scheme, (m, k): (m, c)."""
    made = {"ovo": votes, "dag": drops}.get(scheme)
    return values if made is None else made(values, c)


def votes(values: Vector, c: int) -> Vector:
    """Votes of the pairs of c classes, plus a part of less than 1/3: (m, c)."""
    scores = np.empty((len(values), c))
    _core.votes(values, scores)
    return scores


def winners(values: Vector, scheme: str, c: int, break_ties: bool = False) -> Index:
    """Indices of the classes that the decisions of a scheme, (m, k), choose: (m,)."""
    if scheme in SINGLE:
        return (values[:, 0] >= 0.0).astype(np.intp)
    return largest(by_class(values, scheme, c), scheme, break_ties)


def largest(scores: Vector, scheme: str, break_ties: bool) -> Index:
    """Indices of the classes that the scores of c > 2 classes choose: (m,)."""
    counted = scheme in PAIRED and not break_ties
    scores = np.rint(scores) if counted else scores
    return np.asarray(scores.argmax(axis=1), dtype=np.intp)


def are_sure(
    values: Vector, errors: Vector, scheme: str, c: int, break_ties: bool = False
) -> Mask:
    """Whether errors of the decisions can change no winner: (m,).

    Values that are no numbers, or have no bound, are not sure.
    """
    known = np.isfinite(errors).all(axis=1) & np.isfinite(values).all(axis=1)
    if scheme in SINGLE:
        return np.asarray(known & (np.abs(values[:, 0]) > errors[:, 0]))
    if scheme == "ovr":
        with np.errstate(invalid="ignore"):
            least, most = values - errors, values + errors
        return known & _leads(least, most, strictly=True)
    if scheme == "dag":
        steps = [np.abs(v) > e for v, e, *_ in _walk(values, c, errors)]
        return np.asarray(known & np.logical_and.reduce(steps))
    speaks, against = _sides(c)
    first, second = (
        np.asarray(side, np.float64) for side in (values > errors, values < -errors)
    )
    least = first @ speaks + second @ against
    most = (c - 1) - first @ against - second @ speaks
    return known & _leads(least, most, strictly=break_ties)


def _leads(least: Vector, most: Vector, strictly: bool) -> Mask:
    """Whether some class has more, at least, than the others have at most: (m,).

    Unless it is to be strictly more, as many are enough against later classes.
    """
    rows, best = np.arange(len(least)), least.argmax(axis=1)
    lead = least[rows, best][:, np.newaxis]
    beaten = lead > most
    if not strictly:
        later = np.arange(least.shape[1]) > best[:, np.newaxis]
        beaten |= later & (lead == most)
    beaten[rows, best] = True
    return np.asarray(beaten.all(axis=1))


def _sides(c: int) -> tuple[Vector, Vector]:
    """For pairs i < j of c classes: 1 at i, and 1 at j, (pairs, c) each."""
    i, j = np.triu_indices(c, 1)
    first, second = np.zeros((len(i), c)), np.zeros((len(i), c))
    first[np.arange(len(i)), i] = second[np.arange(len(i)), j] = 1.0
    return first, second


def _walk(
    values: Vector, c: int, errors: Vector
) -> Iterator[tuple[Vector, Vector, Index, Index]]:
    """The decision of each row's pair, its error, the class dropped and the first left.

    c - 1 times, (m,) each.
    """
    pair = np.zeros((c, c), np.intp)
    pair[np.triu_indices(c, 1)] = np.arange(values.shape[1])
    rows, first = np.arange(len(values)), np.zeros(len(values), np.intp)
    last = first + c - 1
    for _ in range(c - 1):
        place = pair[first, last]
        value = values[rows, place]
        speaks = value >= 0.0  # for the first of the two
        dropped = np.where(speaks, last, first)
        last = last - speaks
        first = first + ~speaks
        yield value, errors[rows, place], dropped, first


def drops(values: Vector, c: int) -> Vector:
    """How many classes a walk drops before each class, plus the part of `votes`.

    That is c - 1 for the class that is left.
    """
    scores = votes(values, c)
    scores -= np.rint(scores)
    rows = np.arange(len(values))
    left = np.zeros(len(values), np.intp)
    for step, (_, _, dropped, first) in enumerate(_walk(values, c, values)):
        scores[rows, dropped] += step
        left = first
    scores[rows, left] += c - 1
    return scores
