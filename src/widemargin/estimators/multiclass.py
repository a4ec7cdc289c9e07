"""How labels become binary problems, and how their decisions become labels."""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Index, Index64, Vector
from widemargin.data.memory import as_rows
from widemargin.data.rows import Rows
from widemargin.data.shared import for_solve_of
from widemargin.models.schemes import PAIRED, SCHEMES, SHAPES
from widemargin.parameters import Checker


class BinaryTask(NamedTuple):
    """A binary problem: a class against another one, or the rest.

    Attributes
    ----------
    positive : int, the class of label +1
    negative : int or None, the class of label -1; None: all other classes
    factor : float, of the weights of the class of label +1
    """

    positive: int
    negative: int | None = None
    factor: float = 1.0


class BinaryTasks(Sequence[BinaryTask]):
    """The binary problems of a fit, each made when it is asked for.

    Parameters
    ----------
    positive : int ndarray (t,), the class of label +1 of each
    negative : int ndarray (t,) or None
        The class of label -1 of each; None: all other classes.
    factors : ndarray (t,) or None
        Of the weights of the class of label +1 of each; None: 1.
    """

    def __init__(
        self,
        positive: Index64,
        negative: Index64 | None = None,
        factors: Vector | None = None,
    ) -> None:
        self.positive, self.negative, self.factors = positive, negative, factors

    @property
    def are_pairs(self) -> bool:
        """Whether each has the rows of two classes only."""
        return self.negative is not None

    def __len__(self) -> int:
        return len(self.positive)

    @overload
    def __getitem__(self, which: int) -> BinaryTask: ...

    @overload
    def __getitem__(self, which: slice) -> "BinaryTasks": ...

    def __getitem__(self, which: Any) -> Any:
        positive, negative = self.positive[which], self.negative
        negative = negative if negative is None else negative[which]
        factors = None if self.factors is None else self.factors[which]
        if isinstance(which, slice):
            return BinaryTasks(positive, negative, factors)
        return BinaryTask(
            int(positive),
            None if negative is None else int(negative),
            1.0 if factors is None else float(factors),
        )

    @property
    def are_against_rest(self) -> bool:
        """Whether each is of one of several classes against all others."""
        return self.negative is None and len(self) > 1

    def with_factors(self, factors: Vector) -> tuple["BinaryTasks", Vector | None]:
        """The problems where classes have such factors, and those that rows have.

        Of several classes one against the rest the class of a problem has its own, and
        the rest has 1, as in LIBLINEAR; else rows have them, by their class.
        """
        if self.are_against_rest:
            return self.weighed(factors[self.positive]), None
        return self, factors

    def weighed(self, factors: Vector) -> "BinaryTasks":
        """The problems with a factor of C each."""
        return BinaryTasks(self.positive, self.negative, factors)


def one_task(copies: int = 1) -> BinaryTasks:
    """The problem of all rows, whose labels or targets are not those of classes."""
    return BinaryTasks(np.zeros(copies, np.int64))


def check_scheme(check: Checker, estimator: Any) -> None:
    """Refuse a scheme, or what it cannot decide by."""
    shape, scheme = estimator.decision_function_shape, estimator.multi_class
    if isinstance(scheme, str) and scheme == "crammer_singer":
        expected = f"one of {', '.join(map(repr, SCHEMES))} ('ovr' is the nearest)"
        check.refuse("multi_class", expected, scheme)
    check.choice("multi_class", scheme, SCHEMES)
    check.choice("decision_function_shape", shape, SHAPES)
    check.choice("break_ties", estimator.break_ties, (False, True))
    if shape == "ovo" and scheme not in PAIRED:
        expected = f"{SHAPES[0]!r} where multi_class={scheme!r}"
        check.refuse("decision_function_shape", expected, shape)


def check_ties(estimator: Any) -> None:
    """Refuse labels by decision values of classes where those of pairs are asked."""
    if estimator.decision_function_shape == "ovo" and estimator.break_ties:
        raise ValueError(  # in scikit-learn's words
            "break_ties must be False when decision_function_shape is 'ovo'"
        )


def scheme_of(n_classes: int, multi_class: str) -> str:
    """The scheme of a `Model`."""
    return "binary" if n_classes == 2 else multi_class


def decided_by(estimator: Any, scheme: str) -> dict[str, Any]:
    """How a model of an estimator decides: its scheme, shape and break_ties."""
    check_scheme(Checker(type(estimator).__name__), estimator)
    shape = estimator.decision_function_shape if scheme in PAIRED else SHAPES[0]
    breaks = bool(estimator.break_ties) and scheme == "ovo" and shape != "ovo"
    return {"scheme": scheme, "shape": shape, "break_ties": breaks}


def tasks_of(n_classes: int, scheme: str) -> BinaryTasks:
    """The binary problems of a scheme, in the order of their decisions in a `Model`."""
    if n_classes == 2:
        return BinaryTasks(np.ones(1, np.int64))
    if scheme == "ovr":
        return BinaryTasks(np.arange(n_classes))
    return _pairs(n_classes)


@functools.lru_cache(maxsize=2)  # to find them takes a thirtieth of a small fit
def _pairs(n_classes: int) -> BinaryTasks:
    """All pairs of classes; nobody writes to them."""
    return BinaryTasks(*np.triu_indices(n_classes, 1))


def rows_of(rows: Rows, index: Index | None, is_kernel: bool) -> Rows:
    """Some of the rows; of a kernel matrix, their columns too."""
    if index is None:
        return rows
    if not rows.is_in_memory:
        return rows.select(np.isin(np.arange(rows.shape[0]), index))
    X = rows.take(index)
    own = as_rows(X[:, index] if is_kernel else X, **rows.options)
    return for_solve_of(rows, own)


def coefficients_of_classes(
    tasks: BinaryTasks,
    alphas: Sequence[Vector],
    labels: NDArray[Any],
    support: Index,
) -> Vector:
    """Signed dual variables of the support vectors, a row for each problem: (t, l)."""
    out = np.empty((len(tasks), len(support)))
    for row, positive, alpha in zip(out, tasks.positive.tolist(), alphas, strict=True):
        np.take(alpha, support, out=row, mode="clip")  # no copy: all are inside
        row *= signs(labels[support], positive)
    return out


def coefficients_of_pairs(
    tasks: BinaryTasks,
    alpha: Vector,
    rows: tuple[Index, Index],
    labels: NDArray[Any],
    support: Index,
) -> Vector:
    """Signed dual variables of c classes in pairs, as LIBSVM has them: (c - 1, l).

    In a column are the coefficients of a vector of class i against the other classes,
    in their order. ``alpha`` and ``rows`` are those of all problems, one after the
    other, with how many each has.
    """
    (index, sizes), negative = rows, np.asarray(tasks.negative)
    used = (alpha != 0.0).nonzero()[0]
    of = np.repeat(np.arange(len(tasks)), sizes)[used]
    index, alpha = index[used], alpha[used]
    i, j = tasks.positive[of], negative[of]
    place = np.empty(len(labels), np.int64)
    place[support] = np.arange(len(support))
    out, first = np.zeros((int(negative.max()), len(support))), labels[index] == i
    # A vector of the other class has the row of the first one, and the other sign.
    out[np.where(first, j - 1, i), place[index]] = np.where(first, alpha, -alpha)
    return out


def signs(labels: NDArray[Any], positive: int) -> NDArray[np.int8]:
    """Labels of the binary problem of one class against the others: bytes 1 and -1."""
    y: NDArray[np.int8] = (labels == positive).view(np.int8)
    y *= 2
    y -= 1
    return y
