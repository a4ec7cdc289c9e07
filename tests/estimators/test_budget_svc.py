"""BudgetSVC: scikit-learn's checks, the size of models, paths, bad input."""

import dataclasses
import functools
import itertools
import pickle
import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.svm import NuSVC

from tests.cases.pairwise import checks_by_turns
from tests.cases.report_pages import words_only
from widemargin import SVC, BudgetSVC, as_rows, load_model, save_model, solve
from widemargin.estimators import budget_svc
from widemargin.estimators.budget_svc import METHODS
from widemargin.losses import BudgetL1, Interpolation, L2Norm, PNorm
from widemargin.reduction import restricted
from widemargin.reduction.reduce import SHARE
from widemargin.report import write_report
from widemargin.solution import Status


@pytest.mark.filterwarnings("ignore:.*is more than the:UserWarning")
@checks_by_turns(
    [
        BudgetSVC(),
        BudgetSVC(budget=0.5),
        BudgetSVC(budget=0.5, method="prune"),
        BudgetSVC(budget=4, norm="l2", multi_class="ovr"),
        BudgetSVC(budget=0.3, method="norm", kernel="linear", class_weight="balanced"),
        BudgetSVC(budget=0.4, method="norm", norm="l2"),
        BudgetSVC(budget=None, method="norm", norm=L2Norm()),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def moons():
    return make_moons(600, noise=0.25, random_state=0)


# -- the machine of the paper ----------------------------------------------------------


def test_a_cap_that_binds_predicts_as_the_nu_machine(moons):
    X, y = moons
    clf = BudgetSVC(budget=100, method="norm", gamma=1.0, tol=1e-6).fit(X, y)
    nu = NuSVC(nu=100 / len(y), gamma=1.0, tol=1e-8).fit(X, y)
    assert clf.cap_active_.tolist() == [True]
    assert 0.0 < clf.theta_[0] < 1.0
    scores = clf.decision_function(X) / (1.0 - clf.theta_[0])
    expected = nu.decision_function(X)
    np.testing.assert_allclose(scores, expected, atol=2e-3 * np.abs(expected).max())
    at_bound = np.count_nonzero(clf.solution_.alpha >= clf.C)
    assert at_bound <= 100 <= len(clf.support_)


def test_without_a_cap_it_is_svc(moons):
    X, y = moons
    clf = BudgetSVC(budget=400, method="norm", gamma=1.0, tol=1e-7).fit(X, y)
    usual = SVC(gamma=1.0, tol=1e-7).fit(X, y)
    assert clf.cap_active_.tolist() == [False]
    assert clf.theta_.tolist() == [0.0]
    np.testing.assert_allclose(
        clf.decision_function(X), usual.decision_function(X), atol=1e-2
    )


def test_shares_are_of_the_rows(moons):
    X, y = moons
    options = {"method": "norm", "gamma": 1.0, "tol": 1e-6}
    share = BudgetSVC(budget=0.1, **options).fit(X, y)
    count = BudgetSVC(budget=60, **options).fit(X, y)
    np.testing.assert_allclose(share.primal_, count.primal_, rtol=1e-5)


def test_the_l2_norm_has_a_ridge(moons):
    X, y = moons
    options = {"method": "norm", "norm": "l2", "gamma": 1.0, "tol": 1e-6}
    clf = BudgetSVC(budget=500, **options).fit(X, y)
    assert clf.ridge_[0] > 0.0
    length = np.linalg.norm(clf.solution_.alpha)
    assert length == pytest.approx(clf.C, rel=1e-3)


# -- at most B support vectors -------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("budget", [5, 20, 60])
def test_a_cap_bounds_the_model(moons, budget, norm):
    X, y = moons
    clf = BudgetSVC(budget=budget, norm=norm, gamma=1.0).fit(X, y)
    loss = "hinge" if norm == "l1" else "squared_hinge"
    usual = SVC(gamma=1.0, loss=loss, intercept="free").fit(X, y)
    assert len(clf.support_) <= budget < len(usual.support_)
    assert clf.pruned_[0] == np.count_nonzero(clf.solution_.alpha) - len(clf.support_)
    assert clf.cap_active_.tolist() == [True]
    assert clf.dual_gap_ <= 1e-4
    # Its objective, anew.
    K = rbf_kernel(X, clf.support_vectors_, gamma=1.0)
    c = clf.dual_coef_[0]
    signs = np.where(y == clf.classes_[1], 1.0, -1.0)
    t = np.maximum(1.0 - signs * (K @ c + clf.intercept_[0]), 0.0)
    inner = rbf_kernel(clf.support_vectors_, gamma=1.0)
    primal = 0.5 * c @ inner @ c + (t if norm == "l1" else t * t).sum()
    assert clf.primal_[0] == pytest.approx(primal, rel=1e-6)
    dual = clf.solution_.certificate.dual
    assert primal >= dual
    assert clf.increase_[0] == pytest.approx(primal / dual - 1.0, abs=1e-6)
    np.testing.assert_allclose(clf.decision_function(X), K @ c + clf.intercept_[0])


def test_larger_budgets_are_better(moons):
    X, y = moons
    increase = [
        BudgetSVC(budget=b, gamma=1.0).fit(X, y).increase_[0] for b in (5, 20, 100)
    ]
    assert increase[0] > increase[1] > increase[2]
    assert increase[2] < 0.01


@pytest.mark.one_of(2)
@pytest.mark.parametrize("scheme", ["ovo", "ovr"])
def test_a_total_is_that_of_all_classes(scheme):
    X, y = load_digits(return_X_y=True)
    X, y = X[:300] / 16.0, y[:300]
    clf = BudgetSVC(budget=90, total=True, multi_class=scheme).fit(X, y)
    assert len(clf.support_) <= 90
    assert clf.score(X, y) > 0.9
    each = BudgetSVC(budget=9, multi_class=scheme).fit(X, y)
    assert all(np.count_nonzero(s.alpha) > 9 for s in each.solutions_)


def test_a_total_smaller_than_the_number_of_problems_is_refused():
    X, y = load_iris(return_X_y=True)
    clf = BudgetSVC(budget=2, total=True)
    with pytest.raises(ValueError, match="at least 3, the number of binary problems"):
        clf.fit(X, y)
    with pytest.raises(ValueError, match="at least 3, the number of binary problems"):
        clf.path(X, y, [2, 20])
    assert len(clf.set_params(budget=3).fit(X, y).support_) <= 3


@pytest.mark.parametrize("kernel", ["linear", "precomputed"])
@pytest.mark.parametrize("method", METHODS)
def test_kernels_that_are_linear_in_what_predict_gets(moons, method, kernel):
    (X, y), budget = moons, 20 if method == "pursuit" else 200
    given = X if kernel == "linear" else rbf_kernel(X, gamma=1.0)
    clf = BudgetSVC(budget=budget, method=method, kernel=kernel).fit(given, y)
    c, J = clf.dual_coef_[0], clf.support_
    if kernel == "linear":
        np.testing.assert_allclose(clf.coef_[0], c @ X[J], atol=1e-9)
        expected = X @ clf.coef_[0]
    else:
        expected = given[:, J] @ c
        same = BudgetSVC(budget=budget, method=method, gamma=1.0).fit(X, y)
        # Refits of the same rows, which end at a share of what leaving out others costs.
        assert set(J) == set(same.support_)
        off = max(clf.tol, SHARE * same.increase_[0])
        np.testing.assert_allclose(clf.primal_, same.primal_, rtol=off)
    expected += clf.intercept_[0]
    np.testing.assert_allclose(clf.decision_function(given), expected, atol=1e-9)


def test_a_number_of_numpy_is_a_share(moons):
    assert (
        BudgetSVC(budget=np.float32(0.1), method="norm").fit(*moons).status_ == "solved"
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_kernel_that_is_not_positive_semidefinite_is_told(moons):
    X, y = moons
    clf = BudgetSVC(budget=100, method="norm", kernel="sigmoid", gamma=1.0)
    with pytest.warns(RuntimeWarning, match="not positive semidefinite"):
        clf.fit(X, y)


@words_only
@pytest.mark.one_of(2)
@pytest.mark.parametrize("method", METHODS)
def test_reports_and_models_say_what_the_budget_is(moons, tmp_path, method):
    pytest.importorskip("matplotlib")
    X, y = moons
    clf, is_cut = BudgetSVC(budget=20, method=method).fit(X, y), method != "norm"
    write_report(tmp_path / "report.html", clf, X, y)
    kind = "support vectors" if is_cut else "losses"
    page = re.sub("<[^>]*>", "", (tmp_path / "report.html").read_text())
    assert f"hinge, a budget of 20 {kind}, C = 1" in page
    before = np.count_nonzero(clf.solution_.alpha)
    cut = (
        "The model that predicts keeps 20 support vectors, and its objective is at most"
    )
    assert (cut in page) == is_cut
    assert (
        f"the machine before the cut, with {before:,} support vectors." in page
    ) == is_cut
    save_model(clf, tmp_path / "model.wm")
    meta = load_model(tmp_path / "model.wm").meta
    assert (meta["budget"], meta["norm"], meta["method"]) == (20, "l1", method)
    assert meta.get("increase") == (clf.increase_.max() if is_cut else None)


# -- the pruning of the paper -----------------------------------------------------------


def test_pruning_keeps_the_largest_with_the_best_intercept(moons):
    X, y = moons
    options = {"budget": 80, "gamma": 1.0, "tol": 1e-6}
    whole = BudgetSVC(method="norm", **options).fit(X, y)
    clf = BudgetSVC(method="prune", **options).fit(X, y)
    alpha = clf.solution_.alpha
    assert len(clf.support_) == 80
    assert alpha[clf.support_].min() >= np.delete(alpha, clf.support_).max() > 0
    np.testing.assert_allclose(np.abs(clf.dual_coef_[0]), alpha[clf.support_])
    assert clf.pruned_[0] == np.count_nonzero(alpha) - 80

    K, signs = rbf_kernel(X, X[clf.support_], gamma=1.0), np.where(y == 1, 1.0, -1.0)
    f, norm = K @ clf.dual_coef_[0], BudgetL1(budget=80)

    def losses(b):
        return norm.value(1.0 - signs * (f + b), np.ones(len(y)))

    best = losses(clf.intercept_[0])
    assert best <= min(map(losses, np.linspace(-2.0, 2.0, 200))) + 1e-9
    c = clf.dual_coef_[0]
    half = 0.5 * c @ rbf_kernel(clf.support_vectors_, gamma=1.0) @ c
    assert clf.primal_[0] == pytest.approx(half + best, rel=1e-6)
    assert clf.primal_[0] > whole.primal_[0]


def test_a_norm_of_the_user_is_solved_and_pruned(moons):
    """The paper's machine of any norm; what is pruned of it has B of its own."""
    X, y = moons
    usual = SVC(gamma=1.0, tol=1e-7).fit(X, y)
    norm = Interpolation(t=float(np.sqrt(len(y))))  # the L1 norm
    clf = BudgetSVC(budget=None, method="norm", norm=norm, gamma=1.0, tol=1e-7)
    assert "budget" not in clf.fit(X, y).model_.meta
    np.testing.assert_allclose(clf.primal_, usual.solution_.certificate.primal)
    pruned = BudgetSVC(budget=9, method="prune", norm=norm, gamma=1.0, tol=1e-7)
    alpha = pruned.fit(X, y).solution_.alpha
    assert alpha[pruned.support_].min() >= np.delete(alpha, pruned.support_).max() > 0
    assert len(pruned.support_) == 9
    nine, two = pruned.path(X, y, [9, 2])
    np.testing.assert_array_equal(nine.support_, pruned.support_)
    assert len(two.support_) == 2


def test_the_time_limit_is_of_pruning_too(moons):
    X, y = moons
    with pytest.warns(ConvergenceWarning, match="Stopped by time_limit"):
        clf = BudgetSVC(method="prune", budget=9, time_limit=1e-9).fit(X, y)
    assert len(clf.support_) <= 9


# -- Ctrl-C ----------------------------------------------------------------------------


@pytest.fixture
def interrupted_refits(monkeypatch):
    """Ctrl-C in the n-th refit, from 1."""

    def press_in(n):
        count = itertools.count(1)

        def refit(linear, solver, **options):
            def stop(step):
                raise KeyboardInterrupt

            if next(count) == n:
                options["callback"] = stop
            return solve(linear, solver, **options)

        monkeypatch.setattr(restricted, "solve", refit)

    return press_in


@pytest.mark.parametrize("classes", [2, 3])
def test_ctrl_c_in_the_reduction_is_not_lost(interrupted_refits, classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < classes, 1:3], y[y < classes]
    interrupted_refits(1)
    clf = BudgetSVC(budget=3, C=0.1)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y)
    assert clf.status_ == "interrupted"
    assert clf.solution_.status == "interrupted"
    assert "Ctrl-C" in clf.solution_.message
    assert clf.predict(X).shape == y.shape
    interrupted_refits(1)
    with pytest.raises(KeyboardInterrupt):
        clf.path(X, y, [2, 3])


def test_models_are_written_and_read(tmp_path):
    X, y = load_iris(return_X_y=True)
    clf = BudgetSVC(budget=6).fit(X, y)
    save_model(clf, tmp_path / "model.wm")
    scores = load_model(tmp_path / "model.wm").scores(as_rows(X))
    np.testing.assert_array_equal(scores, clf.decision_function(X))
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.decision_function(X), scores)


def test_it_is_searched_over(moons):
    X, y = moons
    search = GridSearchCV(BudgetSVC(), {"budget": [5, 40]}, cv=3).fit(X, y)
    assert search.best_params_["budget"] in (5, 40)


# -- paths -----------------------------------------------------------------------------


@pytest.mark.cover(1)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_a_path_is_that_of_single_fits(moons, norm, method):
    X, y = moons
    # Below some 80 the best f of the norms is zero: its score means nothing.
    budgets = [80, 10, 30] if method == "pursuit" else [120, 80, 200]
    clf = BudgetSVC(norm=norm, method=method, gamma=1.0, tol=1e-5)
    models = clf.path(X, y, budgets)
    assert [model.budget for model in models] == budgets
    assert not hasattr(clf, "support_")
    for model in models:
        single = clone(model).fit(X, y)
        # Of dual variables at C, pruning keeps some, by chance.
        rtol = {"norm": 2e-5, "pursuit": 2e-3, "prune": 2e-2}[method]
        np.testing.assert_allclose(model.primal_, single.primal_, rtol=rtol)
        if method != "norm":
            assert len(model.support_) <= model.budget
        assert model.score(X, y) == pytest.approx(single.score(X, y), abs=0.02)
        pickle.loads(pickle.dumps(model)).predict(X)


def test_a_path_of_several_classes():
    X, y = load_iris(return_X_y=True)
    models = BudgetSVC().path(X, y, [0.05, 0.1])
    sizes = [len(model.support_) for model in models]
    assert sizes[0] < sizes[1]
    assert models[1].score(X, y) > 0.9


# -- bad input -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 1}, "'budget' parameter of BudgetSVC must be an int in the range"),
        ({"budget": 0.0}, "'budget' parameter of BudgetSVC must be an int"),
        ({"budget": 1.5}, "'budget' parameter of BudgetSVC must be an int"),
        ({"budget": -3}, "'budget' parameter of BudgetSVC must be an int"),
        ({"budget": True}, "'budget' parameter of BudgetSVC must be an int"),
        ({"budget": "many"}, "'budget' parameter of BudgetSVC must be an int"),
        ({"budget": None}, "'budget' parameter of BudgetSVC must be an int"),
        ({"budget": 1e-9}, "must be a share of at least 2 of the 600 rows. Got 1e-09"),
        ({"norm": "l3"}, "'norm' parameter of BudgetSVC must be one of 'l1', 'l2'"),
        ({"norm": L2Norm()}, "must be one of 'l1', 'l2' with method='pursuit'"),
        (
            {"norm": PNorm(p=2), "budget": None},
            "'norm' parameter .* one of 'l1', 'l2' with method='pursuit'. Got PNorm",
        ),
        ({"method": "smo"}, "'method' .* must be one of 'pursuit', 'prune', 'norm'"),
        (
            {"total": True, "method": "norm"},
            "'total' parameter of BudgetSVC must be False where 'method' is 'norm'",
        ),
        (
            {"method": "norm", "norm": L2Norm()},
            "'budget' parameter of BudgetSVC must be None where 'norm' is a LossNorm",
        ),
        ({"C": 0.0}, "'C' parameter of BudgetSVC must be a float in the range"),
        ({"kernel": "rfb"}, "'kernel' parameter of BudgetSVC must be"),
    ],
)
def test_bad_parameters_are_refused(moons, options, message):
    X, y = moons
    with pytest.raises((TypeError, ValueError), match=message):
        BudgetSVC(**options).fit(X, y)


def test_more_than_all_rows_is_no_cap(moons):
    X, y = moons
    with pytest.warns(UserWarning, match="is more than the 600 rows: there is no cap"):
        clf = BudgetSVC(budget=601, method="norm").fit(X, y)
    assert clf.cap_active_.tolist() == [False]


def test_a_huge_C_is_no_time_limit():
    """The refit in float32 gets no further: float64 ends it."""
    X, y = make_moons(300, noise=0.25, random_state=0)
    clf = BudgetSVC(budget=15, C=1e12, norm="l2", gamma=1.0).fit(X * 100, y)
    assert clf.status_ == "solved"


def test_a_refit_that_gets_no_further_says_so(moons, monkeypatch):
    reduce_path = budget_svc.reduce_path

    def stalled(*args, **options):
        models = reduce_path(*args, **options)
        return [dataclasses.replace(one, status=Status.STALLED) for one in models]

    monkeypatch.setattr(budget_svc, "reduce_path", stalled)
    with pytest.warns(ConvergenceWarning, match="Lack of progress ended the refit"):
        clf = BudgetSVC(budget=10, gamma=1.0).fit(*moons)
    assert clf.status_ == "stalled"


def test_the_time_limit_is_of_the_cut_too(moons, monkeypatch):
    X, y = moons
    clf = BudgetSVC(budget=10, gamma=1.0, time_limit=100.0).fit(X, y)
    assert clf.status_ == "solved"
    reduce_path = budget_svc.reduce_path

    def over(*args, time_limit, **options):
        assert 0 < time_limit <= 100.0
        return reduce_path(*args, time_limit=1e-9, **options)

    monkeypatch.setattr(budget_svc, "reduce_path", over)
    with pytest.warns(ConvergenceWarning, match="The time limit ended the refit"):
        clf.fit(X, y)
    assert clf.status_ == "time_limit"
    assert len(clf.support_) == 10


@pytest.mark.parametrize("budgets", [[], [10, 0.5], [1], ["a"]])
def test_bad_paths_are_refused(moons, budgets):
    X, y = moons
    with pytest.raises((TypeError, ValueError), match=r"'budgets' parameter of"):
        BudgetSVC().path(X, y, budgets)


def test_the_seed_draws_the_candidates(moons, monkeypatch):
    X, y = moons
    few = functools.partial(budget_svc.reduce_path, candidates=100)
    monkeypatch.setattr(budget_svc, "reduce_path", few)
    supports = [
        BudgetSVC(budget=10, gamma=1.0, random_state=seed).fit(X, y).support_
        for seed in (None, 0, 1, 1)
    ]
    np.testing.assert_array_equal(supports[0], supports[1])
    np.testing.assert_array_equal(supports[2], supports[3])
    assert supports[1].tolist() != supports[2].tolist()


def test_a_matrix_that_is_not_square_is_refused_by_its_owner():
    with pytest.raises(ValueError, match=r"'X' parameter of BudgetSVC.fit .* square"):
        BudgetSVC(kernel="precomputed").fit(np.ones((6, 3)), [0, 1] * 3)
