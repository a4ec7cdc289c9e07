"""Problems of several classes whose rows are on a cluster, and stay there."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Index
from widemargin.data.row_vector import RowVector
from widemargin.data.rows import Rows
from widemargin.data.state import RowState
from widemargin.estimators.multiclass import BinaryTask, signs


@dataclass(frozen=True)
class Pair:
    """The rows of two classes.

    Attributes
    ----------
    signs : RowVector, their labels 1 and -1
    C : float or RowVector
    places : RowVector of their numbers among all rows
    """

    rows: Rows
    signs: Any
    C: Any
    places: RowVector


def pair_of(rows: Any, index: RowVector, C: Any, task: BinaryTask) -> Pair:
    """The rows of a binary problem of two classes, beside those of all. One sweep."""
    vectors = {"C": C} if isinstance(C, RowVector) else {}
    state = rows.state(index=index, place=range(rows.shape[0]), **vectors)
    names = ("index", "place", *vectors)
    kept, own = rows.keep(_is_of_two, state, names, task.positive, task.negative)
    y = own.index.map(signs, np.int8, task.positive)
    return Pair(kept, y, own.C if vectors else C, own.place)


def _is_of_two(part: RowState, positive: int, negative: int) -> Any:
    return (part.index == positive) | (part.index == negative)


def weighed_there(
    index: RowVector, C: float | RowVector, task: BinaryTask
) -> RowVector:
    """C of each row, with the factor of a problem where rows are of its class."""
    factors = index.map(_factor, np.float64, task.positive, task.factor)
    return factors * C


def _factor(index: NDArray[Any], positive: int, factor: float) -> Any:
    return np.where(index == positive, factor, 1.0)


def counts_there(index: RowVector, c: int) -> Index:
    """Rows of each of c classes."""
    found: Index = index.state.sweep(_counts, index.name, c)
    return found


def _counts(part: RowState, index: str, c: int) -> Any:
    return np.bincount(getattr(part, index), minlength=c)


def counts_of_support(
    index: RowVector, alphas: Sequence[RowVector], places: Sequence[Any], c: int
) -> Index:
    """Rows of each class with a positive dual variable in any problem.

    ``places`` says which rows a problem has; None: all.
    """
    state = index.state.beside(alpha=0.0, found=np.broadcast_to(False, len(index)))
    for alpha, own in zip(alphas, places, strict=True):
        if not isinstance(alpha, RowVector):
            continue  # zero, of a problem that there was no time for
        both = state
        if own is None:
            both = alpha.state.prefixed("of.").join(state)
        else:
            state.alpha = 0.0
            state.alpha.put(alpha, own)
        both.sweep(_mark, "alpha" if own is not None else f"of.{alpha.name}")
    both = index.state.prefixed("class.").join(state)
    found: Index = both.sweep(_found_counts, f"class.{index.name}", c)
    return found


def _mark(part: RowState, alpha: str) -> None:
    part.found |= getattr(part, alpha) != 0.0


def _found_counts(part: RowState, index: str, c: int) -> Any:
    return np.bincount(getattr(part, index)[part.found], minlength=c)
