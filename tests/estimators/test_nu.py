"""OneClassSVM, NuSVC and NuSVR: scikit-learn's checks and answers, models, bad input."""

import itertools

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from tests.cases.pairwise import checks_by_turns, product
from widemargin import (
    SVC,
    SVR,
    Kernel,
    LinearSVR,
    NuSVC,
    NuSVR,
    OneClassSVM,
    as_rows,
    load_model,
    save_model,
    solve,
)
from widemargin.estimators import plans
from widemargin.problems.nu import nu_problem
from widemargin.solution import Certificate, Status
from widemargin.solvers.driver.advice import worth

RNG = np.random.default_rng(3)
X, NEW = RNG.normal(size=(160, 3)), RNG.normal(size=(40, 3))
X[:, 2] += 3.0  # the origin can be separated from the data
TARGET = X[:, 0] ** 2 + X[:, 1] + 0.1 * RNG.normal(size=160)
LABELS = (X[:, 0] + 0.7 * RNG.normal(size=160) > 0) + (X[:, 1] > 0)
WEIGHTS = RNG.uniform(0.2, 2.0, 160)
WEIGHTS[::9] = 0.0
KINDS = {OneClassSVM: LABELS, NuSVC: LABELS, NuSVR: TARGET}
NAMES = ["support_", "n_support_", "dual_coef_", "intercept_", "support_vectors_"]
kinds = pytest.mark.parametrize("kind", KINDS)


CHECKS = checks_by_turns(
    [
        OneClassSVM(),
        NuSVC(
            nu=0.35
        ),  # more is infeasible in some of the checks, less hardly separable
        NuSVR(),
        OneClassSVM(kernel="laplacian", nu=0.2),
        NuSVC(kernel="laplacian", nu=0.3),
        NuSVR(kernel="linear"),
    ],
    # It has classes of which one weighs 10^7 times the other: any nu is infeasible
    # there. scikit-learn does not put it to its NuSVC either.
    without={NuSVC: ["check_class_weight_classifiers"]},
)


@CHECKS
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_a_weight_counts_how_often_a_row_is_there():
    weights = np.arange(160) % 3
    options = {"gamma": 0.3, "nu": 0.3, "tol": 1e-10}
    one = OneClassSVM(**options).fit(X, None, weights)
    many = OneClassSVM(**options).fit(np.repeat(X, weights, axis=0))
    np.testing.assert_allclose(one.score_samples(NEW), many.score_samples(NEW), 1e-6)
    np.testing.assert_allclose(one.offset_, many.offset_, 1e-6)


def values(machine, rows):
    """Decision values, or predictions."""
    return getattr(machine, "decision_function", machine.predict)(rows)


@product(
    kind=list(KINDS), kernel=["rbf", "linear"], nu=[0.3, 0.4], weighted=[False, True]
)
def test_machines_are_those_of_libsvm(kind, kernel, nu, weighted):
    weights = WEIGHTS if weighted else None
    # Classes whose hulls of the nearest rows are apart: else w = 0 is the optimum.
    y = X[:, 0] + 0.2 * X[:, 1] > 0.5 if kind is NuSVC else KINDS[kind]
    options = {"kernel": kernel, "gamma": 0.3, "nu": nu}
    ours = kind(tol=1e-11, **options).fit(X, y, sample_weight=weights)
    theirs = getattr(svm, kind.__name__)(tol=1e-9, **options)
    theirs.fit(X, y, sample_weight=weights)
    assert ours.status_ == "solved"
    assert ours.dual_gap_ <= 1e-11
    found, known = values(ours, NEW), values(theirs, NEW)
    np.testing.assert_allclose(found, known, atol=1e-5 * np.abs(known).max())
    for name in NAMES[3:] if weighted else NAMES:  # there without rows of weight 0
        one, other = getattr(ours, name), getattr(theirs, name)
        size = max(1.0, float(np.abs(other).max()))
        np.testing.assert_allclose(one, other, atol=1e-4 * size, err_msg=name)
    if kernel == "linear":
        assert not ours.coef_.flags.writeable
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)


@kinds
def test_pair_steps_and_working_sets_agree(kind):
    quick = kind(gamma=0.3, nu=0.4, tol=1e-4).fit(X, KINDS[kind])
    exact = kind(gamma=0.3, nu=0.4, tol=1e-10).fit(X, KINDS[kind])
    assert {s.solver for s in quick.solutions_} == {"batch"}
    assert {s.solver for s in exact.solutions_} == {"irwls"}
    scale = np.abs(values(exact, NEW)).max()
    np.testing.assert_allclose(
        values(quick, NEW), values(exact, NEW), atol=0.02 * scale
    )
    assert quick.dual_gap_ <= 1e-4


def test_scores_of_one_class_are_decisions_and_an_offset():
    machine = OneClassSVM(gamma=0.3, nu=0.2).fit(X)
    scores = rbf_kernel(NEW, machine.support_vectors_, gamma=0.3)
    scores = scores @ machine.dual_coef_[0]
    np.testing.assert_allclose(machine.score_samples(NEW), scores, rtol=1e-10)
    assert machine.offset_ == -machine.intercept_
    sides = np.where(machine.decision_function(NEW) >= 0, 1, -1)
    np.testing.assert_array_equal(machine.predict(NEW), sides)
    assert machine.dual_coef_.sum() == pytest.approx(0.2 * len(X))


def test_the_tube_of_nu_is_that_of_epsilon():
    one = NuSVR(gamma=0.3, nu=0.4, tol=1e-10).fit(X, TARGET)
    errors = np.abs(one.predict(X) - TARGET)
    assert np.mean(errors > one.epsilon_ * (1 + 1e-6)) <= 0.4
    assert len(one.support_) >= 0.4 * len(X)


@kinds
@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
def test_models_are_kept_in_files(kind, kernel, tmp_path):
    rows, new = (X @ X.T, NEW @ X.T) if kernel == "precomputed" else (X, NEW)
    y = KINDS[kind] if kind is NuSVR else LABELS > 0
    machine = kind(kernel=kernel, nu=0.4).fit(rows, y)
    save_model(machine, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(new), machine.predict(new))
    assert loaded.meta["nu"] == 0.4


@kinds
def test_sparse_rows_and_values_and_functions_are_the_same_machine(kind):
    options = {"nu": 0.4, "tol": 1e-10}
    known = values(kind(gamma=0.3, **options).fit(X, KINDS[kind]), NEW)
    sparse_rows = kind(gamma=0.3, **options).fit(sparse.csr_array(X), KINDS[kind])
    K = rbf_kernel(X, gamma=0.3)
    pairs = kind(kernel="precomputed", **options).fit(K, KINDS[kind])
    found = [values(sparse_rows, sparse.csr_array(NEW))]
    found.append(values(pairs, rbf_kernel(NEW, X, gamma=0.3)))
    for one in found:
        np.testing.assert_allclose(one, known, atol=1e-5 * np.abs(known).max())


# -- bad input -------------------------------------------------------------------------


@kinds
@pytest.mark.parametrize("nu", [0.0, 1.1, -0.5, np.nan, "half", True])
def test_nu_out_of_range_is_refused(kind, nu):
    with pytest.raises(ValueError, match=r"'nu' .* range \(0, 1\]"):
        kind(nu=nu).fit(X, KINDS[kind])


@pytest.mark.parametrize("weighted", [False, True])
def test_an_infeasible_nu_is_refused_with_the_largest(weighted):
    y = np.arange(160) < 40
    weights = np.where(y, 3.0, 1.0) if weighted else None
    most = 1.0 if weighted else 0.5
    assert NuSVC(nu=most, gamma=0.3).fit(X, y, weights).status_ == "solved"
    if weighted:
        weights = np.where(y, 1.0, 3.0)
        most = 0.2
    with pytest.raises(ValueError, match=f"at most {most:g}, .* nu is infeasible"):
        NuSVC(nu=most + 0.01).fit(X, y, weights)


@pytest.mark.parametrize("form", [{}, {"solver": "irwls"}, {"rank": 40}], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_class_weights_are_factors_of_the_weights_of_rows(form, weighted):
    y, own = LABELS.astype(int) + (X[:, 1] > 0.7), WEIGHTS if weighted else None
    options = {"gamma": 0.3, "nu": 0.2, "tol": 1e-8, "random_state": 0} | form
    factors = {0: 2.0, 2: 0.5}
    rows = np.array([2.0, 1.0, 0.5])[y] * (1.0 if own is None else own)
    found = NuSVC(class_weight=factors, **options).fit(X, y, own)
    known = NuSVC(**options).fit(X, y, rows)
    np.testing.assert_array_equal(values(found, NEW), values(known, NEW))
    plain = values(NuSVC(**options).fit(X, y, own), NEW)
    assert np.abs(values(found, NEW) - plain).max() > 1e-3


@pytest.mark.parametrize("weighted", [False, True])
def test_with_balanced_classes_each_nu_is_feasible(weighted):
    y, own = np.arange(160) < 30, WEIGHTS if weighted else np.ones(160)
    given = own if weighted else None
    options = {"gamma": 0.3, "nu": 1.0, "tol": 1e-6}
    with pytest.raises(ValueError, match="nu is infeasible"):
        NuSVC(**options).fit(X, y, given)
    found = NuSVC(class_weight="balanced", **options).fit(X, y, given)
    assert found.status_ == "solved"
    share = own.sum() / (2.0 * np.bincount(y, own))
    known = NuSVC(**options).fit(X, y, own * share[y.astype(int)])
    np.testing.assert_allclose(values(found, NEW), values(known, NEW), rtol=1e-9)


def test_the_largest_nu_is_that_of_the_class_weights():
    y = np.arange(160) < 80
    with pytest.raises(
        ValueError, match=r"at most 0.4, twice the share, by weight, of"
    ):
        NuSVC(nu=0.41, class_weight={True: 4.0}).fit(X, y)
    assert (
        NuSVC(nu=0.4, gamma=0.3, class_weight={True: 4.0}).fit(X, y).status_ == "solved"
    )


def test_class_weights_of_a_nu_machine_leave_gamma_as_it_is():
    given = {"nu": 0.2, "class_weight": {0: 3.0}}
    assert NuSVC(**given).fit(X, LABELS).gamma_ == SVC().fit(X, LABELS).gamma_


def test_class_weights_out_of_range_are_refused():
    with pytest.raises(ValueError, match="'class_weight' parameter of NuSVC .* a dict"):
        NuSVC(class_weight="even").fit(X, LABELS)


@pytest.mark.parametrize("kind", [NuSVC, NuSVR, OneClassSVM, LinearSVR])
def test_keywords_of_scikit_learn_get_advice(kind):
    name = "intercept_scaling" if kind is LinearSVR else "shrinking"
    with pytest.raises(TypeError, match=f"has no parameter '{name}': "):
        kind(**{name: True})


@kinds
def test_nan_is_refused_and_the_model_kept(kind):
    machine = kind(nu=0.4).fit(X, KINDS[kind])
    before = values(machine, NEW)
    bad = X.copy()
    bad[5, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        machine.fit(bad, KINDS[kind])
    np.testing.assert_array_equal(values(machine, NEW), before)


@pytest.mark.parametrize("kind", [*KINDS, SVC, SVR])
def test_rows_of_negative_weight_are_left_out_with_a_warning(kind):
    y = TARGET if kind in (SVR, NuSVR) else np.arange(160) % 2
    known = kind(gamma=0.3).fit(X, y, sample_weight=np.maximum(WEIGHTS - 0.5, 0.0))
    with pytest.warns(UserWarning, match=r"row\(s\) of negative sample_weight count"):
        found = kind(gamma=0.3).fit(X, y, sample_weight=WEIGHTS - 0.5)
    np.testing.assert_array_equal(values(found, NEW), values(known, NEW))


@pytest.mark.parametrize("kind", [NuSVC, NuSVR])  # that of one class is solved at once
def test_a_checkpoint_of_another_nu_is_refused(kind, tmp_path):
    options = {"gamma": 0.3, "tol": 1e-10, "checkpoint": tmp_path / "fit.wmcp"}
    with pytest.warns(ConvergenceWarning):
        kind(nu=0.3, max_iter=1, **options).fit(X, KINDS[kind])
    with pytest.raises(ValueError, match="expected a checkpoint of this problem"):
        kind(nu=0.2, **options).fit(X, KINDS[kind])


@pytest.mark.parametrize("solver", ["auto", "irwls"])
@pytest.mark.parametrize("weights", [None, WEIGHTS, 1e-8 * WEIGHTS])
def test_the_largest_nu_is_solved_and_proved(solver, weights):
    """All rows of a class are at their bounds: no sum is above what these have."""
    y, C = LABELS > 0, np.ones(160) if weights is None else weights
    most = 2.0 * min(C[y].sum(), C[~y].sum()) / C.sum()
    for nu in (most, most * (1.0 - 1e-13)):
        machine = NuSVC(nu=nu, gamma=0.3, solver=solver).fit(X, y, weights)
        alpha, small = machine.solution_.alpha, y == (C[y].sum() < C[~y].sum())
        assert machine.status_ == "solved"
        np.testing.assert_allclose(alpha[small], C[small], rtol=1e-6)
    machine = OneClassSVM(nu=1.0, gamma=0.3, solver=solver).fit(X, None, weights)
    assert machine.status_ == "solved"
    np.testing.assert_allclose(machine.solution_.alpha, C, rtol=1e-6)


def _mixed(m, n, seed):
    """Rows of zeros and ones with labels at random: of small nu no margin exists."""
    draw = np.random.default_rng(seed)
    X = (draw.random((m, n)) < 0.5).astype(float)
    return X, np.where(draw.random(m) < 0.5, 1, -1)


@pytest.mark.parametrize(
    ("form", "nu", "shape", "seed"),
    [
        ({"kernel": "linear"}, 0.05, (300, 20), 0),
        ({"kernel": "linear"}, 0.05, (300, 20), 2),
        ({"kernel": "linear"}, 0.2, (300, 20), 0),
        ({"kernel": "rbf", "gamma": 1e-3}, 0.1, (260, 3), 0),
    ],
)
def test_no_margin_is_told_and_found_in_few_working_sets(form, nu, shape, seed):
    X, y = _mixed(*shape, seed)
    machine = NuSVC(nu=nu, **form)
    with pytest.warns(ConvergenceWarning, match="The optimum is zero: with nu=0"):
        machine.fit(X, y)
    assert machine.status_ == machine.solution_.status == "no_margin"
    assert machine.dual_gap_ <= machine.tol
    assert len(machine.solution_.trace) <= 20  # or more than 100
    assert str(machine.solution_).startswith("Proved that no margin exists, to a rel")


@pytest.mark.parametrize("nu", [0.05, 0.2])
def test_no_margin_is_proved_at_once_as_it_is_alone(nu):
    X, y = np.random.default_rng(0).normal(size=(600, 10)), _mixed(600, 2, 1)[1]
    with pytest.warns(ConvergenceWarning, match="The optimum is zero"):
        found = NuSVC(nu=nu, kernel="linear").fit(X, y).solution_
    problem = nu_problem(as_rows(X), y, 1.0, nu, kernel=Kernel("linear"))
    proved = problem.certify(found.alpha, found.w, found.b, tol=1e-4)
    assert (found.solver, found.status) == ("batch", "no_margin")
    assert found.certificate.primal == proved.primal == 0.0
    assert max(found.certificate.relative_gap, proved.relative_gap) <= 1e-4
    assert found.certificate.scale == pytest.approx(problem.scale, rel=1e-9)


@pytest.mark.parametrize("nu", [0.02, 0.2])
def test_no_margin_of_a_smooth_kernel_takes_no_pair_steps_for_long(nu):
    """Pair steps hardly move there: a factor of low rank goes on from theirs."""
    X, y = np.random.default_rng(0).normal(size=(1500, 2)), _mixed(1500, 2, 1)[1]
    with pytest.warns(ConvergenceWarning, match="The optimum is zero"):
        found = NuSVC(nu=nu, gamma=0.1).fit(X, y).solution_
    assert (found.status, found.certificate.primal) == ("no_margin", 0.0)
    assert found.certificate.relative_gap <= 1e-4
    assert len(found.trace) <= 4
    assert found.trace[-1].details["inner_steps"] == 0


@pytest.mark.parametrize("tol", [1e-10, 1e-12])
def test_no_margin_is_told_of_fits_that_got_no_further(tol):
    """They were almost solved, or stalled, and said to be usable."""
    X, y = _mixed(80, 4, 2)
    machine = NuSVC(nu=0.05, kernel="linear", tol=tol)
    with pytest.warns(ConvergenceWarning, match="The optimum is zero") as caught:
        machine.fit(X, y)
    assert machine.status_ == "no_margin"
    assert tol < machine.dual_gap_ < 1e-8
    assert abs(machine.decision_function(X)).max() < 1e-6
    assert "usable" not in str(caught[0].message)
    problem = nu_problem(as_rows(X), y, 1.0, 0.05, kernel=Kernel("linear"))
    assert solve(problem, tol=tol).status == "no_margin"


@pytest.mark.parametrize(
    ("status", "gap", "ended"),
    [
        ("almost_solved", 0.01, "no_margin"),
        ("stalled", 1e-5, "no_margin"),
        ("stalled", 1e-3, "stalled"),
        ("stalled", 1.0, "stalled"),
        ("time_limit", 1e-5, "time_limit"),
    ],
)
@pytest.mark.parametrize("primal", [0.0, -1e-12])
def test_what_is_said_of_a_bound_of_zero(monkeypatch, status, gap, ended, primal):
    """A gap relative to the floor is no share of the objective."""
    solve_tasks = plans.solve_tasks

    def found(training):
        (one,) = solve_tasks(training)
        bounds = Certificate(primal, primal - gap, scale=1.0)
        said = f"Stopped. {worth(gap, bounds)} End."
        return [one.changed(status=Status(status), certificate=bounds, message=said)]

    monkeypatch.setattr(plans, "solve_tasks", found)
    with pytest.warns(ConvergenceWarning) as caught:
        fitted = OneClassSVM(nu=0.3).fit(X)
    said = str(caught[0].message)
    assert fitted.status_ == (status if primal else ended)
    assert "%" not in said
    assert ("The optimum is zero" in said) == (fitted.status_ == "no_margin")
    if gap == 1.0:
        assert "far from optimal" in said
    elif primal:
        assert f"at most {gap:.2g} above the best possible" in said
    elif fitted.status_ != "no_margin":
        assert "No margin is proved: decision values may be rounding." in said


def test_no_margin_of_one_class_is_told():
    X, _ = _mixed(300, 20, 0)
    machine = OneClassSVM(kernel="linear", nu=0.1)
    with pytest.warns(ConvergenceWarning, match="The optimum is zero: with nu=0.1 no"):
        machine.fit(X - X.mean(axis=0))
    assert (machine.status_, machine.n_iter_ <= 20) == ("no_margin", True)


def test_one_pair_without_a_margin_is_told_of_several():
    X, y = _mixed(60, 2, 0)
    X, y = np.vstack([X, X[:30] + 9.0]), np.append(y, np.full(30, 2))
    machine = NuSVC(kernel="linear", nu=0.1)
    with pytest.warns(ConvergenceWarning, match="1 of 3 pairs .* as -1 and 1. Betw"):
        machine.fit(X, y)
    assert machine.status_ == "no_margin"
    assert {s.status for s in machine.solutions_} == {"no_margin", "solved"}


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_weights_of_pairs_are_those_of_their_vectors(kind):
    X, y = make_blobs(120, 4, centers=5, cluster_std=2.0, random_state=0)
    clf = NuSVC(kernel="linear", nu=0.2).fit(kind(X), y)
    assert clf.coef_.shape == (10, 4)
    assert not any(clf.solutions_._made)  # no object for each pair
    expected = [
        X[(y == i) | (y == j)].T @ one.w / one.rho
        for one, (i, j) in zip(
            clf.solutions_, itertools.combinations(range(5), 2), strict=True
        )
    ]
    np.testing.assert_allclose(clf.coef_, expected, rtol=1e-9)


@pytest.mark.parametrize("unit", [1e-6, 1e-2, 1e3])
def test_nu_machines_do_not_ask_for_the_unit_of_the_rows(unit):
    """A kernel of small values stopped pair steps at once; working sets went on."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = np.where(X[:, 0] > 0.0, 1, -1)
    clf = NuSVC(kernel="poly", gamma=1.0, nu=0.3, tol=1e-3).fit(unit ** (1 / 3) * X, y)
    assert (clf.solution_.solver, clf.status_) == ("batch", "solved")
    assert clf.score(unit ** (1 / 3) * X, y) > 0.9


@pytest.mark.parametrize("level", [0.0, 0.1, 1e-300, -1e9])
@pytest.mark.parametrize(
    "form",
    [
        {},
        {"solver": "irwls"},
        {"solver": "batch"},
        {"kernel": "linear"},
        {"kernel": "precomputed"},
        {"rank": 10},
        {"nu": 1.0},
        {"C": 1e4},
        {"tol": 1e-8},
    ],
    ids=str,
)
def test_equal_targets_are_what_is_predicted(form, level):
    given = rbf_kernel(X) if form.get("kernel") == "precomputed" else X
    # A row without weight has no say.
    targets = np.where(WEIGHTS > 0.0, level, level + 1.0)
    reg = NuSVR(**form).fit(given, targets, WEIGHTS)
    assert reg.status_ == "solved"
    assert abs(reg.epsilon_) <= 1e-12
    np.testing.assert_allclose(reg.predict(given), level, rtol=1e-12, atol=1e-12)


def test_equal_targets_of_many_rows_are_what_is_predicted():
    rows = RNG.normal(size=(4500, 40))  # too many for pair steps
    reg = NuSVR(time_limit=20.0).fit(rows, np.full(4500, 3.0))
    assert reg.status_ == "solved"
    np.testing.assert_allclose(reg.predict(rows[:5]), 3.0)


def test_memory_that_is_not_short_does_not_change_an_answer():
    """What is always free has room for both variables of a row, in float64 too."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1300, 10))
    noise = 0.2 * rng.normal(size=1300)
    y = np.sin(rows[:, 0]) + 0.3 * rows[:, 1] ** 2 + noise
    how = {"kernel": "poly", "gamma": 0.3, "C": 1e5, "nu": 0.1, "n_jobs": 1}
    one, other = (
        NuSVR(memory_limit=bytes_, **how).fit(rows, y) for bytes_ in (None, 2 << 30)
    )
    np.testing.assert_array_equal(one.dual_coef_, other.dual_coef_)


@pytest.mark.parametrize("rank", [None, 20])
@pytest.mark.parametrize("factor", [1e-300, 1e-80, 1e200])
@pytest.mark.parametrize("kind", [OneClassSVM, NuSVC])
def test_weights_of_any_size_are_the_same_machine(kind, factor, rank):
    machine = kind(nu=0.3, rank=rank, random_state=0)
    expected = machine.fit(X, LABELS > 0).decision_function(NEW)
    machine.fit(X, LABELS > 0, sample_weight=np.full(len(X), factor))
    assert machine.status_ == "solved"
    found = machine.decision_function(NEW)
    found *= np.abs(expected).max() / np.abs(found).max()  # one class has its unit
    np.testing.assert_allclose(found, expected, atol=1e-3 * np.abs(expected).max())


def test_a_small_largest_nu_is_told_with_its_digits():
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    weights = np.where(y == 0, 1e-9, 1.0)
    with pytest.raises(ValueError, match="at most 1.99999e-09, twice the share, by"):
        NuSVC(nu=1e-5).fit(X, y, weights)
