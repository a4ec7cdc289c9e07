"""SVC: scikit-learn's checks and signs, storage, predictions, bad input."""

import pickle
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC as LibSVC

from tests.cases.pairwise import checks_by_turns, product
from tests.cases.problems import PROBLEMS
from tests.conftest import csr
from widemargin import SVC, Checkpoint, Kernel, LinearSVC, Problem, as_rows
from widemargin.kernels.expansion import Expansion
from widemargin.solvers import InteriorPoint
from widemargin.solvers.kernel.irwls import IRWLS


@dataclass(frozen=True)
class Gaussian:
    """A callable kernel."""

    gamma: float = 0.1

    def __call__(self, A, B):
        A, B = (X.toarray() if sparse.issparse(X) else X for X in (A, B))
        return rbf_kernel(A, B, gamma=self.gamma)


@checks_by_turns(
    [
        SVC(),
        SVC(loss="squared_hinge"),
        SVC(kernel="linear"),
        SVC(kernel="linear", solver="irwls"),
        SVC(kernel="precomputed"),
        SVC(kernel="laplacian", multi_class="ovr"),
        SVC(kernel=Gaussian(), intercept="penalized"),
        SVC(gamma="mean_distance", class_weight="balanced", intercept="none"),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# -- scikit-learn's SVC ----------------------------------------------------------------


def _iris():
    X, y = load_iris(return_X_y=True)
    X, first = np.unique(X, axis=0, return_index=True)  # one row is there twice
    return StandardScaler().fit_transform(X), np.array(["a", "b", "c"])[y[first]]


def _digits():
    X, y = load_digits(return_X_y=True)
    return X[:500] / 16.0, y[:500]


PROBLEMS_OF_CLASSES = {
    "iris": _iris,
    "digits": _digits,
    "breast_cancer": PROBLEMS["breast_cancer"],
}
KERNELS = {
    "rbf": {},
    "rbf, gamma": {"gamma": 0.07, "C": 5.0},
    "poly": {"kernel": "poly", "degree": 2, "coef0": 0.5},
    "linear": {"kernel": "linear"},
    "balanced": {"class_weight": "balanced", "gamma": "auto"},
}


@pytest.mark.cover(1)
@pytest.mark.parametrize("name", PROBLEMS_OF_CLASSES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_agrees_with_scikit_learn(name, kernel):
    X, y = PROBLEMS_OF_CLASSES[name]()
    ours = SVC(tol=1e-8, **KERNELS[kernel]).fit(X, y)
    theirs = LibSVC(tol=1e-8, **KERNELS[kernel]).fit(X, y)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
    np.testing.assert_array_equal(ours.support_vectors_, theirs.support_vectors_)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=5e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)
    np.testing.assert_allclose(
        ours.decision_function(X), theirs.decision_function(X), atol=1e-4
    )
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.gamma_ == pytest.approx(getattr(theirs, "_gamma", 1.0)) or (
        kernel == "linear"
    )
    if kernel == "linear":
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    else:
        assert not hasattr(ours, "coef_")


@pytest.mark.parametrize("name", ["iris", "breast_cancer"])
def test_a_precomputed_kernel_is_the_kernel(name):
    X, y = PROBLEMS_OF_CLASSES[name]()
    K = rbf_kernel(X, gamma=0.1)
    named = SVC(gamma=0.1, tol=1e-7).fit(X, y)
    ours = SVC(kernel="precomputed", tol=1e-7).fit(K, y)
    theirs = LibSVC(kernel="precomputed", tol=1e-8).fit(K, y)
    called = SVC(kernel=Gaussian(), tol=1e-7).fit(X, y)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    assert ours.support_vectors_.shape == (0, 0)
    for clf, data in ((ours, K), (called, X), (named, X)):
        np.testing.assert_allclose(clf.dual_coef_, theirs.dual_coef_, atol=2e-4)
        np.testing.assert_allclose(
            clf.decision_function(data), theirs.decision_function(K), atol=1e-4
        )
        np.testing.assert_array_equal(clf.predict(data), theirs.predict(K))


def test_one_against_the_rest():
    X, y = PROBLEMS_OF_CLASSES["iris"]()
    clf = SVC(multi_class="ovr", tol=1e-7).fit(X, y)
    assert clf.dual_coef_.shape == (3, len(clf.support_))
    for k, label in enumerate(clf.classes_):
        single = LibSVC(tol=1e-8).fit(X, y == label)
        np.testing.assert_allclose(
            clf.decision_function(X)[:, k], single.decision_function(X), atol=1e-4
        )


def test_linear_solvers_solve_a_linear_kernel():
    X, y = PROBLEMS["breast_cancer"]()
    plain = SVC(kernel="linear", tol=1e-7).fit(X, y)
    assert "irwls" not in {s.solver for s in plain.solutions_}
    assert "because" in plain.solution_.reason
    linear = LinearSVC(loss="hinge", tol=1e-7).fit(X, y)
    np.testing.assert_array_equal(plain.coef_, linear.coef_)
    for solver in ("irwls", IRWLS(working_set=64), InteriorPoint()):
        clf = SVC(kernel="linear", solver=solver, tol=1e-6).fit(X, y)
        assert clf.status_ == "solved"
        np.testing.assert_allclose(clf.coef_, plain.coef_, atol=5e-3)
        np.testing.assert_allclose(
            clf.dual_coef_ @ clf.support_vectors_, clf.coef_, atol=5e-3
        )


# -- weights ---------------------------------------------------------------------------


def test_weights_count_rows():
    X, y = PROBLEMS_OF_CLASSES["iris"]()
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    for gamma in ("scale", "mean_distance"):
        a = SVC(gamma=gamma, tol=1e-8).fit(X, y, sample_weight=weight)
        b = SVC(gamma=gamma, tol=1e-8).fit(
            np.repeat(X, weight, 0), np.repeat(y, weight)
        )
        assert a.gamma_ == pytest.approx(b.gamma_, rel=1e-12)
        np.testing.assert_allclose(
            a.decision_function(X), b.decision_function(X), atol=1e-5
        )
    assert not np.isin(a.support_, np.flatnonzero(weight == 0)).any()


def test_class_weights():
    X, y = PROBLEMS_OF_CLASSES["iris"]()
    clf = SVC(class_weight={"a": 2.0, "c": 0.5}, tol=1e-6).fit(X, y)
    theirs = LibSVC(class_weight={"a": 2.0, "c": 0.5}, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(clf.dual_coef_, theirs.dual_coef_, atol=1e-3)


# -- storage and predictions -----------------------------------------------------------


STORED = {
    "dense": np.asarray,
    "fortran": np.asfortranarray,
    "csr": sparse.csr_array,
    "csr matrix": sparse.csr_matrix,
    "int64 indices": lambda X: csr(
        sparse.csr_array(X),
        indices=sparse.csr_array(X).indices.astype(np.int64),
        indptr=sparse.csr_array(X).indptr.astype(np.int64),
    ),
}


@pytest.mark.cover(1)
@product(kind=STORED, dtype=[np.float32, np.float64], scheme=["binary", "ovo", "ovr"])
def test_a_prediction_does_not_depend_on_the_batch(kind, dtype, scheme):
    X, y = PROBLEMS_OF_CLASSES["digits"]()
    X = STORED[kind](np.where(X > 0.3, X, 0).astype(dtype))
    y = y == 3 if scheme == "binary" else y % 4
    multi_class = "ovo" if scheme == "binary" else scheme
    clf = SVC(multi_class=multi_class, gamma=0.02).fit(X, y)
    whole = clf.decision_function(X)
    for rows in ([0], [499], range(3, 90), range(77, 500, 7)):
        part = clf.decision_function(X[list(rows)])
        np.testing.assert_array_equal(part, whole[list(rows)])
    small = clone(clf).set_params(memory_limit=1 << 24, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(small.decision_function(X), whole)
    np.testing.assert_array_equal(clf.predict(X[5:6]), clf.predict(X)[5:6])


@pytest.mark.filterwarnings("ignore:The kernel is not positive semidefinite")
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "sigmoid"])
def test_all_kernels_predict_row_by_row(kernel, binary):
    X, y = binary
    clf = SVC(kernel=kernel, gamma=0.001).fit(X, y)
    whole = clf.decision_function(X)
    rows = [clf.decision_function(X[i : i + 1])[0] for i in range(40)]
    np.testing.assert_array_equal(rows, whole[:40])


def test_data_are_not_copied(monkeypatch, binary):
    X, y = binary
    X = X.astype(np.float32)
    X.flags.writeable = False
    seen = []
    monkeypatch.setattr(
        "widemargin.estimators.checks.as_rows",
        lambda X, **o: (seen.append(X), as_rows(X, **o))[1],
    )
    clf = SVC().fit(X, y)
    clf.predict(X)
    assert len(seen) == 2
    assert all(np.shares_memory(data, X) for data in seen)
    assert clf.support_vectors_.dtype == np.float32


def test_pickles_and_clones(binary):
    X, y = binary
    clf = SVC().fit(X, y)
    clf.model_.scores(as_rows(X))
    for copy in (pickle.loads(pickle.dumps(clf)), clf):
        np.testing.assert_array_equal(
            copy.decision_function(X), clf.decision_function(X)
        )
    model = clf.model_
    model.predict(X)
    assert "_expand" in vars(model.kernels)
    copy = pickle.loads(pickle.dumps(model))
    assert isinstance(copy.kernels, Expansion)
    np.testing.assert_array_equal(copy.predict(X), clf.predict(X))


def test_in_a_search(binary):
    search = GridSearchCV(SVC(), {"C": [0.1, 1.0], "gamma": ["scale", 0.1]}, cv=3)
    assert search.fit(*binary).best_score_ > 0.95
    K = rbf_kernel(binary[0], gamma=0.03)
    search = GridSearchCV(SVC(kernel="precomputed"), {"C": [0.1, 1.0]}, cv=3)
    assert search.fit(K, binary[1]).best_score_ > 0.95


def test_feature_names(binary):
    X, y = binary
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(30)])
    clf = SVC().fit(frame, y)
    assert clf.model_.meta["feature_names"][3] == "f3"
    clf.set_params(kernel="linear").fit(X, y)
    assert not hasattr(clf, "feature_names_in_")
    assert hasattr(clf, "coef_")
    clf.set_params(kernel="rbf").fit(X, y)
    assert not hasattr(clf, "coef_")


# -- how a fit ends --------------------------------------------------------------------


def test_a_kernel_that_is_the_identity(binary):
    X, y = binary
    clf = SVC(gamma=1e10).fit(X, y)
    assert clf.status_ == "solved"
    assert clf.score(X, y) == 1.0
    n = [np.count_nonzero(y < 0), np.count_nonzero(y > 0)]
    np.testing.assert_array_equal(clf.n_support_, n)


def test_a_kernel_that_is_not_positive_semidefinite(binary):
    X, y = binary
    with pytest.warns(RuntimeWarning, match="not positive semidefinite") as caught:
        SVC(kernel="sigmoid", coef0=0.5).fit(X, y)
    assert [w.filename for w in caught] == [__file__]


def test_limits_keep_a_model_and_warn(binary):
    X, y = binary
    with pytest.warns(ConvergenceWarning, match="Stopped by max_iter=1 at a relative"):
        clf = SVC(max_iter=1, solver=IRWLS(working_set=20)).fit(X, y)
    assert clf.status_ == "max_iter"
    assert clf.predict(X).shape == y.shape
    with pytest.warns(ConvergenceWarning, match="Stopped by time_limit=1e-09 s"):
        clf = SVC(time_limit=1e-9).fit(*PROBLEMS_OF_CLASSES["iris"]())
    assert len(clf.support_) == 0
    clf.predict(PROBLEMS_OF_CLASSES["iris"]()[0])


def test_a_checkpoint(binary, tmp_path):
    X, y = binary
    y = np.arange(len(y)) % 3
    path = tmp_path / "run"
    options = {"solver": IRWLS(working_set=16), "checkpoint": Checkpoint(path, 1e-6)}
    weight = np.arange(len(y)) % 5
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        SVC(max_iter=3, **options).fit(X, y, weight)
    saved = sorted(file.name for file in tmp_path.iterdir())
    assert saved == ["run.0", "run.1", "run.2"]
    with pytest.raises(
        ValueError, match="expected a checkpoint of this problem .gamma"
    ):
        SVC(gamma=0.3, **options).fit(X, y, weight)
    with pytest.raises(
        ValueError, match="expected a checkpoint of this problem .kernel"
    ):
        SVC(kernel="laplacian", **options).fit(X, y, weight)
    clf = SVC(**options).fit(X, y, weight)
    assert "resumed at iteration 3" in clf.solution_.reason
    assert not list(tmp_path.iterdir())
    plain = SVC().fit(X, y, weight)
    np.testing.assert_allclose(
        clf.decision_function(X), plain.decision_function(X), atol=1e-2
    )


# -- bad input -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"C": -1}, ValueError, r"The 'C' parameter of SVC must be a float in the range \(0, inf\]. Got -1 instead."),
        ({"gamma": 0.0}, ValueError, r"The 'gamma' parameter of SVC must be a float in the range \(0, inf\), or 'scale' or 'auto' or 'mean_distance'. Got 0.0 instead."),
        ({"gamma": -2}, ValueError, "'gamma' parameter of SVC .* Got -2 instead"),
        ({"gamma": np.inf}, ValueError, "'gamma' parameter of SVC"),
        ({"gamma": "foo"}, ValueError, "'gamma' parameter of SVC must be one of 'scale', 'auto', 'mean_distance' or a number above 0. Got 'foo' instead."),
        ({"gamma": None}, TypeError, "'gamma' parameter of SVC"),
        ({"kernel": "cosine"}, ValueError, "'kernel' parameter of SVC must be one of 'linear', .* Got 'cosine'"),
        ({"degree": 0}, ValueError, r"'degree' parameter of SVC must be an int in the range \[1, inf\). Got 0"),
        ({"degree": 2.5}, ValueError, "'degree' parameter of SVC"),
        ({"coef0": np.nan}, ValueError, "'coef0' parameter of SVC must be a finite float"),
        ({"multi_class": "all"}, ValueError, "'multi_class' .* one of 'ovr', 'ovo', 'dag'. Got 'all'"),
        ({"solver": "smo"}, ValueError, "'solver' parameter of SVC .* Got 'smo'"),
        ({"solver": "interior_point"}, ValueError, "InteriorPoint solves linear problems only: use solver='auto'"),
        ({"solver": "coordinate_descent", "kernel": "poly"}, ValueError, "CoordinateDescent solves linear problems only"),
        ({"memory_limit": 20_000}, ValueError, "The 'memory_limit' parameter must be at least .* Got 20,000 instead"),
        ({"kernel": lambda A, B: np.ones(3)}, ValueError, "The kernel must return real numbers of shape"),
        ({"kernel": lambda A, B: np.full((len(A), len(B)), np.nan)}, ValueError, "The kernel must return finite numbers"),
    ],
)  # fmt: skip
def test_parameters_out_of_range(binary, parameters, error, message):
    clf = SVC(**parameters)
    with pytest.raises(error, match=message):
        clf.fit(*binary)
    assert vars(clf).keys() == vars(SVC()).keys()


def test_a_linear_estimator_refuses_a_kernel_solver(binary):
    with pytest.raises(
        ValueError, match="IRWLS solves problems with a kernel: use SVC"
    ):
        LinearSVC(solver="irwls").fit(*binary)


def test_bad_data(binary):
    X, y = binary
    with pytest.raises(ValueError, match="'X' parameter of SVC.fit must be a square"):
        SVC(kernel="precomputed").fit(X, y)
    spoiled = X.copy()
    spoiled[7, 4] = np.inf
    with pytest.raises(ValueError, match="Got infinity at row 7, column 4"):
        SVC().fit(spoiled, y)
    clf = SVC().fit(X, y)
    with pytest.raises(ValueError, match="Got infinity at row 7, column 4"):
        clf.predict(spoiled)
    with pytest.raises(ValueError, match="X has 4 features, but the model expects 30"):
        clf.predict(as_rows(X[:, :4]))


@pytest.mark.parametrize("seed", [3, 8, 16])
def test_the_loss_of_a_row_far_from_all_others_is_not_overlooked(seed):
    random = np.random.default_rng(seed)
    X = random.standard_normal((1201, 6))
    X[:, 5] = X[:, 4]
    y = np.where(X[:, 0] + X[:, 4] + 0.5 * random.standard_normal(1201) > 0, 1, -1)
    X[778] = 0  # float32 loses the 3
    X[778, 4:] = 1e8, -1e8 + 3
    y[778] = random.choice([-1, 1])
    clf = SVC(kernel="poly", degree=1, gamma=1.0, C=0.1).fit(X, y)
    kernel = Kernel("poly", gamma=1.0, degree=1, coef0=0.0)
    alpha, w, b = clf.solution_.alpha, clf.solution_.w, clf.solution_.b
    exact = Problem(X, y, 0.1, kernel=kernel).certify(alpha, w, b)
    assert exact.relative_gap <= 1.01e-4
