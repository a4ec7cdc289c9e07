"""Searches that leave points out as soon as these cannot win."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_classification, make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import make_scorer, recall_score

from widemargin import SVCCV, SVRCV
from widemargin.estimators import points, svc_cv, svr_cv
from widemargin.estimators.points import Points

GAMMAS = [1e-5, 1e-4, 1e-3, 1e-2, 1e-1]


def digits(rows=500):
    X, y = load_digits(return_X_y=True)
    return X[:rows], y[:rows]


def both(search, X, y):
    """A search that finishes all points, and one that leaves losers out."""
    whole = search.fit(X, y)
    return whole, whole.__class__(**whole.get_params() | {"skip_losers": True})


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"scoring": "balanced_accuracy"},
        {"solver": "irwls", "Cs": [0.1, 1.0, 10.0], "cv": 3},
        {"calibrate": "sigmoid"},
    ],
    ids=["at once", "scorer", "in turn", "decisions"],
)
def test_the_best_point_is_that_of_the_whole_search(given):
    X, y = digits()
    if "solver" in given:  # each pair of classes takes a while
        X, y = X[y < 4], y[y < 4]
    search = SVCCV(gammas=GAMMAS, tol=1e-3, **{"Cs": 6} | given)
    whole, some = both(search, X, y)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "error", ConvergenceWarning
        )  # what is left out is no lack
        some.fit(X, y)
    assert (some.C_, some.gamma_) == (whole.C_, whole.gamma_)
    assert some.best_score_ == pytest.approx(whole.best_score_, abs=0.002)
    left_out = np.isnan(some.scores_)
    assert 0.15 < left_out.mean() < 0.7
    assert not left_out[:, 2].any()  # the gamma in the middle is finished
    assert not left_out[0].any()  # nothing is known of a point without a fold
    assert np.isnan(some.path_[left_out]).all()
    assert np.isfinite(some.path_[~left_out]).all()
    # Those that are left out would not win with all held-out rows right.
    highest = np.where(left_out, 1.0, some.scores_).mean(axis=0)
    assert (highest[left_out.any(axis=0)] < some.best_score_).all()
    assert some.predict(X[:5]).tolist() == whole.predict(X[:5]).tolist()


def test_regressions_leave_widths_out_too():
    X, y = make_friedman1(300, noise=0.5, random_state=0)
    gammas, widths = [1e-3, 1e-2, 1e-1, 1.0, 10.0], [0.1, 0.5, 4.0]
    search = SVRCV(Cs=[1.0, 10.0, 100.0], gammas=gammas, epsilons=widths, tol=1e-3)
    whole, some = both(search, X, y)
    some.fit(X, y)
    best = some.C_, some.gamma_, some.epsilon_
    assert best == (whole.C_, whole.gamma_, whole.epsilon_)
    assert some.scores_.shape == whole.scores_.shape
    left_out = np.isnan(some.scores_)
    assert left_out.any()
    known = ~left_out & (whole.path_ <= 1e-3)
    assert np.allclose(some.scores_[known], whole.scores_[known], atol=0.02)


def test_errors_have_zero_as_their_largest_score():
    X, y = make_friedman1(200, noise=0.5, random_state=1)
    search = SVRCV(Cs=4, gammas=[0.01, 0.1, 10.0], scoring="neg_mean_squared_error")
    whole, some = both(search, X, y)
    some.fit(X, y)
    assert (some.C_, some.gamma_) == (whole.C_, whole.gamma_)
    assert np.isnan(some.scores_).any()


def test_folds_stay_together_where_they_cannot_tell(monkeypatch):
    X, y = make_classification(200, 5, flip_y=0.4, random_state=0)
    asked, solve = [], svc_cv.solve_folds

    def solve_folds(training, weights, *others, **more):
        asked.append(len(weights))
        return solve(training, weights, *others, **more)

    monkeypatch.setattr(svc_cv, "solve_folds", solve_folds)
    whole, some = both(SVCCV(Cs=4, gammas=[0.05, 0.2, 1.0], tol=1e-3), X, y)
    asked.clear()
    some.fit(X, y)
    assert asked == [5, 5, 5]
    assert np.isfinite(some.scores_).all()
    assert whole.scores_.tolist() == some.scores_.tolist()


@pytest.mark.parametrize(
    "scoring", ["positive_likelihood_ratio", make_scorer(recall_score)]
)
def test_a_score_without_a_known_bound_is_refused(scoring):
    X, y = make_classification(60, 4, random_state=0)
    search = SVCCV(scoring=scoring, skip_losers=True)
    with pytest.raises(ValueError, match="no largest score is known: .* Got scoring="):
        search.fit(X, y)
    with pytest.raises(ValueError, match="'skip_losers' parameter of SVCCV must be"):
        SVCCV(skip_losers="yes").fit(X, y)


def known(scores, most=1.0):
    scores = np.array(scores, float)
    return Points(scores, np.zeros_like(scores), False, most)


def test_which_points_may_win():
    nan = np.nan
    # Two folds, one gamma, values of C: finished; as good; too low; unknown.
    found = known([[[0.9, 0.8, 0.7, nan]], [[0.9, nan, nan, nan]]])
    assert found.may_win.tolist() == [[True, True, False, True]]
    assert found.missing == 3
    tie = known([[[0.9, 0.8]], [[0.9, nan]]])
    assert tie.may_win.all()  # 0.8 and 1: a smaller C or gamma would win the tie
    assert known([[[0.9, 0.1]], [[0.9, nan]]], None).may_win.all()
    assert known([[[nan, 0.1]], [[0.9, nan]]]).may_win.all()  # none is finished


def test_gammas_come_from_the_middle_outwards():
    empty = np.full((5, 4, 2), np.nan)
    found = Points(empty, empty.copy(), False, 1.0)
    order = []
    for some, gammas in found.schedule():
        order.append((some, gammas))
        for g in gammas:
            found.scores[some, g] = 0.95 if g == 2 else 0.5
    assert [g for _, (g,) in order][0] == 2
    assert order[0][0] == [0, 1, 2, 3, 4]
    assert {g for _, (g,) in order} == {0, 1, 2, 3}
    assert points.SOME_FOLDS * 5 == 2.0


def test_errors_are_bounded_by_zero_and_shares_by_one():
    for scoring, most in (("neg_log_loss", 0.0), ("roc_auc", 1.0), (None, 1.0)):
        assert SVCCV(scoring=scoring, skip_losers=True)._most() == most
    assert SVRCV(scoring="neg_max_error", skip_losers=True)._most() == 0.0
    assert SVCCV(scoring=make_scorer(recall_score))._most() is None


@pytest.mark.parametrize("kind", [SVCCV, SVRCV])
def test_which_problems_are_large_is_said_by_all_folds(kind, monkeypatch):
    seen, module = [], {SVCCV: svc_cv, SVRCV: svr_cv}[kind]
    solve = module.solve_folds

    def solve_folds(training, weights, Cs, recipes=None, copies=None, factors=None):
        seen.append((len(weights), copies))
        return solve(training, weights, Cs, recipes, copies, factors)

    monkeypatch.setattr(module, "solve_folds", solve_folds)
    X, y = digits(300)
    y = y if kind is SVCCV else y.astype(float)
    kind(Cs=[0.1, 10.0], gammas=GAMMAS, tol=1e-3, skip_losers=True).fit(X, y)
    assert {copies for _, copies in seen} == {5}
    assert min(seen)[0] < 5
