"""Rows in another process: nothing of length m travels."""

import numpy as np

from tests.cases.pairwise import product
from tests.cases.process_rows import ProcessRows
from widemargin import Problem, solve
from widemargin.solvers import InteriorPoint

# -- the process storage: nothing of length m travels ----------------------------------


def clusters(m):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, 5))
    y = np.where(X @ rng.normal(size=5) + 0.5 * rng.normal(size=m) > 0, 1.0, -1.0)
    return X, y


SOLVERS = {
    # Two steps are refined, each by a sweep of 1 kB, if the gap is small before the last.
    "all rows": (InteriorPoint(), 2_000),
    # Two thresholds of at most twelve sweeps, 2 kB each, and twenty steps of conjugate
    # gradients, 1 kB each, as the data will have it.
    "some rows": (
        InteriorPoint(reduction="omega", max_active=0.6, random_state=0),
        70_000,
    ),
}


@product(loss=["hinge", "squared_hinge"], holes=[False, True], solver=list(SOLVERS))
def test_an_iteration_ships_nothing_of_length_m(monkeypatch, loss, holes, solver):
    monkeypatch.setattr("widemargin.data.state.SORTED_KEYS", 16)
    monkeypatch.setattr("widemargin.data.state.THRESHOLD_BINS", 64)
    solver, slack = SOLVERS[solver]
    shipped = []
    for m in (2000, 16000):
        X, y = clusters(m)
        C = np.where(np.arange(m) % 10 == 0, 0.0, 1.0) if holes else 1.0
        there, iterations = shipped_by_iterations(ProcessRows(X), y, C, loss, solver)
        assert len(iterations) >= 4
        assert {name for counts in iterations for name in counts} <= {"sweep", "store"}
        shipped.append(max(counts.total() for counts in iterations))

        here = solve(Problem(X, y, C, loss), solver, tol=1e-6)
        assert there.status == here.status == "solved"
        assert len(there.trace) == len(here.trace)
        for a, b in [
            (there.certificate.primal, here.certificate.primal),
            (there.certificate.dual, here.certificate.dual),
            (there.w, here.w),
            (there.b, here.b),
            (there.alpha, here.alpha),
        ]:
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
    # One vector of length m more, once in an iteration, would be 112000 bytes.
    assert abs(shipped[1] - shipped[0]) <= slack


def shipped_by_iterations(rows, y, C, loss, solver):
    """Solution on the process storage, and bytes shipped by purpose and iteration."""
    counter, totals = rows.worker.shipped, []

    def callback(step):
        # From the iteration on that reaches tol, answers are gathered and tried.
        if step.relative_gap > 1e-6:
            totals.append(counter.copy())

    solution = solve(Problem(rows, y, C, loss), solver, tol=1e-6, callback=callback)
    pairs = zip(totals, totals[1:], strict=False)
    return solution, [after - before for before, after in pairs]
