"""Data at the edges, and estimators of every kind, for test_degenerate_data.py."""

import itertools

import numpy as np
from scipy import sparse

from widemargin import SVC, BudgetSVC, EnclosingBall, LinearSVC
from widemargin.estimators.budget_svc import METHODS
from widemargin.solvers.auto import SOLVERS

# -- data ------------------------------------------------------------------------------


def _normal(m, n):
    return np.random.default_rng(0).normal(size=(m, n))


def _with_column(value):
    X = _normal(24, 3)
    X[:, 1] = value
    return X


def _one_column_not_zero():
    X = np.zeros((24, 4))
    X[:, 2] = _normal(24, 1)[:, 0]
    return X


DATA = {
    "equal": lambda: np.full((20, 3), 1.7),
    "zero": lambda: np.zeros((20, 3)),
    "one-column": lambda: _normal(24, 1),
    "one-column-equal": lambda: np.ones((9, 1)),
    "constant-column": lambda: _with_column(7.0),
    "conflicting": lambda: np.repeat(np.round(_normal(8, 2)), 6, axis=0),
    "two-rows": lambda: np.array([[0.0, 1.0], [2.0, 1.0]]),
    "two-equal-rows": lambda: np.ones((2, 2)),
    "wide": lambda: _normal(6, 40),
    "one-column-not-zero": _one_column_not_zero,
    "one-row-differs": lambda: np.vstack([np.ones((12, 2)), [[2.0, 3.0]]]),
    "far-from-zero": lambda: 1e8 + _normal(24, 3),
}
# Labels of m rows, of at least two classes.
LABELS = {
    "two": lambda m: np.arange(m) % 2,
    "three": lambda m: np.arange(m) % min(3, m),
    "alone": lambda m: (np.arange(m) == m - 1).astype(int),
    "uneven": lambda m: (np.arange(m) % min(5, m) == 1).astype(int),
}
STORED = {
    "float64": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "csr": sparse.csr_array,
    "int16": lambda X: np.round(np.clip(4.0 * X, -9999, 9999)).astype(np.int16),
    "csr-float32": lambda X: sparse.csr_array(X.astype(np.float32)),
}

# -- estimators ------------------------------------------------------------------------


def dense(A):
    """A matrix as a float64 array."""
    return A.toarray().astype(float) if sparse.issparse(A) else np.asarray(A, float)


def _square(A, B):
    """A kernel as a callable."""
    return (1.0 + dense(A) @ dense(B).T / A.shape[1]) ** 2


LOSSES = ("hinge", "squared_hinge")
SETTINGS = list(itertools.product(LOSSES, ["free", "penalized", "none"]))
KERNELS = {
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "degree": 2, "coef0": 1.0},
    "rbf": {},
    "rbf-distance": {"gamma": "mean_distance"},
    "laplacian": {"kernel": "laplacian", "gamma": "auto"},
    "sigmoid": {"kernel": "sigmoid", "gamma": "auto"},
    "precomputed": {"kernel": "precomputed"},
    "callable": {"kernel": _square},
}


def _solves(name, loss, intercept):
    """Whether a solver is one of such problems."""
    if name == "active_set":
        return loss == "squared_hinge"
    if name == "augmented_lagrangian":
        return loss == "hinge"
    if name in ("frank_wolfe", "core_vector"):
        return loss == "squared_hinge" and intercept != "free"
    return intercept != "free" or name != "coordinate_descent"


def _linear():
    solvers = [name for name, kind in SOLVERS.items() if not kind.for_kernels]
    for (loss, intercept), name in itertools.product(SETTINGS, ["auto", *solvers]):
        if _solves(name, loss, intercept):
            yield LinearSVC(loss=loss, intercept=intercept, solver=name)
    yield LinearSVC(C=1e6)
    yield LinearSVC(C=1e-6, loss="hinge", class_weight="balanced")


def _exact():
    solvers = ["irwls", "frank_wolfe", "core_vector"]
    for options in KERNELS.values():
        for loss, scheme in itertools.product(LOSSES, ["ovo", "ovr"]):
            yield SVC(loss=loss, multi_class=scheme, **options)
        for (loss, intercept), name in itertools.product(SETTINGS, solvers):
            if _solves(name, loss, intercept):
                yield SVC(loss=loss, intercept=intercept, solver=name, **options)
    yield SVC(C=1e6)
    yield SVC(C=1e-6, class_weight="balanced", certify="exact")


def _low_rank():
    for kernel in ("poly", "rbf", "laplacian", "precomputed", "callable"):
        options = KERNELS[kernel]
        for method in ("cholesky", "nystroem", "eigen"):
            yield SVC(rank=3, approximation=method, certify="exact", **options)
        yield SVC(rank=1e-3, **options)
        yield SVC(rank=50, certify="exact", **options)
        yield SVC(rank="auto", certify="exact", **options)
    for kernel in ("rbf", "laplacian"):
        options = {"approximation": "fourier", **KERNELS[kernel]}
        yield SVC(rank=6, **options)
        yield SVC(rank=6, certify="exact", **options)
    yield SVC(rank=900, approximation="polynomial", certify="exact", **KERNELS["poly"])
    yield SVC(rank=3, loss="squared_hinge", multi_class="ovr", certify="exact")
    yield SVC(rank=3, polish=True)


def _budget():
    kernels = ("rbf", "linear", "poly", "precomputed", "callable")
    for kernel, norm, method in itertools.product(kernels, ("l1", "l2"), METHODS):
        for budget in (2, 5, 100):
            yield BudgetSVC(budget=budget, norm=norm, method=method, **KERNELS[kernel])
    for norm, method in itertools.product(("l1", "l2"), METHODS):
        yield BudgetSVC(budget=4, norm=norm, method=method, multi_class="ovr")
        yield BudgetSVC(budget=4, norm=norm, method=method, class_weight="balanced")
        yield BudgetSVC(budget=4, norm=norm, method=method, C=1e6)
    yield BudgetSVC(budget=6, total=True)


def _balls():
    for kernel, options in KERNELS.items():
        if kernel != "sigmoid":
            for C in (None, 1e-3, 1.0, 1e6):
                yield EnclosingBall(C=C, **options)
    for step, C in itertools.product(("toward", "pairwise", "swap"), (None, 1.0)):
        yield EnclosingBall(step=step, C=C, tol=0.02 if step == "toward" else 1e-3)


GROUPS = {
    "linear": list(_linear()),
    "exact": list(_exact()),
    "low_rank": list(_low_rank()),
    "budget": list(_budget()),
    "ball": list(_balls()),
}
