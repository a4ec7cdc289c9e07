"""Whether some rows show that a large problem has few support vectors."""

import dataclasses

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs

from widemargin import SVC
from widemargin.estimators import batch_problems
from widemargin.estimators.engine_choice import FIRST, SHOWN
from widemargin.kernels.definite import sample
from widemargin.solution import Status

ROWS = 4500


def clusters(columns=38):
    """Two clusters that a few support vectors part."""
    return make_blobs(ROWS, columns, centers=2, random_state=5)


@pytest.mark.parametrize(("columns", "solver"), [(500, "batch"), (800, "irwls")])
def test_wide_dense_rows_go_to_working_sets_from_fewer_rows_on(columns, solver):
    X = np.random.default_rng(0).normal(size=(2500, columns))
    y = X[:, 0] > 0.0
    fit = SVC(gamma=1e-3, n_jobs=2).fit(X, y)
    assert (fit.solution_.solver, fit.status_) == (solver, "solved")
    wide = sparse.csr_array(X * (X > 1.0))  # whose entries are fewer
    assert SVC(gamma=1e-3, n_jobs=2).fit(wide, y).solution_.solver == "batch"


def test_no_press_of_ctrl_c_is_lost_while_some_rows_are_solved(monkeypatch):
    solve_many, counts = batch_problems.solve_many, []

    def pressed(problems, *args):
        counts.append(len(problems.y))
        ended = Status.INTERRUPTED
        return [
            dataclasses.replace(one, status=ended)
            for one in solve_many(problems, *args)
        ]

    monkeypatch.setattr(batch_problems, "solve_many", pressed)
    clf = SVC(C=10.0, gamma=1e-4)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(*clusters())
    assert counts == [FIRST]
    assert clf.status_ == "interrupted"


@pytest.mark.parametrize(
    ("spread", "rare", "looks"),
    [
        (1.0, None, [FIRST, SHOWN]),
        (30.0, None, [FIRST]),  # these have more than all of them may have
        (1.0, 0, [SHOWN]),  # these have one class only
    ],
)
def test_a_quarter_of_some_rows_shows_that_many_are_support_vectors(
    spread, rare, looks, monkeypatch
):
    X, y = make_blobs(ROWS, 200, centers=2, cluster_std=spread, random_state=5)
    if rare is not None:
        first, both = sample(ROWS, FIRST), sample(ROWS, SHOWN)
        y[:] = 1 - rare
        y[np.setdiff1d(both, first)[:3]] = rare
    solve_many, counts = batch_problems.solve_many, []

    def counted(problems, *args):
        counts.append(len(problems.y))
        return solve_many(problems, *args)

    monkeypatch.setattr(batch_problems, "solve_many", counted)
    SVC(C=10.0, gamma=1e-4).fit(X, y)
    assert [count for count in counts if count < ROWS] == looks


def test_a_row_without_a_finite_value_has_its_own_number():
    X, y = clusters()
    row = int(sample(ROWS, SHOWN)[100])
    X[row, 3] = 1e120
    with pytest.raises(ValueError, match=rf"finite values.* at row {row}\b"):
        SVC(kernel="poly", gamma=0.1).fit(X, y)


def test_packed_samples_have_room_within_the_memory_limit():
    X, y = clusters(columns=200)
    packed = 16 * X.size
    solvers = [
        SVC(C=10.0, gamma=1e-4, memory_limit=limit).fit(X, y).solution_.solver
        for limit in (packed // 2, 2 * packed)
    ]
    assert solvers == ["irwls", "batch"]


def test_a_reason_is_true_where_the_engine_was_asked_for():
    X, y = clusters()
    fit = SVC(C=1e-6, gamma=1e-4, solver="batch").fit(X, y)
    assert len(fit.support_) == ROWS
    assert "is not large" in fit.solution_.reason
