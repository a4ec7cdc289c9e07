"""Labels by float32 kernel values: those of float64, whatever the rows are."""

import numpy as np
import pytest
from scipy import sparse

from tests.cases.pairwise import product
from widemargin import SVC, LinearSVC, as_rows
from widemargin.kernels import expansion
from widemargin.kernels.expansion import Expansion
from widemargin.models.votes import are_sure, winners
from widemargin.numerics.rounding import ValueBounds

C = 5
FORMS = {
    "binary": ("binary", 1, False),
    "ovr": ("ovr", C, False),
    "ovo": ("ovo", 10, False),
    "ties broken": ("ovo", 10, True),
    "dag": ("dag", 10, False),
}


@pytest.mark.parametrize("form", FORMS)
def test_errors_change_no_class_that_is_sure(form):
    scheme, k, break_ties = FORMS[form]
    random = np.random.default_rng(k)
    values = random.standard_normal((3000, k))
    errors = 10.0 ** random.uniform(-4, -0.5, values.shape)
    chosen = winners(values, scheme, C, break_ties)
    sure = are_sure(values, errors, scheme, C, break_ties)
    assert 0.2 < sure.mean() < 0.98
    changed = np.zeros(len(values), bool)
    for _ in range(60):
        moved = values + errors * random.choice([-1.0, 1.0], values.shape)
        changed |= winners(moved, scheme, C, break_ties) != chosen
    assert not (changed & sure).any()
    assert changed.sum() > 0.1 * (~sure).sum()


@pytest.mark.parametrize("form", FORMS)
def test_nothing_is_sure_of_what_is_no_number(form):
    scheme, k, break_ties = FORMS[form]
    for value, error in ((np.nan, 0.1), (1.0, np.nan), (1.0, np.inf), (np.inf, np.inf)):
        values, errors = np.full((2, k), value), np.full((2, k), error)
        assert not are_sure(values, errors, scheme, C, break_ties).any()


def cloud(n_classes, m=240):
    """Classes in a ring; every row is there with its mirror image."""
    random = np.random.default_rng(n_classes)
    angle = 2.0 * np.pi * np.arange(n_classes) / n_classes
    y = np.resize(np.arange(n_classes), m)
    centers = np.column_stack([np.cos(angle), np.sin(angle)])
    X = centers[y] + 0.6 * random.standard_normal((m, 2))
    return np.column_stack([X, random.random((m, 2))]), y


@product(
    kernel=["rbf", "laplacian", "poly", "sigmoid", "chi2"],
    kind=[np.asarray, sparse.csr_array],
    scheme=["binary", "ovr", "ovo", "dag"],
)
@pytest.mark.filterwarnings("ignore:The kernel is not positive semidefinite")
def test_labels_are_those_of_float64(kernel, kind, scheme, monkeypatch):
    monkeypatch.setattr(expansion, "GAIN", 0)
    X, y = cloud(2 if scheme == "binary" else 4)
    X = np.abs(X) if kernel == "chi2" else X
    multi_class = "ovo" if scheme == "binary" else scheme
    clf = SVC(kernel=kernel, gamma=0.3, tol=0.1, multi_class=multi_class)
    clf.fit(kind(X), y)
    model = clf.model_
    exact = model.kernels(kind(X))
    values, errors = model.kernels.rough(kind(X))
    assert (np.abs(values - exact) <= errors).all()
    assert np.abs(values - exact).max() > 0
    assert errors.max() < 0.1 * np.abs(exact).max()
    assert model.kernels.gains_by_float32
    found = model.decide(model.scores(as_rows(kind(X))))
    np.testing.assert_array_equal(model.predict(kind(X)), found)
    np.testing.assert_array_equal(clf.predict(kind(X)), found)


@pytest.fixture
def counted(monkeypatch):
    """How many rows were scored in float64, one number a call."""
    counts, call = [], Expansion.__call__

    def counting(self, block):
        counts.append(block.shape[0])
        return call(self, block)

    monkeypatch.setattr(Expansion, "__call__", counting)
    return counts


def test_rows_near_a_boundary_are_scored_again(counted):
    X, y = cloud(2)
    X[:, 1:] = 0.0
    clf = SVC(gamma=0.5).fit(np.vstack([X, -X]), np.append(y, 1 - y))
    clf.intercept_ = np.zeros(1)
    rows = np.zeros((300, 4))
    rows[:, 0] = np.linspace(-1, 1, 300)
    rows[100:200, 0] = np.linspace(-1e-7, 1e-7, 100)
    values = clf.decision_function(rows)
    del counted[:]
    np.testing.assert_array_equal(clf.predict(rows), (values >= 0).astype(int))
    assert 100 <= sum(counted) < 150


def test_few_rows_take_no_float32(counted, monkeypatch):
    X, y = cloud(3)
    clf = SVC(gamma=0.5).fit(X, y)
    monkeypatch.setattr(Expansion, "rough", None)
    clf.predict(X[:64])
    assert counted == [64]


def test_many_classes_of_few_vectors_take_no_float32(monkeypatch):
    X, y = cloud(40)
    clf = SVC(gamma=0.5).fit(X, y)
    monkeypatch.setattr(Expansion, "rough", None)
    assert clf.model_.kernels.suits_float32
    exact = clf.model_.decide(clf.model_.scores(as_rows(X)))
    np.testing.assert_array_equal(clf.predict(X), exact)


def test_bounds_of_groups_are_those_of_each():
    random = np.random.default_rng(0)
    rows, others = (ValueBounds(1e-7, *random.random((2, m))) for m in (5, 12))
    W = random.normal(size=(12, 3))
    W[:4, 1] = 0.0
    found = rows.sums_of_groups(others, W, np.array([4, 0, 6, 2]), 1e-6)
    assert found.shape == (4, 3, 5)
    for k, part in enumerate((slice(0, 4), slice(4, 4), slice(4, 10), slice(10, 12))):
        own = ValueBounds(others.eps, others.h[part], others.s[part])
        for c in range(3):
            alone = rows.sums(own, W[part, c], 1e-6)
            # Eps is that of all groups.
            assert (found[k, c] >= (1.0 - 1e-14) * alone).all()
            np.testing.assert_allclose(found[k, c], alone, rtol=1e-5)
    nothing = ValueBounds(1e-7, *np.zeros((2, 0)))
    assert not rows.sums_of_groups(nothing, W[:0], np.array([0]), 1e-6).any()


def test_rows_out_of_the_range_of_float32(counted):
    X, y = cloud(2)
    clf = SVC(kernel="poly", degree=1, gamma=1.0).fit(X, y)
    rows = X * 1e30
    np.testing.assert_array_equal(
        clf.predict(rows), (clf.decision_function(rows) >= 0).astype(int)
    )
    rows = X.copy()
    rows[7, 2] = np.nan
    with pytest.raises(ValueError, match="Got NaN at row 7, column 2"):
        clf.predict(as_rows(rows))


def test_a_kernel_that_float32_is_too_rough_for(counted):
    X, y = cloud(2)
    clf = SVC(gamma=1e5).fit(X, y)
    assert not clf.model_.kernels.suits_float32
    clf.predict(X)
    assert counted == [len(X)]


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_sparse_rows_alone_have_the_scores_that_they_have_together(multi_class):
    random = np.random.default_rng(0)
    X = sparse.random_array((300, 50), density=0.1, rng=random, format="csr")
    clf = LinearSVC(multi_class=multi_class, tol=0.1).fit(X, np.arange(300) % 4)
    together = clf.decision_function(X)
    for rows in ([7], [3, 3, 200], [11]):
        some = sparse.csr_array(X[rows])
        assert clf.decision_function(some).tolist() == together[rows].tolist()
        assert clf.predict(some).tolist() == clf.predict(X)[rows].tolist()
    nothing = sparse.csr_array((2, 50))
    np.testing.assert_array_equal(
        clf.decision_function(nothing), clf.decision_function(np.zeros((2, 50)))
    )
    broken = sparse.csr_array(X[[7]])
    broken.data[0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        clf.predict(broken)
