"""A kernel that is not positive semidefinite, though no pair of rows shows it."""

import numpy as np
import pytest

from widemargin import SVC, SVR, Kernel, Problem, solve
from widemargin.kernels import grouped
from widemargin.kernels.definite import (
    FEW,
    SAMPLE,
    are_indefinite,
    is_indefinite,
    sample,
)
from widemargin.kernels.grouped import GroupedSamples
from widemargin.solvers import CoreVector

# Two and two are alike, the first and the third are not: its determinant is below 0.
CHAIN = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.9], [0.0, 0.9, 1.0]])


def chains(m):
    """Kernel values of m rows in chains of three, and labels."""
    return np.kron(np.eye(m // 3), CHAIN), np.arange(m) % 2 * 2 - 1


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_three_rows_show_what_no_two_of_them_do(scale):
    assert is_indefinite(CHAIN * scale)
    assert not any(
        is_indefinite(np.delete(np.delete(CHAIN, j, 0), j, 1)) for j in (0, 1, 2)
    )


@pytest.mark.parametrize("n", [3, 20, FEW])
def test_several_matrices_at_once_are_as_one_by_one(n):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(40, n, n))
    least = rng.choice([-1e-2, -1e-7, 0.0, 1e-2], 40)  # -1e-7 may be rounding
    K = []
    for B, low in zip(A, least, strict=True):
        Q = np.linalg.qr(B)[0]
        values = np.append(rng.uniform(0.0, 1.0, n - 1), low)
        K.append((Q * values) @ Q.T)
    K = np.stack([*K, np.zeros((n, n)), np.full((n, n), np.inf), -np.eye(n)])
    K *= 10.0 ** rng.integers(-200, 200, len(K))[:, np.newaxis, np.newaxis]
    found = are_indefinite(K)
    assert found.tolist() == [is_indefinite(one) for one in K]
    assert found.tolist() == [*(least == -1e-2), False, False, True]


@pytest.mark.parametrize("sizes", [[4] * 6, [3, 9, 5, 9, 3], [30, 40, 9], [140, 150]])
@pytest.mark.parametrize(
    ("constant", "value"),
    [("SEEN_VALUES", 1), ("SEEN_VALUES", 100), ("FEW_TOGETHER", 5), ("FEW", 12)],
)
def test_runs_are_seen_as_by_themselves(sizes, constant, value, monkeypatch):
    """Also few at a time, and where values are made for each."""
    monkeypatch.setattr(grouped, constant, value)
    rng = np.random.default_rng(1)
    y = np.repeat(np.arange(len(sizes)), sizes)
    X = rng.normal(size=(len(y), 2)) * (1.0 + y[:, np.newaxis])
    samples = GroupedSamples(X, y, Kernel("sigmoid", gamma=0.5, coef0=0.1))
    K = np.tanh(0.5 * X @ X.T + 0.1)
    runs = [np.flatnonzero(y == k) for k in range(len(sizes))]
    runs += [np.sort(rng.permutation(len(y))[:count]) for count in sizes]
    runs += [rows[:1] for rows in runs]
    counts = np.array([len(rows) for rows in runs])
    found = samples.show_indefinite(
        np.concatenate(runs), np.cumsum(counts) - counts, counts
    )
    few = [rows[sample(len(rows))] for rows in runs]
    expected = [is_indefinite(K[np.ix_(rows, rows)]) for rows in few]
    assert found.tolist() == expected
    assert 0 < sum(expected) < len(expected)


def test_rounding_shows_nothing():
    X = np.random.default_rng(0).normal(size=(SAMPLE, 3)).astype(np.float32)
    assert not is_indefinite(np.float64(X @ X.T))
    assert not is_indefinite(np.zeros((3, 3)))


@pytest.mark.parametrize("m", [30, 3 * SAMPLE])
def test_a_fit_warns_and_says_solved_of_none(m):
    K, y = chains(m)
    with pytest.warns(RuntimeWarning, match="not positive semidefinite"):
        clf = SVC(kernel="precomputed").fit(K, y)
    assert not clf.solution_.is_convex
    assert str(clf.solution_).startswith("Stationary, but not proved to be best")
    assert "not positive semidefinite" in clf.solution_._repr_html_()


def test_a_bound_that_is_zero_proves_nothing():
    """A negative |w|^2 may cancel all losses: the gap had no size to be relative to."""
    machine = SVC(kernel="sigmoid", gamma=0.12, C=1e3, loss="squared_hinge")
    with pytest.warns(RuntimeWarning, match="not positive semidefinite"):
        machine.fit([[0.85], [8.0]], [0, 1], sample_weight=[2.0, 1.0])
    assert machine.status_ in ("stalled", "numerical_error")
    assert machine.dual_gap_ > 0.1


def test_several_problems_and_regressions_say_so():
    K, y = chains(60)
    clf = SVC(kernel=lambda A, B: K[np.ix_(*(Z[:, 0].astype(int) for Z in (A, B)))])
    with pytest.warns(RuntimeWarning, match="not positive semidefinite"):
        clf.fit(np.arange(60.0)[:, np.newaxis], np.arange(60) % 7 % 3)
    assert str(clf.solution_).startswith("Stationary, but 3 problems not proved")
    with pytest.warns(RuntimeWarning, match="not positive semidefinite"):
        svr = SVR(kernel="precomputed").fit(K, y)
    assert clf.model_.meta["is_convex"] is svr.model_.meta["is_convex"] is False
    assert "is_convex" not in SVR().fit(K, y).model_.meta


def test_the_solver_of_balls_says_so():
    K, y = chains(30)
    form = {"loss": "squared_hinge", "kernel": Kernel("precomputed")}
    solution = solve(Problem(K, y, intercept="none", **form), CoreVector())
    assert not solution.is_convex
    assert "not positive semidefinite" in solution.message
