"""The kernel chi2: it joined by a row of the table and a formula, and is like the others."""

import json
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import chi2_kernel

from tests.cases.cli import refused
from tests.cases.kernels import instruction_set, matrix, on_every_simd
from tests.certificates.dyadic import Dyadic
from tests.certificates.exact import Exact, false_claims, kernel_matrix
from widemargin import (
    SVC,
    BudgetSVC,
    EnclosingBall,
    Kernel,
    Problem,
    as_rows,
    load_model,
    save_model,
    save_svmlight,
    solve,
)
from widemargin.cli import main
from widemargin.features.methods import feature_map
from widemargin.kernels.matrix import Columns
from widemargin.models.onnx import write_onnx

GAMMA = 0.4
CHI2 = Kernel("chi2", gamma=GAMMA)
NEGATIVE = r"X must hold numbers >= 0 only for the kernel 'chi2'. Got -0.5 in column 2 "
STORAGES = [np.asarray, np.asfortranarray, sparse.csr_array]


def amounts(m, n, density=0.7, seed=0):
    """Data >= 0, with zeros that meet zeros."""
    return 3.0 * np.abs(matrix(m, n, density, seed))


@pytest.fixture(scope="module")
def digits():
    """Images of 2 and 7, and of others: counts, many of them 0."""
    X, y = load_digits(return_X_y=True)
    some = np.isin(y, [2, 7])
    return X[some], np.where(y[some] == 7, 1, -1)


# -- values ----------------------------------------------------------------------------


@on_every_simd
@pytest.mark.parametrize("convert", STORAGES)
@pytest.mark.parametrize(
    ("n", "density"), [(1, 1.0), (9, 0.6), (70, 0.1), (2060, 0.02)]
)
def test_values_are_those_of_scikit_learn(simd, convert, n, density):
    X, Z = amounts(67, n, density), amounts(21, n, density, seed=1)
    Z[3], Z[5] = X[4], 0.0
    expected = chi2_kernel(X, Z, GAMMA)
    with instruction_set(simd):
        found = CHI2(convert(X), convert(Z))
        block = Columns(as_rows(convert(X)), CHI2).block(np.arange(67), np.arange(67))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert block.dtype == np.float32
    np.testing.assert_allclose(block, chi2_kernel(X, X, GAMMA), atol=1e-5)


@on_every_simd
@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e150])
def test_terms_neither_overflow_nor_vanish(simd, scale):
    X = amounts(20, 5)
    with instruction_set(simd):
        found = Kernel("chi2", gamma=GAMMA / scale)(X * scale, X * scale)
    np.testing.assert_allclose(found, chi2_kernel(X, X, GAMMA), rtol=1e-11)


def test_rows_far_from_zero_keep_their_digits():
    X = 1e8 + amounts(30, 6)
    exact = np.array(
        [float(v) for v in kernel_matrix(Kernel("chi2", gamma=1e8), X).fractions()]
    ).reshape(30, 30)
    for convert in STORAGES:
        found = Kernel("chi2", gamma=1e8)(convert(X), convert(X))
        np.testing.assert_allclose(found, exact, rtol=1e-12)


@pytest.mark.cover(2)
@pytest.mark.parametrize("convert", STORAGES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("n", "density"), [(9, 0.6), (70, 0.1), (2060, 0.02)])
def test_bounds_of_rounding_hold(convert, dtype, n, density):
    """Of sums in float64, and of the values that a solver uses, in exact numbers."""
    X = amounts(25, n, density).astype(dtype)
    columns, every = Columns(as_rows(convert(X)), CHI2), np.arange(25)
    c = np.where(every % 2, 1.0, -1.0) * np.linspace(0.1, 50.0, 25)
    K = kernel_matrix(CHI2, X)
    exact = (K @ Dyadic.of(c)).fractions()
    sums, errors = columns.bounded(every, every, c)
    for value, error, true in zip(sums, errors, exact, strict=True):
        assert abs(Fraction(value) - true) <= Fraction(error)
    assert np.all(errors <= 1e-10 * np.abs(c).sum())
    bounds, block = columns.value_bounds, columns.block(every, every)
    off = bounds.eps * (1.0 + bounds.h[:, None] + bounds.h) * bounds.s[:, None]
    off *= bounds.s
    for value, most, true in zip(block.flat, off.flat, K.fractions(), strict=True):
        assert abs(Fraction(float(value)) - true) <= Fraction(most)


# -- fits ------------------------------------------------------------------------------


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_fit_is_that_of_the_matrix(digits, convert, loss):
    X, y = digits
    options = {"C": 2.0, "loss": loss, "tol": 1e-9}
    clf = SVC(kernel="chi2", gamma=0.01, **options).fit(convert(X), y)
    given = SVC(kernel="precomputed", **options).fit(chi2_kernel(X, gamma=0.01), y)
    bounds, others = clf.solution_.certificate, given.solution_.certificate
    assert clf.status_ == given.status_ == "solved"
    assert bounds.relative_gap <= 1e-9
    assert bounds.primal == pytest.approx(others.primal, rel=3e-9)
    expected = given.decision_function(chi2_kernel(X, X, 0.01))
    np.testing.assert_allclose(clf.decision_function(convert(X)), expected, atol=1e-4)
    assert clf.score(convert(X), y) > 0.99


@pytest.mark.parametrize("word", ["scale", "auto", "mean_distance"])
def test_words_for_gamma_are_those_of_other_kernels(word):
    rows = as_rows(amounts(30, 4))
    expected = Kernel("rbf", gamma=word).resolved(rows).gamma
    assert Kernel("chi2", gamma=word).resolved(rows).gamma == expected


@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_certificates_hold_in_exact_numbers(intercept, loss, scale):
    rng = np.random.default_rng(5)
    X, C = amounts(24, 4) * scale, rng.uniform(0.1, 100.0, 24)
    y = np.where(X[:, 0] + scale * rng.normal(size=24) > scale, 1.0, -1.0)
    kernel = Kernel("chi2", gamma=GAMMA / scale)
    found = solve(Problem(X, y, C, loss, intercept, kernel=kernel), tol=1e-10)
    assert found.status.value == "solved"
    exact = Exact(X, y, C, loss, intercept, kernel)
    P, D = exact.primal(found.w, found.b), exact.dual(found.alpha)
    assert false_claims(found.certificate, P, D, tol=1e-10, status="solved") == []


@pytest.mark.parametrize("approximation", ["nystroem", "cholesky"])
def test_landmarks_make_a_fit_of_low_rank(digits, approximation):
    X, y = digits
    clf = SVC(kernel="chi2", gamma=0.01, rank=80, approximation=approximation)
    clf.set_params(certify="exact").fit(X, y)
    whole = SVC(kernel="chi2", gamma=0.01, tol=1e-6).fit(X, y).solution_.certificate
    (bounds,) = clf.exact_certificates_
    assert bounds.dual <= whole.primal * (1.0 + 1e-12)
    assert whole.dual <= bounds.primal * (1.0 + 1e-12)
    assert clf.score(X, y) > 0.98
    z = feature_map(X, Kernel("chi2", gamma=0.01), approximation, 80, random_state=0)
    K = chi2_kernel(X, gamma=0.01)
    left = 1.0 - np.square(z.transform(X)).sum() / len(X)
    assert z.trace_residual == pytest.approx(left, abs=1e-9)
    assert np.linalg.eigvalsh(K - z.transform(X) @ z.transform(X).T)[0] > -1e-9


def test_a_budget_and_a_ball(digits):
    X, y = digits
    small = BudgetSVC(budget=20, kernel="chi2", gamma=0.01).fit(X, y)
    assert len(small.support_) <= 20
    assert small.score(X, y) > 0.97
    ball = EnclosingBall(C=None, kernel="chi2", gamma=0.01, tol=1e-6).fit(X)
    given = EnclosingBall(C=None, kernel="precomputed", tol=1e-6)
    given.fit(chi2_kernel(X, gamma=0.01))
    assert ball.radius_ == pytest.approx(given.radius_, rel=1e-6)
    assert np.all(ball.predict(X) == 1)


# -- models ----------------------------------------------------------------------------


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_a_model_file_holds_it(digits, convert, tmp_path):
    X, y = digits
    clf = SVC(kernel="chi2", gamma=0.01).fit(convert(X), y)
    save_model(clf, tmp_path / "m.wm")
    model = load_model(tmp_path / "m.wm")
    assert model.kernels.kernel == Kernel("chi2", gamma=0.01)
    np.testing.assert_array_equal(
        model.decision_function(convert(X)), clf.decision_function(convert(X))
    )


def test_onnx_has_no_form_of_it(digits, tmp_path):
    pytest.importorskip("onnx")
    clf = SVC(kernel="chi2", gamma=0.01).fit(*digits)
    with pytest.raises(ValueError, match="must be one of linear, .* Got chi2 instead."):
        write_onnx(clf, tmp_path / "m.onnx")


def test_the_command_line_has_it(digits, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X, y = digits
    save_svmlight(X, y, "train.svm")
    options = ["--kernel", "chi2", "--gamma", "0.01", "--json"]
    assert main(["train", "train.svm", "m.wm", *options]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["kernel"], facts["gamma"]) == ("chi2", 0.01)
    assert main(["predict", "m.wm", "train.svm"]) == 0
    labels = np.array(capsys.readouterr().out.split(), float)
    clf = SVC(kernel="chi2", gamma=0.01).fit(sparse.csr_array(X), y)
    np.testing.assert_array_equal(labels, clf.predict(sparse.csr_array(X)))
    X = X.copy()
    X[3, 2] = -0.5
    save_svmlight(X, y, "negative.svm")
    for command in (
        ["train", "negative.svm", "n.wm", *options],
        ["predict", "m.wm", "negative.svm"],
    ):
        assert "X must hold numbers >= 0 only for the kernel" in refused(
            capsys, *command
        )


# -- what is refused -------------------------------------------------------------------


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_data_below_zero_are_refused(convert):
    X, y = amounts(40, 4), np.arange(40) % 2
    bad = X.copy()
    bad[7, 2] = -0.5
    fits = [
        SVC(kernel="chi2"),
        SVC(kernel="chi2", gamma=1.0),
        SVC(kernel="chi2", gamma=1.0, rank=10),
        BudgetSVC(kernel="chi2", budget=5),
        EnclosingBall(C=None, kernel="chi2"),
    ]
    for estimator in fits:
        with pytest.raises(ValueError, match=NEGATIVE):
            estimator.fit(convert(bad), y)
        estimator.fit(convert(X), y)
        for data in (convert(bad), convert(bad[7:8])):
            with pytest.raises(ValueError, match=NEGATIVE):
                estimator.predict(data)
    z = feature_map(X, CHI2, rank=5)
    for refused_by in (
        lambda: CHI2(convert(bad), X),
        lambda: CHI2(X, convert(bad)),
        lambda: Problem(convert(bad), np.where(y, 1.0, -1.0), kernel=CHI2),
        lambda: feature_map(convert(bad), CHI2, rank=5),
        lambda: z.transform(convert(bad)),
        lambda: z.rows(convert(bad)),
    ):
        with pytest.raises(ValueError, match=NEGATIVE):
            refused_by()


def test_random_features_are_not_of_it():
    message = "must be 'rbf' or 'laplacian' for approximation='fourier'. Got 'chi2' "
    with pytest.raises(ValueError, match=message):
        SVC(kernel="chi2", rank=10, approximation="fourier").fit([[0.0], [1.0]], [0, 1])
