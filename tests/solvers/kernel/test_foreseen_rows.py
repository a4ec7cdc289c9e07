"""Rows of K that all threads make for a problem alone before its steps ask for them."""

import functools

import numpy as np
import pytest

from tests.cases.many import many, regression
from tests.conftest import INTERCEPTS
from widemargin import Kernel, _core
from widemargin.solvers.driver.limits import Limits
from widemargin.solvers.kernel import batch
from widemargin.solvers.kernel.batch import solve_many

ROWS, COLUMNS = 900, 80
WIDE = Kernel("rbf", gamma=1.0 / COLUMNS)


def rows(m=ROWS, n=COLUMNS):
    """Rows of which many are support vectors, and two noisy classes of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, n))
    return X, (X[:, 0] + rng.normal(size=m) > 0).astype(int)


@pytest.fixture
def made(monkeypatch):
    """How many kernel values each call of the core has made."""
    counts, solve_batch = [], _core.solve_batch

    def counted(*args, **options):
        found = solve_batch(*args, **options)
        counts.append(found[0])
        return found

    monkeypatch.setattr(_core, "solve_batch", counted)
    return counts


def solved(problems, threads, memory=1 << 28, **limits):
    (answer,) = solve_many(problems, Limits(**{"tol": 1e-4, **limits}), memory, threads)
    return answer


@pytest.mark.parametrize("simd", _core.simd_levels())
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("kind", ["hinge", "squared_hinge", "epsilon_insensitive"])
def test_they_change_no_bit(kind, intercept, simd, made, monkeypatch):
    monkeypatch.setattr(
        _core, "solve_batch", functools.partial(_core.solve_batch, simd=simd)
    )
    X, group = rows()
    if kind == "epsilon_insensitive":
        problem = regression(X, X[:, 0] + 0.1 * X[:, 1], WIDE, intercept=intercept)
    else:
        problem = many(X, group, WIDE, loss=kind, intercept=intercept)
    first, *others = [solved(problem, threads) for threads in (1, 2, 5)]
    assert first.status == "solved"
    for other in others:
        assert first.w.tolist() == other.w.tolist()
        assert (first.b, first.certificate) == (other.b, other.certificate)
        assert first.extras["steps"] == other.extras["steps"]
    assert made[1] == made[2] > made[0]  # not all of them were needed


@pytest.mark.parametrize("C", [1.0, 10.0, 300.0])
@pytest.mark.parametrize("kind", ["hinge", "epsilon_insensitive"])
def test_long_factors_of_steps_are_the_same_too(kind, C):
    # More than 100 free variables: factors of steps may be longer from then on.
    X, group = rows(2000, 90)
    kernel = Kernel("rbf", gamma=0.4 / 90)
    if kind == "hinge":
        problem = many(X, group, kernel, C=C)
    else:
        problem = regression(X, X[:, 0] + X[:, 1] ** 2, kernel, C=C)
    first, other = [solved(problem, threads, tol=1e-3) for threads in (1, 2)]
    assert first.extras["steps"] == other.extras["steps"]
    assert first.w.tolist() == other.w.tolist()


def test_none_are_made_where_few_rows_violate(made):
    X, group = rows()
    X[:, 0] += 60.0 * group  # far apart
    problem = many(X, group, Kernel("rbf", gamma=1e-5), C=100.0)
    assert [solved(problem, threads).status for threads in (1, 2)] == ["solved"] * 2
    assert made[0] == made[1] < 0.2 * ROWS**2


@pytest.mark.parametrize(("m", "n"), [(700, COLUMNS), (ROWS, 60)])
def test_none_are_made_where_they_take_little_time(m, n, made):
    X, group = rows(m, n)
    problem = many(X, group, Kernel("rbf", gamma=1.0 / n))
    for threads in (1, 2):
        solved(problem, threads)
    assert made[0] == made[1]


def test_few_stored_entries_take_little_time(made):
    X, group = rows()
    X[np.random.default_rng(1).random(X.shape) < 0.8] = 0.0
    for threads in (1, 2):
        solved(many(X, group, WIDE), threads)
    assert made[0] == made[1]


def test_they_stay_within_their_memory(made, monkeypatch):
    monkeypatch.setattr(batch, "MOST_EXACTLY", 0)
    X, group = rows()
    for memory in (500_000, 2 * ROWS**2, 4 * ROWS**2, 7 * ROWS**2):
        one, other = [solved(many(X, group, WIDE), t, memory) for t in (1, 2)]
        assert (one.status, one.extras["steps"]) == (
            other.status,
            other.extras["steps"],
        )
        assert made[-1] == made[-2]
