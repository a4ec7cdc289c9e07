"""Rows near the end of the range of floats: no warning of NumPy's reaches the user."""

import re
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from widemargin import (
    SVC,
    SVR,
    Kernel,
    LinearSVC,
    LinearSVR,
    NuSVC,
    NuSVR,
    OneClassSVM,
    as_rows,
)

STORED = {"dense": np.asarray, "sparse": sparse.csr_matrix}


def three_classes(m, n):
    X = np.random.default_rng(0).normal(size=(m, n))
    total = X[:, :3].sum(axis=1)
    return X, (total > 0).astype(int) + (total > 1)


@pytest.mark.parametrize(
    ("machine", "m", "n", "scale", "stored"),
    [
        (SVC(kernel="linear"), 60, 5, 1e153, "dense"),
        (SVC(kernel="linear"), 60, 5, 1e75, "sparse"),
        (LinearSVC(solver="interior_point"), 300, 900, 1e140, "dense"),
        (LinearSVC(intercept="free"), 300, 900, 1e152, "dense"),
        (OneClassSVM(kernel="linear"), 300, 900, 1e152, "sparse"),
        (OneClassSVM(kernel="linear", nu=1.0), 6, 3, 1e-190, "dense"),
    ],
    ids=str,
)
def test_fits_end_without_a_warning_of_floats(machine, m, n, scale, stored):
    """They were heard of samples that do not suit, and of shared reads."""
    X, y = three_classes(m, n)
    if stored == "sparse":
        X *= np.random.default_rng(1).random((m, n)) < 0.1
    X = STORED[stored](scale * X)
    machine.set_params(time_limit=0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # these may well come
        machine.fit(X, y)
    machine.predict(X)


@pytest.mark.parametrize(
    ("machine", "times", "weight", "said"),
    [
        (SVR(C=1e307), 1.0, None, "'y' parameter of SVR.fit must be so small that C"),
        (NuSVR(C=1e307), 1.0, None, "'y' parameter of NuSVR.fit must be so small"),
        (LinearSVR(), 1e307, None, "'y' parameter of LinearSVR.fit must be so small"),
        (LinearSVC(C=1.7e308), None, None, "a finite sum in LinearSVC. Got up to 1.7e"),
        (NuSVC(), None, 1e308, "'sample_weight' parameter of NuSVC.fit must have a fi"),
        (OneClassSVM(), None, 1e308, "'sample_weight' parameter of OneClassSVM.fit"),
        (SVC(C=10.0), None, 1e306, "C times the weights of the rows must have a finit"),
        (NuSVR(), 1.0, 1e160, "must have a sum of at most 1e+150 in NuSVR. Got up to"),
    ],
)
def test_sums_beyond_all_floats_are_refused(machine, times, weight, said):
    """SVR had a gap of 0; others spoke of arrays, and warned of overflow."""
    X, y = three_classes(60, 4)
    y = y if times is None else times * X[:, 0]
    weights = None if weight is None else np.full(60, weight)
    with pytest.raises(ValueError, match=re.escape(said)):
        machine.fit(X, y, sample_weight=weights)


def test_a_gap_that_is_relative_to_more_than_the_bounds_says_so():
    X, _ = three_classes(120, 4)
    y = 2.0 * X[:, 0] + X[:, 1] ** 2
    told = "The gap is relative to"
    assert told not in str(SVR(C=1.0).fit(X, y).solution_)
    solution = SVR(C=1e14).fit(X, y).solution_
    assert f"{told} {solution.certificate.scale:.3g}" in str(solution)


@pytest.mark.parametrize(
    "machine", [LinearSVC(), SVC(kernel="linear"), SVR(kernel="linear")], ids=str
)
@pytest.mark.parametrize("m", [1, 5000])
def test_rows_with_both_infinities_are_refused_without_a_warning(machine, m):
    X, y = three_classes(60, 3)
    rows = np.ones((m, 3))
    rows[0, :2] = np.inf, -np.inf
    machine.fit(X, y)
    with pytest.raises(ValueError, match="must hold finite numbers"):
        machine.predict(rows)


@pytest.mark.parametrize("scale", [1e16, 1e18, 1e25])
@pytest.mark.parametrize(
    "machine",
    [
        LinearSVC(),
        LinearSVC(solver="active_set"),
        LinearSVC(loss="hinge"),
        LinearSVR(epsilon=0.1),
        LinearSVR(epsilon=0.1, solver="interior_point"),
    ],
    ids=str,
)
def test_columns_beyond_all_digits_prove_no_less_than_zero(machine, scale):
    """Rounding of w'x is larger than margins: bounds were below zero, gaps 1e22."""
    X, y = three_classes(60, 4)
    y = y % 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(scale * X, y)
    found, losses = machine.solution_.certificate, 60.0
    if isinstance(machine, LinearSVR):
        losses = np.maximum(abs(y) - 0.1, 0.0).sum()
    assert found.dual >= 0.0
    assert found.primal <= losses * (1 + 1e-12)
    assert 0.0 <= found.rounding <= found.gap
    assert machine.dual_gap_ <= 1.0


def test_gamma_by_weights_whose_sums_with_rows_overflow():
    """It was 1, with NumPy's warnings."""
    X, _ = three_classes(60, 4)
    weights = np.random.default_rng(1).uniform(0.5, 1.0, 60)
    small, large = (
        Kernel("rbf").resolved(as_rows(1e20 * X), np.ldexp(weights, e)).gamma
        for e in (0, 1000)
    )
    assert small == large != 1.0


def test_units_of_margins_that_no_C_has():
    """C over the unit of tiny targets was infinite, with NumPy's warnings."""
    X, _ = three_classes(60, 4)
    weights = 10.0 ** np.linspace(-200, 290, 60)
    machine = LinearSVR(C=1.0, epsilon=0.0, tol=1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine.fit(X, 1e-100 * X[:, 0], sample_weight=weights)
    assert not np.isnan(machine.dual_gap_)
