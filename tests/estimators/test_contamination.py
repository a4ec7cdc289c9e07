"""EnclosingBall(contamination=...): the share outside, ties, weights, the warning."""

import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from widemargin import EnclosingBall
from widemargin.estimators.outside import lowest_inside


def points(m=300, n=5):
    return np.random.default_rng(0).normal(size=(m, n))


def product(A, B):
    """A kernel with a diagonal that varies, as a callable."""
    return (1.0 + A @ B.T) ** 2


KERNELS = [
    {},
    {"kernel": "linear"},
    {"kernel": "poly", "degree": 2, "coef0": 1.0},
    {"kernel": "laplacian", "gamma": 0.1},
    {"kernel": product},
]


@pytest.mark.cover(2)
@pytest.mark.parametrize("share", [0.01, 0.1, 0.29, 0.5])
@pytest.mark.parametrize("C", [None, 1e-4, 0.01, 1.0])
@pytest.mark.parametrize("options", KERNELS)
def test_the_share_of_the_rows_is_outside(options, C, share):
    X = points()
    ball = EnclosingBall(C=C, contamination=share, **options)
    assert np.count_nonzero(ball.fit_predict(X) == -1) == round(300 * share)
    scores = ball.score_samples(X)
    np.testing.assert_array_equal(ball.predict(X) == 1, scores >= ball.offset_)
    np.testing.assert_array_equal(ball.decision_function(X), scores - ball.offset_)


@pytest.mark.parametrize("convert", [sparse.csr_array, np.float32])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_the_share_is_that_of_other_storages_too(convert, kernel):
    X = convert(points())
    ball = EnclosingBall(contamination=0.1, kernel=kernel).fit(X)
    assert np.count_nonzero(ball.predict(X) == -1) == 30


def test_the_ball_is_that_of_C():
    X = points()
    usual, moved = EnclosingBall().fit(X), EnclosingBall(contamination=0.1).fit(X)
    same = EnclosingBall(contamination="auto").fit(X)
    assert moved.radius_ == usual.radius_ == same.radius_
    assert moved.dual_gap_ == usual.dual_gap_
    np.testing.assert_array_equal(moved.dual_coef_, usual.dual_coef_)
    assert same.offset_ == usual.offset_ == pytest.approx(-(usual.radius_**2))
    assert moved.offset_ < usual.offset_
    np.testing.assert_array_equal(moved.score_samples(X), usual.score_samples(X))
    copy = pickle.loads(pickle.dumps(moved))
    np.testing.assert_array_equal(copy.predict(X), moved.predict(X))
    again = clone(moved).set_params(contamination=None).fit(X)
    assert again.offset_ == usual.offset_


def test_precomputed_kernels_have_a_boundary():
    X = points()
    rbf = EnclosingBall(contamination=0.1, gamma=0.2).fit(X)
    K = rbf.kernel_(X, X)
    ball = EnclosingBall(contamination=0.1, kernel="precomputed").fit(K)
    np.testing.assert_array_equal(ball.predict(K), rbf.predict(X))
    varied = EnclosingBall(contamination=0.1, kernel="precomputed").fit(X @ X.T)
    linear = EnclosingBall(contamination=0.1, kernel="linear").fit(X)
    assert varied.offset_ == pytest.approx(linear.offset_, rel=1e-2)


def test_a_weight_is_a_number_of_rows():
    X, s = points(100), np.arange(100) % 3
    options = {"contamination": 0.1, "C": 1.0, "tol": 1e-8}
    ball = EnclosingBall(**options).fit(X, sample_weight=s)
    other = EnclosingBall(**options).fit(np.repeat(X, s, axis=0))
    np.testing.assert_array_equal(ball.predict(X[s > 0]), other.predict(X[s > 0]))
    outside = s[ball.predict(X) == -1].sum()
    assert 0.1 * s.sum() - 2 < outside <= 0.1 * s.sum()


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_equal_rows_are_on_one_side(kernel):
    ball = EnclosingBall(contamination=0.3, kernel=kernel)
    np.testing.assert_array_equal(ball.fit_predict(np.full((20, 3), 1.7)), 1)
    X = np.vstack([np.zeros((90, 2)), np.ones((5, 2)), np.full((5, 2), 9.0)])
    found = ball.set_params(contamination=0.07).fit_predict(X)
    np.testing.assert_array_equal(found, [1] * 95 + [-1] * 5)
    np.testing.assert_array_equal(ball.fit_predict([[1.0], [2.0]]), 1)


@pytest.mark.parametrize(
    ("scores", "weights", "share", "expected"),
    [
        ([1.0, 2.0, 3.0, 4.0], [1, 1, 1, 1], 0.5, 2.5),
        ([4.0, 3.0, 2.0, 1.0], [1, 1, 1, 1], 0.49, 1.5),
        ([1.0, 2.0, 3.0, 4.0], [1, 1, 1, 1], 0.2, 1.0),
        ([1.0, 2.0, 2.0, 4.0], [1, 1, 1, 1], 0.5, 1.5),
        ([1.0, 2.0, 3.0, 4.0], [3, 1, 1, 1], 0.5, 1.5),
        ([7.0, 7.0], [1, 1], 0.5, 7.0),
        ([1.0, np.nextafter(1.0, 2.0)], [1, 1], 0.5, np.nextafter(1.0, 2.0)),
    ],
)
def test_the_boundary_by_hand(scores, weights, share, expected):
    found = lowest_inside(np.array(scores), np.array(weights, float), share)
    assert found == expected


# -- the warning -----------------------------------------------------------------------


def test_most_rows_outside_are_a_warning():
    X = points()
    with pytest.warns(UserWarning, match="95% of the rows .* C=0.01 is a low") as found:
        ball = EnclosingBall(C=0.01).fit(X)
    assert found[0].filename == __file__
    assert np.mean(ball.predict(X) == -1) > 0.9
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        EnclosingBall(C=0.01, contamination=0.1).fit(X)
        EnclosingBall(C=1.0).fit(X)


def test_rows_count_by_weight_in_the_warning():
    X = points()
    outside = EnclosingBall().fit(X).predict(X) == -1
    assert np.mean(outside) < 0.5
    rows = np.vstack([X, 20.0 + np.zeros((1, 5))])
    weights = np.append(np.ones(300), 400.0)
    ball = EnclosingBall(kernel="linear", C=1e-4)
    with pytest.warns(UserWarning, match="of the rows lie outside"):
        ball.fit(rows, sample_weight=weights)
    inside = ball.predict(rows) == 1
    assert weights[inside].sum() < 0.5 * weights.sum()
