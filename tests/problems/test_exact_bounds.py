"""SVC with a rank: bounds of the exact kernel problem."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from tests.cases.approximate import (  # noqa: F401
    INTERCEPTS,
    LOSSES,
    METHODS,
    POLYNOMIAL,
    digits_data,
    moons_data,
)
from tests.cases.kernel_reference import conic_optimum, objectives, part
from tests.cases.pairwise import product
from widemargin import SVC


@pytest.mark.cover(2)
@product(approximation=METHODS, intercept=INTERCEPTS, loss=LOSSES, C=[0.1, 10.0])
def test_the_bounds_hold_the_optimum(approximation, intercept, loss, C):
    X, y = part("breast_cancer")
    optimum = conic_optimum("breast_cancer", 0.05, loss, intercept, C)
    gaps = []
    for rank in (4, 30, 250):
        clf = SVC(
            gamma=0.05,
            C=C,
            rank=rank,
            approximation=approximation,
            loss=loss,
            intercept=intercept,
            certify="exact",
            tol=1e-6,
        ).fit(X, y)
        (bounds,) = clf.exact_certificates_
        assert bounds.dual <= optimum * (1.0 + 1e-7)
        assert bounds.primal >= optimum * (1.0 - 1e-7)
        assert clf.exact_gap_ == bounds.relative_gap
        gaps.append(clf.exact_gap_)
        if approximation != "fourier":
            _check_bounds(clf, X, y, C, loss, intercept)
    assert gaps[2] < gaps[0]
    assert approximation == "fourier" or gaps[2] < 1e-5


def _check_bounds(clf, X, y, C, loss, intercept):
    """The bounds are what their definitions say, in float64."""
    K = rbf_kernel(X, gamma=0.05)
    (bounds,), b = clf.exact_certificates_, clf.intercept_[0]
    beta = np.zeros(len(y))
    beta[clf.support_] = clf.dual_coef_[0]
    primal, _ = objectives(K, y, C, loss, intercept, y * beta, b)
    assert bounds.primal == pytest.approx(primal, rel=1e-8)
    alpha = clf.solution_.alpha
    most = (C / alpha[alpha > 0]).min() if loss == "hinge" else 10.0
    duals = [
        objectives(K, y, C, loss, intercept, t * alpha, 0.0)[1]
        for t in np.geomspace(1e-4, most, 300)
    ]
    assert max(duals) <= bounds.dual * (1.0 + 1e-9)
    assert max(duals) == pytest.approx(bounds.dual, rel=1e-3)


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
@pytest.mark.parametrize("scheme", ["ovo", "ovr"])
def test_bounds_of_each_pair_and_class(digits, kernel, scheme):
    X, y = digits[0][:200], digits[1][:200] % 3
    X = X if kernel == "rbf" else rbf_kernel(X, gamma=1.0 / 64)
    options = {"kernel": kernel, "gamma": 1.0 / 64, "multi_class": scheme}
    exact = SVC(**options, tol=1e-7).fit(X, y)
    low = SVC(**options, rank=25, certify="exact").fit(X, y)
    assert len(low.exact_certificates_) == 3
    for bounds, solution in zip(low.exact_certificates_, exact.solutions_, strict=True):
        assert bounds.dual <= solution.certificate.primal
        assert bounds.primal >= solution.certificate.dual
    assert low.exact_gap_ == max(c.relative_gap for c in low.exact_certificates_)
    assert low.dual_gap_ <= 1e-4


def test_without_a_rank_the_bounds_are_the_solutions(moons):
    clf = SVC(certify="exact").fit(*moons)
    assert clf.exact_certificates_ == [clf.solution_.certificate]
    assert clf.exact_gap_ == clf.dual_gap_


def test_an_indefinite_kernel_has_no_lower_bound(moons):
    """Of c = Y alpha the squared norm is seen to be negative."""
    sign = np.where(moons[1] > 0, 1.0, -1.0)
    K, y = np.eye(400) - 0.1 * (np.outer(sign, sign) - np.eye(400)), moons[1]
    clf = SVC(kernel="precomputed", rank=30, approximation="cholesky", certify="exact")
    (bounds,) = clf.fit(K, y).exact_certificates_
    assert bounds.dual == -np.inf
    assert clf.exact_gap_ == np.inf


@pytest.mark.parametrize("coef0", [1.0, 100.0])
def test_rounding_of_squared_norms_is_part_of_the_bounds(moons, coef0):
    """Large coefficients of opposite signs cancel; the kernel is semidefinite."""
    options = {"kernel": "poly", "degree": 1, "gamma": 1.0, "coef0": coef0}
    options |= {"loss": "squared_hinge", "C": 1e6, "certify": "exact", "rank": 30}
    clf = SVC(approximation="cholesky", tol=1e-9, **options).fit(*moons)
    (bounds,), known = clf.exact_certificates_, clf.solution_.certificate
    assert bounds.dual <= known.primal * (1 + 1e-12)
    assert bounds.primal >= known.dual * (1 - 1e-12)
    assert clf.exact_gap_ < 1e-4


def test_bounds_that_contradict_each_other_prove_nothing(moons):
    """Kernel values rounded to float32 are those of an indefinite kernel."""
    X, y = moons
    K = rbf_kernel(X[:, :1], gamma=0.1).astype(np.float32).astype(np.float64)
    clf = SVC(kernel="precomputed", rank=30, C=1e4, loss="squared_hinge")
    clf.set_params(certify="exact", approximation="eigen").fit(K, y)
    (bounds,) = clf.exact_certificates_
    assert bounds.dual == -np.inf
    assert clf.exact_gap_ == np.inf


@pytest.mark.parametrize("C", [1.0, 100.0, 1e4])
def test_kernel_values_of_float32_are_known_to_that_precision(moons, C):
    X, y = moons
    K = rbf_kernel(X[:, :1], gamma=0.1)
    options = {"kernel": "precomputed", "C": C, "loss": "squared_hinge"}
    exact = SVC(tol=1e-8, **options).fit(K, y).solution_.certificate
    clf = SVC(rank=30, approximation="eigen", certify="exact", **options)
    (bounds,) = clf.fit(K.astype(np.float32), y).exact_certificates_
    assert bounds.dual <= exact.primal
    assert exact.dual <= bounds.primal
    assert clf.exact_gap_ < (1e-3 if C == 1.0 else 0.9)
    clf.set_params(kernel=lambda A, B: rbf_kernel(A[:, :1], B[:, :1], gamma=0.1))
    clf.fit(X.astype(np.float32), y)
    assert clf.exact_gap_ < (1e-3 if C == 1.0 else 0.9)


def test_features_of_more_columns_than_rows_are_not_counted(moons):
    """The rank is lowered to the rows before memory is asked for."""
    X, y = moons[0][:60], moons[1][:60]
    for approximation in ("eigen", "nystroem", "cholesky"):
        clf = SVC(rank=10**12, approximation=approximation).fit(X, y)
        assert clf.feature_map_.rank <= 60
    clf = SVC(kernel="precomputed", rank=10**12).fit(rbf_kernel(X), y)
    assert clf.feature_map_.rank <= 60
    clf = SVC(**POLYNOMIAL).set_params(rank=10**12).fit(X, y)
    assert clf.feature_map_.rank == 6


@pytest.mark.parametrize("approximation", ["eigen", "nystroem"])
def test_maps_that_hold_their_features_need_room(moons, approximation):
    X, y = moons
    kernel = "rbf" if approximation == "eigen" else "precomputed"
    clf = SVC(kernel=kernel, rank=30, approximation=approximation, memory_limit=1 << 14)
    with pytest.raises(ValueError, match="memory_limit.* must be at least .* features"):
        clf.fit(X if kernel == "rbf" else rbf_kernel(X), y)


def test_zero_is_bounded_too(moons):
    """No time for an answer: alpha = 0 and f = 0."""
    for approximation in ("nystroem", "fourier"):
        clf = SVC(rank=8, approximation=approximation, certify="exact", time_limit=1e-9)
        with pytest.warns(UserWarning, match="time_limit"):
            clf.fit(*moons)
        (bounds,) = clf.exact_certificates_
        assert bounds.dual == 0.0
        assert bounds.primal == pytest.approx(400.0)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # it says that of the kernel
@pytest.mark.parametrize("rank", [None, 20])
def test_an_indefinite_kernel_proves_nothing(rank):
    X, y = part("breast_cancer")
    K = X @ X.T - 5.0 * np.eye(len(X))
    clf = SVC(kernel="precomputed", certify="exact", rank=rank).fit(K, y)
    assert clf.exact_gap_ == np.inf
    assert "exact_gap" not in clf.model_.meta
