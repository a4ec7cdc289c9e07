"""Many dense rows and classes: products that all share come before other solvers."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs

from widemargin import LinearSVC, LinearSVR
from widemargin.estimators import batch, linear_choice
from widemargin.estimators.linear_choice import Before


@pytest.fixture
def asked(monkeypatch):
    """Most steps of each call for products."""
    found = []
    solve = batch.solve_by_products

    def by_products(training, chosen, before=None):
        found.append(before and before[0])
        return solve(training, chosen, before)

    monkeypatch.setattr(batch, "solve_by_products", by_products)
    return found


def data(m=900, n=300, classes=5, spread=6.0):
    return make_blobs(m, n, centers=classes, cluster_std=spread, random_state=0)


@pytest.mark.parametrize(
    ("loss", "m", "steps"), [("squared_hinge", 900, 4), ("hinge", 1600, 10)]
)
def test_classes_share_products(loss, m, steps, asked):
    X, y = data(m)
    clf = LinearSVC(loss=loss).fit(X, y)
    assert asked == [steps * m]
    assert clf.status_ == "solved"
    assert {one.solver for one in clf.solutions_} == {"batch"}


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_what_steps_do_not_solve_goes_on(loss, asked, monkeypatch):
    X, y = data(620, 260, 3, spread=30.0)
    monkeypatch.setattr(batch, "steps_before_others", lambda training: Before(0))
    alone = LinearSVC(loss=loss, tol=1e-6).fit(X, y)
    assert asked == []
    monkeypatch.setattr(batch, "steps_before_others", lambda training: Before(300))
    clf = LinearSVC(loss=loss, tol=1e-6).fit(X, y)
    assert asked == [300]
    assert clf.status_ == "solved"
    assert any(one.solver != "batch" for one in clf.solutions_)
    for one, other in zip(clf.solutions_, alone.solutions_, strict=True):
        gap = one.certificate.primal - other.certificate.dual
        assert -1e-9 <= gap / one.certificate.primal <= 2e-6


@pytest.mark.parametrize("case", ["few", "sparse", "targets", "pairs", "small C"])
def test_others_do_not_begin_by_them(case, asked):
    n = 256 if case == "few" else 300
    X, y = data(n=n)
    machine = LinearSVC()
    if case == "targets":
        machine, y = LinearSVR(loss="squared_epsilon_insensitive"), y + X[:, 0]
    if case == "sparse":
        X[X < 5.0] = 0.0
        X = sparse.csr_array(X)
    if case == "pairs":
        machine.set_params(multi_class="ovo")
    if case == "small C":
        X = np.hstack([X, X])  # 501 columns and more are descended then
        machine.set_params(C=1e-7)
    machine.fit(X, y)
    after_newton = [30 * 900] if case == "few" else []  # see steps_before_newton
    assert [steps for steps in asked if steps] == after_newton


@pytest.mark.parametrize(
    ("m", "loss", "begins"),
    [
        (700, "squared_hinge", True),
        (730, "squared_hinge", False),
        (730, "hinge", True),
    ],
)
def test_so_many_rows_for_the_columns_of_all_problems(m, loss, begins, asked):
    """Of three classes: 0.8 and 4 times."""
    X, y = data(m, 300, 3)
    LinearSVC(loss=loss).fit(X, y)
    assert bool(asked) == begins


def test_as_many_rows_as_may_share(asked, monkeypatch):
    monkeypatch.setattr(linear_choice, "MOST_SHARED", 619)
    LinearSVC().fit(*data(620, 260, 3))
    assert asked == []


def test_where_memory_has_no_room_others_solve(asked):
    X, y = data(620, 260, 3)
    clf = LinearSVC(memory_limit=2 * X.nbytes).fit(X, y)
    assert clf.status_ == "solved"
    assert asked == [4 * 620]
    assert {one.solver for one in clf.solutions_} == {"active_set"}
