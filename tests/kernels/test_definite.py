"""A kernel that is not positive semidefinite, though no pair of rows shows it."""

import numpy as np
import pytest

from widemargin import SVC, SVR, Kernel, Problem, solve
from widemargin.kernels.definite import SAMPLE, is_indefinite
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


def test_several_problems_and_regressions_say_so():
    K, y = chains(60)
    clf = SVC(kernel=lambda A, B: K[np.ix_(*(Z[:, 0].astype(int) for Z in (A, B)))])
    with pytest.warns(RuntimeWarning, match="not positive semidefinite"):
        clf.fit(np.arange(60.0)[:, np.newaxis], np.arange(60) % 7 % 3)
    assert str(clf.solution_).startswith("Stationary, but 3 problems not proved")
    with pytest.warns(RuntimeWarning, match="not positive semidefinite"):
        SVR(kernel="precomputed").fit(K, y)


def test_the_solver_of_balls_says_so():
    K, y = chains(30)
    form = {"loss": "squared_hinge", "kernel": Kernel("precomputed")}
    solution = solve(Problem(K, y, intercept="none", **form), CoreVector())
    assert not solution.is_convex
    assert "not positive semidefinite" in solution.message
