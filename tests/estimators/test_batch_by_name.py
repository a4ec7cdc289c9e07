"""``solver="batch"``: what it solves, and the sentence where it does not fit."""

import dataclasses

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from widemargin import (
    SVC,
    SVCCV,
    SVR,
    LinearSVC,
    LinearSVR,
    NuSVC,
    NuSVR,
    OneClassSVM,
    open_rows,
)
from widemargin.cli import main
from widemargin.estimators import batch, batch_problems, linear_choice
from widemargin.solution import Status

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
GROUP = np.argmax(X + 0.7 * RNG.normal(size=X.shape), axis=1)


@pytest.mark.parametrize(
    "machine",
    [
        SVC(),
        SVC(kernel="linear"),
        SVC(kernel="linear", multi_class="ovr"),
        SVCCV(Cs=[0.1, 1.0]),
        LinearSVC(),
        LinearSVC(multi_class="ovo", loss="hinge"),
        NuSVC(nu=0.2),
        SVR(),
        SVR(kernel="linear"),
        LinearSVR(),
        NuSVR(),
        OneClassSVM(nu=0.2),
    ],
)
def test_it_is_what_auto_takes(machine):
    by_itself = machine.fit(X, GROUP).predict(X)
    asked = machine.set_params(solver="batch").fit(X, GROUP)
    assert {one.solver for one in asked.solutions_} == {"batch"}
    np.testing.assert_array_equal(asked.predict(X), by_itself)


def test_one_problem_may_have_more_rows_than_auto_gives_it(monkeypatch):
    monkeypatch.setattr("widemargin.estimators.engine_choice.MOST_ROWS_ALONE", 10)
    monkeypatch.setattr("widemargin.estimators.engine_choice.NARROW", 0)
    y = GROUP > 0
    assert SVC(n_jobs=2).fit(X, y).solution_.solver == "irwls"
    assert SVC(n_jobs=2, solver="batch").fit(X, y).solution_.solver == "batch"


@pytest.mark.parametrize(
    "kernel", [{"kernel": "sigmoid"}, {"kernel": "poly", "coef0": -1.0}]
)
@pytest.mark.parametrize("n_rows", [len(X), 2 * len(X)])  # float64 ends few of them
def test_kernels_that_may_curve_end_at_a_point_that_is_not_proved(kernel, n_rows):
    rows, y = np.tile(X, (4, 1))[:n_rows], np.tile(GROUP > 0, 4)[:n_rows]
    rows = rows + 0.1 * np.random.default_rng(0).normal(size=rows.shape)
    with pytest.warns(RuntimeWarning, match="not positive semidefinite"):
        clf = SVC(tol=1e-5, **kernel).fit(rows, y)
    assert (clf.solution_.solver, clf.status_) == ("batch", "solved")
    assert not clf.solution_.is_convex
    assert "stationary" in clf.solution_.message
    alpha, margins = (
        np.zeros(n_rows),
        np.where(y, 1.0, -1.0) * clf.decision_function(rows),
    )
    alpha[clf.support_] = np.abs(clf.dual_coef_[0])
    assert (margins[alpha == 0.0] >= 0.98).all()
    assert (margins[alpha == 1.0] <= 1.02).all()
    assert (np.abs(margins[(alpha > 0.0) & (alpha < 1.0)] - 1.0) <= 0.02).all()


def test_what_float32_cannot_solve_goes_on(monkeypatch):
    monkeypatch.setattr("widemargin.solvers.kernel.batch.MOST_EXACTLY", 0)
    for solver in ("batch", "auto"):
        clf = SVC(C=1e7, gamma=1e-5, tol=1e-6, solver=solver).fit(X, GROUP > 0)
        assert (clf.solution_.solver, clf.status_) == ("irwls", "solved")
        assert clf.solution_.reason.startswith("after batch got no further (because")
    several = clf.fit(X, GROUP).solution_
    assert "by irwls, after batch got no further.\n" in str(several)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"C": np.inf}, "not for C=inf"),
        ({"tol": 1e-9}, "not for tol below 1e-08"),
        ({"kernel": "linear", "tol": 1e-9}, "not for tol below 1e-08"),
        ({"max_iter": 5}, "not for max_iter"),
        ({"callback": lambda step: False}, "not for a callback or verbose"),
        ({"memory_limit": 1 << 14}, "memory_limit has no room"),
    ],
)
def test_where_it_does_not_fit_it_is_refused(options, said):
    with pytest.raises(ValueError, match=f"The solver 'batch' is for small .*{said}"):
        SVC(solver="batch", **options).fit(X, GROUP)


def test_large_problems_are_refused(monkeypatch):
    monkeypatch.setattr("widemargin.estimators.engine_choice.MOST_ROWS", 50)
    with pytest.raises(ValueError, match="more than 50 rows a problem, here 90"):
        SVC(solver="batch", multi_class="ovr").fit(X, GROUP)
    tall = RNG.normal(size=(610, 300))
    with pytest.raises(ValueError, match="not for 610 rows x 300 features, linear"):
        LinearSVC(solver="batch").fit(tall, tall[:, 0] > 0)


@pytest.mark.parametrize("machine", [LinearSVC(), SVC(kernel="linear")])
def test_wide_dense_rows_are_solved_by_their_products(machine):
    """Solvers on the columns take 3 to 30 times as long."""
    wide = RNG.normal(size=(610, 700))
    y = np.arange(610) % 3
    for C, solver in ((1.0, "auto"), (100.0, "auto"), (1e-3, "batch")):
        clf = clone(machine).set_params(C=C, solver=solver).fit(wide, y)
        assert {one.solver for one in clf.solutions_} == {"batch"}
        assert clf.dual_gap_ <= clf.tol


@pytest.mark.parametrize(
    ("multi_class", "copies"), [("ovr", 10), ("ovo", 10), ("ovr", 40)]
)
def test_linear_problems_keep_the_memory_limit(multi_class, copies):
    wide = np.tile(X, copies)
    clf = LinearSVC(multi_class=multi_class, tol=1e-3)
    by_itself = clf.fit(wide, GROUP)
    assert {one.solver for one in by_itself.solutions_} == {"batch"}
    limited = clf.set_params(memory_limit=1 << 14).fit(wide, GROUP)
    assert "batch" not in {one.solver for one in limited.solutions_}


def test_copies_of_wide_rows_count_in_the_memory_limit():
    wide = np.tile(X, 50)
    clf = LinearSVC(multi_class="ovo", tol=1e-3, memory_limit=2 * wide.nbytes)
    assert "batch" not in {one.solver for one in clf.fit(wide, GROUP).solutions_}
    with pytest.raises(ValueError, match="that memory_limit has no room for"):
        clf.set_params(solver="batch").fit(wide, GROUP)
    clf.set_params(memory_limit=10 * wide.nbytes).fit(wide, GROUP)
    assert {one.solver for one in clf.solutions_} == {"batch"}


def test_a_memory_limit_is_no_room_for_linear_problems():
    clf = LinearSVC(solver="batch", memory_limit=1 << 14)
    with pytest.raises(ValueError, match="that memory_limit has no room for"):
        clf.fit(np.tile(X, 10), GROUP)


def test_rows_in_files_are_refused(tmp_path):
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(ValueError, match="not for rows that are not in memory"):
        LinearSVC(solver="batch").fit(open_rows(tmp_path / "X.npy"), GROUP)


@pytest.mark.parametrize("machine", [SVC(rank=5), SVC(rank="auto"), NuSVC(rank=5)])
def test_a_rank_is_refused(machine):
    message = "'rank' parameter of .* must be None for solver='batch'"
    with pytest.raises(ValueError, match=message):
        machine.set_params(solver="batch").fit(X, GROUP)


def test_the_command_line_takes_it(tmp_path, capsys):
    path, model = tmp_path / "rows.svm", tmp_path / "rows.wm"
    lines = (
        f"{k} " + " ".join(f"{j + 1}:{v:.6f}" for j, v in enumerate(row))
        for k, row in zip(GROUP, X, strict=True)
    )
    path.write_text("\n".join(lines) + "\n")
    train = ["train", str(path), str(model), "--solver", "batch"]
    assert main([*train, "--kernel", "rbf"]) == 0
    assert "batch" in capsys.readouterr().out
    assert main([*train, "--solver-option", "mode=1"]) == 2
    assert "--solver batch has no options" in capsys.readouterr().err
    assert main([*train, "--kernel", "rbf", "--rank", "9"]) == 2
    assert "--solver batch and --rank cannot go together" in capsys.readouterr().err


@pytest.mark.parametrize("is_raised", [True, False])
def test_ctrl_c_ends_pairs_with_a_model(is_raised, monkeypatch):
    calls, solve = [], batch.solve_many_linear

    def pressed(problems, *limits, **how):
        """The second pair is interrupted: by Python, or by the core."""
        calls.append(problems)
        found = solve(problems, *limits, **how)
        if len(calls) == 2 and is_raised:
            raise KeyboardInterrupt
        status = Status.SOLVED if len(calls) == 1 else Status.INTERRUPTED
        return [dataclasses.replace(one, status=status) for one in found]

    monkeypatch.setattr(batch, "solve_many_linear", pressed)
    monkeypatch.setattr(linear_choice, "MOST_LINEAR", 0)
    clf = LinearSVC(multi_class="ovo")
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, GROUP)
    assert len(calls) == 2
    assert clf.status_ == "interrupted"
    assert clf.solutions_[0].solver == "batch"
    clf.predict(X)


def test_ctrl_c_in_the_core_ends_pairs_by_products_with_a_model(monkeypatch):
    solve = batch_problems.solve_many

    def pressed(*problems):
        first, *others = solve(*problems)
        ended = [dataclasses.replace(one, status=Status.INTERRUPTED) for one in others]
        return [first, *ended]

    monkeypatch.setattr(batch_problems, "solve_many", pressed)
    pairs = LinearSVC(multi_class="ovo")
    with pytest.raises(KeyboardInterrupt):
        pairs.fit(X, GROUP)
    assert pairs.status_ == "interrupted"
    pairs.predict(X)


def test_ctrl_c_in_pairs_by_products_ends_larger_pairs_too(monkeypatch):
    solve, larger = batch_problems.solve_many, []

    def pressed(*problems):
        found = solve(*problems)
        return [dataclasses.replace(one, status=Status.INTERRUPTED) for one in found]

    monkeypatch.setattr(batch_problems, "solve_many", pressed)
    monkeypatch.setattr(batch, "_solve_pair", lambda *pair: larger.append(pair))
    monkeypatch.setattr(linear_choice, "MOST_LINEAR", 30)
    classes = np.repeat([0, 1, 2], [10, 20, 30])
    with pytest.raises(KeyboardInterrupt):
        LinearSVC(multi_class="ovo").fit(np.eye(60, 5), classes)
    assert not larger


@pytest.mark.parametrize("way", ["_by_newton", "solve_by_products"])
def test_ctrl_c_outside_of_the_core_leaves_a_model(way, monkeypatch):
    def pressed(*training):
        raise KeyboardInterrupt

    monkeypatch.setattr(batch, way, pressed)
    few, wide = (X, GROUP), (np.eye(20, 40), np.arange(20) % 2)
    clf = LinearSVC()
    with pytest.raises(KeyboardInterrupt):
        clf.fit(*(few if way == "_by_newton" else wide))
    assert clf.status_ == "interrupted"
    clf.predict(few[0] if way == "_by_newton" else wide[0])


def test_a_solver_for_few_problems_is_refused_though_time_is_over():
    with pytest.raises(ValueError, match="not for max_iter"):
        LinearSVC(solver="batch", max_iter=3, time_limit=1e-9).fit(X, GROUP)


def test_a_low_rank_is_looked_for_in_rows_from_everywhere():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(4100, 8))
    rows[:1000] *= 1e-3  # these alone have one
    y = rows[:, 0] + 0.3 * rng.normal(size=4100) > 0.0
    assert SVC(gamma=0.5).fit(rows, y).solution_.solver == "batch"
    assert SVC(gamma=1e-5).fit(rows, y).solution_.solver == "irwls"


# -- what came with it -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "solver"),
    [
        ("linear", "auto"),
        ("linear", "augmented_lagrangian"),
        ("linear", "interior_point"),
        ("linear", "irwls"),
        ("rbf", "auto"),
        ("rbf", "irwls"),
    ],
)
def test_of_an_interval_of_intercepts_the_middle_is_taken(kernel, solver):
    rows = np.array([[-2, 0], [-1, -1], [0, -3], [0, 2], [1, 1], [2, 0.0]])
    y = np.array([1, 1, 1, 2, 2, 2])
    clf = SVC(C=1e-2, kernel=kernel, solver=solver, tol=1e-6).fit(rows, y)
    np.testing.assert_allclose(np.abs(clf.dual_coef_), 1e-2, rtol=1e-6)
    f = clf.decision_function(rows) - clf.intercept_
    low, high = (-1.0 - f[y == 1]).max(), (1.0 - f[y == 2]).min()  # all have a loss
    assert low < high - 1.0
    assert clf.intercept_[0] == pytest.approx(0.5 * (low + high), abs=1e-6)


@pytest.mark.parametrize(
    "machine",
    [SVC(), SVC(kernel="linear"), NuSVC(nu=0.2), SVR(), NuSVR(), OneClassSVM(nu=0.2)],
)
def test_coefficients_are_sparse_where_the_rows_are(machine):
    dense = machine.fit(X, GROUP)
    found, predicted = dense.dual_coef_, dense.predict(X)
    other = machine.fit(sparse.csr_array(X), GROUP)
    assert sparse.issparse(other.dual_coef_)
    np.testing.assert_allclose(other.dual_coef_.toarray(), found, atol=1e-3)
    np.testing.assert_allclose(other.predict(X), predicted, atol=1e-6)
