"""What estimators with a kernel share: its parameters, their model and its parts."""

import functools
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from widemargin.arrays import Vector
from widemargin.data.rows import Rows
from widemargin.estimators import objects
from widemargin.estimators.certified import facts_of_model
from widemargin.estimators.checks import is_pairwise
from widemargin.estimators.made_once import made_once
from widemargin.estimators.multiclass import decided_by
from widemargin.estimators.plans import Fit
from widemargin.estimators.support_vectors import (
    coefficients_of,
    keep_as_stored,
    keep_support,
)
from widemargin.estimators.training import (
    Recipe,
    Signs,
)
from widemargin.features.maps import FourierFeatures, LandmarkFeatures, SquareFeatures
from widemargin.kernels.expansion import Expansion, pair_weights
from widemargin.kernels.kernel import Kernel, check_kernel
from widemargin.models.decisions import Decisions
from widemargin.models.model import Model
from widemargin.parameters import Checker
from widemargin.problems import Problem
from widemargin.solutions import weights_of
from widemargin.solvers.driver.contract import Solver

# What the model of one function is made of, and one of classes.
FUNCTION_PARTS = (
    "_meta",
    "kernel_",
    "feature_map_",
    "coef_",
    "intercept_",
    "dual_coef_",
    "support_",
    "support_vectors_",
    "n_support_",
    "n_features_in_",
)
PARTS = (
    "classes_",
    "_scheme",
    "multi_class",
    "decision_function_shape",
    "break_ties",
    *FUNCTION_PARTS,
    "calibrator_",
)


def check_kernel_of(check: Checker, estimator: Any) -> None:
    """Refuse a kernel of an estimator, or a parameter of it, that is out of range."""
    given: Any = SimpleNamespace(
        name=estimator.kernel,
        gamma=estimator.gamma,
        degree=estimator.degree,
        coef0=estimator.coef0,
    )
    check_kernel(check, "kernel", given)


def set_kernel(estimator: Any, rows: Rows, weights: Vector | None) -> Kernel:
    """Set ``kernel_`` and ``gamma_`` for rows, which may have weights."""
    m, n = rows.shape
    _refuse_stored(estimator, rows)
    rows.check_finite()
    name = "precomputed" if objects.were_fitted(estimator) else estimator.kernel
    kernel = Kernel(name, estimator.gamma, estimator.degree, estimator.coef0)
    if kernel.is_precomputed and m != n:
        owner = type(estimator).__name__
        raise ValueError(
            f"The 'X' parameter of {owner}.fit must be a square matrix (m, m) of the "
            f"kernel values of all pairs of rows. Got shape {(m, n)} instead."
        )
    estimator.kernel_ = kernel = kernel.resolved(rows, weights)
    estimator.gamma_ = float(kernel.gamma)
    return kernel


def _refuse_stored(estimator: Any, rows: Rows) -> None:
    """Refuse rows in files where kernel values of all pairs are needed.

    They are not where there is a rank, or where linear solvers do it.
    """
    has_rank = getattr(estimator, "rank", None) is not None
    is_linear = not getattr(estimator, "_has_kernel_solver", True)
    if has_rank or is_linear or rows.in_memory() is not None:
        return
    owner, hint = type(estimator).__name__, ""
    if hasattr(estimator, "rank") and not is_pairwise(estimator):
        other = "With another kernel " if estimator.kernel == "linear" else ""
        hint = f" {other}{owner}(rank=...) takes them."
    expected = "be in memory for a kernel, as a dense or CSR matrix"
    check = Checker(f"{owner}.fit")
    check.refuse_part("X", expected, "rows that are not", hint)


def kernel_recipe(
    kernel: Kernel,
    form: tuple[str, str],
    solver: str | Solver,
    memory_limit: int | None,
) -> Recipe:
    """Problems with a kernel whose gamma is a number, of a loss and an intercept."""

    def make(rows: Rows, y: Signs, C: ArrayLike) -> Problem:
        """One of the problems."""
        options: Any = {"kernel": kernel, "memory_limit": memory_limit}
        return Problem(rows, y, C, *form, **options)

    at = functools.partial(kernel_point, kernel)
    return Recipe(make, at, solver, kernel, form)


def kernel_point(kernel: Kernel, rows: Rows, w: Vector, b: float) -> dict[str, Any]:
    """Attributes with which a point of the only binary problem predicts."""
    support = np.flatnonzero(w)
    found = {
        "support_": support,
        "support_vectors_": rows.whole(rows.take(support)),
        "dual_coef_": w[np.newaxis, support],
        "n_support_": np.array([0, len(support)]),
        "intercept_": np.array([b]),
    }
    if kernel.name == "linear":
        found["coef_"] = rows.rmatvec(w)[np.newaxis]
    return found


def keep_machines(estimator: Any, fit: Fit) -> None:
    """Set the support vectors, and weights where decisions are linear."""
    training, solutions, kernel = fit.training, fit.decisions, estimator.kernel_
    if fit.n_support is not None and (fit.map is None or fit.map.landmarks is None):
        estimator.n_support_ = fit.n_support
    elif fit.map is None or fit.map.landmarks is None:
        has_map = fit.map is not None
        keep_support(estimator, training, solutions, by_class=True, has_map=has_map)
    else:
        _keep_landmarks(estimator, fit)
    if kernel.is_precomputed:
        keep_objects(estimator)
    else:
        keep_as_stored(estimator, training.rows)
    if kernel.name == "linear":
        keep_weights(estimator, _weights(fit))
    if kernel.name in ("linear", "precomputed"):
        estimator._meta["kernel"] = kernel.name
    if fit.map is not None and fit.map.landmarks is None:
        keep_weights(estimator, weights_of(solutions))
        estimator._meta |= kernel.facts


def keep_objects(estimator: Any) -> None:
    """Set the support vectors of a matrix of kernel values."""
    vars(estimator).pop("_rows_of_fit", None)
    estimator.support_vectors_ = _support_objects(estimator)


def _support_objects(estimator: Any) -> Any:
    """The support vectors of a matrix of kernel values: objects, or none."""
    if not objects.were_fitted(estimator):
        return np.empty((0, 0))
    return objects.chosen(estimator, estimator.support_)


class WeightsOfKernel:
    """``coef_`` of a kernel machine, which only a fit sets: what predicts is beside."""

    def __get__(self, estimator: Any, owner: type) -> Any:
        if estimator is None:
            return self
        if "coef_" not in vars(estimator):
            raise AttributeError(
                f"{owner.__name__} has coef_ once it was fitted with a linear kernel, "
                "or with features of another one (rank=...)."
            )
        return vars(estimator)["coef_"]

    def __set__(self, estimator: Any, value: Any) -> None:
        if "coef_" not in vars(estimator):  # a callback makes up the model of a step
            vars(estimator)["coef_"] = value
            return
        raise AttributeError(
            f"The coef_ of {type(estimator).__name__} cannot be set: it is made of "
            "dual_coef_ and support_vectors_. LinearSVC has one that can."
        )

    def __delete__(self, estimator: Any) -> None:
        del vars(estimator)["coef_"]


def keep_weights(estimator: Any, W: NDArray[Any]) -> None:
    """Set ``coef_``, (k, n), for good."""
    W.flags.writeable = False
    vars(estimator)["coef_"] = W


def _keep_landmarks(estimator: Any, fit: Fit) -> None:
    """Set the landmarks of a map as the support vectors."""
    low: Any = fit.map
    estimator.support_ = low.landmarks
    estimator.support_vectors_ = low.map.vectors[low.order]
    estimator.dual_coef_ = np.stack([low.coefficients(s.w) for s in fit.decisions])
    classes = fit.training.index[low.landmarks]
    estimator.n_support_ = np.bincount(classes, minlength=len(estimator.classes_))


def _weights(fit: Fit) -> NDArray[Any]:
    """Weights of the columns, a row each problem, of solutions of a linear kernel."""
    return weights_of(fit.decisions) if fit.weights is None else fit.weights


def kernel_model(estimator: Any) -> Model:
    """What predicts, until a fit or an assignment changes an attribute of it."""
    check_is_fitted(estimator)
    return made_once(estimator, PARTS, lambda: _made(estimator))


def _made(fitted: Any) -> Model:
    """The model of the attributes of an estimator as they are."""
    meta, expand = facts_of_model(fitted), expand_of(fitted)
    decides = decided_by(fitted, fitted._scheme)
    if decides["shape"] != "ovo":  # a calibration is of the classes' decision values
        decides["calibration"] = vars(fitted).get("calibrator_")
    if is_expansion(fitted):
        kernels = expansion_of(fitted)
        return Model(fitted.classes_, meta=meta, kernels=kernels, **decides)
    if hasattr(fitted, "coef_"):
        W = fitted.coef_
    else:  # a sum over columns of the kernel matrix
        weights = coefficients_of(fitted)
        if len(weights) < len(fitted.intercept_):
            weights = pair_weights(weights, fitted.n_support_)
        W = np.zeros((len(weights), fitted.n_features_in_))
        W[:, fitted.support_] = weights
    decisions = Decisions(W.T, fitted.intercept_)
    of_model: dict[str, Any] = {"decisions": decisions, "meta": meta, "expand": expand}
    return Model(fitted.classes_, **of_model, **decides)


def is_expansion(fitted: Any) -> bool:
    """Whether decisions are made of kernel values with support vectors."""
    is_linear = fitted.kernel_.name in ("linear", "precomputed")
    return not is_linear and expand_of(fitted) is None


def expansion_of(fitted: Any) -> Expansion:
    """The decisions of support vectors."""
    return Expansion(
        fitted.kernel_,
        fitted.support_vectors_,
        coefficients_of(fitted),
        fitted.intercept_,
        fitted.n_support_,
    )


def expand_of(fitted: Any) -> FourierFeatures | SquareFeatures | None:
    """The features that decisions are linear in, if these have no landmarks."""
    expand = fitted.feature_map_.expand if hasattr(fitted, "feature_map_") else None
    return None if isinstance(expand, LandmarkFeatures) else expand
