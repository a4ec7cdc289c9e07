"""probability=True: what CalibratedClassifierCV makes, on every kind of data."""

import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_classification
from sklearn.ensemble import StackingClassifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import cross_val_score

from widemargin import SVC, SVCCV, SVR, LinearSVC, NuSVC, load_model, save_model
from widemargin.solution import Step

pytestmark = pytest.mark.filterwarnings("ignore:The `probability`:FutureWarning")
KINDS = [SVC, NuSVC]
X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]


def _calibrated(clf, X, y, sample_weight=None):
    folds = CalibratedClassifierCV(clf, ensemble=False)
    return folds.fit(X, y, sample_weight=sample_weight)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_are_those_of_calibrated_classifier_cv(kind, classes):
    some = classes > Y
    clf = kind(probability=True, gamma=0.1).fit(X[some], NAMES[some])
    found = clf.predict_proba(X)
    expected = _calibrated(kind(gamma=0.1), X[some], NAMES[some]).predict_proba(X)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(np.exp(clf.predict_log_proba(X)), found, rtol=1e-12)


def test_pairs_shown_change_no_probability():
    clf = SVC(probability=True).fit(X, Y)
    found = clf.predict_proba(X)
    clf.decision_function_shape = "ovo"
    assert clf.decision_function(X[:1]).shape == (1, 3)
    np.testing.assert_array_equal(clf.predict_proba(X), found)
    assert clf.model_.calibration is None


def test_weights_sparse_rows_and_kernel_values():
    weights = np.random.default_rng(0).uniform(0.0, 2.0, len(Y))
    given = {"gamma": 0.1, "class_weight": "balanced"}
    clf = SVC(probability=True, **given).fit(X, Y, weights)
    found = clf.predict_proba(X)
    expected = _calibrated(SVC(**given), X, Y, weights).predict_proba(X)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    rows = sparse.csr_array(X)
    there = SVC(probability=True, **given).fit(rows, Y, weights)
    np.testing.assert_allclose(there.predict_proba(rows), found, rtol=1e-4)
    K = clf.kernel_(X, X)
    values = SVC(kernel="precomputed", probability=True, class_weight="balanced")
    values.fit(K, Y, weights)
    np.testing.assert_allclose(values.predict_proba(K), found, rtol=1e-3)


def test_rows_of_no_weight_are_in_no_fold():
    weights = (np.arange(len(Y)) % 3 > 0).astype(float)
    kept = weights > 0
    given = {"probability": True, "gamma": 0.1, "tol": 1e-9}
    clf, fewer = SVC(**given).fit(X, Y, weights), SVC(**given).fit(X[kept], Y[kept])
    np.testing.assert_allclose(clf.predict_proba(X), fewer.predict_proba(X), rtol=1e-6)


def test_lists_of_words():
    words = ["abc", "abd", "xyz", "xyw", "bcd", "zyx", "aab", "zzy"] * 5

    def shared(one, other):
        return np.array([[float(len(set(a) & set(b))) for b in other] for a in one])

    sides = [0, 0, 1, 1, 0, 1, 0, 1] * 5
    clf = SVC(kernel=shared, probability=True).fit(words, sides)
    assert (clf.predict_proba(words).argmax(axis=1) == sides).all()


def test_files_keep_probabilities(tmp_path):
    clf = SVC(probability=True).fit(X, NAMES)
    save_model(clf, tmp_path / "a.wm")
    found = load_model(tmp_path / "a.wm").predict_proba(X)
    np.testing.assert_array_equal(found, clf.predict_proba(X))
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))


@pytest.mark.parametrize("kind", KINDS)
def test_without_it_there_are_none(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf = kind().fit(X, Y)
    assert not hasattr(clf, "predict_proba")
    assert "calibrator_" not in vars(clf)
    with pytest.raises(AttributeError, match="calibrate='sigmoid' of SVCCV"):
        _ = clf.predict_proba
    clf.probability = True
    with pytest.raises(NotFittedError, match="fitted with probability=False"):
        clf.predict_proba(X)


@pytest.mark.parametrize("given", [True, False])
def test_it_is_said_to_be_deprecated(given):
    with pytest.warns(FutureWarning, match="CalibratedClassifierCV") as caught:
        SVC(probability=given).fit(X, Y)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("kind", [LinearSVC, SVR])
def test_others_say_what_to_write(kind):
    with pytest.raises(TypeError, match="no parameter 'probability': leave it out"):
        kind(probability=True)


def test_what_is_refused_leaves_the_model():
    clf = SVC(probability=True).fit(X, Y)
    before = clf.predict_proba(X)
    expected = r"'probability' .* less than 5 rows.* Got 2 of class virginica"
    with pytest.raises(ValueError, match=expected):
        clf.fit(X[:102], NAMES[:102])
    np.testing.assert_array_equal(clf.predict_proba(X), before)
    with pytest.raises(ValueError, match="'probability' .* one of True, False"):
        SVC(probability="yes").fit(X, Y)


def test_a_limit_of_time_is_of_the_folds_too():
    data = make_classification(3000, 20, flip_y=0.3, random_state=0)
    clf = SVC(C=1e4, gamma=1.0, tol=1e-8, probability=True, time_limit=0.1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        clf.fit(*data)
    said = [str(one.message) for one in caught]
    assert any("before its folds: no probabilities" in one for one in said)
    with pytest.raises(NotFittedError, match="before its folds"):
        clf.predict_proba(data[0])
    clf.set_params(C=1.0, tol=1e-3, time_limit=100.0)
    assert clf.fit(*data).predict_proba(data[0]).shape == (3000, 2)


def test_callbacks_see_the_fit_on_all_rows_only():
    seen = []

    def callback(step: Step) -> None:
        seen.append(step.problem)

    SVC(probability=True, callback=callback, solver="irwls").fit(X[:100], Y[:100])
    alone = []
    SVC(callback=lambda step: alone.append(step.problem), solver="irwls").fit(
        X[:100], Y[:100]
    )
    assert len(seen) == len(alone) > 0


def test_in_a_thread_of_its_own_the_warning_names_no_line_of_the_library_of_threads():
    X, y = np.arange(40.0).reshape(20, 2), [0, 1] * 10
    with warnings.catch_warnings(record=True) as told, ThreadPoolExecutor(1) as pool:
        warnings.simplefilter("always")
        pool.submit(SVC(probability=False).fit, X, y).result()
    (said,) = [one for one in told if one.category is FutureWarning]
    assert "widemargin" in said.filename


@pytest.mark.parametrize(
    "machine",
    [
        SVC(probability=True),
        NuSVC(nu=0.3, probability=True),
        SVCCV(calibrate="sigmoid"),
    ],
    ids=lambda machine: type(machine).__name__,
)
def test_scores_and_stacks_of_scikit_learn_take_probabilities(machine):
    """They ask a method for its name."""
    X, y = make_classification(120, 6, random_state=0)
    scores = cross_val_score(
        machine, X, y, cv=2, scoring="neg_log_loss", error_score="raise"
    )
    stack = StackingClassifier([("one", machine)], cv=2).fit(X, y)
    assert np.all(scores > np.log(0.5))
    assert stack.stack_method_ == ["predict_proba"]
