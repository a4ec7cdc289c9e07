"""SVC with a rank: maps, models, certificates of both problems, bad input."""

import pickle
import re
from dataclasses import replace

import numpy as np
import pytest
from kernel_reference import conic_optimum, objectives, part
from scipy import sparse
from sklearn.datasets import load_digits, make_moons
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.estimator_checks import parametrize_with_checks

from widemargin import SVC, LinearSVC, load_model, open_rows, save_model
from widemargin.estimators.approximate import approximate
from widemargin.io.liblinear import write_liblinear
from widemargin.io.onnx import write_onnx
from widemargin.lowrank import feature_map
from widemargin.report import write_report
from widemargin.solution import Status
from widemargin.solvers import InteriorPoint

LANDMARKS = ["cholesky", "nystroem", "eigen"]
METHODS = [*LANDMARKS, "fourier"]
INTERCEPTS = ["free", "penalized", "none"]
LOSSES = ["hinge", "squared_hinge"]
POLYNOMIAL = {
    "kernel": "poly",
    "degree": 2,
    "coef0": 1.0,
    "rank": 1000,
    "approximation": "polynomial",
}


@pytest.fixture(scope="module")
def moons():
    return make_moons(400, noise=0.25, random_state=0)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:400] / 16.0, y[:400]


def several(y):
    """Three classes of digits, or two."""
    return {"binary": y > 4, "ovo": y % 4, "ovr": y % 4}


@parametrize_with_checks(
    [
        SVC(rank=100),
        SVC(rank=1000, multi_class="ovr", loss="squared_hinge", certify="exact"),
        SVC(rank=50, approximation="fourier"),
        SVC(rank=0.01, certify="exact"),
        SVC(**POLYNOMIAL),
        SVC(kernel="precomputed", rank=30),
        SVC(rank=20, approximation="eigen", class_weight="balanced"),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# -- the approximate problem -----------------------------------------------------------


@pytest.mark.parametrize("approximation", METHODS)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_model_is_that_of_the_features(moons, approximation, loss):
    X, y = moons
    clf = SVC(gamma=1.0, rank=20, approximation=approximation, loss=loss, tol=1e-6)
    clf.fit(X, y)
    z = clf.feature_map_
    assert z.method == approximation
    assert z.rank == 20
    assert z.features is None
    assert clf.status_ == "solved"
    w, b = clf.solution_.w, clf.solution_.b
    np.testing.assert_allclose(
        clf.decision_function(X), z.transform(X) @ w + b, atol=1e-8
    )
    same = feature_map(X, clf.kernel_, approximation, 20, random_state=0)
    np.testing.assert_array_equal(same.transform(X), z.transform(X))
    alpha, sign = clf.solution_.alpha, np.where(y > 0, 1.0, -1.0)
    intercept = "free" if loss == "hinge" else "penalized"
    K = same.features @ same.features.T
    assert objectives(K, sign, 1.0, loss, intercept, alpha, b)[1] == pytest.approx(
        clf.solution_.certificate.dual, rel=1e-9
    )
    assert hasattr(clf, "coef_") == (approximation == "fourier")


@pytest.mark.parametrize("scheme", ["binary", "ovo", "ovr"])
@pytest.mark.parametrize("approximation", LANDMARKS)
def test_landmarks_are_the_support_vectors(digits, scheme, approximation):
    X, y = digits
    y = several(y)[scheme]
    scheme = "ovr" if scheme == "ovr" else "ovo"
    clf = SVC(rank=40, approximation=approximation, multi_class=scheme).fit(X, y)
    l = 400 if approximation == "eigen" else 40  # noqa: E741
    problems = len(clf.solutions_)
    assert clf.dual_coef_.shape == (problems, l)
    assert clf.n_support_.sum() == len(clf.support_) == l
    classes = np.searchsorted(clf.classes_, y[clf.support_])
    np.testing.assert_array_equal(classes, np.sort(classes))
    np.testing.assert_array_equal(np.bincount(classes), clf.n_support_)
    np.testing.assert_array_equal(clf.support_vectors_, X[clf.support_])
    K = rbf_kernel(X, clf.support_vectors_, gamma=clf.gamma_)
    Z = clf.feature_map_.transform(X)
    for k, solution in enumerate(clf.solutions_):
        np.testing.assert_allclose(K @ clf.dual_coef_[k], Z @ solution.w, atol=1e-8)


@pytest.mark.parametrize("scheme", ["ovo", "ovr"])
@pytest.mark.parametrize("kernel", ["rbf", "precomputed", "callable"])
def test_a_full_rank_is_the_exact_machine(digits, scheme, kernel):
    X, y = digits[0][:150], digits[1][:150] % 4
    given = kernel
    if kernel == "callable":
        given = rbf_kernel
    if kernel == "precomputed":
        X = rbf_kernel(X, gamma=1.0 / 64)
    weight = np.where(np.arange(150) % 7 == 0, 0.0, 1.0 + np.arange(150) % 3)
    options = {"kernel": given, "gamma": 1.0 / 64, "multi_class": scheme, "tol": 1e-8}
    exact = SVC(**options).fit(X, y, weight)
    for approximation in LANDMARKS:
        low = SVC(**options, rank=150, approximation=approximation, certify="exact")
        low.fit(X, y, weight)
        assert (weight[low.support_] > 0).all()
        for a, b in zip(low.exact_certificates_, exact.solutions_, strict=True):
            assert a.primal == pytest.approx(b.certificate.primal, rel=1e-7)
            assert a.dual == pytest.approx(b.certificate.dual, rel=1e-7)
        np.testing.assert_allclose(
            low.decision_function(X), exact.decision_function(X), atol=2e-3
        )


def test_polynomials_are_exact(digits):
    X, y = digits[0][:, 20:36], digits[1] % 3
    options = {"kernel": "poly", "degree": 2, "coef0": 0.5, "gamma": 0.1, "tol": 1e-7}
    exact = SVC(**options).fit(X, y)
    low = SVC(**options, rank=153, approximation="polynomial", certify="exact")
    low.fit(X, y)
    assert low.feature_map_.rank == 153
    assert low.coef_.shape == (3, 153)
    assert low.exact_gap_ <= 2e-7
    for a, b in zip(low.exact_certificates_, exact.solutions_, strict=True):
        assert a.primal == pytest.approx(b.certificate.primal, rel=1e-6)
    assert (low.predict(X) == exact.predict(X)).all()


def test_a_share_of_the_trace(moons):
    clf = SVC(gamma=2.0, rank=0.01).fit(*moons)
    assert clf.feature_map_.method == "cholesky"
    assert 0.0 < clf.feature_map_.trace_residual <= 0.01
    fewer = SVC(gamma=2.0, rank=0.1).fit(*moons)
    assert fewer.feature_map_.rank < clf.feature_map_.rank < 400


def test_duplicates_lower_the_rank(moons):
    X, y = np.tile(moons[0][:20], (5, 1)), np.tile(moons[1][:20], 5)
    clf = SVC(rank=90, approximation="cholesky", certify="exact").fit(X, y)
    assert clf.feature_map_.rank == 20
    assert clf.exact_gap_ <= 1e-4
    assert SVC(rank=1000).fit(X, y).feature_map_.rank <= 20


def test_sparse_rows_and_weights(moons):
    X, y = moons
    weight = np.r_[np.zeros(100), np.ones(300)]
    clf = SVC(rank=30).fit(sparse.csr_array(X), y, weight)
    other = SVC(rank=30).fit(X[100:], y[100:])
    np.testing.assert_array_equal(clf.support_, other.support_ + 100)
    np.testing.assert_allclose(
        clf.decision_function(X), other.decision_function(X), atol=1e-6
    )
    assert sparse.issparse(clf.support_vectors_)


def test_float32_features_of_large_data(moons, monkeypatch):
    X, y = moons
    double = SVC(rank=50).fit(X, y)
    monkeypatch.setattr("widemargin.estimators.approximate.MANY", 1)
    single = SVC(rank=50, certify="exact").fit(X, y)
    assert single.feature_map_.expand.dtype == np.float32
    assert double.feature_map_.expand.dtype == np.float64
    assert SVC(rank=50, tol=1e-6).fit(X, y).feature_map_.expand.dtype == np.float64
    bounds = single.exact_certificates_[0]
    assert bounds.primal == pytest.approx(single.solution_.certificate.primal, rel=1e-5)


def test_a_second_fit_forgets_the_first(moons):
    clf = SVC(**POLYNOMIAL, certify="exact").fit(*moons)
    clf.set_params(rank=None, approximation="auto", certify="approximate").fit(*moons)
    names = ("feature_map_", "coef_", "exact_certificates_", "exact_gap_")
    assert not any(hasattr(clf, name) for name in names)
    assert clf._approximation is None


def test_a_time_limit_and_the_callback(moons):
    X, y = moons
    with pytest.warns(UserWarning, match="time_limit"):
        clf = SVC(rank=30, time_limit=1e-9).fit(X, y)
    assert clf.status_ == "time_limit"
    assert not clf.dual_coef_.any()
    steps = []
    SVC(rank=30, callback=lambda step: steps.append(step.primal)).fit(X, y)
    assert steps


def test_no_advice_about_columns_that_are_not_the_users(moons):
    X, y = moons
    words = "Stopped by max_iter=1 at a relative gap of"
    clf = SVC(rank=200, approximation="cholesky", gamma=1.0, max_iter=1, tol=1e-12)
    with pytest.warns(UserWarning, match=words) as caught:
        clf.fit(X, y)
    Z = clf.feature_map_.transform(X)
    assert "Feature(s)" not in str(caught[0].message)
    with pytest.warns(UserWarning, match="Feature.s. 0, 1, 2, ... are up to"):
        LinearSVC(max_iter=1, tol=1e-12).fit(Z, y)


# -- bounds of the exact problem -------------------------------------------------------


@pytest.mark.parametrize("approximation", METHODS)
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_the_bounds_hold_the_optimum(approximation, intercept, loss, C):
    X, y = part("breast_cancer")
    optimum = conic_optimum("breast_cancer", 0.05, loss, intercept, C)
    gaps = []
    for rank in (4, 30, 250):
        clf = SVC(
            gamma=0.05,
            C=C,
            rank=rank,
            approximation=approximation,
            loss=loss,
            intercept=intercept,
            certify="exact",
            tol=1e-6,
        ).fit(X, y)
        (bounds,) = clf.exact_certificates_
        assert bounds.dual <= optimum * (1.0 + 1e-7)
        assert bounds.primal >= optimum * (1.0 - 1e-7)
        assert clf.exact_gap_ == bounds.relative_gap
        gaps.append(clf.exact_gap_)
        if approximation != "fourier":
            _check_bounds(clf, X, y, C, loss, intercept)
    assert gaps[2] < gaps[0]
    assert approximation == "fourier" or gaps[2] < 1e-5


def _check_bounds(clf, X, y, C, loss, intercept):
    """The bounds are what their definitions say, in float64."""
    K = rbf_kernel(X, gamma=0.05)
    (bounds,), b = clf.exact_certificates_, clf.intercept_[0]
    beta = np.zeros(len(y))
    beta[clf.support_] = clf.dual_coef_[0]
    primal, _ = objectives(K, y, C, loss, intercept, y * beta, b)
    assert bounds.primal == pytest.approx(primal, rel=1e-8)
    alpha = clf.solution_.alpha
    most = (C / alpha[alpha > 0]).min() if loss == "hinge" else 10.0
    duals = [
        objectives(K, y, C, loss, intercept, t * alpha, 0.0)[1]
        for t in np.geomspace(1e-4, most, 300)
    ]
    assert max(duals) <= bounds.dual * (1.0 + 1e-9)
    assert max(duals) == pytest.approx(bounds.dual, rel=1e-3)


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
@pytest.mark.parametrize("scheme", ["ovo", "ovr"])
def test_bounds_of_each_pair_and_class(digits, kernel, scheme):
    X, y = digits[0][:200], digits[1][:200] % 3
    X = X if kernel == "rbf" else rbf_kernel(X, gamma=1.0 / 64)
    options = {"kernel": kernel, "gamma": 1.0 / 64, "multi_class": scheme}
    exact = SVC(**options, tol=1e-7).fit(X, y)
    low = SVC(**options, rank=25, certify="exact").fit(X, y)
    assert len(low.exact_certificates_) == 3
    for bounds, solution in zip(low.exact_certificates_, exact.solutions_, strict=True):
        assert bounds.dual <= solution.certificate.primal
        assert bounds.primal >= solution.certificate.dual
    assert low.exact_gap_ == max(c.relative_gap for c in low.exact_certificates_)
    assert low.dual_gap_ <= 1e-4


def test_without_a_rank_the_bounds_are_the_solutions(moons):
    clf = SVC(certify="exact").fit(*moons)
    assert clf.exact_certificates_ == [clf.solution_.certificate]
    assert clf.exact_gap_ == clf.dual_gap_


def test_an_indefinite_kernel_has_no_lower_bound(moons):
    """Of c = Y alpha the squared norm is seen to be negative."""
    sign = np.where(moons[1] > 0, 1.0, -1.0)
    K, y = np.eye(400) - 0.1 * (np.outer(sign, sign) - np.eye(400)), moons[1]
    clf = SVC(kernel="precomputed", rank=30, approximation="cholesky", certify="exact")
    (bounds,) = clf.fit(K, y).exact_certificates_
    assert bounds.dual == -np.inf
    assert clf.exact_gap_ == np.inf


@pytest.mark.parametrize("coef0", [1.0, 100.0])
def test_rounding_of_squared_norms_is_part_of_the_bounds(moons, coef0):
    """Large coefficients of opposite signs cancel; the kernel is semidefinite."""
    options = {"kernel": "poly", "degree": 1, "gamma": 1.0, "coef0": coef0}
    options |= {"loss": "squared_hinge", "C": 1e6, "certify": "exact", "rank": 30}
    clf = SVC(approximation="cholesky", tol=1e-9, **options).fit(*moons)
    (bounds,), known = clf.exact_certificates_, clf.solution_.certificate
    assert bounds.dual <= known.primal * (1 + 1e-12)
    assert bounds.primal >= known.dual * (1 - 1e-12)
    assert clf.exact_gap_ < 1e-4


def test_bounds_that_contradict_each_other_prove_nothing(moons):
    """Kernel values rounded to float32 are those of an indefinite kernel."""
    X, y = moons
    K = rbf_kernel(X[:, :1], gamma=0.1).astype(np.float32).astype(np.float64)
    clf = SVC(kernel="precomputed", rank=30, C=1e4, loss="squared_hinge")
    clf.set_params(certify="exact", approximation="eigen").fit(K, y)
    (bounds,) = clf.exact_certificates_
    assert bounds.dual == -np.inf
    assert clf.exact_gap_ == np.inf


@pytest.mark.parametrize("C", [1.0, 100.0, 1e4])
def test_kernel_values_of_float32_are_known_to_that_precision(moons, C):
    X, y = moons
    K = rbf_kernel(X[:, :1], gamma=0.1)
    options = {"kernel": "precomputed", "C": C, "loss": "squared_hinge"}
    exact = SVC(tol=1e-8, **options).fit(K, y).solution_.certificate
    clf = SVC(rank=30, approximation="eigen", certify="exact", **options)
    (bounds,) = clf.fit(K.astype(np.float32), y).exact_certificates_
    assert bounds.dual <= exact.primal
    assert exact.dual <= bounds.primal
    assert clf.exact_gap_ < (1e-3 if C == 1.0 else 0.9)
    clf.set_params(kernel=lambda A, B: rbf_kernel(A[:, :1], B[:, :1], gamma=0.1))
    clf.fit(X.astype(np.float32), y)
    assert clf.exact_gap_ < (1e-3 if C == 1.0 else 0.9)


def test_features_of_more_columns_than_rows_are_not_counted(moons):
    """The rank is lowered to the rows before memory is asked for."""
    X, y = moons[0][:60], moons[1][:60]
    for approximation in ("eigen", "nystroem", "cholesky"):
        clf = SVC(rank=10**12, approximation=approximation).fit(X, y)
        assert clf.feature_map_.rank <= 60
    clf = SVC(kernel="precomputed", rank=10**12).fit(rbf_kernel(X), y)
    assert clf.feature_map_.rank <= 60
    clf = SVC(**POLYNOMIAL).set_params(rank=10**12).fit(X, y)
    assert clf.feature_map_.rank == 6


@pytest.mark.parametrize("approximation", ["eigen", "nystroem"])
def test_maps_that_hold_their_features_need_room(moons, approximation):
    X, y = moons
    kernel = "rbf" if approximation == "eigen" else "precomputed"
    clf = SVC(kernel=kernel, rank=30, approximation=approximation, memory_limit=1 << 14)
    with pytest.raises(ValueError, match="memory_limit.* must be at least .* features"):
        clf.fit(X if kernel == "rbf" else rbf_kernel(X), y)


def test_zero_is_bounded_too(moons):
    """No time for an answer: alpha = 0 and f = 0."""
    for approximation in ("nystroem", "fourier"):
        clf = SVC(rank=8, approximation=approximation, certify="exact", time_limit=1e-9)
        with pytest.warns(UserWarning, match="time_limit"):
            clf.fit(*moons)
        (bounds,) = clf.exact_certificates_
        assert bounds.dual == 0.0
        assert bounds.primal == pytest.approx(400.0)


# -- polish and "auto" -----------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["ovo", "ovr"])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_polished_machine_is_the_exact_one(digits, scheme, loss):
    X, y = digits[0][:300], digits[1][:300] % 3
    options = {"gamma": 0.02, "C": 3.0, "multi_class": scheme, "loss": loss}
    solver = "frank_wolfe" if loss == "squared_hinge" else "auto"
    steps = []
    clf = SVC(
        **options,
        rank=60,
        polish=True,
        certify="exact",
        solver=solver,
        callback=lambda step: steps.append((step.problem, step.iteration, step.primal)),
    ).fit(X, y)
    exact = SVC(**options, tol=1e-7).fit(X, y)
    assert clf.status_ == "solved"
    assert not hasattr(clf, "feature_map_")
    assert {s.solver for s in clf.solutions_} == {
        "irwls" if loss == "hinge" else "frank_wolfe"
    }
    assert clf.exact_certificates_ == [s.certificate for s in clf.solutions_]
    np.testing.assert_allclose(
        clf.intercept_, exact.intercept_, atol=0.05 * np.abs(exact.intercept_).max()
    )
    for a, b in zip(clf.solutions_, exact.solutions_, strict=True):
        assert a.certificate.primal == pytest.approx(b.certificate.primal, rel=2e-4)
    # The exact solver starts at the other one's answer: not at zero, where P = C m.
    first = [primal for k, iteration, primal in steps if (k, iteration) == (0, 0)]
    assert len(first) == 2
    assert first[1] < first[0]


def test_a_checkpoint_is_that_of_the_exact_solver(moons, tmp_path):
    options = {"gamma": 1.0, "tol": 1e-9, "checkpoint": str(tmp_path / "c")}
    for parameters in ({"rank": 30, "polish": True}, {"rank": "auto"}, {"rank": 30}):
        clf = SVC(**options, **parameters, max_iter=1)
        with pytest.warns(UserWarning, match="max_iter"):
            clf.fit(*moons)
        assert (tmp_path / "c").exists()
        assert clf.set_params(max_iter=None).fit(*moons).status_ == "solved"
        assert "resumed at iteration 1" in clf.solution_.reason
        assert not (tmp_path / "c").exists()


def test_auto_is_exact_where_it_can(moons):
    exact = SVC(gamma=1.0).fit(*moons)
    for time_limit in (None, 600.0):
        clf = SVC(gamma=1.0, rank="auto", certify="exact", time_limit=time_limit)
        clf.fit(*moons)
        assert not hasattr(clf, "feature_map_")
        np.testing.assert_array_equal(clf.dual_coef_, exact.dual_coef_)
        assert clf.solution_.reason == exact.solution_.reason
        assert clf.exact_gap_ == exact.dual_gap_


def late(monkeypatch, max_iter, seconds=0.0):
    """Exact solves are ended by time after some iterations, with some time used up."""
    solve = SVC._solve_exactly

    def stopped(self, training):
        if training.starts is not None:
            return solve(self, training)
        self.set_params(max_iter=max_iter or 1)
        limit = training.time_limit if max_iter else 1e-9
        found = solve(self, replace(training, time_limit=limit))
        self.set_params(max_iter=None)
        training.clock._begin -= seconds
        solutions = [replace(s, status=Status.TIME_LIMIT) for s in found.solutions]
        return replace(found, solutions=solutions)

    monkeypatch.setattr(SVC, "_solve_exactly", stopped)


@pytest.mark.parametrize("scheme", ["ovo", "ovr"])
def test_auto_takes_a_rank_where_time_is_short(digits, scheme, monkeypatch):
    X, y = digits[0][:300], digits[1][:300] % 3
    options = {"gamma": 0.05, "C": 5.0, "multi_class": scheme}
    exact = SVC(**options, tol=1e-7).fit(X, y)
    late(monkeypatch, max_iter=0, seconds=50.0)
    monkeypatch.setattr("widemargin.estimators.approximate.MOST", 150)
    clf = SVC(**options, rank="auto", certify="exact", time_limit=100.0).fit(X, y)
    assert clf.feature_map_.rank == 150
    assert clf.status_ == "solved"
    words = "irwls had not ended after 50% of time_limit, and of its exact objective"
    assert words in clf.solution_.reason
    assert clf.dual_coef_.shape == (3, 150)
    low = SVC(**options, rank=150, certify="exact").fit(X, y)
    for k, bounds in enumerate(clf.exact_certificates_):
        optimum = exact.solutions_[k].certificate
        assert bounds.dual <= optimum.primal
        assert bounds.primal >= optimum.dual
        assert bounds.primal == low.exact_certificates_[k].primal
        assert bounds.dual >= low.exact_certificates_[k].dual


def test_auto_keeps_the_exact_machine_where_it_is_better(digits, monkeypatch):
    X, y = digits[0][:300], digits[1][:300] % 2
    monkeypatch.setattr("widemargin.estimators.approximate.NEAR", 0.0)
    late(monkeypatch, max_iter=1)
    monkeypatch.setattr("widemargin.estimators.approximate.MOST", 2)
    clf = SVC(gamma=0.05, rank="auto", certify="exact", time_limit=100.0)
    with pytest.warns(UserWarning, match="at a relative gap of"):
        clf.fit(X, y)
    assert not hasattr(clf, "feature_map_")
    assert "of its exact objective" in clf.solution_.reason
    assert " of rank 2, " in clf.solution_.reason
    assert clf.status_ == "time_limit"
    certificate = clf.solution_.certificate
    assert clf.exact_certificates_[0].primal == certificate.primal
    assert clf.exact_certificates_[0].dual >= certificate.dual


def test_auto_goes_on_where_the_exact_solver_is_near(digits, monkeypatch):
    X, y = digits[0][:300], digits[1][:300] % 2
    monkeypatch.setattr("widemargin.estimators.approximate.NEAR", 1.0)
    late(monkeypatch, max_iter=1)
    clf = SVC(gamma=0.05, rank="auto", time_limit=100.0).fit(X, y)
    assert clf.status_ == "solved"
    assert not hasattr(clf, "feature_map_")
    assert " of rank " not in clf.solution_.reason


def test_auto_takes_a_rank_where_memory_is_short():
    X = np.random.default_rng(0).normal(size=(4000, 60))
    y = X[:, 0] > 0
    clf = SVC(gamma=0.01, rank="auto", memory_limit=1 << 20).fit(X, y)
    assert clf.feature_map_.rank == (1 << 20) // (8 * 4000)
    assert "rank 32 because memory_limit has no room for an exact solver" in (
        clf.solution_.reason
    )
    with pytest.raises(ValueError, match="'memory_limit' parameter must be at least"):
        SVC(gamma=0.01, memory_limit=1 << 20).fit(X, y)


def test_auto_stops_when_the_callback_says_so(moons):
    clf = SVC(rank="auto", time_limit=60.0, callback=lambda step: True)
    with pytest.warns(UserWarning, match="the callback"):
        clf.fit(*moons)
    assert clf.status_ == "stopped_by_callback"
    assert not hasattr(clf, "feature_map_")


# -- files -----------------------------------------------------------------------------


def fitted(digits, scheme, approximation):
    X, y = digits[0].astype(np.float32), several(digits[1])[scheme]
    options = {"rank": 40, "approximation": approximation}
    if approximation == "polynomial":
        X, options = X[:, 20:30], POLYNOMIAL
    multi_class = "ovr" if scheme == "ovr" else "ovo"
    return SVC(multi_class=multi_class, **options).fit(X, y), X


@pytest.mark.parametrize("scheme", ["binary", "ovo", "ovr"])
@pytest.mark.parametrize("approximation", ["nystroem", "fourier", "polynomial"])
def test_models_survive_a_file(digits, scheme, approximation, tmp_path):
    clf, X = fitted(digits, scheme, approximation)
    save_model(clf, tmp_path / "m.wm")
    model = load_model(tmp_path / "m.wm")
    assert model.n_features == X.shape[1]
    assert not model.has_weights
    assert model.meta == clf.model_.meta
    assert model.meta["rank"] == clf.feature_map_.rank
    np.testing.assert_array_equal(model.decision_function(X), clf.decision_function(X))
    save_model(model, tmp_path / "again.wm")
    content = (tmp_path / "m.wm").read_bytes()
    assert (tmp_path / "again.wm").read_bytes() == content
    assert content[8] == (2 if approximation == "nystroem" else 3)
    copy = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(copy.decision_function(X), clf.decision_function(X))


@pytest.mark.parametrize("scheme", ["binary", "ovo", "ovr"])
@pytest.mark.parametrize("approximation", ["nystroem", "fourier", "polynomial"])
def test_onnx(digits, scheme, approximation, tmp_path):
    pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    clf, X = fitted(digits, scheme, approximation)
    write_onnx(clf, tmp_path / "m.onnx")
    session = runtime.InferenceSession(
        tmp_path / "m.onnx", providers=["CPUExecutionProvider"]
    )
    labels, scores = session.run(["label", "scores"], {"X": X})
    np.testing.assert_allclose(scores, clf.decision_function(X), rtol=1e-7, atol=1e-7)
    np.testing.assert_array_equal(labels, clf.predict(X))


def test_liblinear_refuses_features(digits, tmp_path):
    clf, _ = fitted(digits, "ovr", "fourier")
    words = "must be linear in the columns of its data. Got one of features of a kernel"
    with pytest.raises(ValueError, match=words):
        write_liblinear(clf, tmp_path / "m.model")


def test_predictions_refuse_other_data(digits):
    clf, X = fitted(digits, "ovo", "fourier")
    with pytest.raises(ValueError, match="X has 3 features, but .* 64 features"):
        clf.predict(X[:, :3])
    bad = X.copy()
    for value in (np.nan, np.inf):
        bad[3, 5] = value
        for data in (bad, sparse.csr_array(bad)):
            with pytest.raises(ValueError, match="NaN|infinity"):
                clf.model_.predict(data)


def test_predictions_out_of_core(digits, tmp_path):
    clf, X = fitted(digits, "ovo", "fourier")
    np.save(tmp_path / "X.npy", X)
    found = clf.predict(open_rows(tmp_path / "X.npy"))
    np.testing.assert_array_equal(found, clf.predict(X))


def test_the_report_names_the_map(moons, tmp_path):
    pytest.importorskip("matplotlib", reason="the extra 'plot' is not installed")
    for approximation in ("nystroem", "fourier"):
        clf = SVC(rank=20, approximation=approximation, certify="exact").fit(*moons)
        write_report(tmp_path / "r.html", clf, *moons)
        page = re.sub("</?span>", "", (tmp_path / "r.html").read_text())
        assert f"rank 20 by {approximation}, error " in page
        assert ("of the trace left" in page) == (approximation == "nystroem")
        assert "With the whole one the relative gap is at most" in page


# -- bad input -------------------------------------------------------------------------

REFUSED = [
    ({"rank": 0}, "'rank' parameter of SVC must be an int in the range"),
    ({"rank": -3}, "'rank' parameter of SVC must be an int in the range"),
    ({"rank": 2.5}, "'rank' parameter of SVC must be an int in the range"),
    ({"rank": 1.0}, "'rank' parameter of SVC must be an int in the range"),
    ({"rank": True}, "'rank' parameter of SVC must be an int in the range"),
    ({"rank": "many"}, "'rank' parameter of SVC must be an int in the range"),
    ({"approximation": "magic", "rank": 5}, "must be one of 'auto', 'cholesky'"),
    ({"approximation": "eigen"}, "must be 'auto' where 'rank' is None. Got 'eigen'"),
    ({"certify": "often", "rank": 5}, "must be one of 'approximate', 'exact'"),
    ({"rank": 0.1, "approximation": "nystroem"}, "must be an int for approximation"),
    ({"rank": 1, "approximation": "fourier"}, "must be at least 2 for approximation"),
    ({"rank": 5, "kernel": "linear"}, "'rank' parameter .* None for kernel='linear'"),
    (
        {"rank": 5, "kernel": "poly", "approximation": "fourier"},
        "'kernel' parameter of SVC must be 'rbf' or 'laplacian' for approximation",
    ),
    (
        {"rank": 5, "kernel": rbf_kernel, "approximation": "fourier"},
        "'kernel' parameter of SVC must be 'rbf' or 'laplacian' for approximation",
    ),
    (
        {"rank": 500, "kernel": "poly", "approximation": "polynomial"},
        "must be 'poly' with degree=2 and coef0 >= 0 for approximation='polynomial'",
    ),
    ({**POLYNOMIAL, "rank": 5}, "must be at least 6 for approximation='polynomial'"),
    (
        {"rank": 5, "kernel": "sigmoid", "certify": "exact"},
        "must be positive semidefinite for certify='exact'. Got 'sigmoid'",
    ),
    ({"rank": 5, "solver": "irwls"}, "'solver' parameter .* solver of linear problems"),
    (
        {"rank": 5, "solver": "interior_point", "polish": True},
        "'solver' parameter .* solver of kernel problems",
    ),
    (
        {"rank": "auto", "solver": InteriorPoint()},
        "'solver' parameter .* solver of kernel problems",
    ),
    ({"polish": True}, "'polish' parameter of SVC must be False where 'rank' is None"),
    (
        {"polish": True, "rank": "auto"},
        "'polish' parameter of SVC must be False where 'rank' is 'auto'",
    ),
    ({"polish": "yes", "rank": 5}, "'polish' parameter of SVC must be one of True"),
    ({**POLYNOMIAL, "rank": "auto"}, "'rank' .* must be an int for approximation='pol"),
]


@pytest.mark.parametrize(("parameters", "words"), REFUSED)
def test_what_is_refused(moons, parameters, words):
    with pytest.raises((ValueError, TypeError), match=words) as caught:
        SVC(**parameters).fit(*moons)
    assert str(caught.value).count(". ") == 1  # what is expected, and what was found


def test_a_rank_of_a_wrong_type(moons):
    with pytest.raises(TypeError, match="'rank' parameter of SVC must be an int"):
        SVC(rank=[5]).fit(*moons)


def test_a_kernel_without_a_trace(moons):
    zeros = np.zeros((400, 400))
    with pytest.raises(ValueError, match="must have a positive trace on the rows"):
        SVC(kernel="precomputed", rank=5).fit(zeros, moons[1])


def stated_objectives(clf, X, y):
    """P of each binary problem from the statement of it: one against the rest."""
    scores = clf.decision_function(X).reshape(len(X), -1)
    classes = clf.classes_[1:] if len(clf.classes_) == 2 else clf.classes_
    signs = np.where(y[:, np.newaxis] == classes, 1.0, -1.0)
    squares = np.array([0.5 * s.w @ s.w for s in clf.solutions_])
    return squares + clf.C * np.maximum(1.0 - signs * scores, 0.0).sum(axis=0)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("approximation", ["nystroem", "cholesky", "fourier"])
def test_rows_in_files_make_a_model(moons, tmp_path, approximation, classes):
    X, y = moons
    y = np.where(X[:, 0] > 1.0, 2, y) if classes == 3 else y
    np.save(tmp_path / "X.npy", X)
    rows = open_rows(tmp_path / "X.npy")
    clf = SVC(
        rank=40, approximation=approximation, gamma=1.0, tol=1e-3, certify="exact"
    ).set_params(multi_class="ovr")
    clf.fit(rows, y)
    assert clf.status_ == "solved"
    found = [solution.certificate.primal for solution in clf.solutions_]
    np.testing.assert_allclose(found, stated_objectives(clf, X, y), rtol=1e-4)
    np.testing.assert_allclose(clf.decision_function(rows), clf.decision_function(X))
    exact = SVC(gamma=1.0, tol=1e-6, multi_class="ovr").fit(X, y)
    for bounds, one in zip(clf.exact_certificates_, exact.solutions_, strict=True):
        assert bounds.dual <= one.certificate.primal <= bounds.primal * (1 + 1e-6)


def test_polish_refuses_rows_in_files_before_the_work(moons, tmp_path, monkeypatch):
    np.save(tmp_path / "X.npy", moons[0])
    monkeypatch.setattr("widemargin.estimators.svc.approximate", None)
    words = "The 'polish' parameter of SVC must be False for rows that are not in mem"
    with pytest.raises(ValueError, match=words):
        SVC(rank=40, polish=True).fit(open_rows(tmp_path / "X.npy"), moons[1])


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_features_that_do_not_fit_in_memory_are_not_held(moons, storage):
    X, y = moons
    clf = SVC(rank=30, gamma=1.0, memory_limit=20_000).fit(storage(X), y)
    assert clf.status_ == "solved"
    found = clf.solution_.certificate.primal
    np.testing.assert_allclose(found, stated_objectives(clf, X, y)[0], rtol=1e-4)


@pytest.mark.parametrize("kernel", ["sigmoid", "precomputed"])
def test_an_indefinite_kernel_loses_what_is_negative(digits, kernel):
    """The features have positive eigenvalues only, and their problem is convex."""
    X, y = digits[0][:200], digits[1][:200] > 4
    if kernel == "precomputed":
        X = X @ X.T - 5.0 * np.eye(200)
    for approximation in ("nystroem", "cholesky", "eigen"):
        clf = SVC(kernel=kernel, rank=150, approximation=approximation).fit(X, y)
        assert clf.status_ == "solved"
        assert clf.feature_map_.rank < 150 or kernel == "sigmoid"


def test_the_rows_have_one_way_in(moons):
    """All binary problems share one map, made once."""
    X, y = moons
    y = y + 2 * (X[:, 0] > 0.5)
    made = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "widemargin.estimators.svc.approximate",
            lambda *given: made.append(approximate(*given)) or made[-1],
        )
        clf = SVC(rank=10).fit(X, y)
    assert len(made) == 1
    assert made[0].rows.shape == (400, 10)
    assert len(clf.solutions_) == 6
