"""SVCCV and LinearSVCCV: the scores of a grid search, certified; folds; bad input."""

import itertools
import pickle
import re
import time

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
)
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.cases.pairwise import checks_by_turns
from widemargin import (
    SVC,
    SVCCV,
    SVRCV,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    LinearSVRCV,
    Problem,
    as_rows,
    linear_svc_path,
    load_model,
    open_rows,
    save_model,
    svc_path,
)
from widemargin.estimators import folds, linear_choice, selection
from widemargin.problems import conditioning


@checks_by_turns(
    [
        SVCCV(Cs=[0.1, 10.0], cv=2),
        LinearSVCCV(Cs=[0.1, 10.0], cv=2),
        SVCCV(Cs=2, gammas=2, cv=2, loss="squared_hinge", class_weight="balanced"),
        SVCCV(Cs=[1.0, 10.0], cv=2, multi_class="ovr"),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def some_digits(return_X_y):
    """Digits below 4: six pairs."""
    return load_digits(n_class=4, return_X_y=return_X_y)


def scaled(load, rows=None):
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X)[:rows], y[:rows]


def searched(machine, grid, X, y, cv=5, **fit):
    """Scores (folds, gammas, C) by scikit-learn's search over our estimator."""
    search = GridSearchCV(machine, grid, cv=cv, **fit).fit(X, y)
    found = [search.cv_results_[f"split{k}_test_score"] for k in range(cv)]
    shape = cv, len(grid["C"]), len(grid.get("gamma", [0]))
    return np.reshape(found, shape).transpose(0, 2, 1), search


# -- scores and certificates -----------------------------------------------------------


@pytest.mark.cover(2)
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("load", [load_breast_cancer, load_wine, some_digits])
def test_scores_are_those_of_a_grid_search(load, loss, multi_class):
    X, y = scaled(load, 150)
    options = {"tol": 1e-5, "loss": loss, "multi_class": multi_class}
    # Where all alpha are at their bound, many intercepts are best: C is not so small.
    Cs, gammas = [1.0, 10.0, 100.0], [0.01, 0.03]
    clf = SVCCV(Cs=Cs, gammas=gammas, cv=3, **options).fit(X, y)
    scores, search = searched(SVC(**options), {"C": Cs, "gamma": gammas}, X, y, cv=3)
    one_row = 1.01 / (len(y) // 3)  # scores of 0, or votes, may go either way
    np.testing.assert_allclose(clf.scores_, scores, atol=one_row)
    assert np.mean(clf.scores_ != scores) <= 0.05
    assert clf.best_score_ == clf.scores_.mean(axis=0).max()
    assert clf.best_score_ == pytest.approx(search.best_score_, abs=one_row / 3)
    assert clf.path_.shape == (3, 2, 3)
    assert clf.path_.max() <= 1e-5
    assert clf.dual_gap_ <= 1e-5


def test_the_model_is_the_best_point_trained_on_all_rows(tmp_path):
    X, y = scaled(load_wine)
    clf = SVCCV(Cs=4, gammas=3).fit(X, y)
    alone = SVC(C=clf.C_, gamma=clf.gamma_).fit(X, y)
    np.testing.assert_array_equal(clf.dual_coef_, alone.dual_coef_)
    np.testing.assert_array_equal(clf.decision_function(X), alone.decision_function(X))
    np.testing.assert_array_equal(clf.predict(X), alone.predict(X))
    assert clf.gammas_[1] == pytest.approx(1 / (X.shape[1] * X.var()))
    np.testing.assert_allclose(clf.Cs_, [0.01, 10 ** (-1 / 3), 10 ** (4 / 3), 1000])
    save_model(clf, tmp_path / "model.wm")
    found = load_model(tmp_path / "model.wm")
    np.testing.assert_array_equal(found.predict(X), clf.predict(X))
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict(X), clf.predict(X))
    np.testing.assert_array_equal(again.scores_, clf.scores_)


def test_searches_do_not_depend_on_threads_where_memory_is_free():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2700, 60))
    y = X[:, 0] + rng.normal(size=2700) > 0.0
    how = {"gamma": 1 / 60, "tol": 5e-4, "cv": 4, "refit": False}
    search = SVCCV(Cs=[0.5, 100.0, 700.0], **how)
    one, five = (clone(search).set_params(n_jobs=k).fit(X, y).path_ for k in (1, 5))
    np.testing.assert_array_equal(one, five)


def test_large_problems_are_fitted_one_after_the_other(monkeypatch):
    X, y = scaled(load_wine)
    clf = SVCCV(Cs=[0.1, 1.0, 10.0], gammas=[0.02, 0.1], tol=1e-6)
    at_once = clone(clf).fit(X, y)
    monkeypatch.setattr("widemargin.estimators.engine_choice.MOST_ROWS_ALONE", 10)
    monkeypatch.setattr("widemargin.estimators.engine_choice.MOST_ROWS", 10)
    in_turn = clone(clf).fit(X, y)
    np.testing.assert_array_equal(at_once.scores_, in_turn.scores_)
    assert at_once.path_.max() <= 1e-6
    assert in_turn.path_.max() <= 1e-6
    assert in_turn.solution_.solver == "irwls"


@pytest.mark.parametrize("m", [None, 900])
def test_problems_near_the_gap_go_on_at_once(m, monkeypatch):
    """Elsewhere they would go on one after the other: of few rows, or of more."""
    X, y = load_wine(return_X_y=True)
    if m is not None:
        options = {"n_informative": 5, "n_redundant": 0, "n_classes": 3}
        X, y = make_classification(3 * m, 6, random_state=0, **options)

    def refuse(*_):
        pytest.fail("a problem went on alone")

    monkeypatch.setattr(folds, "_go_on", refuse)
    for C in (278.0, 1000.0):
        clf = SVCCV(Cs=[0.1 * C, C], tol=1e-4, refit=False).fit(X, y)
        assert clf.path_.max() <= 1e-4


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_parts_and_problems_that_stall_change_nothing(monkeypatch, multi_class):
    X, y = scaled(load_wine)
    clf = SVCCV(Cs=[0.1, 1.0, 10.0], gammas=[0.1], tol=1e-6, multi_class=multi_class)
    whole = clone(clf).fit(X, y)
    solve = folds.solve_all

    def rough(problems, limits, memory, threads):
        ends = solve(problems, limits, memory, threads)
        ends.c[: problems.ends[3]] = 0.0  # as if float32 had not solved these
        ends.is_convex[:4] = False
        return ends

    monkeypatch.setattr(folds, "PLACES", 1)
    monkeypatch.setattr(folds, "SUMS_BYTES", 1)
    parts = clone(clf).fit(X, y)
    np.testing.assert_array_equal(parts.scores_, whole.scores_)
    np.testing.assert_allclose(parts.path_, whole.path_, rtol=1e-3)
    monkeypatch.setattr(folds, "solve_all", rough)
    finished = clone(clf).fit(X, y)
    np.testing.assert_array_equal(finished.scores_, whole.scores_)
    assert not np.allclose(finished.path_, whole.path_, rtol=1e-3)
    assert finished.path_.max() <= 1e-6


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris])
def test_linear_scores_are_those_of_a_grid_search(load):
    X, y = scaled(load)
    Cs = [0.01, 0.1, 1.0, 10.0]
    clf = LinearSVCCV(Cs=Cs, tol=1e-7).fit(X, y)
    scores, search = searched(LinearSVC(tol=1e-7), {"C": Cs}, X, y)
    np.testing.assert_array_equal(clf.scores_, scores[:, 0])
    assert search.best_params_ == {"C": clf.C_}
    assert clf.path_.max() <= 1e-7
    np.testing.assert_allclose(clf.coef_, search.best_estimator_.coef_, rtol=1e-6)


@pytest.mark.parametrize("kind", [sparse.csr_array, np.float32, as_rows])
@pytest.mark.parametrize("estimator", [SVCCV(Cs=[1, 10]), LinearSVCCV(Cs=[1, 10])])
def test_storage_does_not_matter(estimator, kind):
    X, y = scaled(load_wine)
    plain = clone(estimator).fit(X, y)
    other = clone(estimator).fit(kind(X), y)
    np.testing.assert_allclose(other.scores_, plain.scores_)
    assert other.C_ == plain.C_
    np.testing.assert_array_equal(other.predict(X), plain.predict(X))


def test_several_classes_in_files(tmp_path):
    X, y = scaled(load_wine)
    np.save(tmp_path / "X.npy", X)
    Cs, some = [0.01, 0.1], {"tol": 1e-7, "cv": 3}
    plain = LinearSVCCV(Cs=Cs, **some).fit(X, y)
    stored = LinearSVCCV(Cs=Cs, **some).fit(open_rows(tmp_path / "X.npy"), y)
    np.testing.assert_array_equal(stored.scores_, plain.scores_)
    np.testing.assert_allclose(stored.coef_, plain.coef_, atol=1e-4)


@pytest.mark.parametrize("stored", [False, True])
def test_folds_of_groups_scale_columns_by_their_own_rows(stored, tmp_path):
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(60, 3)) * [1, 100, 0.01], np.repeat(np.arange(6), 10)
    X[groups == 0] *= 20.0
    y = X[:, 0] + rng.normal(size=60)
    np.save(tmp_path / "X.npy", X)
    rows = open_rows(tmp_path / "X.npy") if stored else X
    clf = LinearSVRCV(Cs=[0.01], cv=GroupKFold(3), tol=1e-8).scale_in_folds()
    found = clf.fit(rows, y, groups=groups).scores_.ravel()
    pipeline = make_pipeline(StandardScaler(), LinearSVR(C=0.01, tol=1e-8))
    known = cross_val_score(pipeline, X, y, cv=GroupKFold(3), groups=groups)
    np.testing.assert_allclose(found, known, rtol=1e-4)


def test_a_clone_scales_in_folds_too():
    search = LinearSVCCV(Cs=[1.0]).scale_in_folds("minmax")
    X, y = load_iris(return_X_y=True)
    X = X * [1.0, 1e3, 1e-3, 1.0]
    scores = [one.fit(X, y).scores_ for one in (search, clone(clone(search)))]
    np.testing.assert_array_equal(*scores)
    assert (scores[0] != clone(search).scale_in_folds(None).fit(X, y).scores_).any()


@pytest.mark.parametrize("kind", [LinearSVCCV, LinearSVRCV, SVCCV, SVRCV])
@pytest.mark.parametrize("bad", [0, 39])
def test_a_bad_number_of_any_fold_is_named_by_its_row(kind, bad):
    X = np.random.default_rng(0).normal(size=(40, 3))
    X[bad, 1] = np.nan
    with pytest.raises(ValueError, match=f"Got NaN at row {bad}, column 1"):
        kind(cv=KFold(2)).fit(X, np.arange(40) % 2)


def test_what_no_fold_can_scale_is_refused():
    with pytest.raises(ValueError, match="'scale' parameter of SVCCV must be one of"):
        SVCCV().scale_in_folds("robust")
    K = np.eye(20)
    for kind in (SVCCV, SVRCV):
        search = kind(kernel="precomputed", Cs=2, cv=2).scale_in_folds()
        with pytest.raises(ValueError, match="scales columns of X. Got kernel='prec"):
            search.fit(K, np.arange(20) % 2)


@pytest.mark.parametrize("kernel", ["precomputed", "linear", lambda A, B: A @ B.T])
def test_kernels_that_have_no_gamma(kernel):
    X, y = scaled(load_wine)
    data = X @ X.T if kernel == "precomputed" else X
    clf = SVCCV(Cs=[0.001, 0.01], kernel=kernel, tol=1e-6).fit(data, y)
    plain = SVCCV(Cs=[0.001, 0.01], kernel="poly", degree=1, gamma=1.0, tol=1e-6)
    np.testing.assert_array_equal(clf.scores_, plain.fit(X, y).scores_)
    with pytest.raises(ValueError, match="'gammas' parameter of SVCCV must be None"):
        SVCCV(kernel="linear", gammas=3).fit(X, y)


# -- scores, weights, groups -----------------------------------------------------------


@pytest.mark.parametrize("scoring", ["roc_auc", "f1", "balanced_accuracy"])
def test_scorers_see_the_decisions_of_held_out_rows(scoring):
    X, y = scaled(load_breast_cancer, 200)
    Cs = [0.1, 10.0]
    clf = SVCCV(Cs=Cs, gammas=[0.01], scoring=scoring, tol=1e-6).fit(X, y)
    grid = {"C": Cs, "gamma": [0.01]}
    scores, search = searched(SVC(tol=1e-6), grid, X, y, scoring=scoring)
    np.testing.assert_allclose(clf.scores_, scores, atol=1e-6)
    assert clf.score(X, y) == pytest.approx(search.score(X, y), abs=1e-6)


def test_a_scorer_that_needs_more_is_refused():
    X, y = scaled(load_wine)
    for search in (SVCCV, LinearSVCCV):
        said = "asks the model of a fold for pred.* probabilities give GridSearchCV of"
        with pytest.raises(ValueError, match=said):
            search(Cs=1, scoring="neg_log_loss").fit(X, y)
        scored = search(calibrate="sigmoid", cv=2), {"Cs": [[0.1], [1.0]]}
        with_them = GridSearchCV(*scored, scoring="neg_log_loss", cv=2).fit(X, y)
        assert np.isfinite(with_them.cv_results_["mean_test_score"]).all()
    with pytest.raises(ValueError, match="model of a fold for coef_, which it") as one:
        SVCCV(Cs=1, scoring=lambda clf, X, y: clf.coef_[0]).fit(X, y)
    assert "probabilities" not in str(one.value)
    with pytest.raises(ValueError, match="model of a fold for coef_, which it"):
        SVCCV(Cs=1, scoring=lambda clf, X, y: clf.coef_[0]).fit(X, y)
    with pytest.raises(AttributeError, match="'str' object has no attribute 'coef_'"):
        SVCCV(Cs=1, scoring=lambda clf, X, y: "clf".coef_).fit(X, y)
    with pytest.raises(TypeError, match="'scoring' parameter of SVCCV must be a name"):
        SVCCV(scoring=["f1", "accuracy"]).fit(X, y)
    with pytest.raises(ValueError, match="'scoring' parameter must give one number"):
        SVCCV(Cs=1, scoring=lambda model, X, y: "good").fit(X, y)


@pytest.mark.parametrize("kind", [SVCCV, LinearSVCCV])
def test_a_scorer_of_two_classes_is_refused_for_more(kind):
    """scikit-learn's error spoke of 'multi_class', which is a parameter here too."""
    X, y = scaled(load_wine)
    message = r"'scoring' parameter must .* of 3 classes\): multi_class must be in"
    with pytest.raises(ValueError, match=message) as error:
        kind(Cs=1, scoring="roc_auc").fit(X, y)
    assert "'f1_macro'" in str(error.value)
    assert "'roc_auc_ovr' is of probabilities: give GridSearchCV" in str(error.value)
    assert isinstance(error.value.__cause__, ValueError)
    for other in ("balanced_accuracy", "f1_macro"):
        assert kind(Cs=1, scoring=other).fit(X, y).best_score_ > 0.9


@pytest.mark.parametrize("estimator", [SVCCV(Cs=[1, 10]), LinearSVCCV(Cs=[1, 10])])
def test_weights_count_in_training_and_in_scores(estimator):
    X, y = scaled(load_breast_cancer, 300)
    weights = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    splits = list(StratifiedKFold(5).split(X, y))
    clf = clone(estimator).set_params(tol=1e-6, cv=splits).fit(X, y, weights)
    machine = clf.best_estimator_
    for k, (train, test) in enumerate(splits):
        alone = clone(machine).set_params(C=1.0)
        if "gamma" in alone.get_params():
            alone.set_params(gamma=clf.gamma_)
        alone.fit(X[train], y[train], weights[train])
        assert clf.scores_[k].ravel()[0] == pytest.approx(
            alone.score(X[test], y[test], weights[test])
        )


def test_balanced_classes_are_those_of_each_fold():
    X, y = scaled(load_breast_cancer, 300)
    options = {"class_weight": "balanced", "tol": 1e-6}
    clf = SVCCV(Cs=[0.5, 1.0], gammas=[0.01], **options).fit(X, y)
    scores, _ = searched(SVC(**options), {"C": [0.5, 1.0], "gamma": [0.01]}, X, y)
    np.testing.assert_array_equal(clf.scores_, scores)


def test_where_an_interval_of_intercepts_is_best_all_folds_take_its_middle():
    """All alpha are C, but for rounding, which else chose an end: another one a fold."""
    made = {"n_informative": 4, "n_redundant": 0, "flip_y": 0.3, "class_sep": 0.5}
    X, y = make_classification(100, 5, random_state=2, **made)
    options = {"gamma": 0.05, "class_weight": "balanced"}
    folds = list(StratifiedKFold(5).split(X, y))
    whole = SVCCV(Cs=[0.01], cv=folds, **options).fit(X, y)
    for fold, score in zip(folds, whole.scores_.ravel(), strict=True):
        alone = SVCCV(Cs=[0.01], cv=[fold], **options).fit(X, y)
        assert alone.scores_.item() == score
        for solver in ("auto", "irwls"):
            train, test = fold
            machine = SVC(C=0.01, solver=solver, **options).fit(X[train], y[train])
            assert machine.score(X[test], y[test]) == score


def test_groups_go_to_the_splitter():
    X, y = scaled(load_wine)
    groups = np.arange(len(y)) % 7
    clf = SVCCV(Cs=2, cv=GroupKFold(7)).fit(X, y, groups=groups)
    assert clf.scores_.shape == (7, 1, 2)
    with pytest.raises(ValueError, match="takes groups beside X, y and"):
        clf.fit(X, y, group=groups)
    with pytest.raises(ValueError, match="greater than the number of groups: 2"):
        clf.fit(X, y, groups=groups % 2)


def test_metadata_routing():
    X, y = scaled(load_wine)
    groups, weights = np.arange(len(y)) % 3, 1.0 + np.arange(len(y)) % 2
    plain = SVCCV(Cs=2, cv=GroupKFold(3)).fit(X, y, weights, groups=groups)
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = sklearn.metrics.get_scorer("accuracy")
        scorer.set_score_request(sample_weight=True)
        clf = SVCCV(Cs=2, cv=GroupKFold(3), scoring=scorer)
        clf.fit(X, y, weights, groups=groups)
    np.testing.assert_array_equal(clf.scores_, plain.scores_)


# -- probabilities ---------------------------------------------------------------------


@pytest.mark.cover(1)
@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("load", [load_breast_cancer, load_wine])
def test_probabilities_are_those_of_scikit_learn(load, method):
    X, y = scaled(load)
    clf = SVCCV(Cs=[1.0], gammas=[0.02], calibrate=method, tol=1e-7).fit(X, y)
    machine = SVC(C=1.0, gamma=0.02, tol=1e-7)
    theirs = CalibratedClassifierCV(machine, method=method, cv=5, ensemble=False)
    found = clf.predict_proba(X)
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(clf.predict_log_proba(X), np.log(found))
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_allclose(found, theirs.fit(X, y).predict_proba(X), atol=1e-3)
    with pytest.raises(AttributeError, match="'SVCCV' .* with calibrate='sigmoid'"):
        SVCCV().predict_proba(X)
    assert not hasattr(SVCCV(), "predict_log_proba")
    with pytest.raises(ValueError, match="'calibrate' parameter of SVCCV must be one"):
        SVCCV(calibrate="platt").fit(X, y)


# -- what ends a search ----------------------------------------------------------------


@pytest.mark.parametrize("unfinished", [0, 1])
def test_ctrl_c_keeps_what_was_finished_at_once(unfinished, monkeypatch):
    X, y = scaled(load_wine)
    Cs, whole = [0.01, 0.1, 1.0], SVCCV(Cs=[0.01, 0.1, 1.0]).fit(X, y)
    solve = folds.solve_all

    def interrupted(problems, limits, memory, threads):
        ends = solve(problems, limits, memory, threads)
        ends.is_convex[len(ends.is_convex) - unfinished :] = False
        return ends._replace(status=selection.Status.INTERRUPTED)

    monkeypatch.setattr(folds, "solve_all", interrupted)
    clf = SVCCV(Cs=Cs)
    said = (
        "scores_ and path_ have 14 of 15 fits, C_ is the best that all folds have, and"
    )
    with pytest.raises(
        KeyboardInterrupt, match=f"fit of SVCCV: {said} there is no mod"
    ):
        clf.fit(X, y)
    assert np.isnan(clf.scores_[-1, 0, -1])
    expected = whole.scores_.copy()
    expected[-1, 0, -1] = np.nan
    np.testing.assert_array_equal(clf.scores_, expected)
    assert Cs[int(np.argmax(whole.scores_.mean(axis=0)[0, :-1]))] == clf.C_


def test_ctrl_c_keeps_what_was_finished(monkeypatch):
    X, y = scaled(load_wine)
    solve, calls = folds.solve_all, []

    def interrupted(problems, limits, memory, threads):
        calls.append(problems)
        ends = solve(problems, limits, memory, threads)
        if len(calls) < 2:
            return ends
        ends.is_convex[:] = False
        return ends._replace(status=selection.Status.INTERRUPTED)

    monkeypatch.setattr(folds, "solve_all", interrupted)
    clf = SVCCV(Cs=[0.1, 1.0], gammas=[0.01, 0.1])
    with pytest.raises(KeyboardInterrupt, match="have 10 of 20 fits, C_ is the best"):
        clf.fit(X, y)
    assert np.isfinite(clf.scores_[:, 0]).all()
    assert np.isnan(clf.scores_[:, 1]).all()
    assert np.isnan(clf.path_[:, 1]).all()
    assert clf.gamma_ == 0.01
    with pytest.raises(NotFittedError, match="has no model"):
        clf.predict(X)


def test_ctrl_c_between_fits_keeps_what_was_finished(monkeypatch):
    X, y = scaled(load_wine)
    fit, calls = LinearSVC._fit, []

    def interrupted(self, *args):
        calls.append(self.C)
        if len(calls) == 6:
            raise KeyboardInterrupt
        fit(self, *args)

    monkeypatch.setattr(LinearSVC, "_fit", interrupted)
    clf = LinearSVCCV(Cs=[0.1, 1.0], cv=3)
    with pytest.raises(KeyboardInterrupt, match="of LinearSVCCV: .* have 5 of 6 fits"):
        clf.fit(X, y)
    assert np.isfinite(clf.scores_).tolist() == [[True] * 2, [True] * 2, [True, False]]
    assert clf.C_ == 0.1


@pytest.mark.parametrize("first", [0, 2, 6])
def test_ctrl_c_says_what_there_is(monkeypatch, first):
    """Of data that are read, of folds, and of the last fit, it said nothing or of a
    model that the search has not."""
    X, y = scaled(load_wine)
    fit, calls = LinearSVC._fit, []

    def interrupted(self, *args):
        calls.append(self.C)
        if len(calls) > first:
            raise KeyboardInterrupt("Ctrl-C ended the fit: the estimator has the best")
        fit(self, *args)

    monkeypatch.setattr(LinearSVC, "_fit", interrupted)
    clf = LinearSVCCV(Cs=[0.1, 1.0], cv=3)
    with pytest.raises(KeyboardInterrupt) as told:
        clf.fit(X, y)
    best = ", C_ is the best that all folds have," * (first > 4)
    assert str(told.value) == (
        f"Ctrl-C ended the fit of LinearSVCCV: scores_ and path_ have {first} of 6 fits"
        f"{best} and there is no model. Call fit again, which starts afresh."
    )
    assert told.value.__suppress_context__
    with pytest.raises(NotFittedError, match="no model|not fitted"):
        clf.predict(X)


def test_ctrl_c_before_the_first_score_says_so(monkeypatch):
    def pressed(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(selection, "read_rows", pressed)
    said = "Ctrl-C ended the fit of SVCCV before it had a score: there is no model."
    with pytest.raises(KeyboardInterrupt, match=said):
        SVCCV().fit(*scaled(load_wine))


@pytest.mark.parametrize("kind", [SVCCV, LinearSVCCV])
def test_a_time_limit_that_allows_nothing_says_so(kind):
    X, y = scaled(load_wine)
    with pytest.raises(ValueError, match="time_limit of 1e-06 s ended the search of"):
        kind(time_limit=1e-6).fit(X, y)


def test_a_time_limit_keeps_what_was_finished(monkeypatch):
    """Also where a part of it had its share: that was told as Ctrl-C."""
    X, y = scaled(load_wine)
    solve, calls = folds.solve_all, []

    def late(problems, limits, memory, threads):
        calls.append(problems)
        ends = solve(problems, limits, memory, threads)
        if len(calls) < 2:
            return ends
        ends.is_convex[:] = False
        return ends._replace(status=selection.Status.TIME_LIMIT)

    monkeypatch.setattr(folds, "solve_all", late)
    clf = SVCCV(Cs=[0.1, 1.0], gammas=[0.01, 0.1], time_limit=60.0)
    with pytest.warns(ConvergenceWarning, match="before 10 of 20 fits"):
        clf.fit(X, y)
    assert clf.gamma_ == 0.01
    assert clf.dual_gap_ <= 1e-4


@pytest.mark.parametrize("kind", [SVCCV, LinearSVCCV])
def test_folds_that_took_all_the_time_leave_some_for_the_model(kind, monkeypatch):
    """It was trained in no time: its predictions were those of the largest class."""
    X, y = scaled(load_wine)
    points = kind._points

    def long(*args):
        found = points(*args)
        time.sleep(1.0)
        return found

    monkeypatch.setattr(kind, "_points", long)
    clf = kind(Cs=[0.1, 1.0], time_limit=1.0).fit(X, y)
    assert clf.seconds_ > 1.0
    assert clf.status_ == "solved"


def test_without_refit_there_is_no_model():
    X, y = scaled(load_wine)
    clf = SVCCV(Cs=2, refit=False).fit(X, y)
    assert clf.C_ in clf.Cs_
    assert not hasattr(clf, "best_estimator_")
    with pytest.raises(NotFittedError, match="fitted with refit=False"):
        clf.predict(X)


# -- bad input -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "said"),
    [
        (
            {"Cs": 0},
            "'Cs' parameter of {} must be an int in the range [1, inf), or a list of "
            "floats in the range (0, inf). Got 0",
        ),
        ({"Cs": "many"}, "'Cs' parameter of {} must be an int >= 1 or a list"),
        ({"Cs": []}, "'Cs' parameter of {} must hold a number"),
        (
            {"Cs": [1.0, -1.0]},
            "'Cs' parameter of {} must be a list of floats in the range (0",
        ),
        ({"tol": 0.0}, "'tol' parameter of {} must be a float in the range (0, 1]"),
        ({"loss": "log"}, "'loss' parameter of {} must be one of"),
    ],
)
@pytest.mark.parametrize("kind", [SVCCV, LinearSVCCV])
def test_parameters_out_of_range(kind, params, said):
    X, y = scaled(load_wine)
    with pytest.raises(ValueError, match=re.escape(said.format(kind.__name__))):
        kind(**params).fit(X, y)


@pytest.mark.parametrize("gammas", [0, "scale", [0.1, "wide"], [0.1, -1.0], []])
def test_gammas_out_of_range(gammas):
    X, y = scaled(load_wine)
    with pytest.raises(ValueError, match="'gammas' parameter of SVCCV must "):
        SVCCV(gammas=gammas).fit(X, y)


def test_gammas_by_name():
    X, y = scaled(load_wine)
    clf = SVCCV(Cs=1, gammas=["scale", 0.5, "auto"]).fit(2.0 * X, y)
    np.testing.assert_allclose(clf.gammas_, [1 / (52 * X.var()), 0.5, 1 / 13])


@pytest.mark.parametrize("kind", [SVCCV, LinearSVCCV])
def test_a_class_that_is_missing_in_a_fold(kind):
    X, y = scaled(load_iris)
    with pytest.raises(ValueError, match="Got no row of class 0 in fold 0: give more"):
        kind(cv=KFold(3)).fit(X, y)
    y[0] = 3
    with (
        pytest.warns(UserWarning, match="least populated class"),
        pytest.raises(ValueError, match="Got no row of class 3 in fold 0: give more"),
    ):
        kind().fit(X, y)


@pytest.mark.parametrize("kind", [SVCCV, LinearSVCCV])
def test_few_rows(kind):
    X = np.arange(8.0).reshape(4, 2)
    with pytest.raises(
        ValueError, match="at most 2, the rows of the largest class. Got 3"
    ):
        kind(cv=3).fit(X, [0, 0, 1, 1])
    said = "^A search for C needs two rows or more of each class. Got one of class a.$"
    for y in (["a", "b", "c", "d"], ["b", "b", "a", "b"]):
        with pytest.raises(ValueError, match=said):
            kind(cv=5).fit(X, y)
    with pytest.raises(ValueError, match="must give at least one fold"):
        kind(cv=[]).fit(X, [0, 0, 1, 1])
    with pytest.raises(ValueError, match="holds no row out"):
        kind(cv=[([0, 1, 2, 3], [])]).fit(X, [0, 0, 1, 1])


def test_ties_go_to_the_smallest_C():
    X = np.array([[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]])
    y = [0, 0, 0, 1, 1, 1]
    clf = SVCCV(Cs=[100.0, 1.0, 10.0], gammas=[2.0, 1.0], cv=3).fit(X, y)
    assert (clf.scores_ == 1.0).all()
    assert (clf.C_, clf.gamma_) == (1.0, 2.0)
    assert clf.Cs_.tolist() == [1.0, 10.0, 100.0]


@pytest.mark.parametrize("kind", [SVCCV, LinearSVCCV])
def test_a_value_that_is_given_twice_is_one_point(kind):
    clf = kind(Cs=[1, 1.0, 0.1], cv=2)
    if kind is SVCCV:
        clf.set_params(gammas=[0.5, 0.5, 1.0])
    clf.fit(*load_iris(return_X_y=True))
    assert clf.Cs_.tolist() == [0.1, 1.0]
    assert clf.scores_.shape[-1] == 2
    if kind is SVCCV:
        assert clf.gammas_.tolist() == [0.5, 1.0]
        assert clf.scores_.shape == (2, 2, 2)


def test_equal_rows_and_any_splits():
    X, y = scaled(load_iris)
    X[:] = X[0]  # nothing to learn
    clf = SVCCV(Cs=2, gammas=[1.0], cv=ShuffleSplit(3, random_state=0)).fit(X, y)
    assert clf.path_.max() <= 1e-4


# -- paths -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "machine"), [(svc_path, SVC), (linear_svc_path, LinearSVC)]
)
def test_paths_are_single_fits(path, machine):
    X, y = scaled(load_wine)
    Cs, models, gaps = path(X, y, Cs=[1.0, 0.01, 0.1], tol=1e-7, loss="hinge")
    assert Cs.tolist() == [0.01, 0.1, 1.0]
    assert gaps.max() <= 1e-7
    for C, model in zip(Cs, models, strict=True):
        alone = machine(C=C, tol=1e-7, loss="hinge").fit(X, y)
        assert model.C == C
        for one, other in zip(model.solutions_, alone.solutions_, strict=True):
            bounds = one.certificate, other.certificate
            assert bounds[0].primal == pytest.approx(bounds[1].primal, rel=1e-6)
    with pytest.raises(ValueError, match="'Cs' parameter of .*svc_path must hold"):
        path(X, y, C=1.0)


def test_a_linear_path_begins_where_it_was():
    X, y = scaled(load_breast_cancer)
    Cs = np.geomspace(0.1, 10.0, 20)
    _, models, _ = linear_svc_path(X, y, Cs=Cs, solver="active_set")
    cold = [LinearSVC(C=C, solver="active_set").fit(X, y) for C in Cs.tolist()]
    steps, alone = (sum(m.n_iter_ for m in some) for some in (models, cold))
    assert steps < alone
    for before, model in itertools.pairwise(models):
        first = model.solution_.trace[0]
        assert first.sweeps == 1  # the start is the first step
        problem = Problem(X, 2 * y - 1, model.C, "squared_hinge", "penalized")
        there = problem.primal(before.coef_[0], before.intercept_[0])
        assert first.primal == pytest.approx(there, rel=1e-9)


def test_a_path_of_descent_begins_where_it_was():
    X, y = scaled(load_breast_cancer)
    given = {"Cs": [0.1, 0.11], "solver": "coordinate_descent"}
    _, models, gaps = linear_svc_path(X, y, **given)
    alone = LinearSVC(C=0.11, solver="coordinate_descent").fit(X, y)
    visits = [m.solution_.trace[-1].details["updates"] for m in (models[1], alone)]
    assert gaps.max() <= 1e-4
    assert visits[0] < 0.5 * visits[1]


def test_equal_rows_are_looked_for_once(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (12_000, 4)).astype(float)
    y = np.where(X.sum(axis=1) + rng.normal(size=len(X)) > 4, 1, -1)
    find, calls = conditioning.equal_rows, []

    def counted(X, y, *most):
        calls.append(len(y))
        return find(X, y, *most)

    monkeypatch.setattr(conditioning, "equal_rows", counted)
    # Small problems are solved at once, without a look at equal rows.
    monkeypatch.setattr(linear_choice, "MOST_ENTRIES_ALONE", 0)
    monkeypatch.setattr(linear_choice, "MOST_SPARSE", 0)
    Cs, models, gaps = linear_svc_path(X, y, Cs=[0.01, 0.1, 1.0])
    assert calls.count(len(X)) == 1
    assert gaps.max() <= 1e-4
    for C, model in zip(Cs, models, strict=True):
        alone = LinearSVC(C=C).fit(X, y)
        np.testing.assert_allclose(model.coef_, alone.coef_, rtol=0.02)


# -- how several classes are told apart ------------------------------------------------


@pytest.mark.cover(1)
@pytest.mark.parametrize(
    "deciding",
    [
        {"multi_class": "dag"},
        {"multi_class": "dag", "decision_function_shape": "ovo"},
        {"multi_class": "ovo", "decision_function_shape": "ovo"},
        {"multi_class": "ovo", "break_ties": True},
    ],
)
@pytest.mark.parametrize(("kind", "machine"), [(SVCCV, SVC), (LinearSVCCV, LinearSVC)])
def test_folds_are_scored_as_the_machine_decides(kind, machine, deciding):
    X, y = scaled(some_digits, 150)
    Cs, seen = [1.0, 10.0], []

    def scoring(estimator, X, y):
        seen.append(estimator.decision_function(X).shape[1])
        return estimator.score(X, y)

    clf = kind(Cs=Cs, scoring=scoring, tol=1e-5, cv=3, **deciding).fit(X, y)
    search, _ = searched(machine(tol=1e-5, **deciding), {"C": Cs}, X, y, cv=3)
    np.testing.assert_allclose(clf.scores_.ravel(), search.ravel(), atol=0.026)
    pairs = deciding.get("decision_function_shape") == "ovo"
    assert set(seen) == {6 if pairs else 4}
    assert clf.decision_function(X).shape[1] == (6 if pairs else 4)


@pytest.mark.parametrize("deciding", [{}, {"multi_class": "ovr"}, {"break_ties": True}])
@pytest.mark.parametrize("load", [load_breast_cancer, some_digits])
@pytest.mark.parametrize("weights", [False, True])
def test_labels_are_counted_as_scikit_learn_does(load, deciding, weights):
    X, y = scaled(load, 150)
    rng = np.random.default_rng(0)
    y = np.where(rng.random(len(y)) < 0.2, rng.permutation(y), y)
    # Of the last fold some rows are in both parts.
    cv = [*KFold(2, shuffle=True, random_state=0).split(X), (np.arange(120), [1, 140])]
    w = rng.uniform(0.5, 2.0, len(y)) if weights else None
    clf = SVCCV(Cs=[0.01, 1.0, 100.0], gammas=[0.03], cv=cv, refit=False, **deciding)
    counted = clone(clf).fit(X, y, sample_weight=w).scores_
    clf.set_params(scoring=make_scorer(accuracy_score))
    np.testing.assert_allclose(counted, clf.fit(X, y, w).scores_, rtol=1e-12)


def test_probabilities_are_of_classes_not_of_pairs():
    clf = SVCCV(calibrate="sigmoid", decision_function_shape="ovo")
    with pytest.raises(ValueError, match="'ovr' where calibrate is set"):
        clf.fit(*load_iris(return_X_y=True))


def test_attributes_that_are_not_there_are_told_in_the_name_of_the_search():
    X, y = scaled(load_wine)
    search = SVCCV(Cs=[1.0], gammas=[0.1]).fit(X, y)
    assert {"support_", "dual_gap_", "C_"} <= set(dir(search))
    for name, said in {
        "cv_results_": "'SVCCV' .*: scores_ has the score of each fold",
        "best_params_": "'SVCCV' .*: get_params",
        "coef_": "SVCCV",
        "strange_": "'SVCCV' object has no attribute 'strange_'",
    }.items():
        with pytest.raises(AttributeError, match=said) as caught:
            getattr(search, name)
        assert "SVC " not in str(caught.value)
        assert "'SVC'" not in str(caught.value)
    with pytest.raises(TypeError, match="SVCCV has no parameter 'param_grid': SVCCV"):
        SVCCV(param_grid={"C": [1.0]})


def test_linear_pairs_of_a_path_are_solved_at_once():
    """In turn, from the last C on, ten classes would take ten times as long."""
    X, y = load_digits(return_X_y=True)
    _, models, gaps = svc_path(X, y, Cs=[0.01, 0.1], kernel="linear", tol=1e-3)
    found = {one.solver for model in models for one in model.solutions_}
    assert (found, gaps.max() <= 1e-3) == ({"batch"}, True)


@pytest.mark.parametrize("kind", [SVCCV, LinearSVCCV])
def test_names_of_columns_are_asked_for_by_the_search(kind):
    """The warning spoke of "SVC", which the user did not fit."""
    X, y = scaled(load_wine)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    clf = kind(Cs=[1.0], cv=2).fit(frame, y)
    assert len(dir(clf)) == len(set(dir(clf)))
    known = clf.predict(frame)
    with pytest.warns(UserWarning, match=f"but {kind.__name__} was fitted") as caught:
        np.testing.assert_array_equal(clf.predict(X), known)
    assert len(caught) == 1
