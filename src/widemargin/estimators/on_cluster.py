"""Fits and predictions of Dask collections: what the estimators do on a cluster."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from widemargin.arrays import Vector
from widemargin.data.distributed.collection import (
    ClusterLostError,
    RowsLostError,
    column_names,
)
from widemargin.data.distributed.opened import open_collection
from widemargin.data.distributed.reading import matrix_of
from widemargin.data.distributed.rows import LoadedRows
from widemargin.data.memory import as_rows
from widemargin.data.row_vector import RowVector
from widemargin.data.state import RowState
from widemargin.estimators import labels
from widemargin.estimators.checks import is_infinite, keep_columns, users_level
from widemargin.estimators.multiclass import BinaryTasks, one_task, tasks_of
from widemargin.estimators.pairs import counts_of_support
from widemargin.estimators.plans import Fit, Plan
from widemargin.estimators.targets import as_target
from widemargin.estimators.training import (
    StartPoint,
    Training,
    limits_of,
    training_of,
)
from widemargin.models.model import Model
from widemargin.parameters import Checker
from widemargin.solvers.driver.limits import Limits
from widemargin.system.deadline import OutOfTime, until

_NOT_THERE = (
    "{} with these parameters takes no Dask collection: on a cluster LinearSVC, "
    "LinearSVR and SVC with a rank (a number) are fitted. X.compute() brings it here."
)


_AGAIN = (
    "Workers were lost at the same time as the copies of what they had beside their "
    "rows. The rows are loaded again, and the fit goes on from its best weights."
)
_LATE = (
    "time_limit was over before rows that were lost with their workers were loaded "
    "again. The attribute 'best' of this error has the best weights, the intercept, "
    "and their relative gap."
)
# Times that a fit is begun, where its row vectors are lost again and again: as often as
# a search for workers may fail in one request.
MOST_TURNS = 30
T = TypeVar("T")


@dataclass(frozen=True)
class _Classes:
    """What the labels and weights of a partition say."""

    owner: str
    leaves_out: bool

    def __call__(self, m: int, y: Any, sample_weight: Any) -> Any:
        check = Checker(f"{self.owner}.fit")
        if y is None:
            raise ValueError("y must have a label for each row. Got none instead.")
        y = labels.as_labels(check, y, m)
        vectors = {"y": y}
        if sample_weight is None:
            return vectors, None, labels.distinct(y)
        weight = _weights(check, sample_weight, m, self.leaves_out)
        vectors["weight"] = weight
        keep = weight > 0.0
        return vectors, keep, labels.distinct(y[keep])


def _weights(check: Checker, given: Any, m: int, leaves_out: bool) -> Vector:
    """Weights of a partition, which may all be zero."""
    given = np.asarray(given)
    if given.dtype.kind in "biuf" and not np.any(given):
        return np.zeros(m)
    return np.array(labels.as_weights(check, given, m, leaves_out))


@contextmanager
def classes_of(
    estimator: Any,
    owner: str,
    limits: Limits,
    X: Any,
    y: Any,
    sample_weight: Any,
) -> Iterator[tuple[LoadedRows, RowVector, Any]]:
    """The rows of a collection, their classes and weights; sets the classes.

    Refusals are in the name of the ``owner``.
    """
    prepare = _Classes(owner, estimator._leaves_out_negative)
    with _opened(estimator, limits, X, (y, sample_weight), prepare) as rows:
        keep_columns(estimator, rows)
        found = [one for facts in rows.facts for one in facts.found]
        classes = _union(Checker(f"{owner}.fit"), found)
        estimator.classes_ = classes
        dtypes: dict[str, Any] = {"y": classes.dtype}
        if sample_weight is not None:
            dtypes["weight"] = np.float64
        state = rows.unpack(**dtypes)
        dtype = np.min_scalar_type(len(classes))
        index = RowVector(state, "y", rows.shape[0], classes.dtype).map(
            _places, dtype, classes
        )
        weight = state.weight if sample_weight is not None else None
        del state
        yield rows, index, weight


def _opened(
    estimator: Any, limits: Limits, X: Any, others: Any, prepare: Any
) -> LoadedRows:
    """The rows of a collection, loaded within the time limit."""
    try:
        with until(limits.deadline):
            return open_collection(X, others, prepare)
    except OutOfTime:
        raise TimeoutError(
            f"time_limit={limits.time_limit} s was over before the rows of X were "
            "loaded on the cluster. Raise time_limit."
        ) from None


def _union(check: Checker, found: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The classes of all partitions."""
    kinds = {("U" if y.dtype.kind in "UO" else y.dtype.kind in "MmU") for y in found}
    if len(kinds) > 1:
        said = ", ".join(sorted({str(y.dtype) for y in found}))
        check.refuse_part("y", "hold labels of one kind in all partitions", said)
    classes = np.unique(np.concatenate(found)) if found else np.empty(0)
    if len(classes) < 2:
        one = f"one class ({classes[0]})" if len(classes) else "no labels"
        check.refuse_part("y", "hold at least two classes", one)
    return classes


def _weights_and_tasks(
    estimator: Any, index: RowVector, weight: Any, classes: NDArray[Any]
) -> tuple[Any, BinaryTasks]:
    """C of all rows, a number or a vector beside them, and the binary problems."""
    tasks = tasks_of(len(classes), estimator.multi_class)
    C: Any = float(estimator.C) if weight is None else weight * float(estimator.C)
    if estimator.class_weight is None:
        return C, tasks
    both = index.state if weight is None else index.state.join(weight.state)
    mass = both.sweep(_mass, index.name, weight and weight.name, len(classes))
    factors = labels.class_factors(
        Checker(type(estimator).__name__),
        estimator.class_weight,
        classes,
        np.arange(len(classes)),
        mass,
    )
    tasks, of_rows = tasks.with_factors(factors)
    if of_rows is not None:
        C = index.map(_of_classes, np.float64, of_rows) * C
    return C, tasks


def _places(y: NDArray[Any], classes: NDArray[Any]) -> Any:
    return np.searchsorted(classes, y)


def _mass(part: RowState, index: str, weight: str | None, c: int) -> Any:
    given = None if weight is None else getattr(part, weight)
    return np.bincount(getattr(part, index), given, c).astype(np.float64)


def _of_classes(index: NDArray[Any], factors: NDArray[Any]) -> Any:
    return factors[index]


def fitted(estimator: Any, X: Any, y: Any, sample_weight: Any, plan: Plan) -> Fit:
    """What a plan finds for a collection; a classifier keeps it."""
    limits, data = limits_of(estimator), (X, y, sample_weight)
    refuse(estimator)
    read, train = of_kind(estimator)
    owner, reached = type(estimator).__name__, dict[int, StartPoint]()

    def once() -> Fit:
        """The fit, of rows that are loaded for it."""
        with read(estimator, owner, limits, *data) as there:
            found: Fit = train(estimator, limits, data, there, plan, reached)
            return found

    return again(once)


def again(once: Callable[[], T]) -> T:
    """What a function returns that loads rows, called anew where they are lost.

    Where the time is over before they are there again, the error has the best weights.
    """
    best, turn = None, 0
    while True:
        try:
            return once()
        except RowsLostError as lost:
            best, turn = lost.best or best, turn + 1
            if turn == MOST_TURNS:
                raise
            warnings.warn(_AGAIN, RuntimeWarning, stacklevel=users_level())
        except TimeoutError as late:
            if best is None:
                raise
            error = ClusterLostError(_LATE)
            error.best = best
            raise error from late


def of_kind(estimator: Any) -> tuple[Any, Any]:
    """What reads a collection for an estimator, and what trains it on the rows."""
    if is_classifier(estimator):
        return classes_of, trained
    return targets_of, trained_regressor


def trained(
    estimator: Any,
    limits: Limits,
    data: tuple[Any, Any, Any],
    there: tuple[Any, RowVector, Any],
    plan: Plan,
    reached: dict[int, StartPoint] | None = None,
) -> Fit:
    """What a plan of a classifier finds for rows that are there, which it keeps.

    It begins where binary problems were when rows were lost: see `fitted`.
    """
    rows, index, weight = there
    C, tasks = _weights_and_tasks(estimator, index, weight, estimator.classes_)
    recipe = estimator._recipe(rows, weight)
    problems = rows, index, C, tasks, recipe
    with training_of(estimator, limits, data, *problems) as training:
        fit = plan(_begun(estimator, training, reached))
    fit = _closed(fit, index, len(estimator.classes_))
    estimator._store(fit)
    return fit


def _begun(
    estimator: Any, training: Training, reached: dict[int, StartPoint] | None
) -> Training:
    """A training that begins at points, and keeps those that it reaches in their place.

    Points are weights of the columns: features of a map may be others the next time.
    """
    if reached is None or getattr(estimator, "rank", None) is not None:
        return training
    starts = [reached.get(k) for k in range(len(training.tasks))]
    return replace(training, starts=starts if reached else None, reached=reached)


def _closed(fit: Fit, index: RowVector, c: int) -> Fit:
    """The answer without what stays with the rows."""
    alphas: list[Any] = [solution.alpha for solution in fit.solutions]
    places = [fit.training.places.get(k) for k in range(len(alphas))]
    counts = counts_of_support(index, alphas, places, c)
    bare = [solution.without_rows() for solution in fit.solutions]
    return replace(fit, solutions=bare, n_support=np.asarray(counts, dtype=np.intp))


def refuse(estimator: Any) -> None:
    """Refuse what needs rows in one place."""
    check = Checker(type(estimator).__name__)
    given = vars(estimator)
    kernel, rank = given.get("kernel", "linear"), given.get("rank")
    suits = kernel == "linear" or (rank is not None and rank != "auto")
    if not (estimator._takes_collections and suits):
        raise TypeError(_NOT_THERE.format(type(estimator).__name__))
    if given.get("certify") == "exact":
        check.refuse("certify", "'approximate' where X is on a cluster", "exact")
    if given.get("polish"):
        check.refuse("polish", "False where X is on a cluster", True)
    if is_infinite(estimator.C):
        expected = "be finite where X is on a cluster (1e6 is nearly as hard)"
        check.refuse_part("C", expected, "inf")


# -- regression ------------------------------------------------------------------------


@dataclass(frozen=True)
class _Targets:
    """What the targets and weights of a partition say."""

    owner: str
    leaves_out: bool

    def __call__(self, m: int, y: Any, sample_weight: Any) -> Any:
        check = Checker(f"{self.owner}.fit")
        if y is None:
            raise ValueError("y must have a target for each row. Got none instead.")
        vectors = {"y": as_target(check, y, m)}
        if sample_weight is None:
            return vectors, None, None
        vectors["weight"] = _weights(check, sample_weight, m, self.leaves_out)
        return vectors, vectors["weight"] > 0.0, None


@contextmanager
def targets_of(
    estimator: Any,
    owner: str,
    limits: Limits,
    X: Any,
    y: Any,
    sample_weight: Any,
) -> Iterator[tuple[LoadedRows, RowVector, Any]]:
    """The rows of a collection, their targets and weights."""
    prepare = _Targets(owner, estimator._leaves_out_negative)
    others = (y, sample_weight)
    with _opened(estimator, limits, X, others, prepare) as rows:
        keep_columns(estimator, rows)
        names = ("y",) if sample_weight is None else ("y", "weight")
        state: Any = rows.unpack(**dict.fromkeys(names, np.float64))
        yield rows, state.y, None if sample_weight is None else state.weight


def trained_regressor(
    estimator: Any,
    limits: Limits,
    data: tuple[Any, Any, Any],
    there: tuple[Any, RowVector, Any],
    plan: Any,
    reached: dict[int, StartPoint] | None = None,
) -> Fit:
    """What a plan of a regressor finds for rows that are there: see `trained`."""
    rows, target, weight = there
    C = estimator.C if weight is None else weight * estimator.C
    recipe = estimator._recipe(rows, weight, target)
    index = rows.state(index=np.broadcast_to(np.int8(0), rows.shape[0])).index
    problems = rows, index, C, one_task(), recipe
    with training_of(estimator, limits, data, *problems) as training:
        fit: Fit = plan(_begun(estimator, training, reached), target)
    return _closed_regression(fit)


def _closed_regression(fit: Fit) -> Fit:
    """The answer without what stays with the rows."""
    alpha: Any = fit.solutions[0].alpha
    first, second = alpha.state.halves(alpha.name)
    both = first.state.prefixed("one.").join(second.state.prefixed("two."))
    count = both.sweep(_count_unequal, f"one.{first.name}", f"two.{second.name}")
    bare = [solution.without_rows() for solution in fit.solutions]
    return replace(fit, solutions=bare, n_support=np.array([count]))


def _count_unequal(part: RowState, one: str, two: str) -> int:
    return int(np.count_nonzero(getattr(part, one) != getattr(part, two)))


# -- predictions -----------------------------------------------------------------------


@dataclass(frozen=True)
class _Predictor:
    """What predicts a partition, wherever it is."""

    model: Model
    decides: bool
    width: int | None
    names: list[str] | None
    categories: dict[str, list[Any]]

    @property
    def dtype(self) -> Any:
        """The dtype of what is predicted."""
        labels = self.decides and not self.model.is_regression
        return self.model.classes.dtype if labels else np.dtype(np.float64)

    def __call__(self, block: Any) -> NDArray[Any]:
        X = matrix_of(block, self.categories)
        if X.shape[0] == 0:
            return np.empty((0,) if self.width is None else (0, self.width), self.dtype)
        rows = as_rows(X)
        rows.names = self.names
        return self.model.labels(rows) if self.decides else self.model.scores(rows)

    def table(self, frame: Any) -> Any:
        """Predictions as a series with the index of the rows, or a frame of scores."""
        import pandas as pd

        found = self(frame)
        if self.width is None:
            return pd.Series(found, index=frame.index)
        return pd.DataFrame(found, index=frame.index, columns=range(self.width))


def lazy_labels(model: Model, X: Any) -> Any:
    """Labels of a collection, or the numbers of a regression: a lazy one."""
    return _lazily(X, _Predictor(model, True, None, *column_names(X)))


def lazy_scores(model: Model, X: Any) -> Any:
    """Decision values of a collection: a lazy one."""
    width = None
    if not model.is_single:
        pairs = model.shape == "ovo"
        width = len(model.decisions) if pairs else len(model.classes)
    return _lazily(X, _Predictor(model, False, width, *column_names(X)))


def _lazily(X: Any, predict: _Predictor) -> Any:
    """Predictions of a collection, made partition by partition when computed."""
    dtype, width = predict.dtype, predict.width
    if hasattr(X, "chunks"):
        X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
        if width is None:
            meta = np.empty(0, dtype)
            return X.map_blocks(predict, drop_axis=1, dtype=dtype, meta=meta)
        chunks, meta = (X.chunks[0], (width,)), np.empty((0, 0), dtype)
        return X.map_blocks(predict, chunks=chunks, dtype=dtype, meta=meta)
    if hasattr(X, "map_partitions"):
        import pandas as pd

        like = pd.Series(np.empty(0, dtype))
        if width is not None:
            like = pd.DataFrame({k: np.empty(0, dtype) for k in range(width)})
        return X.map_partitions(predict.table, meta=like)
    from dask.delayed import delayed

    if isinstance(X, list | tuple):
        return [delayed(predict)(x) for x in X]
    return delayed(predict)(X)
