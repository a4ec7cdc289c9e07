"""What pickles of estimators hold: what predicts, training rows only where asked for."""

import copy
import pickle

import joblib
import numpy as np
import pytest
from sklearn.base import clone

from widemargin import (
    SVC,
    SVR,
    BudgetSVC,
    EnclosingBall,
    LinearSVC,
    LinearSVR,
    NuSVC,
    Problem,
    solve,
)

OF_ROWS = ("support_", "support_vectors_", "dual_coef_")
LINEAR = {
    "LinearSVC": LinearSVC(),
    "SVC": SVC(kernel="linear"),
    "EnclosingBall": EnclosingBall(kernel="linear", C=None),
}
KERNEL = {"SVC": SVC(), "BudgetSVC": BudgetSVC(budget=20)}


def restored(estimator):
    return pickle.loads(pickle.dumps(estimator))


@pytest.fixture
def many():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 8))
    return X, X[:, 0] + rng.normal(size=4000) > 0


@pytest.mark.parametrize("name", LINEAR)
def test_pickles_of_linear_machines_hold_no_rows(many, name):
    X, y = many
    clf = clone(LINEAR[name]).fit(X, y)
    data = pickle.dumps(clf)
    assert len(data) < 20_000
    assert all(row.tobytes() not in data for row in clf.support_vectors_)
    found = pickle.loads(data)
    for attribute in OF_ROWS:
        assert not hasattr(found, attribute)
        with pytest.raises(AttributeError, match=r"keep_training_data\(\) before"):
            getattr(found, attribute)
    np.testing.assert_array_equal(found.predict(X), clf.predict(X))
    np.testing.assert_array_equal(found.decision_function(X), clf.decision_function(X))


@pytest.mark.parametrize("dump", [pickle.dumps, None])
def test_they_do_where_asked_for(many, tmp_path, dump):
    X, y = many
    clf = LinearSVC().fit(X, y).keep_training_data()
    if dump is None:
        joblib.dump(clf, tmp_path / "clf")
        found = joblib.load(tmp_path / "clf")
    else:
        found = pickle.loads(dump(clf))
    np.testing.assert_array_equal(found.support_vectors_, X[clf.support_])
    np.testing.assert_array_equal(found.dual_coef_, clf.dual_coef_)
    np.testing.assert_array_equal(found.solution_.alpha, clf.solution_.alpha)
    assert not hasattr(restored(clf.keep_training_data(False)), "support_")


@pytest.mark.parametrize("name", KERNEL)
def test_machines_with_a_kernel_keep_what_predicts(many, name):
    X, y = many[0][:600], many[1][:600]
    clf = clone(KERNEL[name]).fit(X, y)
    found = restored(clf)
    np.testing.assert_array_equal(found.support_vectors_, clf.support_vectors_)
    np.testing.assert_array_equal(found.decision_function(X), clf.decision_function(X))
    for field in ("alpha", "w"):  # both have a number a row
        assert not hasattr(found.solution_, field)
    assert "support vectors not stored" in str(found.solution_)
    assert "alpha" not in repr(found.solution_)


@pytest.mark.parametrize(
    ("estimator", "m"),
    [
        (LinearSVC(), 8),
        (LinearSVC(solver="active_set"), 8),
        (LinearSVR(), 4),  # with two dual variables a row
        (SVC(rank=8), 8),
        (NuSVC(rank=8), 8),  # a kernel solver's answer in the features
    ],
)
def test_weights_of_columns_stay_where_there_are_as_many_rows(many, estimator, m):
    X, y = many[0][:m], np.arange(m) % 2
    fitted = clone(estimator).fit(X, y)
    assert len(fitted.solution_.w) == len(fitted.solution_.alpha) == 8
    found = restored(fitted).solution_
    np.testing.assert_array_equal(found.w, fitted.solution_.w)
    assert not hasattr(found, "alpha")


@pytest.mark.parametrize("solver", ["auto", "irwls", "batch"])
def test_numbers_of_rows_go_from_a_regression_too(many, solver):
    X, y = many[0][:50], many[0][:50, 0]
    found = restored(SVR(solver=solver).fit(X, y)).solution_
    for field in ("alpha", "w"):
        assert not hasattr(found, field)


def test_copies_have_all(many):
    X, y = many
    clf = LinearSVC().fit(X, y)
    for found in (copy.copy(clf), copy.deepcopy(clf)):
        np.testing.assert_array_equal(found.support_vectors_, clf.support_vectors_)
        np.testing.assert_array_equal(found.solution_.alpha, clf.solution_.alpha)
        assert type(found) is LinearSVC
    assert copy.deepcopy(clf).coef_ is not clf.coef_


def test_a_solution_without_alpha_starts_nothing(many):
    X, y = many
    found = restored(LinearSVC().fit(X, y)).solution_
    assert found.w.shape == (8,)
    with pytest.raises(
        AttributeError, match="This Solution has no alpha: .* pickles of"
    ):
        solve(Problem(X, np.where(y, 1, -1)), start=found)


@pytest.mark.parametrize("way", ["pickle", "joblib"])
@pytest.mark.parametrize(
    "estimator", [LinearSVC(), SVC(), BudgetSVC(budget=20), EnclosingBall()]
)
def test_every_estimator_predicts_the_same_after_a_file(many, tmp_path, estimator, way):
    X, y = many[0][:300], many[1][:300]
    fitted = clone(estimator).fit(X, y)
    if way == "joblib":
        joblib.dump(fitted, tmp_path / "fitted")
        found = joblib.load(tmp_path / "fitted")
    else:
        found = restored(fitted)
    np.testing.assert_array_equal(found.predict(X), fitted.predict(X))
    np.testing.assert_array_equal(
        found.decision_function(X), fitted.decision_function(X)
    )
