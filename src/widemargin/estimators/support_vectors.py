"""What a fit keeps of its training rows: support vectors, and what pickles hold."""

import copy
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from widemargin.arrays import Index, Vector
from widemargin.data.rows import Rows
from widemargin.estimators import multiclass
from widemargin.estimators.training import Training
from widemargin.numerics import linalg
from widemargin.solution import Solution
from widemargin.solutions import dual_variables

# Bytes of support vectors that a fit copies; more are copied when asked for, where
# weights predict: of seven million rows it would take twice as long as training, and 56
# MB of a million rows were a fifth of a fit's processor seconds, all of them in one
# thread. Where they predict themselves all are copied: who changes the training rows
# after a fit would change its predictions.
COPIED_BYTES = 16 << 20
# Classes up to which to count each takes less than to make integers of bytes, which
# `bincount` does (of 600,000 rows 0.1 ms a class, and 2; of few rows 2 us more).
FEW_CLASSES = 3
# What belongs to single training rows, and what predicts without it.
OF_ROWS = ("support_", "support_vectors_", "dual_coef_")
WEIGHTS = ("coef_", "center_")


class OfRows:
    """Says why an attribute of training rows is not there; a fit hides this."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, estimator: Any, owner: type) -> Any:
        if estimator is None:
            return self
        reason = self._reason(vars(estimator))
        raise AttributeError(f"{owner.__name__} has no {self.name}: {reason}.")

    def _reason(self, fitted: dict[str, Any]) -> str:
        """Why there is none."""
        if "n_features_in_" not in fitted:
            return "it has not been fitted"
        return (
            "fits on a cluster leave training rows and dual variables there, and "
            "pickles of linear models leave them out; keep_training_data() before "
            "pickling keeps them"
        )


class SupportVectors(OfRows):
    """Copies ``support_vectors_``, or says why there are none; a fit may hide this."""

    def __get__(self, estimator: Any, owner: type) -> Any:
        if estimator is not None:
            rows = vars(estimator).pop("_rows_of_fit", None)
            if rows is not None:
                estimator.support_vectors_ = rows.whole(rows.take(estimator.support_))
                return estimator.support_vectors_
        return super().__get__(estimator, owner)

    def _reason(self, fitted: dict[str, Any]) -> str:
        if "support_" not in fitted:
            return super()._reason(fitted)
        return (
            "it was fitted on rows that are not in memory; rows.take(support_) reads "
            "them"
        )


class TrainingDataMixin:
    """Attributes of training rows, and pickles without them; a base of estimators."""

    support_, support_vectors_, dual_coef_ = OfRows(), SupportVectors(), OfRows()
    _keeps_training_data = False

    def keep_training_data(self, keep: bool = True) -> Self:
        """Say whether pickles of this estimator hold training rows and dual variables.

        By default they do not, for their size and because training rows may be private:
        ``alpha`` of the solutions is left out (``w`` too where it has a number a row),
        and where ``coef_`` or ``center_`` predicts also ``support_``,
        ``support_vectors_`` and ``dual_coef_``. What predicts is always there: of
        machines with a kernel the support vectors. Asked for in a loaded estimator,
        what was left out raises AttributeError. Copies of the module ``copy`` have all;
        ``clone`` forgets what was said here.

        Parameters
        ----------
        keep : bool, default=True
            Whether pickle, joblib and cloudpickle store them.

        Returns
        -------
        self

        Examples
        --------
        >>> import pickle
        >>> from widemargin import LinearSVC
        >>> X, y = [[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]
        >>> clf = LinearSVC(loss="hinge").fit(X, y)
        >>> hasattr(pickle.loads(pickle.dumps(clf)), "support_vectors_")
        False
        >>> kept = pickle.loads(pickle.dumps(clf.keep_training_data()))
        >>> kept.support_vectors_.tolist()
        [[1.0], [3.0]]
        """
        self._keeps_training_data = bool(keep)
        return self

    def __getstate__(self) -> Any:
        """The attributes that a pickle holds."""
        by_weights = any(name in vars(self) for name in WEIGHTS)
        if self._keeps_training_data or not by_weights:
            self._copy_rows()
        base: Any = super().__getstate__()
        state: dict[str, Any] = dict(base)
        if "solutions_" in state:
            state["solutions_"] = list(state["solutions_"])
        if self._keeps_training_data:
            return state
        for name in (*OF_ROWS, "_rows_of_fit") if by_weights else ():
            state.pop(name, None)
        if "solutions_" in state:
            state["solutions_"] = [s.without_rows() for s in state["solutions_"]]
            state["solution_"] = state["solution_"].without_rows()
        return state

    def __copy__(self) -> Self:
        """A copy with the training data."""
        self._copy_rows()
        new = type(self).__new__(type(self))
        vars(new).update(vars(self))
        return new

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A copy with the training data, and copies of the attributes."""
        self._copy_rows()
        new = memo[id(self)] = type(self).__new__(type(self))
        vars(new).update(copy.deepcopy(vars(self), memo))
        return new

    def _copy_rows(self) -> None:
        """Have the support vectors in place of the rows of the fit."""
        if "_rows_of_fit" in vars(self):
            _ = self.support_vectors_


def keep_support_vectors(estimator: Any, rows: Rows, has_map: bool = False) -> None:
    """Let an estimator have the rows ``support_`` of its fit, where in memory.

    With a kernel they predict, unless there is a map, or the kernel is linear.
    """
    for name in ("support_vectors_", "_rows_of_fit"):  # of an earlier fit
        vars(estimator).pop(name, None)
    kernel = getattr(estimator, "kernel_", None)
    if (X := rows.in_memory()) is None or (kernel and kernel.is_precomputed):
        return
    vars(estimator)["_rows_of_fit"] = rows
    share = estimator.support_.size / rows.shape[0]
    by_weights = kernel is None or kernel.name == "linear" or has_map
    if not by_weights or share * linalg.n_bytes(X) <= COPIED_BYTES:
        _ = estimator.support_vectors_


def keep_support(
    estimator: Any,
    training: Training,
    solutions: Sequence[Solution],
    *,
    by_class: bool,
    has_map: bool = False,
) -> None:
    """Set the support vectors, sorted by class if asked, and their coefficients."""
    index, tasks = training.index, training.tasks
    found = np.zeros(len(index), bool)
    if tasks.are_pairs:
        alpha, own = dual_variables(solutions), training.chosen_of_pairs()
        found[own[alpha != 0.0]] = True
    else:
        alphas = [solution.alpha for solution in solutions]
        for alpha in alphas:
            found |= alpha != 0.0
    support = found.nonzero()[0]
    if by_class:
        support = support[np.argsort(index[support], kind="stable")]
    estimator.support_ = support
    keep_support_vectors(estimator, training.rows, has_map)
    if tasks.are_pairs:
        rows = own, training.sizes
        coefficients = multiclass.coefficients_of_pairs(
            tasks, alpha, rows, index, support
        )
    else:
        coefficients = multiclass.coefficients_of_classes(tasks, alphas, index, support)
    estimator.dual_coef_ = coefficients
    estimator.n_support_ = _counts(index[support], len(estimator.classes_))


def keep_as_stored(estimator: Any, rows: Rows) -> None:
    """Let ``dual_coef_`` be sparse where the rows are, as in scikit-learn."""
    if rows.are_given_sparse:
        estimator.dual_coef_ = sparse.csr_array(estimator.dual_coef_)


def coefficients_of(fitted: Any) -> Vector:
    """Its ``dual_coef_`` as an array."""
    found: Any = fitted.dual_coef_
    return np.asarray(found.toarray() if sparse.issparse(found) else found)


def _counts(labels: NDArray[Any], n_classes: int) -> Index:
    """How many there are of each class."""
    if n_classes > FEW_CLASSES:
        return np.bincount(labels, minlength=n_classes)
    return np.array([np.count_nonzero(labels == k) for k in range(n_classes)], np.intp)
