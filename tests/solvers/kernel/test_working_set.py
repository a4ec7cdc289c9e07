"""The working set of the block engine: which rows it holds, and their kernel values."""

import numpy as np
import pytest

from tests.cases.kernels import NAMED, plain
from widemargin import Problem
from widemargin.kernels.packed import padded
from widemargin.solvers.kernel.working_set import WorkingSet, solve_by_pairs


def run_of(m=300):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(m, 4)), np.where(np.arange(m) % 2, 1.0, -1.0)
    problem = Problem(X, y, 1.0, kernel=NAMED["rbf"])
    scores = problem.expand(np.zeros(m))
    return WorkingSet(problem, scores, solve_by_pairs), plain(NAMED["rbf"], X, X)


@pytest.mark.parametrize("seed", range(5))
def test_a_block_holds_the_values_of_its_rows_whatever_comes_and_leaves(seed):
    run, K = run_of()
    rng, ages = np.random.default_rng(seed), np.empty(0, np.intp)
    for turn in range(40):
        kept = run.latest(int(rng.integers(0, len(ages) + 1)))
        if turn % 3 and len(ages):  # as many come as leave
            kept = run.latest(len(ages) // 2)
        np.testing.assert_array_equal(kept, ages[len(ages) - len(kept) :])
        others = rng.permutation(np.setdiff1d(np.arange(300), kept))
        count = len(ages) - len(kept) if turn % 3 else int(rng.integers(0, 90))
        new = others[:count]
        block = run._block(kept, new)
        ages = np.concatenate([kept, new])
        q = len(ages)
        np.testing.assert_array_equal(np.sort(run.rows), np.sort(ages))
        np.testing.assert_array_equal(run.latest(q), ages)
        np.testing.assert_allclose(
            block[:, :q], K[np.ix_(run.rows, run.rows)], atol=1e-5
        )
        assert block.shape[1] > padded(q)
        assert not block[:, q:].any()


def test_only_values_of_new_rows_are_computed():
    run, _ = run_of()
    run._block(run.latest(0), np.arange(100))
    run._block(run.latest(50), np.arange(100, 150))
    assert run.problem.columns.evaluations == 100**2 + 50 * 100
    kept = run.rows.copy()
    np.testing.assert_array_equal(np.sort(kept), np.arange(50, 150))
