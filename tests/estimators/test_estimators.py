"""LinearSVC: scikit-learn's checks, weights, classes, callbacks, bad input."""

import pickle

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.svm import LinearSVC as LibLinearSVC

from tests.cases.pairwise import checks_by_turns
from tests.cases.problems import PROBLEMS
from tests.cases.reference import objective
from widemargin import SVC as KernelSVC
from widemargin import LinearSVC, as_rows, load_model, save_model, save_svmlight
from widemargin.cli import main
from widemargin.solvers import InteriorPoint


@checks_by_turns(
    [
        LinearSVC(),
        LinearSVC(loss="squared_hinge"),
        LinearSVC(loss="hinge", intercept="penalized"),
        LinearSVC(solver=InteriorPoint(reduction="omega"), class_weight="balanced"),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# -- attributes ------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_binary_attributes(binary, loss):
    X, y = binary
    clf = LinearSVC(loss=loss, C=0.5, tol=1e-6).fit(X, y)
    assert clf.coef_.shape == (1, 30)
    assert clf.intercept_.shape == (1,)
    assert clf.status_ == "solved"
    assert clf.dual_gap_ == clf.solution_.certificate.relative_gap <= 1e-6
    intercept = "free" if loss == "hinge" else "penalized"
    value = objective(X, y, 0.5, loss, intercept, clf.coef_[0], clf.intercept_[0])
    assert clf.solution_.certificate.primal == pytest.approx(value)
    assert clf.n_support_.sum() == len(clf.support_)
    assert clf.dual_coef_.shape == (1, len(clf.support_))
    np.testing.assert_array_equal(clf.support_vectors_, X[clf.support_])
    w = clf.dual_coef_[0] @ clf.support_vectors_
    np.testing.assert_allclose(w, clf.coef_[0], atol=1e-2 * np.abs(w).max())
    np.testing.assert_array_equal(
        clf.decision_function(X), (X @ clf.coef_.T + clf.intercept_)[:, 0]
    )


def test_agrees_with_libsvm_on_the_same_problem(binary):
    X, y = binary
    ours = LinearSVC(C=0.3, loss="hinge", tol=1e-8).fit(X, y)
    theirs = SVC(kernel="linear", C=0.3, tol=1e-8).fit(X, y)
    value = objective(X, y, 0.3, "hinge", "free", theirs.coef_[0], theirs.intercept_[0])
    assert ours.solution_.certificate.primal <= value * (1 + 1e-8)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    # LIBSVM's support vectors are ours.
    assert abs(len(ours.support_) - len(theirs.support_)) <= 2


# -- storage ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.asarray, np.asfortranarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_data_are_not_copied(kind, dtype, monkeypatch, binary):
    X, y = binary
    X = kind(X.astype(dtype))
    seen = []
    monkeypatch.setattr(
        "widemargin.estimators.checks.as_rows",
        lambda X, **o: (seen.append(X), as_rows(X, **o))[1],
    )
    clf = LinearSVC().fit(X, y)
    clf.predict(X)
    for data in seen:
        ours = data.data if sparse.issparse(data) else data
        theirs = X.data if sparse.issparse(X) else X
        assert np.shares_memory(ours, theirs)


def test_int64_indices_and_read_only_data(binary):
    X, y = binary
    plain = LinearSVC().fit(X, y)
    wide = sparse.csr_array(X)
    wide.indices = wide.indices.astype(np.int64)
    wide.indptr = wide.indptr.astype(np.int64)
    wide.data.flags.writeable = False
    X.flags.writeable = False
    for data in (wide, X):
        other = LinearSVC().fit(data, y)
        np.testing.assert_allclose(other.coef_, plain.coef_, rtol=1e-3, atol=1e-5)
        np.testing.assert_array_equal(other.predict(data), plain.predict(X))


def test_float32_data_give_float64_accuracy(binary):
    X, y = binary
    single = X.astype(np.float32)
    a = LinearSVC(tol=1e-9).fit(single, y)
    b = LinearSVC(tol=1e-9).fit(single.astype(np.float64), y)
    assert a.status_ == "solved"
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-4, atol=1e-7)


def test_feature_names(binary):
    X, y = binary
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(30)])
    clf = LinearSVC().fit(frame, y)
    assert clf.feature_names_in_[3] == "f3"
    assert clf.model_.meta["feature_names"][3] == "f3"
    with pytest.raises(ValueError, match="feature names should match"):
        clf.predict(frame.rename(columns={"f3": "g"}))


def test_support_vectors_are_kept_as_stored(binary):
    X, y = binary
    X = X.astype(np.float32)
    for data in (sparse.csr_array(X), as_rows(X)):
        clf = LinearSVC().fit(data, y)
        kept = clf.support_vectors_
        assert kept.dtype == np.float32
        assert sparse.issparse(kept) == sparse.issparse(data)
        dense = kept.toarray() if sparse.issparse(kept) else kept
        np.testing.assert_array_equal(dense, X[clf.support_])


def test_polars_frame(binary):
    X, y = binary
    frame = pl.DataFrame(X, schema=[f"f{j}" for j in range(30)])
    clf = LinearSVC().fit(frame, pl.Series(np.where(y > 0, "yes", "no")))
    assert clf.feature_names_in_[3] == "f3"
    assert list(clf.classes_) == ["no", "yes"]
    np.testing.assert_allclose(clf.coef_, LinearSVC().fit(X, y).coef_, rtol=1e-6)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("classes", [2, 3])
def test_answer_does_not_depend_on_the_number_of_threads(kind, classes):
    rng = np.random.default_rng(0)
    X = kind(rng.normal(size=(20_000, 10)))
    y = rng.integers(0, classes, 20_000)
    one, four = (LinearSVC(n_jobs=k, tol=1e-3).fit(X, y) for k in (1, 4))
    np.testing.assert_array_equal(one.coef_, four.coef_)
    np.testing.assert_array_equal(one.intercept_, four.intercept_)
    np.testing.assert_array_equal(one.dual_coef_, four.dual_coef_)


def objectives(W, b, X, y):
    """Of `sklearn.svm.LinearSVC()`, for each class against the rest."""
    signs = np.where(y[:, np.newaxis] == np.arange(len(b)), 1.0, -1.0)
    if len(b) == 1:
        signs = -np.where(y[:, np.newaxis] == 0, 1.0, -1.0)
    losses = np.maximum(0.0, 1.0 - signs * (X @ W.T + b)) ** 2
    return 0.5 * ((W * W).sum(axis=1) + b * b) + losses.sum(axis=0)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("by_command", [False, True])
def test_defaults_are_the_problem_of_scikit_learn(classes, by_command, tmp_path):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < classes], y[y < classes]
    peer = LibLinearSVC(tol=1e-10, max_iter=1_000_000, random_state=0).fit(X, y)
    if by_command:
        data, path = str(tmp_path / "a.svm"), str(tmp_path / "m.wm")
        save_svmlight(X, y, data)
        assert main(["train", data, path]) == 0
        found = load_model(path).decisions
        W, b = np.array([d.w for d in found]), np.array([d.b for d in found])
    else:
        fitted = LinearSVC().fit(X, y)
        W, b = fitted.coef_, fitted.intercept_
    best = objectives(peer.coef_, peer.intercept_, X, y)
    # The objective is 1-strongly convex: a gap of 1e-4 of it bounds the distance.
    gaps = 1e-4 * best * 1.01
    np.testing.assert_array_less(objectives(W, b, X, y), best + gaps)
    apart = ((W - peer.coef_) ** 2).sum(axis=1) + (b - peer.intercept_) ** 2
    np.testing.assert_array_less(apart, 2.0 * gaps + 1e-9)


# -- scikit-learn's tools --------------------------------------------------------------


def test_pickling_cloning_joblib(binary, tmp_path):
    X, y = binary
    clf = LinearSVC(solver=InteriorPoint(reduction="omega")).fit(X, y)
    joblib.dump(clf, tmp_path / "clf")
    for copy in (pickle.loads(pickle.dumps(clf)), joblib.load(tmp_path / "clf")):
        np.testing.assert_array_equal(
            copy.decision_function(X), clf.decision_function(X)
        )
    assert clone(clf).get_params()["solver"] == InteriorPoint(reduction="omega")


@pytest.mark.parametrize("estimator", [LinearSVC(), KernelSVC()])
def test_in_a_parallel_search(binary, estimator):
    X, y = binary
    search = GridSearchCV(estimator, {"C": [0.01, 1.0]}, n_jobs=2, cv=3)
    with joblib.parallel_backend("loky"):
        search.fit(X, y)
    assert search.best_score_ > 0.95


def test_metadata_routing(binary):
    X, y = binary
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    with sklearn.config_context(enable_metadata_routing=True):
        clf = LinearSVC(tol=1e-10).set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipe = make_pipeline(scaler, clf)
        pipe.fit(X, y, sample_weight=weight)
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError):
            make_pipeline(scaler, LinearSVC()).fit(X, y, sample_weight=weight)
    direct = LinearSVC(tol=1e-10)
    direct.fit(StandardScaler().fit_transform(X), y, sample_weight=weight)
    np.testing.assert_allclose(pipe[-1].coef_, direct.coef_)


def test_probabilities_by_calibration(binary):
    X, y = binary
    proba = CalibratedClassifierCV(LinearSVC(), cv=3).fit(X, y).predict_proba(X)
    assert np.mean(proba.argmax(axis=1) == (y > 0)) > 0.95


# -- how a fit ends --------------------------------------------------------------------


def test_not_solved_is_a_warning_with_a_number_and_advice(binary):
    X, y = binary
    with pytest.warns(
        ConvergenceWarning, match=r"max_iter=7 at a relative gap of .*Raise max_iter"
    ):
        clf = LinearSVC(max_iter=7).fit(X, y)
    assert clf.status_ == "max_iter"
    assert clf.n_iter_ == 7
    assert clf.predict(X).shape == y.shape


def test_iterations_are_those_of_the_trace(binary):
    X, y = binary
    clf = LinearSVC(solver="coordinate_descent", tol=1e-10).fit(X, y)
    trace = clf.solution_.trace
    assert clf.n_iter_ == trace[-1].iteration < len(trace) - 1  # some had several steps


def test_the_warning_points_at_the_line_of_the_user(binary):
    for fit in (LinearSVC(max_iter=2).fit, make_pipeline(LinearSVC(max_iter=2)).fit):
        with pytest.warns(ConvergenceWarning) as caught:
            fit(*binary)
        assert [w.filename for w in caught] == [__file__]


def test_a_solution_says_how_many_are_at_the_bound(binary):
    X, y = binary
    solution = LinearSVC(C=0.5, loss="hinge").fit(X, y).solution_
    n_bound = np.count_nonzero(solution.alpha == 0.5)
    assert 0 < solution.at_bound == n_bound < np.count_nonzero(solution.alpha)
    assert f" ({n_bound:,} at the bound)  iter" in str(solution)
    assert "bound" not in str(LinearSVC(loss="squared_hinge").fit(X, y).solution_)


def test_advice_calls_features_by_their_names():
    X, y = PROBLEMS["badly_scaled"]()
    names = [f"column {j}" for j in range(X.shape[1])]
    with pytest.warns(ConvergenceWarning, match=r"Feature\(s\) column \d+.* larger"):
        LinearSVC(loss="hinge", max_iter=2).fit(pd.DataFrame(X, columns=names), y)


def test_advice_names_features_of_another_size():
    X, y = PROBLEMS["badly_scaled"]()
    with pytest.warns(ConvergenceWarning, match=r"Feature\(s\) .* times larger"):
        LinearSVC(loss="hinge", max_iter=2).fit(X, y)


# -- bad input -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"C": -1}, ValueError, r"The 'C' parameter of LinearSVC must be a float in the range \(0, inf\]. Got -1 instead."),
        ({"C": 0.0}, ValueError, "'C' parameter"),
        ({"C": "1"}, ValueError, "'C' parameter .* Got '1' instead"),
        ({"C": -np.inf}, ValueError, "'C' parameter"),
        ({"tol": 0}, ValueError, "'tol' parameter"),
        ({"loss": "huber"}, ValueError, "'loss' .* one of 'hinge', 'squared_hinge'. Got 'huber'"),
        ({"intercept": True}, ValueError, "'intercept' parameter"),
        ({"solver": "smo"}, ValueError, "'solver' .* one of 'auto', .* Got 'smo'"),
        ({"solver": object}, TypeError, "'solver' parameter"),
        ({"max_iter": 2.5}, ValueError, r"'max_iter' .* an int in the range \[1, inf\) or None"),
        ({"time_limit": 0}, ValueError, "'time_limit'"),
        ({"memory_limit": -5}, ValueError, "'memory_limit'"),
        ({"n_jobs": 0}, ValueError, "'n_jobs' parameter .* a nonzero int or None"),
        ({"multi_class": "all"}, ValueError, "'multi_class' .* one of 'ovr', 'ovo', 'dag'"),
        ({"class_weight": "even"}, ValueError, "'class_weight' .* a dict, 'balanced' or None"),
        ({"class_weight": {1.0: -2}}, ValueError, "'class_weight' .* positive"),
        ({"class_weight": {1.0: "a"}}, ValueError, "'class_weight' .* positive numbers. Got 'a' for class 1.0"),
        ({"class_weight": {1.0: 2.0, 7: 1.0}}, ValueError, "'class_weight' .* name classes of y. Got 7 instead"),
        ({"verbose": None}, TypeError, r"'verbose' .* an int in the range \[0, inf\). Got None"),
        ({"verbose": "a"}, ValueError, "'verbose' .* Got 'a'"),
        ({"verbose": 0.5}, ValueError, "'verbose' .* Got 0.5"),
        ({"random_state": -1}, ValueError, "'random_state' parameter of LinearSVC .* Got -1"),
        ({"random_state": "a"}, ValueError, "'random_state' .* an int in .*, a RandomState or None. Got 'a'"),
        ({"callback": 3}, ValueError, "'callback' .* callable or None"),
    ],
)  # fmt: skip
def test_parameters_out_of_range(binary, parameters, error, message):
    clf = LinearSVC(**parameters)
    with pytest.raises(error, match=message):
        clf.fit(*binary)
    assert not hasattr(clf, "coef_")


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[1.0], [2.0]], [1, 1], r"at least two classes. Got one class \(1\)"),
        ([[1.0]], [1], "one class"),
        ([[1.0], [np.nan]], [0, 1], "Got NaN at row 1, column 0"),
        ([[np.inf], [0.0]], [0, 1], "Got infinity at row 0, column 0"),
        ([], [], "Expected 2D array"),
        (np.empty((0, 3)), [], "0 sample"),
        ([[1.0], [2.0]], [0.5, 1.5], "Unknown label type"),
        ([[1.0], [2.0]], [0, 1, 2], "'y' .* must have length 2. Got length 3"),
        ([1.0, 2.0], [0, 1], "Expected 2D array"),
        ([["a"], ["b"]], [0, 1], "must hold numbers only. Got 'a' at row 0, column 0"),
        (
            np.array([["1.5"], ["2"]]),
            [0, 1],
            r"the text '1.5' instead: X.astype\(float",
        ),
    ],
)
def test_bad_data(X, y, message):
    with pytest.raises(ValueError, match=message):
        LinearSVC().fit(X, y)


def test_bad_data_to_predict(binary):
    X, y = binary
    with pytest.raises(NotFittedError):
        LinearSVC().predict(X)
    clf = LinearSVC().fit(X, y)
    with pytest.raises(ValueError, match="expecting 30 features"):
        clf.predict(X[:, :4])
    spoiled = X.copy()
    spoiled[7, 4] = np.nan
    with pytest.raises(ValueError, match="Got NaN at row 7, column 4"):
        clf.predict(spoiled)
    with pytest.raises(ValueError, match="X has 4 features, but the model expects 30"):
        clf.predict(as_rows(X[:, :4]))


# -- a fit that fails ------------------------------------------------------------------


def boom(step):
    raise RuntimeError("boom")


class Refusing(InteriorPoint):
    def supports(self, problem):
        return "This solver solves nothing."


def spoiled(X):
    X = X[:, :7].copy()
    X[3, 2] = np.nan
    return X


FAILURES = {
    "NaN in data of another width": lambda clf, X, y: clf.fit(spoiled(X), y),
    "NaN in rows": lambda clf, X, y: clf.fit(as_rows(spoiled(X)), y),
    "a callback": lambda clf, X, y: clf.set_params(callback=boom).fit(X, y > 0),
    "a callback, more classes": lambda clf, X, y: clf.set_params(callback=boom).fit(
        X, np.arange(len(y)) % 3
    ),
    "a solver": lambda clf, X, y: clf.set_params(solver=Refusing()).fit(X[:, :4], y),
    "one class": lambda clf, X, y: clf.fit(X[:, :4], np.ones(len(y))),
    "weights": lambda clf, X, y: clf.fit(X[:, :4], y > 0, sample_weight=[1.0]),
    "labels": lambda clf, X, y: clf.fit(X[:, :4], [None] * len(y)),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failed_fit_changes_nothing(binary, failure):
    X, y = binary
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(30)])
    clf = LinearSVC().fit(frame, np.where(y > 0, "yes", "no"))
    before, labels = dict(vars(clf)), clf.predict(frame)
    with pytest.raises((ValueError, RuntimeError)):
        FAILURES[failure](clf, X, y)
    clf.set_params(callback=None, solver="auto")
    after = vars(clf)
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] for name in before)
    np.testing.assert_array_equal(clf.predict(frame), labels)


@pytest.mark.parametrize("failure", FAILURES)
def test_a_first_fit_that_fails_leaves_nothing(binary, failure):
    clf = LinearSVC()
    with pytest.raises((ValueError, RuntimeError)):
        FAILURES[failure](clf, *binary)
    assert vars(clf).keys() == LinearSVC().__dict__.keys()


def test_a_refit_leaves_nothing_of_the_fit_before(binary, iris):
    X, y = binary
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(30)])
    for data, labels in ((as_rows(X), y), (X, y), (as_rows(iris[0]), iris[1])):
        clf = LinearSVC().fit(frame, y)
        clf.fit(data, labels)
        assert not hasattr(clf, "feature_names_in_")
        assert "feature_names" not in clf.model_.meta
        assert clf.n_features_in_ == data.shape[1]


def test_facts_of_a_model_are_those_of_its_training(binary, tmp_path):
    clf = LinearSVC(C=1.0).fit(*binary)
    clf.set_params(C=1000.0, loss="hinge")
    save_model(clf, tmp_path / "model")
    meta = load_model(tmp_path / "model").meta
    assert meta == clf.model_.meta
    assert (meta["C"], meta["loss"], meta["status"]) == (1.0, "squared_hinge", "solved")


@pytest.mark.parametrize("rank", [None, "auto"])
def test_who_changes_the_rows_of_a_fit_does_not_change_predictions(
    rank, binary, monkeypatch
):
    X, y = binary
    monkeypatch.setattr("widemargin.estimators.support_vectors.COPIED_BYTES", 100)
    machine, rows = KernelSVC(rank=rank), X.copy()
    expected = machine.fit(X, y).decision_function(X)
    machine.fit(rows, y)
    rows[:] = 0.0
    np.testing.assert_array_equal(machine.decision_function(X), expected)
    assert "support_vectors_" not in vars(KernelSVC(kernel="linear").fit(X, y))


def test_many_support_vectors_are_copied_when_asked_for(binary, monkeypatch):
    X, y = binary
    monkeypatch.setattr("widemargin.estimators.support_vectors.COPIED_BYTES", 100)
    model = LinearSVC().fit(X, y)
    assert "support_vectors_" not in vars(model)
    restored = pickle.loads(pickle.dumps(model.keep_training_data()))
    assert "_rows_of_fit" not in vars(restored)
    for found in (model, restored, LinearSVC().fit(X, y)):
        np.testing.assert_array_equal(found.support_vectors_, X[found.support_])
        assert "_rows_of_fit" not in vars(found)
