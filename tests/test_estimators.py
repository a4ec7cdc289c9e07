"""LinearSVC: scikit-learn's checks, weights, classes, callbacks, bad input."""

import _thread
import pickle
import signal
import subprocess
import sys
import textwrap
import time

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from problems import PROBLEMS
from reference import objective
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from widemargin import LinearSVC, as_rows
from widemargin.solvers import InteriorPoint

SKLEARN = tuple(map(int, sklearn.__version__.split(".")[:2]))


@parametrize_with_checks(
    [
        LinearSVC(),
        LinearSVC(loss="squared_hinge"),
        LinearSVC(intercept="penalized"),
        LinearSVC(solver=InteriorPoint(reduction="omega"), class_weight="balanced"),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# -- attributes ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def binary():
    return PROBLEMS["breast_cancer"]()


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


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
    w = clf.dual_coef_[0] @ X[clf.support_]
    np.testing.assert_allclose(w, clf.coef_[0], atol=1e-2 * np.abs(w).max())
    np.testing.assert_array_equal(
        clf.decision_function(X), (X @ clf.coef_.T + clf.intercept_)[:, 0]
    )


def test_agrees_with_libsvm_on_the_same_problem(binary):
    X, y = binary
    ours = LinearSVC(C=0.3, tol=1e-8).fit(X, y)
    theirs = SVC(kernel="linear", C=0.3, tol=1e-8).fit(X, y)
    value = objective(X, y, 0.3, "hinge", "free", theirs.coef_[0], theirs.intercept_[0])
    assert ours.solution_.certificate.primal <= value * (1 + 1e-8)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    # LIBSVM's support vectors are ours.
    assert abs(len(ours.support_) - len(theirs.support_)) <= 2


def test_multiclass_is_one_against_the_rest(iris):
    X, y = iris
    ours = LinearSVC(tol=1e-8).fit(X, y)
    theirs = OneVsRestClassifier(LinearSVC(tol=1e-8)).fit(X, y)
    assert ours.coef_.shape == (3, 4)
    assert len(ours.solutions_) == 3
    for k, single in enumerate(theirs.estimators_):
        np.testing.assert_allclose(ours.coef_[k], single.coef_[0], rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.dual_gap_ == max(s.certificate.relative_gap for s in ours.solutions_)


def test_classes_share_the_reads_of_the_data(iris):
    X, y = iris
    together = as_rows(X)
    clf = LinearSVC().fit(together, y)
    alone = []
    for label in clf.classes_:
        rows = as_rows(X)
        LinearSVC().fit(rows, y == label)
        alone.append(rows.sweeps)
    assert together.sweeps <= max(alone) + 2
    assert together.sweeps < 0.5 * sum(alone)


def test_classes_in_groups_when_memory_is_short(iris):
    X, y = iris
    whole = LinearSVC(tol=1e-6).fit(X, y)
    split = LinearSVC(tol=1e-6, memory_limit=1 << 16).fit(X, y)
    np.testing.assert_allclose(whole.coef_, split.coef_, rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([False, True]),
        np.array([-1.0, 2.0]),
        np.array([0, 255], dtype=np.uint8),
        np.array(["no", "yes"]),
        np.array(["no", "yes"], dtype=object),
    ],
)
def test_labels_of_any_type_come_back(binary, labels):
    X, y = binary
    named = labels[(y > 0).astype(int)]
    clf = LinearSVC().fit(X, named)
    np.testing.assert_array_equal(clf.classes_, labels)
    assert clf.predict(X).dtype == labels.dtype
    assert clf.score(X, named) > 0.97


# -- weights ---------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_weight_is_a_number_of_rows_exactly(iris, loss):
    X, y = iris
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = LinearSVC(loss=loss).fit(X, y, sample_weight=weight)
    repeated = LinearSVC(loss=loss).fit(
        np.repeat(X, weight, axis=0), np.repeat(y, weight)
    )
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, rtol=1e-7)


def test_a_class_without_weight_is_removed(iris):
    X, y = iris
    clf = LinearSVC().fit(X, y, sample_weight=(y != "setosa").astype(float))
    assert list(clf.classes_) == ["versicolor", "virginica"]
    assert set(clf.predict(X)) <= {"versicolor", "virginica"}


def test_class_weight_is_a_factor_of_C(binary):
    X, y = binary
    factor = LinearSVC(class_weight={1.0: 5.0}, tol=1e-8).fit(X, y)
    weights = LinearSVC(tol=1e-8).fit(X, y, sample_weight=np.where(y > 0, 5.0, 1.0))
    np.testing.assert_allclose(factor.coef_, weights.coef_, rtol=1e-6)
    balanced = LinearSVC(class_weight="balanced", tol=1e-8).fit(X, y)
    share = {k: len(y) / (2 * np.sum(y == k)) for k in (-1.0, 1.0)}
    explicit = LinearSVC(class_weight=share, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(balanced.coef_, explicit.coef_, rtol=1e-6)


# -- storage ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.asarray, np.asfortranarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_data_are_not_copied(kind, dtype, monkeypatch, binary):
    X, y = binary
    X = kind(X.astype(dtype))
    seen = []
    monkeypatch.setattr(
        "widemargin.estimators.as_rows",
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


# -- scikit-learn's tools --------------------------------------------------------------


def test_pickling_cloning_joblib(binary, tmp_path):
    X, y = binary
    clf = LinearSVC(solver=InteriorPoint(corrector=True)).fit(X, y)
    joblib.dump(clf, tmp_path / "clf")
    for copy in (pickle.loads(pickle.dumps(clf)), joblib.load(tmp_path / "clf")):
        np.testing.assert_array_equal(
            copy.decision_function(X), clf.decision_function(X)
        )
    assert clone(clf).get_params()["solver"] == InteriorPoint(corrector=True)


def test_in_a_parallel_search(binary):
    X, y = binary
    search = GridSearchCV(LinearSVC(), {"C": [0.01, 1.0]}, n_jobs=2, cv=3).fit(X, y)
    assert search.best_score_ > 0.95


def test_metadata_routing(binary):
    X, y = binary
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    with sklearn.config_context(enable_metadata_routing=True):
        clf = LinearSVC().set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipe = make_pipeline(scaler, clf)
        pipe.fit(X, y, sample_weight=weight)
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError):
            make_pipeline(scaler, LinearSVC()).fit(X, y, sample_weight=weight)
    direct = LinearSVC().fit(StandardScaler().fit_transform(X), y, sample_weight=weight)
    np.testing.assert_allclose(pipe[-1].coef_, direct.coef_)


def test_probabilities_by_calibration(binary):
    X, y = binary
    proba = CalibratedClassifierCV(LinearSVC(), cv=3).fit(X, y).predict_proba(X)
    assert np.mean(proba.argmax(axis=1) == (y > 0)) > 0.95


@pytest.mark.skipif(
    SKLEARN < (1, 9), reason="sklearn.callback came with scikit-learn 1.9"
)
def test_scikit_learn_callbacks(binary, iris):
    class Recorder:
        def __init__(self, stop_at=None):
            self.events, self.scores, self.stop_at = [], [], stop_at

        def setup(self, estimator, context):
            self.events.append("setup")

        def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
            self.events.append(f"begin {context.task_name}")

        def on_fit_task_end(
            self, estimator, context, *, X=None, y=None, fitted_estimator=None
        ):
            self.events.append(f"end {context.task_name}")
            if fitted_estimator is not None:
                self.scores.append(fitted_estimator.score(X, y))
            return self.stop_at is not None and len(self.scores) >= self.stop_at

        def teardown(self, estimator, context):
            self.events.append("teardown")

    X, y = binary
    recorder = Recorder()
    clf = LinearSVC().set_callbacks(recorder).fit(X, y)
    steps = len(clf.solution_.trace)
    assert recorder.events[:2] == ["setup", "begin fit"]
    assert recorder.events[-2:] == ["end fit", "teardown"]
    assert recorder.events.count("begin iteration") == steps
    assert recorder.events.count("end iteration") == steps
    assert len(recorder.scores) == steps
    assert recorder.scores[-1] == clf.score(X, y)
    stopper = Recorder(stop_at=3)
    with pytest.warns(ConvergenceWarning, match="Stopped by the callback"):
        clf = LinearSVC().set_callbacks(stopper).fit(X, y)
    assert len(clf.solution_.trace) == 3
    classes = Recorder()
    LinearSVC().set_callbacks(classes).fit(*iris)
    assert (
        classes.events.count("begin iteration")
        == classes.events.count("end iteration")
        > 3
    )


# -- how a fit ends --------------------------------------------------------------------


def test_not_solved_is_a_warning_with_a_number_and_advice(binary):
    X, y = binary
    with pytest.warns(
        ConvergenceWarning, match=r"max_iter=3 at a relative gap of .*Raise max_iter"
    ):
        clf = LinearSVC(max_iter=3).fit(X, y)
    assert clf.status_ == "max_iter"
    assert clf.n_iter_ == 3
    assert clf.predict(X).shape == y.shape


def test_advice_names_features_of_another_size():
    X, y = PROBLEMS["badly_scaled"]()
    with pytest.warns(ConvergenceWarning, match=r"Feature\(s\) .* times larger"):
        LinearSVC(max_iter=2).fit(X, y)


def test_ctrl_c_keeps_the_model_and_raises(binary):
    X, y = binary

    def press(step):
        if step.iteration == 5:
            _thread.interrupt_main()

    clf = LinearSVC(callback=press, tol=1e-10)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y)
    assert clf.status_ == "interrupted"
    assert clf.score(X, y) > 0.9


def test_ctrl_c_reaches_all_classes(iris):
    X, y = iris

    def press(step):
        if step.iteration == 5 and not pressed:
            pressed.append(step)
            _thread.interrupt_main()

    pressed = []
    clf = LinearSVC(callback=press, tol=1e-12)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y)
    assert [s.status.value for s in clf.solutions_] == ["interrupted"] * 3
    assert all(s.trace[-1].iteration <= 6 for s in clf.solutions_)
    assert clf.score(X, y) > 0.8


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT to a process")
@pytest.mark.parametrize("classes", [2, 4])
def test_ctrl_c_from_a_terminal_ends_a_long_fit(classes):
    script = textwrap.dedent(f"""
        import time, numpy as np
        from widemargin import LinearSVC
        rng = np.random.default_rng(0)
        X = rng.normal(size=(100_000, 40)).astype(np.float32)
        y = rng.integers(0, {classes}, len(X))
        clf = LinearSVC(tol=1e-12)
        print("fitting", flush=True)
        try:
            clf.fit(X, y)
        except KeyboardInterrupt:
            print("raised", clf.status_, clf.predict(X[:5]).size, flush=True)
    """)
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "fitting\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "raised interrupted 5\n"


def test_callback_and_verbose(binary, capfd):
    X, y = binary
    steps = []
    LinearSVC(callback=steps.append, verbose=1).fit(X, y)
    assert [s.iteration for s in steps] == list(range(len(steps)))
    err = capfd.readouterr().err
    assert "gap" in err
    assert "1e-04" in err
    LinearSVC().fit(X, y)
    out, err = capfd.readouterr()
    assert out == err == ""


def test_time_limit_is_that_of_the_whole_fit(iris):
    X, y = iris
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        clf = LinearSVC(time_limit=1e-9, memory_limit=1 << 16).fit(X, y)
    assert all(len(s.trace) == 1 for s in clf.solutions_)


# -- bad input -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"C": -1}, ValueError, r"The 'C' parameter of LinearSVC must be a float in the range \(0, inf\). Got -1 instead."),
        ({"C": 0.0}, ValueError, "'C' parameter"),
        ({"C": "1"}, ValueError, "'C' parameter .* Got '1' instead"),
        ({"C": np.inf}, ValueError, "'C' parameter"),
        ({"tol": 0}, ValueError, "'tol' parameter"),
        ({"loss": "huber"}, ValueError, "'loss' .* one of 'hinge', 'squared_hinge'. Got 'huber'"),
        ({"intercept": True}, ValueError, "'intercept' parameter"),
        ({"solver": "smo"}, ValueError, "'solver' .* 'auto', 'interior_point'. Got 'smo'"),
        ({"solver": object}, TypeError, "'solver' parameter"),
        ({"max_iter": 2.5}, ValueError, r"'max_iter' .* an int in the range \[1, inf\) or None"),
        ({"time_limit": 0}, ValueError, "'time_limit'"),
        ({"memory_limit": -5}, ValueError, "'memory_limit'"),
        ({"n_jobs": 0}, ValueError, "'n_jobs' parameter .* a nonzero int or None"),
        ({"multi_class": "ovo"}, ValueError, "'multi_class' .* one of 'ovr'"),
        ({"class_weight": "even"}, ValueError, "'class_weight' .* a dict, 'balanced' or None"),
        ({"class_weight": {1.0: -2}}, ValueError, "'class_weight' .* positive"),
        ({"callback": 3}, ValueError, "'callback' .* callable or None"),
    ],
)  # fmt: skip
def test_parameters_out_of_range(binary, parameters, error, message):
    clf = LinearSVC(**parameters)
    with pytest.raises(error, match=message):
        clf.fit(*binary)
    assert not hasattr(clf, "coef_")


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (-1.0, "sample_weight must be finite and nonnegative. Got -1.0 at row 0"),
        ([1.0, 2.0], "sample_weight must have length 569"),
        (np.nan, "sample_weight must be finite"),
        (0.0, "sample_weight must be positive somewhere. Got zeros only"),
    ],
)
def test_bad_weights(binary, weights, message):
    with pytest.raises(ValueError, match=message):
        LinearSVC().fit(*binary, sample_weight=weights)


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
        ([[1.0], [2.0]], [0, 1, 2], "inconsistent numbers of samples"),
        ([1.0, 2.0], [0, 1], "Expected 2D array"),
        ([["a"], ["b"]], [0, 1], "not compatible with arrays of bytes/strings"),
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


def test_a_failed_fit_changes_nothing(binary):
    X, y = binary
    clf = LinearSVC().fit(X, y)
    before = {name: getattr(clf, name) for name in vars(clf)}
    with pytest.raises(ValueError, match="one class"):
        clf.fit(X, np.ones(len(y)))
    assert clf.coef_ is before["coef_"]
    np.testing.assert_array_equal(clf.classes_, before["classes_"])
