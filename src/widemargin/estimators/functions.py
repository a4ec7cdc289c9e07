"""What kernel machines of one function share: regressors, and machines of one class."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Index, Vector
from widemargin.data.rows import Rows
from widemargin.estimators.checks import facts_of_end, fitted_anew, tell_end
from widemargin.estimators.kernel_machines import (
    expand_of,
    expansion_of,
    is_expansion,
    keep_objects,
    keep_weights,
)
from widemargin.estimators.low_rank import Approximation, facts_of
from widemargin.estimators.plans import Fit
from widemargin.estimators.support_vectors import (
    coefficients_of,
    keep_as_stored,
    keep_support_vectors,
)
from widemargin.kernels.kernel import Kernel
from widemargin.models.decisions import Decision
from widemargin.problems.regression import of_samples
from widemargin.solution import Solution
from widemargin.solutions import weights_of


def fit_function(estimator: Any, find: Callable[[], Fit]) -> None:
    """Check the parameters, keep what is found, and tell how it ended."""
    estimator._check()
    with fitted_anew(estimator):
        fit = find()
        estimator._store(fit)
        estimator.seconds_ = fit.training.clock.seconds()
    solution = estimator.solution_
    tell_end(solution, solution.is_convex)


def store_function(
    estimator: Any, solutions: Sequence[Solution], facts: dict[str, Any]
) -> None:
    """Set the answer, how good it is, and facts about the training as it was."""
    estimator.solutions_, estimator.solution_ = solutions, solutions[0]
    estimator.n_iter_ = max(1, solutions[0].trace[-1].iteration)
    estimator.dual_gap_ = float(solutions[0].certificate.relative_gap)
    estimator.status_ = solutions[0].status.value
    estimator._meta = facts | facts_of_end(estimator, solutions[0].is_convex)
    if hasattr(estimator, "feature_names_in_"):
        names = [str(name) for name in estimator.feature_names_in_]
        estimator._meta["feature_names"] = names


def keep_function(estimator: Any, fit: Fit, c: Vector) -> None:
    """Set the support vectors, or the landmarks of a map, and weights of columns.

    ``c`` are the coefficients of the samples (m,), with which there are no landmarks.
    """
    kernel, solution, low = estimator.kernel_, fit.solutions[0], fit.map
    if low is None or low.landmarks is None:
        keep_coefficients(estimator, fit, c)
    else:
        estimator.support_ = low.landmarks
        estimator.support_vectors_ = low.map.vectors[low.order]
        estimator.dual_coef_ = low.coefficients(solution.w)[np.newaxis]
        estimator.n_support_ = _count(low.landmarks)
    if kernel.is_precomputed:
        keep_objects(estimator)
    else:
        keep_as_stored(estimator, fit.training.rows)
    if kernel.name == "linear":
        keep_weights(estimator, _column_weights(fit))
    if kernel.name in ("linear", "precomputed"):
        estimator._meta["kernel"] = kernel.name
    if low is not None:
        _keep_map(estimator, low, solution.w)


def keep_coefficients(estimator: Any, fit: Fit, c: Vector) -> None:
    """Set the support vectors and their coefficients."""
    estimator.support_ = np.flatnonzero(c)
    keep_support_vectors(estimator, fit.training.rows, fit.map is not None)
    estimator.dual_coef_ = c[np.newaxis, estimator.support_]
    estimator.n_support_ = _count(estimator.support_)


def function_point(kernel: Kernel, rows: Rows, w: Vector, b: float) -> dict[str, Any]:
    """Attributes with which a point of the problem predicts."""
    c = of_samples(w, rows.shape[0])
    support = np.flatnonzero(c)
    found = {
        "support_": support,
        "support_vectors_": rows.take(support),
        "dual_coef_": c[np.newaxis, support],
        "n_support_": _count(support),
        "intercept_": np.array([b]),
    }
    if kernel.name == "linear":
        found["coef_"] = rows.rmatvec(c)[np.newaxis]
    return found


def function_parts(fitted: Any) -> dict[str, Any]:
    """What a `Model` is made of, of the attributes of an estimator as they are."""
    if is_expansion(fitted):
        return {"kernels": expansion_of(fitted)}
    if hasattr(fitted, "coef_"):
        w = fitted.coef_[0]
    else:  # a sum over columns of the kernel matrix
        w = np.zeros(fitted.n_features_in_)
        w[fitted.support_] = coefficients_of(fitted)[0]
    decision = Decision(w, float(fitted.intercept_[0]))
    return {"decisions": (decision,), "expand": expand_of(fitted)}


def _keep_map(estimator: Any, low: Approximation, w: Vector) -> None:
    """Set the map, what is known of it, and weights of features without landmarks."""
    estimator.feature_map_ = low.map
    estimator._meta |= facts_of(low.map)
    if low.landmarks is None:
        keep_weights(estimator, w[np.newaxis])
        estimator._meta |= estimator.kernel_.facts


def _count(support: Index) -> NDArray[np.int32]:
    return np.array([len(support)], np.int32)


def _column_weights(fit: Fit) -> NDArray[Any]:
    """Weights of the columns, (1, n), of the solution of a linear kernel."""
    return weights_of(fit.solutions) if fit.weights is None else fit.weights
