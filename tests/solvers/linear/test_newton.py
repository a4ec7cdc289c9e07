"""Newton's directions on wide rows: conjugate gradients, or a matrix of the rows."""

import numpy as np
import pytest
from scipy import sparse

from widemargin import Problem, _core, solve
from widemargin.numerics import linalg
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


@pytest.mark.parametrize("columns", [150, 450])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("solver", "loss"),
    [("active_set", "squared_hinge"), ("augmented_lagrangian", "hinge")],
)
def test_matrices_are_float32_until_rounding_matters(
    solver, loss, dtype, columns, monkeypatch
):
    """Where C |x|^2 is large beside the ridge, and for the last digits."""
    dtypes, make = [], linalg._blas_gram

    def noted(block, d, dtype):
        dtypes.append(dtype)
        return make(block, d, dtype)

    monkeypatch.setattr(linalg, "_blas_gram", noted)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, columns)).astype(dtype)
    y = np.where(X[:, :9].sum(axis=1) + 3.0 * rng.normal(size=900) > 0.0, 1.0, -1.0)
    assert solve(Problem(X, y, 1e-2, loss), solver).status == "solved"
    assert set(dtypes) == {np.float32}
    dtypes.clear()
    assert solve(Problem(X, y, 1e4, loss), solver, tol=1e-9).status == "solved"
    assert dtypes[-1] is np.float64


@pytest.mark.parametrize(("C", "rough"), [(1e-2, True), (1e4, False)])
def test_matrices_of_few_columns_are_float32_where_a_sample_says_so(
    C, rough, monkeypatch
):
    found, sweep = [], _core.penalty_sweep

    def noted(*arguments):
        found.append(arguments[-1] is True)
        return sweep(*arguments)

    rng = np.random.default_rng(0)
    X = rng.normal(size=(51_000, 4))
    y = np.where(X @ np.ones(4) + rng.normal(size=len(X)) > 0.0, 1.0, -1.0)
    problem = Problem(X, y, C, "squared_hinge")
    monkeypatch.setattr(newton._core, "penalty_sweep", noted)
    assert solve(problem, "active_set", tol=1e-9).status == "solved"
    assert (True in found) == rough
