"""What the gradients of coordinate descent promise is believed once, and proved."""

import numpy as np
import pytest
from scipy import sparse

from widemargin import Problem, solve
from widemargin.problems.regression import regression_problem
from widemargin.solvers.linear import descent

SURE = descent.SURE


def texts(kind, loss="squared_hinge", intercept="penalized", C=0.1):
    rng = np.random.default_rng(3)
    X = sparse.random(600, 900, 0.02, format="csr", random_state=4)
    t = X @ rng.normal(size=900) + 0.1 * rng.normal(size=600)
    if kind == "regression":
        return regression_problem(X, t, C, 0.1, loss, intercept)
    return Problem(X, np.where(t > 0.0, 1.0, -1.0), C, loss, intercept)


def run(problem, share, monkeypatch, tol):
    """The solution and its sweeps, where promises are believed up to a share of tol."""
    monkeypatch.setattr(descent, "SURE", share)
    begin = problem.rows.sweeps
    solution = solve(problem, "coordinate_descent", tol=tol)
    proved = problem.certify(solution.alpha, solution.w, solution.b, tol=tol)
    assert solution.status == "solved"
    assert proved.relative_gap <= tol
    return solution, problem.rows.sweeps - begin


@pytest.mark.parametrize("intercept", ["penalized", "none"])
@pytest.mark.parametrize("kind", ["classes", "regression"])
def test_a_promise_that_is_kept_saves_a_sweep(kind, intercept, monkeypatch):
    # Of one tolerance the last promise may be too near to be believed.
    saved = []
    for tol in (1e-2, 1e-3, 1e-4, 1e-5):
        problem = texts(kind, intercept=intercept)
        without, more = run(problem, 0.0, monkeypatch, tol)
        _, sweeps = run(problem, SURE, monkeypatch, tol)
        saved.append(more - sweeps)
        assert without.trace[-1].iteration >= 1
    assert max(saved) == 1
    assert sum(saved) >= 1


@pytest.mark.parametrize("kind", ["classes", "regression"])
def test_a_promise_that_is_broken_is_no_proof(kind, monkeypatch):
    problem = texts(kind)
    best = solve(problem, tol=1e-9).certificate
    monkeypatch.setattr(descent, "CURVED_SHARE", 50.0)
    solution, _ = run(problem, 1e3, monkeypatch, 1e-4)
    assert solution.certificate.dual <= best.primal
    assert best.dual <= solution.certificate.primal
    # The driver has looked at it in vain, and the descent went on by its own looks.
    assert len({step.iteration for step in solution.trace}) >= 3


@pytest.mark.parametrize(
    ("loss", "intercept"), [("hinge", "penalized"), ("squared_hinge", "free")]
)
def test_nothing_is_promised_without_curvature_or_of_a_free_intercept(
    loss, intercept, monkeypatch
):
    looks, expected = [], descent.Descent.expected

    def noted(self, tol):
        looks.append(expected(self, tol))
        return looks[-1]

    monkeypatch.setattr(descent.Descent, "expected", noted)
    problem = texts("classes", loss, intercept)
    assert solve(problem, "coordinate_descent", tol=1e-4).status == "solved"
    assert looks
    assert looks == [None] * len(looks)
