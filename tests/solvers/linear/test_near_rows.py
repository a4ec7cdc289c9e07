"""Newton's step corrected by the rows near the margin: see near_rows.py."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from widemargin import Problem, as_rows, solve
from widemargin.numerics import linalg
from widemargin.solvers import ActiveSet
from widemargin.solvers.linear import active_set, near_rows
from widemargin.solvers.linear import newton as penalty


def rows_of(kind, m=60_000, n=8):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(m, n))
    if kind == "heavy tails":
        X *= rng.standard_t(2, size=(m, 1))
    y = np.where(X @ rng.normal(size=n) + rng.normal(size=m) > 0.0, 1, -1)
    X = X.astype(np.float32) if kind == "float32" else X
    return sparse.csr_array(X) if kind == "csr" else X, y


def seen(monkeypatch):
    """What `corrected` gives, with what it was given, by all calls from now on."""
    calls, corrected = [], near_rows.corrected

    def noted(piece, sample, point, s, dv, enough):
        there = corrected(piece, sample, point, s, dv, enough)
        if there is not None:
            # And what sweeps find there, and where the step alone ends.
            found, plain = (piece.evaluate(v, s) for v in (there.v, point.v + dv))
            calls.append((point, there, found, plain, enough))
            piece.evaluate(point.v, s)  # the matrix as it was
        return there

    monkeypatch.setattr(active_set, "corrected", noted)
    return calls


@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
@pytest.mark.parametrize("kind", ["normal", "float32", "csr", "heavy tails"])
def test_a_corrected_step_ends_where_it_says(kind, intercept, monkeypatch):
    X, y = rows_of(kind)
    calls = seen(monkeypatch)
    problem = Problem(X, y, 0.1, "squared_hinge", intercept)
    solution = solve(problem, ActiveSet(), tol=1e-9)
    assert solution.status == "solved"
    assert calls
    for point, there, found, plain, enough in calls:
        assert abs(found.primal - there.primal) <= max(enough, 1e-11 * point.primal)
        assert there.gap >= 0.0
        assert found.gap <= max(plain.gap, 1e-9 * point.primal)
    if kind != "heavy tails":  # whose rows cross from further off, too
        left = 1e-4 if intercept == "free" else 5e-6
        assert any(found.gap < left * plain.gap for *_, found, plain, _ in calls)


def test_a_corrected_step_saves_sweeps_for_any_weight(monkeypatch):
    X, y = rows_of("normal", m=100_000)
    for C in (0.01, 1.0, 100.0):
        sweeps = []
        for most in (0.0, near_rows.MOST):
            monkeypatch.setattr(near_rows, "MOST", most)
            problem = Problem(X, y, C, "squared_hinge", "penalized")
            solution = solve(problem, ActiveSet(), tol=1e-6)
            assert solution.status == "solved"
            looks = [s for s in solution.trace if s.details["rows"] == len(y)]
            sweeps.append(len({step.primal for step in looks}))
        assert sweeps[1] <= sweeps[0]
    assert sweeps[1] < sweeps[0]


@pytest.mark.parametrize("kind", ["normal", "float32"])
def test_the_first_step_on_all_rows_is_the_last(kind, monkeypatch):
    X, y = rows_of(kind, m=200_000)
    problem = Problem(X, y, 0.01, "squared_hinge", "penalized")
    evaluated, evaluate = [], penalty.Piece.evaluate

    def noted(piece, *given, **options):
        evaluated.append(piece.A.shape[0])
        return evaluate(piece, *given, **options)

    monkeypatch.setattr(penalty.Piece, "evaluate", noted)
    solution = solve(problem, ActiveSet(), tol=1e-6)
    assert solution.status == "solved"
    assert evaluated.count(len(y)) == 1


def test_rows_that_neither_cross_nor_end_near_the_margin_are_not_copied(monkeypatch):
    X, y = rows_of("normal", m=200_000)
    problem = Problem(X, y, 0.01, "squared_hinge", "penalized")
    stack, sizes, found = linalg.stack, [], []

    def noted(blocks):
        copy = stack(blocks)
        sizes[-1] += copy.shape[0]
        return copy

    monkeypatch.setattr(near_rows.linalg, "stack", noted)
    for further in (near_rows.FURTHER, np.inf):  # inf: all that are looked at
        sizes.append(0)
        monkeypatch.setattr(near_rows, "FURTHER", further)
        found.append(solve(problem, ActiveSet(), tol=1e-6))
    assert 0 < sizes[0] < 0.5 * sizes[1]
    assert found[0].w == pytest.approx(found[1].w, rel=1e-9)
    assert found[0].certificate.gap == pytest.approx(found[1].certificate.gap, rel=0.1)


@pytest.mark.parametrize("kind", ["normal", "float32", "csr"])
def test_copied_rows_keep_to_the_memory_limit(kind, monkeypatch):
    X, y = rows_of(kind)
    stack, sizes = linalg.stack, []

    def noted(blocks):
        copy = stack(blocks)
        if isinstance(copy, linalg.SignedBlock):
            sizes.append(linalg.n_bytes(copy.matrix()))
        return copy

    monkeypatch.setattr(near_rows.linalg, "stack", noted)
    monkeypatch.setattr(near_rows, "FURTHER", np.inf)  # all that are looked at
    most = []
    for limit in (None, 20_000_000, 200_000, 20_000):
        rows = as_rows(X, memory_limit=limit)
        problem = Problem(rows, y, 0.1, "squared_hinge", "none")
        assert solve(problem, ActiveSet(), tol=1e-9).status == "solved"
        most.append(max(sizes, default=0))
        assert most[-1] <= (limit or np.inf) / 8
        sizes.clear()
    assert most[0] > 20_000 / 8  # else nothing was shown
    assert most[1] == most[0]


def test_a_corrected_step_on_which_p_rises_is_none(monkeypatch):
    X, y = rows_of("normal")
    corrected, rises, falls = near_rows.corrected, [], []

    def noted(piece, sample, point, s, dv, enough):
        for far in (-1.0, -0.1, 0.1, 1.0):
            there = corrected(piece, sample, point, s, far * dv, enough)
            if there is not None:
                falls.append(there.primal < point.primal)
            elif far < 0.0:
                rises.append(far)

    monkeypatch.setattr(near_rows, "STEPS", 1)  # nothing is corrected
    monkeypatch.setattr(active_set, "corrected", noted)
    problem = Problem(X, y, 0.1, "squared_hinge", "none")
    assert solve(problem, ActiveSet(), tol=1e-9).status == "solved"
    assert falls
    assert all(falls)
    assert rises


def test_promises_of_a_corrected_step_never_decide_what_is_proved(monkeypatch):
    corrected = near_rows.corrected

    def lies(*given):
        there = corrected(*given)
        return there and penalty.replace(there, v=0.9 * there.v, dual=there.primal)

    monkeypatch.setattr(active_set, "corrected", lies)
    X, y = rows_of("normal")
    problem = Problem(X, y, 0.1, "squared_hinge", "penalized")
    solution = solve(problem, ActiveSet(), tol=1e-6, max_iter=60)
    answer = problem.certify(solution.alpha, solution.w, solution.b)
    assert answer.gap == pytest.approx(solution.certificate.gap, rel=1e-6, abs=1e-12)
    assert (solution.status == "solved") == (answer.gap <= 1e-6 * answer.primal)


def test_rows_that_are_too_many_are_not_copied(monkeypatch):
    X, y = rows_of("normal")
    monkeypatch.setattr(near_rows, "MOST", 0.0)
    calls = seen(monkeypatch)
    assert solve(Problem(X, y, 0.1, "squared_hinge"), ActiveSet()).status == "solved"
    assert not calls


def test_a_step_of_no_length_copies_nothing():
    X, y = rows_of("normal")
    problem = Problem(X, y, 0.1, "squared_hinge", "penalized")
    sample = penalty.sampled(problem, 1000)
    point = sample.evaluate(np.zeros(9), 2.0)
    assert near_rows._width(sample, sample, point, 2.0, np.zeros(9), 0.0)[0] == 0.0


def test_more_rows_are_looked_at_for_a_smaller_gap():
    X, y = rows_of("normal")
    problem = Problem(X, y, 0.1, "squared_hinge", "penalized")
    sample = penalty.sampled(problem, 20_000)
    point = sample.newton_step(sample.evaluate(np.zeros(9), 2.0), 2.0)
    dv = 0.01 * np.random.default_rng(0).normal(size=9)
    # So many rows that those further off make their mean.
    A = SimpleNamespace(shape=(10**12, 9), options={}, density=1.0)
    rows = SimpleNamespace(A=A, gap_of=sample.gap_of)
    _, bent, _ = near_rows._width(rows, sample, point, 2.0, dv, np.inf)
    gap, last = sample.gap_of(bent, point.v), 0.0
    for share in (1e-2, 1e-4, 1e-6):
        width, _, rest = near_rows._width(rows, sample, point, 2.0, dv, share * gap)
        assert width > last
        assert 0.0 < rest <= share * gap
        last = width
    assert near_rows._width(rows, sample, point, 2.0, dv, 0.0)[0] == 0.0
