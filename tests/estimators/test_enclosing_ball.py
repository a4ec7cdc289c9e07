"""EnclosingBall: against a conic solver, known balls, its certificate, bad input."""

import functools
import itertools
import warnings

import clarabel
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel

from tests.cases.kernels import SEMIDEFINITE
from tests.cases.pairwise import pairwise
from tests.conftest import long_indices
from widemargin import EnclosingBall, as_rows
from widemargin.problems.ball import best_square
from widemargin.solvers.kernel.simplex import STEPS

# Few rows, or a low price: most are outside then, which test_contamination.py is about.
pytestmark = pytest.mark.filterwarnings("ignore:.*lie outside of the ball:UserWarning")

# -- against other ways to find a ball -------------------------------------------------


def points(m=90, n=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(m, n)) * rng.uniform(0.5, 2.0, n) + rng.uniform(-1, 1, n)


def conic_optimum(K, C=None):
    """The primal optimum by Clarabel, over (c, rho - |c|^2, slacks), for K = X X'."""
    values, vectors = np.linalg.eigh(K)
    X = vectors * np.sqrt(np.maximum(values, 0.0))
    m, n = X.shape
    blocks = [-2.0 * X, -np.ones((m, 1))]
    costs, right = [2.0 * np.ones(n), [0.0]], [-np.diag(K)]
    if C is not None:
        blocks.append(-np.eye(m))
        costs.append(2.0 * C)
        right.append(np.zeros(m))
    A = sparse.csc_matrix(np.hstack(blocks))
    size = A.shape[1]
    if C is not None:
        no_slack = sparse.hstack([sparse.csc_matrix((m, n + 1)), -sparse.eye(m)])
        A = sparse.vstack([A, no_slack]).tocsc()
    q = np.zeros(size)
    q[n] = 1.0
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    P = sparse.diags(np.concatenate(costs)).tocsc()
    right = np.concatenate(right)
    cones = [clarabel.NonnegativeConeT(len(right))]
    found = clarabel.DefaultSolver(P, q, A, right, cones, settings).solve()
    return found.obj_val


def objectives(K, ball, C=None):
    """P of the center of a ball and its rho, and the dual value, as defined."""
    a = np.zeros(len(K))
    a[ball.support_] = ball.dual_coef_[0]
    assert a.min() >= 0
    assert a.sum() == pytest.approx(1.0, abs=1e-13)
    d = np.diag(K) + a @ K @ a - 2.0 * K @ a
    rho = -ball.offset_
    dual = a @ np.diag(K) - a @ K @ a
    if C is None:
        assert np.all(d <= rho + 1e-13 * np.diag(K).max())
        return rho, dual
    return rho + np.sum(C * np.maximum(d - rho, 0.0) ** 2), dual - np.sum(a**2 / C) / 4


def product(A, B):
    """A kernel with a diagonal that varies, as a callable."""
    return (1.0 + A @ B.T) ** 2


KERNELS = {
    "linear": ({"kernel": "linear"}, lambda X: X @ X.T),
    "poly": (
        {"kernel": "poly", "gamma": 0.3, "degree": 2, "coef0": 1.0},
        lambda X: polynomial_kernel(X, degree=2, gamma=0.3, coef0=1.0),
    ),
    "rbf": ({"kernel": "rbf", "gamma": 0.2}, lambda X: rbf_kernel(X, gamma=0.2)),
    "narrow": ({"kernel": "rbf", "gamma": 5.0}, lambda X: rbf_kernel(X, gamma=5.0)),
    "laplacian": (
        {"kernel": "laplacian", "gamma": 0.1},
        lambda X: laplacian_kernel(X, gamma=0.1),
    ),
    "callable": ({"kernel": product}, lambda X: product(X, X)),
}


@functools.cache
def conic_optimum_of(name, m, C):
    K = KERNELS[name][1](points(m))
    return conic_optimum(K, None if C is None else np.full(m, C))


@pytest.mark.cover(1)
@pairwise(
    ("m", "name", "C"),
    itertools.product([90, 300], KERNELS, [None, 0.02, 0.3, 100.0]),
)
def test_the_optimum_is_that_of_a_conic_solver(name, C, m):
    X = points(m)
    options, matrix = KERNELS[name]
    K = matrix(X)
    ball = EnclosingBall(C=C, tol=1e-6, **options).fit(X)
    assert ball.status_ == "solved"
    weights = None if C is None else np.full(m, C)
    primal, dual = objectives(K, ball, weights)
    best = conic_optimum_of(name, m, C)
    assert dual <= best + 1e-7 * abs(best)
    assert primal >= best - 1e-7 * abs(best)
    assert primal - dual <= 1.01e-6 * max(primal, dual)
    assert ball.dual_gap_ <= 1e-6


@pytest.mark.cover(1)
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("name", ["linear", "rbf", "poly"])
def test_every_kind_of_step_ends_at_the_optimum(step, name):
    X = points(150)
    options, matrix = KERNELS[name]
    tol = 0.02 if step == "toward" else 1e-5
    for C in (None, 0.1):
        ball = EnclosingBall(C=C, tol=tol, step=step, **options).fit(X)
        assert ball.status_ == "solved"
        weights = None if C is None else np.full(len(X), C)
        primal, dual = objectives(matrix(X), ball, weights)
        best = conic_optimum_of(name, len(X), C)
        assert dual <= best * (1 + 1e-7)
        assert best * (1 - 1e-7) <= primal <= best * (1 + 1.1 * tol)


@pytest.mark.parametrize("name", ["linear", "rbf", "poly"])
def test_weights_are_prices_of_rows(name):
    X = points(120)
    options, matrix = KERNELS[name]
    s = np.random.default_rng(3).uniform(0.0, 3.0, len(X))
    s[::5] = 0.0
    ball = EnclosingBall(C=0.2, tol=1e-6, **options).fit(X, sample_weight=s)
    kept = s > 0
    assert not np.isin(ball.support_, np.flatnonzero(~kept)).any()
    ball.support_ = np.searchsorted(np.flatnonzero(kept), ball.support_)
    K = matrix(X[kept])
    primal, dual = objectives(K, ball, 0.2 * s[kept])
    best = conic_optimum(K, 0.2 * s[kept])
    assert dual <= best + 1e-7 * abs(best)
    assert best - 1e-7 * abs(best) <= primal <= dual + 1.01e-6 * primal


def test_a_price_beyond_all_bounds_gives_the_hard_ball():
    X = points(300)
    hard = EnclosingBall(C=None, gamma=0.2, tol=1e-6).fit(X)
    for C in (1e12, 1e40, 1e300):
        ball = EnclosingBall(C=C, gamma=0.2, tol=1e-6).fit(X)
        assert ball.status_ == "solved"
        assert ball.radius_ == pytest.approx(hard.radius_, rel=1e-6)
    weights = np.ones(300)
    weights[:9] = 1e-310  # counts as nothing, but is more than that
    soft = EnclosingBall(C=0.1, gamma=0.2, tol=1e-6).fit(X, sample_weight=weights)
    less = EnclosingBall(C=0.1, gamma=0.2, tol=1e-6).fit(X[9:])
    assert soft.radius_ == pytest.approx(less.radius_, rel=1e-5)


def test_a_weight_is_a_number_of_rows():
    X = points(60)
    s = np.arange(60) % 3
    for C in (None, 0.3):
        options = {"C": C, "gamma": 0.2, "tol": 1e-6}
        ball = EnclosingBall(**options).fit(X, sample_weight=s)
        other = EnclosingBall(**options).fit(np.repeat(X, s, axis=0))
        np.testing.assert_allclose(
            ball.decision_function(X), other.decision_function(X), atol=1e-7
        )


def test_what_lies_outside_has_a_fixed_sum():
    X = points(200)
    for C in (0.05, 1.0, 20.0):
        ball = EnclosingBall(C=C, tol=1e-8, gamma=0.3).fit(X)
        decision = ball.decision_function(X)
        excess = np.maximum(-decision, 0.0)
        assert 2.0 * C * excess.sum() == pytest.approx(1.0)
        np.testing.assert_array_equal(ball.support_, np.flatnonzero(decision < 0))
        np.testing.assert_allclose(
            2.0 * C * excess[ball.support_], ball.dual_coef_[0], atol=1e-4
        )


@given(
    d=st.lists(st.floats(0.0, 1e3), min_size=1, max_size=30),
    C=st.floats(1e-3, 1e3),
    seed=st.integers(0, 100),
)
def test_the_best_radius_of_given_distances(d, C, seed):
    d = np.array(d)
    C = C * np.random.default_rng(seed).uniform(0.1, 1.0, len(d))
    rho = best_square(d, C)
    slack = 2.0 * np.sum(C * np.maximum(d - rho, 0.0))
    assert slack == pytest.approx(1.0, rel=1e-9 * max(1.0, C.sum() * d.max()))


# -- balls that are known --------------------------------------------------------------

CORNERS = np.array(np.meshgrid(*[[-1.0, 1.0]] * 5)).reshape(5, -1).T
TRIANGLE = np.array([[0.0, 0.0], [4.0, 0.0], [1.0, 3.0]])  # circumcenter (2, 1)
KNOWN = {
    "two points": (np.array([[1.0, 2.0], [3.0, 2.0]]), [2.0, 2.0], 1.0),
    "interval": (np.arange(11.0)[:, None], [5.0], 5.0),
    "simplex": (np.eye(6), np.full(6, 1 / 6), np.sqrt(5 / 6)),
    "cube": (CORNERS, np.zeros(5), np.sqrt(5.0)),
    "acute triangle": (TRIANGLE, [2.0, 1.0], np.sqrt(5.0)),
    "obtuse triangle": (
        np.array([[0.0, 0.0], [4.0, 0.0], [1.0, 1.0]]),
        [2.0, 0.0],
        2.0,
    ),
    "one point": (np.array([[3.0, 4.0]]), [3.0, 4.0], 0.0),
    "equal points": (np.full((7, 2), 0.3), [0.3, 0.3], 0.0),
    "cross polytope": (
        np.vstack([np.eye(4), -np.eye(4), np.zeros((1, 4))]),
        np.zeros(4),
        1.0,
    ),
}


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_balls_of_known_sets(name, convert):
    X, center, radius = KNOWN[name]
    ball = EnclosingBall(C=None, kernel="linear", tol=1e-9).fit(convert(X))
    assert ball.radius_ == pytest.approx(radius, rel=1e-9, abs=1e-7)
    np.testing.assert_allclose(ball.center_, center, atol=1e-7)
    assert ball.status_ == "solved"
    np.testing.assert_array_equal(ball.predict(convert(X)), 1)


@pytest.mark.parametrize("kernel", SEMIDEFINITE)
@pytest.mark.parametrize("C", [None, 5.0])
def test_equal_points_have_a_ball_of_radius_zero(kernel, C):
    X = np.full((40, 3), 1.7)
    ball = EnclosingBall(kernel=kernel, C=C).fit(X)
    assert ball.radius_ <= 1e-6 * np.sqrt(ball.kernel_.diag(X).max())
    assert ball.status_ == "solved"
    np.testing.assert_array_equal(ball.predict(X), 1)


@pytest.mark.parametrize("C", [None, 5.0, 1e12])
def test_equal_points_are_inside_whatever_rounding_makes_of_their_distances(C):
    rng = np.random.default_rng(0)
    for n in np.unique(np.geomspace(1, 300, 20).astype(int)):
        X = np.tile(rng.normal(size=n), (40, 1))
        for degree in (3, 10):
            ball = EnclosingBall(
                C=C, kernel="poly", gamma=0.3, coef0=1.0, degree=degree
            )
            np.testing.assert_array_equal(ball.fit(X).predict(X), 1)
            assert ball.radius_ <= 1e-6 * np.sqrt(ball.kernel_.diag(X).max())


@pytest.mark.cover(1)
@pytest.mark.parametrize("tol", [0.5, 0.1, 1e-2, 1e-4])
@pytest.mark.parametrize("name", ["linear", "rbf", "poly"])
def test_the_radius_is_at_most_one_plus_tol_times_the_smallest(name, tol):
    X = points(200, 8)
    options, matrix = KERNELS[name]
    K = matrix(X)
    least = np.sqrt(conic_optimum(K))
    ball = EnclosingBall(C=None, tol=tol, **options).fit(X)
    assert least * (1 - 1e-7) <= ball.radius_ <= (1 + tol) * least
    J = ball.coreset_
    of_coreset = np.sqrt(conic_optimum(K[np.ix_(J, J)]))
    assert of_coreset * (1 + tol) >= ball.radius_ * (1 - 1e-7)
    np.testing.assert_array_equal(ball.predict(X), 1)


# -- what must not matter --------------------------------------------------------------


def test_moved_turned_and_scaled_data_have_a_ball_that_is():
    X = points(150, 3)
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    ball = EnclosingBall(C=None, kernel="linear", tol=1e-9).fit(X)
    for shift, scale in ((0.0, 1e-3), (1e6, 1.0), (-50.0, 100.0)):
        other = EnclosingBall(C=None, kernel="linear", tol=1e-9).fit(
            shift + scale * X @ turn
        )
        assert other.radius_ == pytest.approx(scale * ball.radius_, rel=1e-7)
        np.testing.assert_allclose(
            other.center_ - shift,
            scale * ball.center_ @ turn,
            atol=1e-6 * scale,
            rtol=1e-6,
        )


def test_order_and_repeated_rows_do_not_matter():
    X = points(700)
    order = np.random.default_rng(2).permutation(len(X))
    repeated = np.vstack([X, X[:50], X[:50]])
    for options in ({"gamma": 0.2}, {"kernel": "linear"}):
        ball = EnclosingBall(C=None, tol=1e-8, **options).fit(X)
        for other in (X[order], repeated):
            again = EnclosingBall(C=None, tol=1e-8, **options).fit(other)
            assert again.radius_ == pytest.approx(ball.radius_, rel=1e-7)
    soft = EnclosingBall(C=0.1, gamma=0.2, tol=1e-8)
    np.testing.assert_allclose(
        soft.fit(X).score_samples(X), clone(soft).fit(X[order]).score_samples(X), 1e-3
    )


@pytest.mark.parametrize("C", [None, 0.1])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_storage_and_type_do_not_matter(kernel, C):
    X = np.round(4.0 * points(300, 6))
    options = {"kernel": kernel, "C": C, "gamma": 0.02, "tol": 1e-6, "coef0": 0.5}
    ball = EnclosingBall(**options).fit(X)
    expected = ball.score_samples(X)
    scale = np.abs(expected).max()
    for A in (
        X.astype(np.float32),
        X.astype(np.int16),
        np.asfortranarray(X),
        sparse.csr_array(X),
        sparse.csc_matrix(X.astype(np.float32)),
        long_indices(X),
        as_rows(X),
    ):
        other = EnclosingBall(**options).fit(A)
        assert other.radius_ == pytest.approx(ball.radius_, rel=1e-5)
        np.testing.assert_allclose(other.score_samples(A), expected, atol=0.01 * scale)
        kept = other.support_vectors_
        kept = kept.toarray() if sparse.issparse(kept) else kept
        np.testing.assert_array_equal(kept, X[other.support_])


@pytest.mark.parametrize("C", [None, 0.1])
def test_precomputed_and_callable_kernels_give_the_same(C):
    X, Z = points(300), points(20, seed=5)
    options = {"C": C, "tol": 1e-6}
    ball = EnclosingBall(gamma=0.2, **options).fit(X)
    K = rbf_kernel(X, gamma=0.2)
    called = EnclosingBall(kernel=lambda A, B: rbf_kernel(A, B, gamma=0.2), **options)
    given = EnclosingBall(kernel="precomputed", **options)
    for other, train, test in ((called, X, Z), (given, K, rbf_kernel(Z, X, gamma=0.2))):
        other.fit(train)
        assert other.radius_ == pytest.approx(ball.radius_, rel=1e-5)
        np.testing.assert_allclose(
            other.decision_function(test), ball.decision_function(Z), atol=2e-3
        )
        if C is None:
            np.testing.assert_array_equal(other.predict(train), 1)
    weights = (np.arange(300) % 4 > 0).astype(float)
    given.fit(K, sample_weight=weights)
    assert np.all(weights[given.support_] > 0)
    dense = EnclosingBall(gamma=0.2, **options).fit(X, sample_weight=weights)
    assert given.radius_ == pytest.approx(dense.radius_, rel=1e-5)


def test_a_precomputed_kernel_of_varying_length_cannot_predict():
    X = points(50)
    K = X @ X.T
    ball = EnclosingBall(C=None, kernel="precomputed", tol=1e-6).fit(K)
    linear = EnclosingBall(C=None, kernel="linear", tol=1e-6).fit(X)
    assert ball.radius_ == pytest.approx(linear.radius_, rel=1e-6)
    with pytest.raises(ValueError, match="differs between the rows of the fit"):
        ball.predict(K)


def test_memory_for_few_rows_gives_the_same_ball():
    X = points(2000, 3)
    ball = EnclosingBall(C=0.02, tol=1e-4, gamma=0.3).fit(X)
    small = EnclosingBall(C=0.02, tol=1e-4, gamma=0.3, memory_limit=400_000).fit(X)
    assert len(small.support_) > 50  # more than there is room for
    assert small.status_ == "solved"
    assert small.offset_ == pytest.approx(ball.offset_, rel=1e-3)


def test_rows_that_float32_cannot_tell_apart():
    X = points(300) * 1e-3
    for options in ({"gamma": 1e-2}, {"kernel": "poly", "coef0": 1.0, "gamma": 1.0}):
        ball = EnclosingBall(C=None, tol=1e-4, **options).fit(X)
        assert ball.status_ == "solved"
        assert ball.dual_gap_ <= 1e-4


# -- the certificate -------------------------------------------------------------------


@given(
    seed=st.integers(0, 2**32 - 1),
    m=st.integers(1, 40),
    n=st.integers(1, 4),
    scale=st.integers(-4, 4),
    kernel=st.sampled_from(["linear", "rbf", "poly", "laplacian"]),
    C=st.sampled_from([None, 1e-2, 1.0, 1e3]),
)
def test_the_gap_is_never_negative(seed, m, n, scale, kernel, C):
    X = np.round(np.random.default_rng(seed).normal(size=(m, n)), 1) * 10.0**scale
    ball = EnclosingBall(kernel=kernel, C=C, max_iter=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "No point lies inside", RuntimeWarning)
        ball.fit(X)
        assert ball.dual_gap_ >= 0
        ball.set_params(max_iter=None).fit(X)
    assert 0 <= ball.dual_gap_ <= 1e-3
    assert ball.status_ == "solved"
    if C is None:
        np.testing.assert_array_equal(ball.predict(X), 1)


def test_a_kernel_that_is_not_positive_semidefinite_is_a_warning():
    with pytest.warns(RuntimeWarning, match="not positive semidefinite"):
        EnclosingBall(C=None, kernel="precomputed").fit([[1.0, 2.0], [2.0, 1.0]])


def cone_optimum(X, C):
    """The primal optimum by Clarabel with second-order cones, over (c, rho >= 0, t)."""
    m, n = X.shape
    # (1 + rho + t_i, 2 (x_i - c), 1 - rho - t_i): |x_i - c|^2 <= rho + t_i.
    rows, right = [], []
    for i in range(m):
        sums = np.zeros(m + 1)
        sums[[0, 1 + i]] = 1.0
        block = np.zeros((n + 2, n + 1 + m))
        block[0, n:], block[-1, n:] = -sums, sums
        block[1:-1, :n] = 2.0 * np.eye(n)
        rows.append(block)
        right.append(np.r_[1.0, 2.0 * X[i], 1.0])
    rows.append(np.hstack([np.zeros((m + 1, n)), -np.eye(m + 1)]))
    right.append(np.zeros(m + 1))
    cones = [clarabel.SecondOrderConeT(n + 2)] * m + [clarabel.NonnegativeConeT(m + 1)]
    P = sparse.diags(np.r_[np.zeros(n + 1), np.full(m, 2.0 * C)]).tocsc()
    q = np.r_[np.zeros(n), 1.0, np.zeros(m)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    A, right = sparse.csc_matrix(np.vstack(rows)), np.concatenate(right)
    found = clarabel.DefaultSolver(P, q, A, right, cones, settings).solve()
    return found.obj_val


@pytest.mark.parametrize("C", [1e-3, 5e-3, 0.02, 1.0])
def test_a_radius_is_not_negative(C):
    X = points(40, 2)
    empty = C < 0.005
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ball = EnclosingBall(kernel="linear", C=C, tol=1e-6).fit(X)
    said = any("No point lies inside" in str(one.message) for one in caught)
    assert (ball.radius_ == 0) == empty == said
    assert ball.status_ == "solved"
    d = np.square(X - ball.center_).sum(axis=1)
    primal = ball.radius_**2 + C * np.sum(np.maximum(d - ball.radius_**2, 0.0) ** 2)
    assert primal == pytest.approx(cone_optimum(X, C), rel=2e-6)


def test_a_price_that_leaves_nothing_inside_is_a_warning():
    X = points(100)
    with pytest.warns(RuntimeWarning, match=r"C=1e-05 is too small.* at about C=0\.0"):
        ball = EnclosingBall(C=1e-5, gamma=0.2).fit(X)
    assert ball.radius_ == 0
    assert ball.dual_gap_ <= 1e-3
    np.testing.assert_array_equal(ball.predict(X), -1)
