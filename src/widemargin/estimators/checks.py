"""What frames a fit: its limits and data are checked, a failure leaves no trace."""

import datetime as dt
import functools
import inspect
import itertools
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from textwrap import shorten
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from widemargin.data.distributed import is_collection
from widemargin.data.matrix import column_names, refuse_unreadable
from widemargin.data.memory import MemoryRows, as_rows
from widemargin.data.present import is_scattered, present
from widemargin.data.rows import Rows
from widemargin.data.storage import is_full, well_stored
from widemargin.data.words import encoded
from widemargin.estimators import objects
from widemargin.kernels.kernel import Kernel
from widemargin.kernels.layout import SPARSE_BATCH
from widemargin.parameters import Checker, is_integer
from widemargin.problems.base import Problem
from widemargin.solution import NOT_CONVEX, UNPROVED, Status
from widemargin.solvers import auto
from widemargin.solvers.driver.contract import Solver
from widemargin.solvers.kernel import batch
from widemargin.system.memory import FREE_SHARE, free_bytes

_NUMERIC: Any = "numeric"
# How errors of scikit-learn and NumPy begin that words may be the cause of.
_OF_WORDS = ("could not convert", "Expected 2D array", "dtype='numeric' is not")
# What weights, their averages and steps take for each column at least: 48 bytes of
# LinearSVC(), 64 with the hinge, 72 with a rank.
COLUMN_BYTES = 48
# Attributes of a fit whose names do not say so.
_OF_FIT = ("_meta", "_scheme", "_rows_of_fit", objects.OBJECTS)
# Estimators that are fitted at the moment, by process: a fork has no threads of others.
_AT_WORK: dict[tuple[int, int], object] = {}


def check_limits(check: Checker, estimator: Any) -> None:
    """Raise for a limit, seed or listener of an estimator that is out of range."""
    check.positive("tol", estimator.tol, most=1.0)
    check.positive("time_limit", estimator.time_limit, optional=True)
    if is_integer(estimator.max_iter) and estimator.max_iter == -1:  # scikit-learn's
        expected = (
            "an int in the range [1, inf), or None, which is the solver's own limit "
            "and takes the place of scikit-learn's -1"
        )
        check.refuse("max_iter", expected, -1)
    check.count("max_iter", estimator.max_iter, optional=True)
    check.memory_limit(estimator.memory_limit, least=1 << 14)
    if not isinstance(estimator.verbose, bool):
        check.count("verbose", estimator.verbose, least=0)
    jobs, seed = estimator.n_jobs, estimator.random_state
    if jobs is not None and not (is_integer(jobs) and jobs):
        check.refuse("n_jobs", "a nonzero int or None", jobs)
    if not (estimator.callback is None or callable(estimator.callback)):
        check.refuse("callback", "callable or None", estimator.callback)
    drawn = seed is None or isinstance(seed, np.random.RandomState)
    if not (drawn or (is_integer(seed) and seed >= 0)):
        expected = "an int in the range [0, inf), a RandomState or None"
        check.refuse("random_state", expected, seed)


def check_weight(check: Checker, estimator: Any) -> None:
    """Refuse a C out of range; inf where the estimator has no hard margins."""
    if not (estimator._takes_infinity and is_infinite(estimator.C)):
        most = "]" if estimator._takes_infinity else ")"
        check.positive("C", estimator.C, f"a float in the range (0, inf{most}")
        return
    given = vars(estimator)
    for name in ("rank", "checkpoint"):
        if given.get(name) is not None:
            check.refuse_part("C", f"be finite where {name!r} is given", "inf")
    if given.get("epsilon") == 0:
        check.refuse_part("C", "be finite where 'epsilon' is 0", "inf")


def check_solver(check: Checker, machine: Any, problem: Callable[..., Problem]) -> None:
    """Refuse a solver that is none; offers those that take what the machine solves.

    ``problem`` makes a small problem of its loss and intercept, with a ``kernel``.
    """
    given, rank = machine.solver, getattr(machine, "rank", None)
    if isinstance(given, Solver) or (isinstance(given, str) and given in auto.NAMES):
        return
    auto.refuse_class(check, given)
    names: set[str] = set() if rank is not None else {batch.NAME}
    stands = Kernel("linear")  # for any kernel
    maps = rank is not None and rank != "auto" and not getattr(machine, "polish", False)
    if not maps and hasattr(machine, "kernel"):
        names |= auto.able(problem(kernel=stands))
    if maps or getattr(machine, "kernel", "linear") == "linear":
        names |= auto.able(problem())
    loss = getattr(machine, "loss", None)
    where = f" for loss={loss!r}" if isinstance(loss, str) else ""
    check.choice("solver", given, tuple(n for n in auto.NAMES if n in names), where)


def intercept_of(machine: Any) -> Any:
    """The intercept that it asks for: none where scikit-learn's word says so."""
    return machine.intercept if getattr(machine, "fit_intercept", True) else "none"


def check_fit_intercept(check: Checker, machine: Any) -> None:
    """Refuse scikit-learn's word for an intercept where the other one says another."""
    check.choice("fit_intercept", machine.fit_intercept, (True, False))
    if not machine.fit_intercept and machine.intercept not in ("auto", "none"):
        expected = f"be True where intercept={machine.intercept!r}"
        check.refuse_part("fit_intercept", expected, "False")


def is_infinite(C: Any) -> bool:
    """Whether the margins are hard."""
    return isinstance(C, float | np.floating) and bool(np.inf == C)


def weighted(C: float, *factors: Any) -> Any:
    """Weights of the losses by rows: C times factors; zero where one of these is."""
    if is_infinite(C):
        return np.where(np.all([f > 0.0 for f in factors], axis=0), C, 0.0)
    return functools.reduce(np.multiply, factors, C)


def seed_of(estimator: Any) -> int | None:
    """The random state of an estimator as a number, if there is one."""
    seed = estimator.random_state
    if isinstance(seed, np.random.RandomState):
        return int(seed.randint(2**31))
    return None if seed is None else int(seed)


def is_pairwise(estimator: Any) -> bool:
    """Whether its X holds kernel values."""
    return bool(getattr(estimator, "kernel", None) == "precomputed")


def read_rows(estimator: Any, X: Any, reset: bool = False) -> Rows:
    """Rows of data to train (reset) or to predict; numbers are checked later.

    A kernel matrix is checked at once: scikit-learn expects NaN reported first.
    """
    if is_collection(X):
        raise TypeError(
            f"{type(estimator).__name__} takes no Dask collection: on a cluster "
            "LinearSVC, LinearSVR and SVC with a rank are fitted. X.compute() brings "
            "it here."
        )
    refuse_unreadable(X)
    if not reset:  # words of a table, where a fit had a column for each of them
        X = encoded(X, vars(estimator).get("feature_names_in_"))
    table = X = _without_objects(estimator, X, reset)
    is_kernel = is_pairwise(estimator) or objects.were_fitted(estimator)
    if isinstance(X, Rows):
        keep_columns(estimator, X) if reset else _check_columns(estimator, X)
        return _as_fitted(estimator, X) if reset else X
    is_plain = reset and not is_kernel and _is_plain(X)
    if is_plain:
        estimator.n_features_in_ = X.shape[1]
    elif reset or is_kernel or not _is_expected(estimator, X):
        X = _validated(estimator, X, reset, is_kernel)
    given = {"n_jobs": estimator.n_jobs, "memory_limit": estimator.memory_limit}
    try:
        is_known = is_plain and type(X) is np.ndarray  # a fit has checked the limits
        rows = MemoryRows(X, **given) if is_known else as_rows(X, **given)
    except ValueError as error:
        _refuse_words(table, error)
        raise
    if rows.names is None and not is_kernel:  # for sentences that name a column
        rows.names = vars(estimator).get("feature_names_in_")
    return _as_fitted(estimator, rows) if reset else rows


def _as_fitted(estimator: Any, rows: Rows) -> Rows:
    """The rows of a fit: without columns that hold no entry, where it needs none.

    Kernels by name do not. A function of the user's may look at the columns, and
    weights and features have a number for each.
    """
    kernel = getattr(estimator, "kernel", None)
    has_name = isinstance(kernel, str) and kernel not in ("linear", "precomputed")
    takes = getattr(estimator, "_takes_present", False) and has_name
    if takes and getattr(estimator, "rank", None) is None:
        rows = present(rows)
        # Whole numbers are read as bytes where batches are dense.
        by_bytes = rows.dtype.kind in "iu" and rows.share > SPARSE_BATCH
        return rows if by_bytes or is_full(rows) else well_stored(rows)
    if is_scattered(rows.in_memory() if rows.is_in_memory else None):
        _refuse_columns(type(estimator).__name__, rows.shape[1])
    return rows


def _refuse_columns(owner: str, n: int) -> None:
    """Refuse so many columns that vectors with a number for each do not fit."""
    needed, free = COLUMN_BYTES * n, int(free_bytes() / FREE_SHARE)
    if needed > free:
        raise MemoryError(
            f"{owner} needs some {needed >> 30} GiB for numbers of {n:,} columns, and "
            f"{free >> 30} GiB are free: hash them to fewer; a kernel such as 'rbf', "
            "without a rank, needs no such numbers"
        )


def _validated(estimator: Any, X: Any, reset: bool, is_kernel: bool) -> Any:
    """X as scikit-learn checks it; names a column of words."""
    _refuse_mixed_names(X)
    try:
        return validate_data(
            estimator,
            X,
            reset=reset,
            dtype=_NUMERIC,
            ensure_all_finite=is_kernel,
            accept_sparse="csr",
            accept_large_sparse=True,
        )
    except (TypeError, ValueError) as error:  # a TypeError where dates meet numbers
        _refuse_words(X, error)
        raise


def _refuse_mixed_names(X: Any) -> None:
    """Refuse a table some of whose columns have names, and others numbers."""
    if column_names(X) is None or hasattr(X, "column_names"):  # none, or Arrow's
        return
    other = [x for x in getattr(X, "columns", ()) if not isinstance(x, str)]
    if other:
        raise TypeError(
            "X must have names of columns that are all strings, or none that is. Got "
            f"{other[0]!r} among strings instead: X.columns = X.columns.astype(str) "
            "makes strings of all."
        )


def _refuse_words(X: Any, error: Exception) -> None:
    """Name the first column of a table that holds no numbers, if that is the error."""
    for name in column_names(X) or ():
        if np.asarray(X[name]).dtype.kind in "fiub":
            continue
        found = next((x for x in X[name] if not _is_number(x)), None)
        if found is not None:
            is_time = isinstance(found, dt.date | dt.timedelta)
            of = "times (days since the first)" if is_time else "words (OneHotEncoder)"
            raise ValueError(
                f"X must hold numbers only. Got {str(found)!r} in column {name!r} "
                f"instead: leave it out, or make numbers of {of}."
            ) from error
    _refuse_words_of_array(X, error)


def _refuse_words_of_array(X: Any, error: Exception) -> None:
    """Name the first entry of an array or a list that is a word, if that is wrong."""
    if not str(error).startswith(_OF_WORDS):
        return
    if (found := np.asarray(X)).dtype.kind not in "OU":
        return
    for place, value in np.ndenumerate(found):
        if not isinstance(value, str) or _is_number(value):
            continue
        if found.ndim == 1:
            raise ValueError(
                f"X must hold numbers only. Got the text {shorten(value, 40)!r} at row "
                f"{place[0]} instead: make numbers of texts (TfidfVectorizer)."
            ) from error
        raise ValueError(
            f"X must hold numbers only. Got {shorten(value, 40)!r} at row {place[0]}, "
            f"column {place[1]} instead: leave the column out, or make numbers of "
            "words (OneHotEncoder)."
        ) from error
    if found.ndim == 2 and found.dtype.kind == "U":
        raise ValueError(
            f"X must hold numbers only. Got the text {str(found.flat[0])!r} instead: "
            "X.astype(float) makes numbers of it."
        ) from error


def _is_number(value: Any) -> bool:
    """Whether an entry is a number, or text that is one, or is missing."""
    try:
        float(value)
    except (TypeError, ValueError):
        return value is None or type(value).__name__ in ("NAType", "NaTType")
    return True


def _without_objects(estimator: Any, X: Any, reset: bool) -> Any:
    """Kernel values in the place of objects, where an estimator takes them."""
    if reset and getattr(estimator, "_takes_objects", False):
        if objects.are_given(estimator, X):
            return objects.fit_values(estimator, X)
    elif objects.were_fitted(estimator):
        return objects.values(estimator, X)
    return X


def _is_expected(estimator: Any, X: Any) -> bool:
    """Whether `validate_data` would find nothing to say, convert or refuse.

    It takes 0.1 ms, longer than a small model takes for a row.
    """
    fitted = vars(estimator)
    return (
        _is_plain(X)
        and X.shape[1] == fitted.get("n_features_in_")
        and "feature_names_in_" not in fitted
    )


def _is_plain(X: Any) -> bool:
    """Whether X is a matrix of numbers that is used as it is."""
    is_array = type(X) is np.ndarray or (sparse.issparse(X) and X.format == "csr")
    return bool(is_array and X.dtype == np.float64 and X.ndim == 2 and min(X.shape) > 0)


def keep_columns(estimator: Any, rows: Rows) -> None:
    """Number and names of the columns, as scikit-learn keeps them for tables."""
    estimator.n_features_in_ = rows.shape[1]
    if rows.names is not None:
        estimator.feature_names_in_ = np.array(rows.names, dtype=object)


def _check_columns(estimator: Any, rows: Rows) -> None:
    """Refuse rows with other names; the model refuses another number without names."""
    known = getattr(estimator, "feature_names_in_", None)
    if known is None or rows.names is None:
        return
    for j, (name, found) in enumerate(itertools.zip_longest(known, rows.names)):
        if name == found:
            continue
        got = f"no column {name!r} instead"
        if found is not None:
            expected = "no more" if name is None else repr(name)
            got = f"{found!r} as column {j} instead of {expected}"
        raise ValueError(
            f"X must have the columns of the training data, in their order. Got {got}."
        )


@contextmanager
def fitted_anew(estimator: Any) -> Iterator[None]:
    """Take the fitted attributes; give them back where a fit raises.

    A KeyboardInterrupt that says nothing, of data that are read or of a second Ctrl-C,
    gets a sentence instead of a traceback of what was at work.
    """
    key, mark = (os.getpid(), id(estimator)), object()
    try:
        if _AT_WORK.setdefault(key, mark) is not mark:  # at once, unlike a look before
            raise RuntimeError(
                f"This {type(estimator).__name__} is being fitted already: fit a clone "
                "of it (sklearn.base.clone), in each thread another one."
            )
        with _given_back(estimator):
            yield
    finally:  # also of a Ctrl-C that comes before the fit
        if _AT_WORK.get(key) is mark:
            del _AT_WORK[key]


@contextmanager
def _given_back(estimator: Any) -> Iterator[None]:
    """Take the fitted attributes; give them back where a fit raises."""
    before = _take_fitted(estimator)
    try:
        yield
    except BaseException as error:
        _take_fitted(estimator)
        vars(estimator).update(before)
        if isinstance(error, KeyboardInterrupt) and not error.args:
            raise KeyboardInterrupt(
                f"Ctrl-C ended the fit of {type(estimator).__name__} at once: no model "
                "was kept, and the estimator is as it was before."
            ) from None
        raise


def _take_fitted(estimator: Any) -> dict[str, Any]:
    """What a fit has set, taken away."""
    # Not what scikit-learn's callbacks set for the time of a fit.
    own = vars(estimator)
    fitted = [n for n in own if (n[-1] == "_" and n[0] != "_") or n in _OF_FIT]
    return {name: own.pop(name) for name in fitted}


def tell_end(end: Any, is_convex: bool) -> None:
    """Raise or warn where what ended (``status``, ``message``) is not solved."""
    if end.status is Status.INTERRUPTED:
        gap = end.certificate.relative_gap
        proof = f"its relative gap is {gap:.1e}"
        if gap >= UNPROVED:
            proof = "nothing useful was proved of it"
        raise KeyboardInterrupt(
            "Ctrl-C ended the fit: the estimator has the best model so far, and "
            f"{proof}. Use it as after any fit, or call fit again, which starts afresh."
        )
    if end.status is Status.OUT_OF_MEMORY:
        raise MemoryError(end.message)
    # What NOT_CONVEX says is said once.
    if end.status is not Status.SOLVED and (is_convex or end.message != NOT_CONVEX):
        warnings.warn(end.message, ConvergenceWarning, stacklevel=users_level())
    if not is_convex:
        warnings.warn(NOT_CONVEX, RuntimeWarning, stacklevel=users_level())


def facts_of_end(estimator: Any, is_convex: bool) -> dict[str, Any]:
    """How a fit ended, as its model keeps it; that a gap is no proof where it is none.

    Models that are older do not say so.
    """
    facts = {"dual_gap": estimator.dual_gap_, "status": estimator.status_}
    return facts if is_convex else facts | {"is_convex": False}


_NOT_THE_USERS = {
    *("widemargin", "sklearn", "joblib"),
    *("concurrent", "multiprocessing", "runpy", "threading"),
}


def users_level() -> int:
    """The ``stacklevel`` of a warning of the caller that names the user's line.

    Frames of this package, of scikit-learn (a decorator, a pipeline) and of joblib
    between them are passed over, and those of threads and processes that call them. In
    a process with no line of the user's the warning names this package.
    """
    level, frame = 0, inspect.currentframe()
    while frame is not None:
        module = frame.f_globals  # a program that python -m runs has the name __main__
        package = str(module.get("__package__") or module.get("__name__"))
        if package.partition(".")[0] not in _NOT_THE_USERS:
            return level
        level, frame = level + 1, frame.f_back
    return 1
