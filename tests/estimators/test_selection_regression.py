"""SVRCV and LinearSVRCV: the scores of a grid search, certified; folds; bad input."""

import pickle
import re

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.base import clone
from sklearn.exceptions import (
    ConvergenceWarning,
    NotFittedError,
    UndefinedMetricWarning,
)
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, LeaveOneOut

from tests.cases.pairwise import checks_by_turns
from tests.cases.regression import friedman
from widemargin import (
    SVR,
    SVRCV,
    LinearSVR,
    LinearSVRCV,
    as_rows,
    linear_svr_path,
    load_model,
    open_rows,
    save_model,
    svr_path,
)
from widemargin.estimators import folds, selection
from widemargin.estimators.points import after

LOSSES = ["epsilon_insensitive", "squared_epsilon_insensitive"]
X, TARGET = friedman(150)
KINDS = [SVRCV, LinearSVRCV]


@checks_by_turns(
    [
        SVRCV(Cs=[0.1, 10.0], cv=2),
        LinearSVRCV(Cs=[0.1, 10.0], cv=3),
        SVRCV(Cs=2, gammas=2, epsilons=[0.0, 0.2], cv=2, loss=LOSSES[1]),
        SVRCV(Cs=[1.0, 10.0], cv=2, kernel="linear"),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def searched(machine, clf, X, y, **fit):
    """The search by scikit-learn over the same grid, and its scores in our shape."""
    grid = {"epsilon": clf.epsilons_, "C": clf.Cs_}
    if clf.scores_.ndim == 4:
        grid["gamma"] = clf.gammas_
    search = GridSearchCV(machine, grid, cv=len(clf.scores_), **fit).fit(X, y)
    found, tried = np.full_like(clf.scores_, np.nan), search.cv_results_
    for k, point in enumerate(tried["params"]):
        axes = {"epsilon": clf.epsilons_, "C": clf.Cs_}
        if "gamma" in point:
            axes = {"gamma": clf.gammas_} | axes
        place = [np.searchsorted(axis, point[name]) for name, axis in axes.items()]
        for fold in range(len(found)):
            found[(fold, *place)] = tried[f"split{fold}_test_score"][k]
    return search, found


# -- scores and certificates -----------------------------------------------------------


@pytest.mark.cover(1)
@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
@pytest.mark.parametrize("loss", LOSSES)
def test_scores_are_those_of_a_grid_search(loss, intercept):
    # Where all alpha are at their bound, many intercepts are best: C is not so small.
    options = {"loss": loss, "intercept": intercept, "tol": 1e-6}
    grid = {"Cs": [1.0, 10.0], "gammas": [0.1, 0.5], "epsilons": [0.3, 0.0]}
    clf = SVRCV(cv=3, **grid, **options).fit(X, TARGET)
    search, scores = searched(SVR(**options), clf, X, TARGET)
    np.testing.assert_allclose(clf.scores_, scores, atol=2e-3)
    best = {"C": clf.C_, "gamma": clf.gamma_, "epsilon": clf.epsilon_}
    assert search.best_params_ == best
    assert clf.best_score_ == pytest.approx(search.best_score_, abs=1e-3)
    assert clf.path_.shape == clf.scores_.shape == (3, 2, 2, 2)
    assert clf.path_.max() <= 1e-6
    assert clf.best_estimator_.get_params() == SVR(**best, **options).get_params()
    np.testing.assert_allclose(clf.predict(X), search.predict(X), atol=0.02)


def test_scores_are_those_of_libsvm():
    clf = SVRCV(Cs=[1.0, 10.0], gammas=[0.1, 0.5], epsilons=[0.1, 0.5], tol=1e-6)
    theirs = svm.SVR(tol=1e-6)
    _, scores = searched(theirs, clf.fit(X, TARGET), X, TARGET)
    np.testing.assert_allclose(clf.scores_, scores, atol=2e-3)


@pytest.mark.parametrize("loss", LOSSES)
def test_linear_scores_are_those_of_a_grid_search(loss):
    options = {"loss": loss, "tol": 1e-8}
    clf = LinearSVRCV(Cs=[1.0, 0.1], epsilons=[0.0, 0.5], **options).fit(X, TARGET)
    search, scores = searched(LinearSVR(**options), clf, X, TARGET)
    np.testing.assert_allclose(clf.scores_, scores, atol=1e-4)
    assert search.best_params_ == {"C": clf.C_, "epsilon": clf.epsilon_}
    assert clf.path_.shape == (5, 2, 2)
    assert clf.path_.max() <= 1e-8
    np.testing.assert_allclose(clf.coef_, search.best_estimator_.coef_, rtol=1e-3)


def test_linear_scores_are_those_of_liblinear():
    clf = LinearSVRCV(Cs=[0.1, 1.0], loss=LOSSES[1], epsilons=[0.1], tol=1e-8)
    theirs = svm.LinearSVR(loss=LOSSES[1], tol=1e-8, max_iter=10**6, random_state=0)
    _, scores = searched(theirs, clf.fit(X, TARGET), X, TARGET)
    np.testing.assert_allclose(clf.scores_, scores, atol=1e-3)


@pytest.mark.parametrize("kind", [sparse.csr_array, np.float32, as_rows])
@pytest.mark.parametrize("estimator", [SVRCV(Cs=[1, 10]), LinearSVRCV(Cs=[1, 10])])
def test_storage_does_not_matter(estimator, kind):
    plain = clone(estimator).set_params(tol=1e-6).fit(X, TARGET)
    other = clone(plain).fit(kind(X), TARGET)
    np.testing.assert_allclose(other.scores_, plain.scores_, atol=1e-3)
    assert other.C_ == plain.C_


def test_rows_in_files(tmp_path):
    np.save(tmp_path / "X.npy", X)
    clf = LinearSVRCV(Cs=[0.1, 1.0], epsilons=[0.1, 0.5], tol=1e-7)
    plain = clone(clf).fit(X, TARGET)
    stored = clone(clf).fit(open_rows(tmp_path / "X.npy"), TARGET)
    np.testing.assert_allclose(stored.scores_, plain.scores_, atol=1e-3)
    assert (stored.C_, stored.epsilon_) == (plain.C_, plain.epsilon_)


def gaussian(A, B):
    return rbf_kernel(A, B, gamma=0.2)


def test_kernels_that_have_no_gamma():
    grid = {"Cs": [1.0, 10.0], "epsilons": [0.1, 0.5], "tol": 1e-6}
    plain = SVRCV(gamma=0.2, **grid).fit(X, TARGET)
    for kernel, data in ((gaussian, X), ("precomputed", gaussian(X, X))):
        other = SVRCV(kernel=kernel, **grid).fit(data, TARGET)
        np.testing.assert_allclose(other.scores_, plain.scores_, atol=2e-3)
        assert other.path_.max() <= 1e-6
        with pytest.raises(ValueError, match="'gammas' parameter of SVRCV must be"):
            SVRCV(kernel=kernel, gammas=3).fit(data, TARGET)
    linear = SVRCV(kernel="linear", **grid).fit(X, TARGET)
    same = LinearSVRCV(**grid).fit(X, TARGET)
    np.testing.assert_allclose(linear.scores_[:, 0], same.scores_, atol=1e-4)


def test_problems_in_parts_are_the_same(monkeypatch):
    clf = SVRCV(Cs=[1.0, 10.0], epsilons=[0.1, 0.5], tol=1e-6)
    whole = clone(clf).fit(X, TARGET)
    monkeypatch.setattr(folds, "PLACES", 1)
    np.testing.assert_allclose(clf.fit(X, TARGET).scores_, whole.scores_)


def test_working_sets_finish_what_has_stalled(monkeypatch):
    clf = SVRCV(Cs=[1.0, 10.0], epsilons=[0.1, 0.5], tol=1e-6)
    whole, solve = clone(clf).fit(X, TARGET), folds.solve_all

    def stalled(problems, limits, memory, threads):
        ends = solve(problems, limits, memory, threads)
        ends.is_convex[::3] = False
        ends.c[:] *= 0.5
        ends.b[:] = 0.0
        return ends

    monkeypatch.setattr(folds, "solve_all", stalled)
    again = clf.fit(X, TARGET)
    places = np.arange(20).reshape(2, 5, 2).transpose(1, 0, 2)[:, np.newaxis] % 3 == 0
    assert not np.allclose(again.scores_[~places], whole.scores_[~places], atol=2e-3)
    np.testing.assert_allclose(again.scores_[places], whole.scores_[places], atol=2e-3)
    assert again.path_.max() <= 1e-6


@pytest.mark.parametrize("kind", [SVR, LinearSVR])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_machine_begins_where_that_of_a_smaller_C_ended(kind, loss):
    # Those that begin at a point, which small fits do not.
    newton = "active_set" if "squared" in loss else "augmented_lagrangian"
    solver = {"solver": "irwls" if kind is SVR else newton}
    first = kind(C=1.0, loss=loss, **solver).fit(X, TARGET)
    cold = kind(C=1.1, loss=loss, **solver).fit(X, TARGET)
    warm = clone(cold)
    warm._fit(X, TARGET, None, after(warm, first))
    begin = warm.solution_.trace[0].primal
    assert begin < 1.1 * first.solution_.certificate.primal
    best, zero = cold.solution_.certificate.primal, cold.solution_.trace[0].primal
    assert begin - best < 0.2 * (zero - best)
    np.testing.assert_allclose(warm.predict(X), cold.predict(X), atol=0.05)


@pytest.mark.parametrize(
    ("path", "kind"), [(svr_path, SVR), (linear_svr_path, LinearSVR)]
)
def test_paths_are_single_fits(path, kind):
    Cs, models, gaps = path(X, TARGET, Cs=[1.0, 0.01, 0.1], tol=1e-6)
    assert Cs.tolist() == [0.01, 0.1, 1.0]
    assert gaps.max() <= 1e-6
    for C, model in zip(Cs, models, strict=True):
        alone = kind(C=C, tol=1e-6).fit(X, TARGET)
        bounds = model.solution_.certificate, alone.solution_.certificate
        assert model.C == C
        assert bounds[0].primal == pytest.approx(bounds[1].primal, rel=1e-5)
    with pytest.raises(ValueError, match="'Cs' parameter of .*svr_path must hold"):
        path(X, TARGET, C=1.0)


# -- scores, weights, groups -----------------------------------------------------------


@pytest.mark.parametrize("scoring", ["neg_mean_absolute_error", "neg_max_error", "r2"])
def test_scorers_see_the_predictions_of_held_out_rows(scoring):
    clf = SVRCV(Cs=[1.0, 10.0], gammas=[0.1], scoring=scoring, tol=1e-6)
    search, scores = searched(
        SVR(tol=1e-6), clf.fit(X, TARGET), X, TARGET, scoring=scoring
    )
    np.testing.assert_allclose(clf.scores_, scores, atol=0.02)
    assert clf.score(X, TARGET) == pytest.approx(search.score(X, TARGET), abs=0.02)


@pytest.mark.parametrize("estimator", [SVRCV(Cs=[1, 10]), LinearSVRCV(Cs=[1, 10])])
def test_weights_count_in_training_and_in_scores(estimator):
    weights = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
    clf = clone(estimator).set_params(tol=1e-6, cv=KFold(5)).fit(X, TARGET, weights)
    machine = clone(clf.best_estimator_).set_params(C=1.0)
    if "gamma" in machine.get_params():
        machine.set_params(gamma=clf.gamma_)
    for k, (train, test) in enumerate(KFold(5).split(X)):
        machine.fit(X[train], TARGET[train], weights[train])
        score = machine.score(X[test], TARGET[test], weights[test])
        assert clf.scores_[k].ravel()[0] == pytest.approx(score, abs=1e-3)


def test_groups_go_to_the_splitter():
    groups = np.arange(len(X)) % 7
    clf = SVRCV(Cs=2, cv=GroupKFold(7)).fit(X, TARGET, groups=groups)
    assert clf.scores_.shape == (7, 1, 1, 2)
    with pytest.raises(ValueError, match="takes groups beside X, y and"):
        clf.fit(X, TARGET, group=groups)


def test_ties_go_to_the_smallest_C_and_epsilon():
    clf = SVRCV(Cs=[10.0, 1.0], epsilons=[0.5, 0.2], scoring=lambda model, X, y: 1.0)
    clf.fit(X, TARGET)
    assert (clf.C_, clf.epsilon_) == (1.0, 0.2)


# -- what is kept ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_fit_is_kept(kind, tmp_path):
    clf = kind(Cs=[0.1, 1.0], epsilons=0.2).fit(X, TARGET)
    assert (clf.epsilons_.tolist(), clf.epsilon_) == ([0.2], 0.2)
    assert clf.dual_gap_ == clf.best_estimator_.dual_gap_ <= 1e-4
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict(X), clf.predict(X))
    save_model(clf, tmp_path / "m.wm")
    loaded = load_model(tmp_path / "m.wm")
    np.testing.assert_allclose(loaded.predict(X), clf.predict(X))
    assert not hasattr(clf, "classes_")
    assert not hasattr(clf, "decision_function")


@pytest.mark.parametrize("kind", KINDS)
def test_without_refit_there_is_no_model(kind):
    clf = kind(Cs=2, refit=False).fit(X, TARGET)
    assert clf.C_ in clf.Cs_
    with pytest.raises(NotFittedError, match="fitted with refit=False"):
        clf.predict(X)


# -- what ends a search ----------------------------------------------------------------


def ended(monkeypatch, status):
    """The second kernel's problems are ended by this."""
    solve, calls = folds.solve_all, []

    def late(problems, limits, memory, threads):
        calls.append(problems)
        ends = solve(problems, limits, memory, threads)
        if len(calls) < 2:
            return ends
        ends.is_convex[:] = False
        return ends._replace(status=status)

    monkeypatch.setattr(folds, "solve_all", late)


def test_ctrl_c_keeps_what_was_finished(monkeypatch):
    ended(monkeypatch, selection.Status.INTERRUPTED)
    clf = SVRCV(Cs=[0.1, 1.0], gammas=[0.01, 0.1], epsilons=[0.1, 0.2])
    with pytest.raises(
        KeyboardInterrupt, match="of SVRCV: .* have 20 of 40 fits, C_ is"
    ):
        clf.fit(X, TARGET)
    assert np.isfinite(clf.scores_[:, 0]).all()
    assert np.isnan(clf.scores_[:, 1]).all()
    assert np.isnan(clf.path_[:, 1]).all()
    assert clf.gamma_ == 0.01
    with pytest.raises(NotFittedError, match="has no model"):
        clf.predict(X)


def test_a_time_limit_keeps_what_was_finished(monkeypatch):
    ended(monkeypatch, selection.Status.TIME_LIMIT)
    clf = SVRCV(Cs=[0.1, 1.0], gammas=[0.01, 0.1], time_limit=60.0)
    with pytest.warns(ConvergenceWarning, match="before 10 of 20 fits"):
        clf.fit(X, TARGET)
    assert clf.gamma_ == 0.01
    assert clf.dual_gap_ <= 1e-4


@pytest.mark.parametrize("status", ["time_limit", "interrupted"])
def test_what_ended_the_solver_that_goes_on_ends_the_search(monkeypatch, status):
    """Working sets may return a moment before the deadline, which is no Ctrl-C."""
    solve, solve_task = folds.solve_all, folds.solve_task

    def stalled(problems, limits, memory, threads):
        ends = solve(problems, limits, memory, threads)
        ends.is_convex[-1] = False
        return ends

    def limited(*args):
        problem, solution = solve_task(*args)
        return problem, solution.changed(status=selection.Status(status))

    monkeypatch.setattr(folds, "solve_all", stalled)
    monkeypatch.setattr(folds, "solve_task", limited)
    clf = SVRCV(Cs=[0.1, 1.0], gammas=[0.01], epsilons=[0.1], time_limit=60.0)
    if status == "time_limit":
        told = pytest.warns(ConvergenceWarning, match="before 1 of 10 fits")
    else:
        told = pytest.raises(KeyboardInterrupt, match="have 9 of 10 fits")
    with told:
        clf.fit(X, TARGET)


@pytest.mark.parametrize("kind", KINDS)
def test_a_time_limit_that_allows_nothing_says_so(kind):
    with pytest.raises(ValueError, match="time_limit of 1e-06 s ended the search of"):
        kind(time_limit=1e-6).fit(X, TARGET)


# -- bad input -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"Cs": 0}, "'Cs' parameter of {} must be an int in the range [1, inf)"),
        ({"epsilons": -1.0}, "'epsilons' parameter of {} must be a float in the range"),
        ({"epsilons": [0.1, np.nan]}, "'epsilons' parameter of {} must be a float in"),
        ({"epsilons": []}, "'epsilons' parameter of {} must hold a number"),
        ({"epsilons": "wide"}, "'epsilons' parameter of {} must be a list of numbers"),
        ({"epsilons": [[0.1]]}, "'epsilons' parameter of {} must be a list of numbers"),
        ({"epsilon": -0.1}, "'epsilon' parameter of {} must be a float in the range"),
        ({"loss": "hinges"}, "'loss' parameter of {} must be one of"),
        ({"scoring": ["r2"]}, "'scoring' parameter of {} must be a name"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_parameters_out_of_range(kind, params, said):
    words = re.escape(said.format(kind.__name__))
    with pytest.raises((ValueError, TypeError), match=words):
        kind(**params).fit(X, TARGET)


@pytest.mark.parametrize("kind", KINDS)
def test_targets_that_are_none(kind):
    with pytest.raises(ValueError, match="must hold real numbers"):
        kind().fit(X, np.where(TARGET > 0, "yes", "no"))
    with pytest.raises(ValueError, match=r"finite numbers only .* NaN at row 0"):
        kind().fit(X, np.append(np.nan, TARGET[1:]))
    with pytest.raises(ValueError, match="must be one-dimensional"):
        kind().fit(X, np.column_stack([TARGET, TARGET]))


@pytest.mark.parametrize("kind", KINDS)
def test_folds_that_cannot_be_judged(kind):
    few = KFold(2).split(X[:3])
    with (
        pytest.warns(UndefinedMetricWarning),
        pytest.raises(ValueError, match="score of fold 0 is NaN. It holds 1 row out:"),
    ):
        kind(Cs=1, cv=LeaveOneOut()).fit(X[:9], TARGET[:9])
    with pytest.raises(
        ValueError, match="at most 3, the number of rows .* Got 5 instead"
    ):
        kind().fit(X[:3], TARGET[:3])
    with pytest.raises(ValueError, match="must give at least one fold"):
        kind(cv=[]).fit(X, TARGET)
    clf = kind(Cs=1, cv=list(few)[:1]).fit(X[:3], TARGET[:3])
    assert len(clf.scores_) == 1
    loo = kind(Cs=2, cv=LeaveOneOut(), scoring="neg_mean_absolute_error")
    assert len(loo.fit(X[:9], TARGET[:9]).scores_) == 9


def test_equal_rows_have_nothing_to_learn():
    same = np.repeat(X[:1], 20, axis=0)
    clf = SVRCV(Cs=2, gammas=[1.0]).fit(same, TARGET[:20])
    assert clf.path_.max() <= 1e-4
