"""EnclosingBall where numbers differ by many powers of ten, or kernels are odd."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from widemargin import EnclosingBall

Long = np.longdouble
# Few rows, and a low price: most are outside then, which test_contamination.py is about.
pytestmark = pytest.mark.filterwarnings("ignore:.*lie outside of the ball:UserWarning")


def fit(ball, X, weights=None):
    """Fit without the warning that no point is inside."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "No point lies inside", RuntimeWarning)
        return ball.fit(X, sample_weight=weights)


def bounds(d, support, a, C):
    """The best P of a center with squared distances d, and D of a, in long double."""
    d, a, C = (np.asarray(part, Long) for part in (d, a, C))
    order = np.argsort(-d)
    prices = 2.0 * C[order]
    below = np.cumsum(prices * (d[order[0]] - d[order]))
    rho = max(d[order[0]] - ((below + 1.0) / np.cumsum(prices)).min(), Long(0))
    V, S = (a * d[support]).sum(), (a * a / (4.0 * C[support])).sum()
    sigma = min(Long(1), V / (2.0 * S))
    primal = rho + (C * np.maximum(d - rho, 0) ** 2).sum()
    return primal, sigma * V - sigma**2 * S, rho


def check_soft(ball, X, weights):
    """The answer of a linear kernel is as good as its certificate says."""
    assert ball.status_ == "solved"
    kept = np.flatnonzero(weights)
    support = np.searchsorted(kept, ball.support_)
    Y = X[kept].astype(Long)
    a = ball.dual_coef_[0].astype(Long)
    a /= a.sum()
    d = ((Y - a @ Y[support]) ** 2).sum(axis=1)
    primal, dual, rho = bounds(d, support, a, ball.C * weights[kept].astype(Long))
    assert -1e-15 <= (primal - dual) / primal <= ball.tol * (1 + 1e-6)
    assert ball.radius_**2 == pytest.approx(
        float(rho), rel=1e-9, abs=1e-12 * float(d.max())
    )


@pytest.mark.cover(2)
@pytest.mark.parametrize("C", [1e-6, 1e-2, 1.0, 1e6])
@pytest.mark.parametrize("spread", [3, 10])
@pytest.mark.parametrize("scale", [1e-9, 1e6])
def test_weights_that_differ_by_powers_of_ten(C, spread, scale):
    rng = np.random.default_rng(spread)
    for m in (2, 5, 300):
        X = scale * rng.normal(size=(m, 3))
        weights = 10.0 ** rng.uniform(-spread, 0, m)
        ball = EnclosingBall(C=C, kernel="linear", tol=1e-5)
        check_soft(fit(ball, X, weights), X, weights)


def test_the_dual_price_is_far_from_the_first_guess():
    """Two orthogonal points, of which the first weighs next to nothing."""
    C, weights = 32547.0, np.array([3.7e-8, 7.3e-3])
    ball = EnclosingBall(C=C, kernel="precomputed", tol=1e-6, max_iter=1000)
    fit(ball, np.eye(2), weights)
    assert ball.status_ == "solved"
    a = ball.dual_coef_[0]
    d = 1.0 + a @ a - 2.0 * a
    primal, dual, _ = bounds(d, ball.support_, a, C * weights)
    assert dual <= primal <= (1.0 + 1e-6) * dual


@pytest.mark.parametrize("step", ["away", "pairwise", "swap"])
def test_rounding_ends_the_steps_of_few_points_of_any_price(step):
    for seed in range(60):
        rng = np.random.default_rng(seed)
        m = int(rng.integers(2, 6))
        K = np.diag(10.0 ** rng.uniform(-2, 2, m)) if seed % 2 else np.eye(m)
        ball = EnclosingBall(kernel="precomputed", tol=1e-6, step=step, max_iter=1000)
        fit(ball, K, 10.0 ** rng.uniform(-4, 4, m))
        assert ball.status_ == "solved"
        assert ball.n_iter_ < 1000


def test_squares_that_are_next_to_nothing():
    X = 1e-100 * np.random.default_rng(0).normal(size=(60, 2))
    for C in (1.0, 1e100):
        ball = fit(EnclosingBall(C=C, kernel="linear"), X)
        assert (ball.status_, ball.radius_) == ("solved", 0.0)


def test_prices_beyond_the_largest_number():
    X = np.random.default_rng(0).normal(size=(60, 2))
    ball = EnclosingBall(C=1e308).fit(X, sample_weight=np.full(60, 1e3))
    hard = EnclosingBall(C=None).fit(X)
    assert ball.radius_ == pytest.approx(hard.radius_, rel=1e-6)


def test_a_price_that_is_found_by_and_by():
    """The first guesses at sigma have gaps that hide all progress of the dual value."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(600, 8)) * 1e-3
    X[0] += 1.0
    weights = 10.0 ** rng.uniform(-10, 0, len(X))
    ball = EnclosingBall(C=2e-4, kernel="linear", tol=3e-3)
    check_soft(fit(ball, X, weights), X, weights)


# -- kernels that are none -------------------------------------------------------------


def leaning(A, B):
    """No kernel: k(x, z) is not k(z, x)."""
    return A @ B.T + A[:, :1]


@pytest.mark.parametrize("C", [None, 0.1])
def test_a_kernel_that_is_not_symmetric_is_refused(C):
    X = np.random.default_rng(0).normal(size=(400, 3))
    K = np.exp(-np.square(X[:, np.newaxis] - X).sum(axis=2))
    K += np.triu(np.random.default_rng(1).normal(size=K.shape), 1)
    for options, data in (({"kernel": "precomputed"}, K), ({"kernel": leaning}, X)):
        ball = EnclosingBall(C=C, **options)
        with pytest.raises(ValueError, match="kernel must be symmetric"):
            ball.fit(np.abs(data))
        assert not hasattr(ball, "radius_")


def test_rows_beyond_all_numbers_are_outside():
    X = np.random.default_rng(0).normal(size=(60, 3))
    far = np.array([[1e150, 0.0, 0.0], [-1e150, 0.0, 0.0]])
    for kernel in ("poly", "linear", "rbf"):
        ball = EnclosingBall(C=None, kernel=kernel, degree=4).fit(X)
        scores = ball.score_samples(far)
        assert np.all(scores < ball.offset_)
        np.testing.assert_array_equal(ball.predict(far), -1)


def test_advice_for_a_kernel_without_features():
    K = np.eye(20) + 1e9
    ball = EnclosingBall(C=None, kernel="precomputed", tol=1e-9)
    with pytest.warns(ConvergenceWarning, match="rounding .* Check the kernel"):
        ball.fit(K)


@pytest.mark.parametrize("C", [None, 500.0])
@pytest.mark.parametrize("kernel", ["poly", "rbf", "linear"])
def test_equal_points_are_solved_to_any_gap(kernel, C):
    X = np.full((300, 8), 0.3)
    ball = EnclosingBall(C=C, kernel=kernel, gamma=1.0, tol=1e-9).fit(X)
    assert ball.status_ == "solved"
    assert ball.radius_ <= 1e-7


def test_a_gap_that_rounding_hides_is_proved_in_twice_the_precision():
    K = np.eye(5) + 1e9  # in float64 the squared distances have an error of 1e-7
    ball = EnclosingBall(C=1.0, kernel="precomputed", tol=1e-9).fit(K)
    assert ball.status_ == "solved"
    # All weights are 1/5: |c|^2 = 1e9 + 1/5, each distance 4/5 and rho less by 1/10.
    assert ball.radius_**2 == pytest.approx(0.8 - 0.1, abs=1e-6)
