"""SVC with a rank: maps, models, rows in files, bad input."""

import dataclasses
import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel

from tests.cases.approximate import (  # noqa: F401
    LANDMARKS,
    LOSSES,
    METHODS,
    POLYNOMIAL,
    digits_data,
    moons_data,
    several,
)
from tests.cases.kernel_reference import objectives
from tests.cases.pairwise import checks_by_turns
from widemargin import SVC, SVR, LinearSVC, NuSVC, open_rows
from widemargin.estimators.low_rank import approximate
from widemargin.estimators.plans import advised
from widemargin.features.methods import feature_map
from widemargin.solution import Status
from widemargin.solvers import InteriorPoint


@checks_by_turns(
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


@pytest.mark.cover(1)
@pytest.mark.parametrize("scheme", ["ovo", "ovr"])
@pytest.mark.parametrize("kernel", ["rbf", "precomputed", "callable"])
def test_a_full_rank_is_the_exact_machine(digits, scheme, kernel):
    X, y = digits[0][:90], digits[1][:90] % 4
    given = kernel
    if kernel == "callable":
        given = rbf_kernel
    if kernel == "precomputed":
        X = rbf_kernel(X, gamma=1.0 / 64)
    weight = np.where(np.arange(90) % 7 == 0, 0.0, 1.0 + np.arange(90) % 3)
    options = {"kernel": given, "gamma": 1.0 / 64, "multi_class": scheme, "tol": 1e-8}
    exact = SVC(**options).fit(X, y, weight)
    for approximation in LANDMARKS:
        low = SVC(**options, rank=90, approximation=approximation, certify="exact")
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


NO_OTHER = "no other of its landmarks adds anything above rounding"


@pytest.mark.parametrize(
    ("rank", "approximation", "said"),
    [
        (200, "nystroem", rf"; rank \d\d instead of 200, as {NO_OTHER}"),
        (200, "cholesky", "; rank 50 instead of 200, as a higher one would add"),
        (200, "eigen", "; rank 50 instead of 200, as a higher one would add nothing"),
        (21, "fourier", "; rank 20 instead of 21, as its features come in pairs"),
    ],
)
@pytest.mark.parametrize("classes", [2, 3])
def test_a_rank_that_is_lowered_is_told(moons, rank, approximation, said, classes):
    X, y = np.tile(moons[0][:50], (4, 1)), np.arange(200) % 50 % classes
    clf = SVC(gamma=5.0, rank=rank, approximation=approximation).fit(X, y)
    assert clf.feature_map_.rank < rank
    assert all(re.search(said, one.reason) for one in clf.solutions_)
    assert re.search(said, str(clf.solution_))
    clf = SVC(gamma=5.0, rank=10, approximation=approximation).fit(*moons)
    assert "instead of" not in str(clf.solution_)


def test_a_rank_of_more_than_all_rows_is_told(moons):
    X, y = moons
    clf = SVC(gamma=50.0, rank=60).fit(X[:40], y[:40])
    assert f"rank 40 instead of 60, as {NO_OTHER}" in clf.solution_.reason


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
    monkeypatch.setattr("widemargin.estimators.low_rank.MANY", 1)
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
    assert set(vars(clf)) == set(vars(SVC().fit(*moons)))


def test_a_time_limit_and_the_callback(moons):
    X, y = moons
    with pytest.warns(
        UserWarning, match="time_limit, .* lower C. Or take a lower rank"
    ):
        clf = SVC(rank=30, time_limit=1e-9).fit(X, y)
    assert clf.status_ == "time_limit"
    assert not clf.dual_coef_.any()
    steps = []
    SVC(rank=30, callback=lambda step: steps.append(step.primal)).fit(X, y)
    assert steps


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("storage", ["memory", "files"])
def test_the_time_is_that_of_the_whole_fit(digits, classes, storage, tmp_path):
    """Of the map, and of the solvers one after the other."""
    X, y = digits
    if storage == "files":
        np.save(tmp_path / "X.npy", X)
        X = open_rows(tmp_path / "X.npy")
    clf = SVC(rank=30, certify="exact").fit(X, y % classes)
    solving = sum(solution.seconds for solution in clf.solutions_)
    assert clf.feature_map_.seconds > 0
    assert clf.seconds_ > clf.feature_map_.seconds + solving


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
    ({"kernel": "sigmoid", "certify": "exact"}, "must be positive semidefinite for"),
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
    (
        {"polish": np.array([1]), "rank": 5},
        r"'polish' .* must be one of True, False. Got array\(\[1\]\) instead.$",
    ),
    (
        {"polish": np.eye(30, dtype=int)},
        r"'polish' .* of True, False. Got array.* … instead.$",
    ),
    ({"certify": np.array(["exact"] * 3)}, "must be one of 'approximate', 'exact'"),
    ({**POLYNOMIAL, "rank": "auto"}, "'rank' .* must be an int for approximation='pol"),
]


@pytest.mark.parametrize(("parameters", "words"), REFUSED)
def test_what_is_refused(moons, parameters, words):
    with pytest.raises((ValueError, TypeError), match=words) as caught:
        SVC(**parameters).fit(*moons)
    assert str(caught.value).count(". ") == 1  # what is expected, and what was found


def test_errors_of_a_callable_kernel_are_its_own(moons):
    def kernel(X, Z):
        raise ValueError("The 'metric' parameter of pairwise_kernels must be a string.")

    with pytest.raises(ValueError, match="'metric' parameter of pairwise_kernels must"):
        SVC(kernel=kernel, rank=5).fit(*moons)


def test_features_whose_rank_is_fixed_have_no_advice_to_lower_it(moons):
    solutions = SVC(**POLYNOMIAL).fit(*moons).solutions_
    late = dataclasses.replace(solutions[0], status=Status.TIME_LIMIT)
    assert advised(late, "polynomial") == late
    assert advised(late, "nystroem").message.endswith(" Or take a lower rank.")


def test_a_rank_of_a_wrong_type(moons):
    with pytest.raises(TypeError, match="'rank' parameter of SVC must be an int"):
        SVC(rank=[5]).fit(*moons)


def test_a_kernel_without_a_trace(moons):
    zeros = np.zeros((400, 400))
    words = "The 'kernel' parameter of SVC must have a positive trace on the rows"
    with pytest.raises(ValueError, match=words):
        SVC(kernel="precomputed", rank=5).fit(zeros, moons[1])


@pytest.mark.parametrize("approximation", ["eigen", "cholesky", "nystroem"])
def test_what_a_map_cannot_do_is_told_of_the_parameters_of_svc(
    moons, tmp_path, approximation
):
    X, y = moons
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "K.npy", X @ X.T)
    svc = SVC(rank=30, approximation=approximation)
    if approximation != "nystroem":
        words = "'memory_limit' parameter of SVC must be at least .* Got 20,000 inst"
        with pytest.raises(ValueError, match=words):
            svc.set_params(memory_limit=20_000).fit(X, y)
    svc.set_params(kernel="precomputed", memory_limit=None)
    words = "'X' parameter of SVC.fit must be in memory for kernel='precomputed'. Got "
    with pytest.raises(ValueError, match=words):
        svc.fit(open_rows(tmp_path / "K.npy"), y)
    if approximation == "eigen":
        words = "'X' .* of SVC.fit must be in memory for approximation='eigen'. Got r"
        with pytest.raises(ValueError, match=words):
            svc.set_params(kernel="rbf").fit(open_rows(tmp_path / "X.npy"), y)
        for kind in (SVR, NuSVC):
            words = f"'X' .* of {kind.__name__}.fit must be in memory for approx"
            with pytest.raises(ValueError, match=words):
                kind(rank=5, approximation="eigen").fit(
                    open_rows(tmp_path / "X.npy"), y
                )


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
    monkeypatch.setattr("widemargin.estimators.plans.approximate", None)
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
            "widemargin.estimators.plans.approximate",
            lambda *given: made.append(approximate(*given)) or made[-1],
        )
        clf = SVC(rank=10).fit(X, y)
    assert len(made) == 1
    assert made[0].rows.shape == (400, 10)
    assert len(clf.solutions_) == 6
