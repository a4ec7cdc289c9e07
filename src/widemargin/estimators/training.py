"""What a plan starts from: the data of a fit, its binary problems, and its limits."""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from widemargin.arrays import Index, Vector
from widemargin.data.row_vector import RowVector
from widemargin.data.rows import Rows
from widemargin.estimators import multiclass
from widemargin.estimators.callbacks import Callbacks
from widemargin.estimators.checks import seed_of
from widemargin.estimators.multiclass import BinaryTasks
from widemargin.estimators.pairs import counts_there, pair_of, weighed_there
from widemargin.kernels.kernel import Kernel
from widemargin.numerics.runs import joined_runs
from widemargin.parameters import refused_by
from widemargin.problems.base import Problem
from widemargin.problems.targets import has_infinity
from widemargin.solution import Solution
from widemargin.solvers.driver.checkpoint import Checkpoint
from widemargin.solvers.driver.contract import Solver
from widemargin.solvers.driver.limits import Clock, Limits

Signs = NDArray[np.int8]  # made once: to evaluate it in a fit would take 10 us
# Without dual variables: those of the slopes of the losses.
StartPoint = tuple[Vector | None, Vector, float]

# A time limit for work that is to end at once.
MOMENT = 1e-9
# The sum of C where alpha has a sum that is a share of it, squares of which are the
# objectives.
MOST_MASS = 1e150


@dataclass(frozen=True)
class Recipe:
    """How binary problems are made, what solves them, and how a point predicts.

    Attributes
    ----------
    make : callable (rows, y, C) -> Problem
    at : callable (rows, w, b) -> dict
        Attributes with which a point of the only binary problem predicts.
    solver : str or Solver
    kernel : Kernel or None, of the problems; None: they are linear in the columns
    form : loss and intercept of problems that have no norm, or None
    q : ndarray (2 m,) or None
        Of a regression: what the margins of its two rows for each sample have to
        reach. None: 1.
    nu : float in (0, 1] or None
        Of one-class and nu machines: the share that the sum of alpha has of what its
        bounds allow (`widemargin.problems.nu`). None: the sum is free.
    to_digits : bool
        Whether linear problems of few rows are solved to the last digits, as those with
        a kernel are.
    """

    make: Callable[[Rows, Signs, ArrayLike], Problem]
    at: Callable[[Rows, Vector, float], dict[str, Any]]
    solver: str | Solver
    kernel: Kernel | None = None
    form: tuple[str, str] | None = None
    q: Vector | None = None
    nu: float | None = None
    to_digits: bool = False

    @property
    def is_pairwise(self) -> bool:
        """Whether the columns are kernel values with the rows."""
        return self.kernel is not None and self.kernel.is_precomputed


def linear_recipe(loss: str, intercept: str, solver: str | Solver) -> Recipe:
    """Problems that are linear in the columns of their rows."""

    def _make(rows: Rows, y: Signs, C: ArrayLike) -> Problem:
        return Problem(rows, y, C, loss, intercept)

    return Recipe(_make, _weights, solver, form=(loss, intercept))


def _weights(rows: Rows, w: Vector, b: float) -> dict[str, Any]:
    return {"coef_": w[np.newaxis], "intercept_": np.array([b])}


@dataclass(frozen=True)
class Training:
    """The data of a fit, as problems are made of them, and what all solves share.

    Attributes
    ----------
    index : int ndarray (m,), the class of each row
    C : float or ndarray (m,), weights of the losses
    tasks : BinaryTasks, the binary problems, which may have factors of C
    limits : Limits, of all solves together, with the clock of the fit
    memory_limit : int or None, in bytes
    seed : int or None
    names : sequence of str or None, of the columns; empty where they are not the user's
    starts : sequence of Solution or None, where the binary problems start
    known : sequence of Solution or None, answers with which they go on
    places : dict of RowVector, by binary problem of two classes on a cluster: the
        numbers of its rows among all
    reached : dict or None, by binary problem: the best weights where rows were lost,
        and without dual variables; None: they are not kept
    """

    rows: Rows
    index: NDArray[Any]
    C: Any
    tasks: BinaryTasks
    recipe: Recipe
    limits: Limits
    callbacks: Callbacks
    memory_limit: int | None
    seed: int | None
    names: Sequence[str] | None
    starts: Sequence[Solution | StartPoint | None] | None = None
    known: Sequence[Solution] | None = None
    places: dict[int, RowVector] = field(default_factory=dict)
    reached: dict[int, StartPoint] | None = None

    @property
    def is_hard(self) -> bool:
        """Whether C is infinite."""
        return has_infinity(self.C)

    @property
    def clock(self) -> Clock:
        """The clock of the fit."""
        return self.limits.clock

    def limited(self, **changes: Any) -> Self:
        """The same with other limits."""
        limits = dataclasses.replace(self.limits, **changes)
        return dataclasses.replace(self, limits=limits)

    def chosen(self, k: int) -> Index | None:
        """The rows of binary problem k; None for all of them."""
        task = self.tasks[k]
        if task.negative is None:
            return None
        order, first, count = self._classes
        pair = [task.positive, task.negative]
        both = joined_runs(order, first[pair], count[pair])
        both.sort(kind="stable")  # two sorted runs: they are merged
        return both

    def chosen_of_pairs(self) -> Index:
        """The rows of all problems of two classes, one problem after the other."""
        (order, first, count), tasks, m = self._classes, self.tasks, len(self.index)
        pairs = np.stack([tasks.positive, np.asarray(tasks.negative)], axis=1).ravel()
        found = joined_runs(order, first[pairs], count[pairs])
        before = m * np.repeat(np.arange(len(tasks)), self.sizes)
        found += before
        found.sort(kind="stable")  # sorted runs: they are merged
        found -= before
        return found

    @functools.cached_property
    def _classes(self) -> tuple[Index, Index, Index]:
        """The rows by classes, where those of each begin, and how many each has."""
        count = np.bincount(self.index)
        return np.argsort(self.index, kind="stable"), np.cumsum(count) - count, count

    def weight(self, k: int) -> float:
        """The sum of its C."""
        C = self.weights(k)
        return float(C.sum() if np.ndim(C) else C * self.sizes[k])

    def weights(self, k: int) -> Any:
        """The C of its rows: of all, or of each; of pairs on a cluster of all rows."""
        C, task = self.C, self.tasks[k]
        if task.negative is None and task.factor != 1.0:
            if isinstance(self.index, RowVector):
                return weighed_there(self.index, C, task)
            return np.where(self.index == task.positive, task.factor * C, C)
        if np.ndim(C) == 0 or isinstance(C, RowVector):
            return C
        chosen = self.chosen(k)
        return C if chosen is None else C[chosen]

    @functools.cached_property
    def sizes(self) -> Index:
        """How many rows the binary problems have."""
        tasks = self.tasks
        if tasks.negative is None:
            return np.full(len(tasks), len(self.index))
        if isinstance(self.index, RowVector):
            counts = counts_there(self.index, 1 + int(tasks.negative[-1]))
        else:
            counts = np.bincount(self.index)
        return np.asarray(counts[tasks.positive] + counts[tasks.negative])

    def signs(self, k: int) -> Signs:
        """Its labels."""
        chosen = self.chosen(k)
        if isinstance(self.index, RowVector):
            found: Any = self.index.map(
                multiclass.signs, np.int8, self.tasks[k].positive
            )
            return found
        index = self.index if chosen is None else self.index[chosen]
        return multiclass.signs(index, self.tasks[k].positive)

    def rows_of(self, k: int, rows: Rows | None = None) -> Rows:
        """The rows of binary problem k, from these or all."""
        rows = self.rows if rows is None else rows
        return multiclass.rows_of(rows, self.chosen(k), self.recipe.is_pairwise)

    def problem(self, k: int, rows: Rows | None = None) -> Problem:
        """Binary problem k, from rows that may wait for other problems' rows."""
        if isinstance(self.index, RowVector) and self.tasks.are_pairs:
            there = self.rows if rows is None else rows
            pair = pair_of(there, self.index, self.C, self.tasks[k])
            self.places[k] = pair.places
            return self.recipe.make(pair.rows, pair.signs, pair.C)
        return self.recipe.make(self.rows_of(k, rows), self.signs(k), self.weights(k))


def limits_of(estimator: Any) -> Limits:
    """The limits of a fit that begins now."""
    saved = Checkpoint.of(estimator.checkpoint, type(estimator).__name__)
    return Limits(
        estimator.tol, estimator.max_iter, estimator.time_limit, checkpoint=saved
    )


@contextmanager
def training_of(
    estimator: Any, limits: Limits, data: tuple[Any, Any, Any], *problems: Any
) -> Iterator[Training]:
    """What the plan of an estimator starts from; its callbacks are at work meanwhile.

    ``data`` are X, y and sample_weight as they were given; ``problems`` the rows, the
    class and the C of each, the tasks, and the recipe.
    """
    rows, index, C, tasks, recipe = problems
    times = (1 if np.ndim(C) else rows.shape[0]) * (1 if recipe.q is None else 2)
    if tasks.factors is not None:
        times *= max(1.0, float(tasks.factors.max()))
        _refuse_underflow(estimator, C, float(tasks.factors.min()))
    _refuse_overflow(estimator, C, times, recipe.nu is not None)
    callbacks = Callbacks(estimator, len(tasks), data)
    try:
        # Features of a kernel speak of SVC, whoever asks for them.
        with refused_by(type(estimator).__name__, "SVC"):
            yield Training(
                rows,
                index,
                C,
                tasks,
                recipe,
                limits,
                callbacks,
                memory_limit=estimator.memory_limit,
                seed=seed_of(estimator),
                names=getattr(estimator, "feature_names_in_", None),
            )
    finally:
        callbacks.close()


def _refuse_overflow(estimator: Any, C: Any, times: float, has_mass: bool) -> None:
    """Refuse C, each so many times, whose sum is beyond all floats, or its square."""
    if isinstance(C, RowVector) or has_infinity(C):  # looked at there, or a hard margin
        return
    with np.errstate(over="ignore"):
        total = times * float(C.sum() if np.ndim(C) else C)
    if not math.isfinite(total):
        raise ValueError(
            f"C times the weights of the rows must have a finite sum in "
            f"{type(estimator).__name__}. Got up to {np.max(C):g}."
        )
    if has_mass and total > MOST_MASS:
        raise ValueError(
            "The weights of the rows, times C if there is one, must have a sum of at "
            f"most {MOST_MASS:g} in {type(estimator).__name__}. Got up to "
            f"{np.max(C):g}."
        )


def _refuse_underflow(estimator: Any, C: Any, factor: float) -> None:
    """Refuse a factor with which C is zero: the same rows weigh nothing in all."""
    if isinstance(C, RowVector):
        return
    least = float(np.min(C, where=np.greater(C, 0.0), initial=np.inf))
    if factor * least == 0.0:
        raise ValueError(
            f"C times the weights of classes must be above zero in "
            f"{type(estimator).__name__}. Got {least:g} times {factor:g}, which no "
            "float holds."
        )
