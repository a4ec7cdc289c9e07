"""Newton's directions on wide rows: conjugate gradients, or a matrix of the rows."""

import numpy as np
import pytest
from scipy import sparse

from widemargin import Problem, solve
from widemargin.solvers.linear import newton


def documents(m=1500, n=3000, words=40):
    """Words by Zipf's law, rows of length 1, labels by a fifth of the words."""
    rng = np.random.default_rng(0)
    shares = 1.0 / np.arange(1, n + 1)
    columns = rng.choice(n, size=(m, words), p=shares / shares.sum()).ravel()
    rows = np.repeat(np.arange(m), words)
    X = sparse.csr_array((np.ones(m * words), (rows, columns)), shape=(m, n))
    X = sparse.csr_array(X.multiply(1.0 / np.sqrt(X.multiply(X).sum(axis=1))[:, None]))
    t = X @ (rng.normal(size=n) * (rng.random(n) < 0.2))
    return X, np.where(t > np.median(t), 1.0, -1.0)


@pytest.fixture
def made(monkeypatch):
    """Orders of the matrices of rows that are made."""
    orders, solve_whole = [], newton._woodbury

    def counted(A, *rest):
        orders.append(A.shape[0])
        return solve_whole(A, *rest)

    monkeypatch.setattr(newton, "_woodbury", counted)
    return orders


@pytest.mark.parametrize(
    ("solver", "loss", "most"),
    [("active_set", "squared_hinge", 60), ("augmented_lagrangian", "hinge", 150)],
)
@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
def test_text_takes_few_sweeps_and_no_large_matrix(solver, loss, most, intercept, made):
    """A matrix of the rows between their bounds costs many times as much."""
    solution = solve(
        Problem(*documents(4000, 5000), 1.0, loss, intercept), solver, tol=1e-4
    )
    assert solution.status == "solved"
    assert max(made, default=0) < 500
    assert solution.trace[-1].sweeps <= most


def test_a_matrix_of_rows_where_conjugate_gradients_take_long(made):
    """They are tried for as long as it would take, and once."""
    problem = Problem(*documents(600, 3000), 1e5, "squared_hinge", "penalized")
    solution = solve(problem, "active_set", tol=1e-8)
    assert solution.status == "solved"
    assert made
    assert solution.trace[-1].sweeps < 300
