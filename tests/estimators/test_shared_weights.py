"""Predictions use the weights of an estimator as they lie: nothing is copied."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris

from widemargin import SVC, LinearSVC, LinearSVCCV, LinearSVR
from widemargin.estimators import certified
from widemargin.models.decisions import Decision, Decisions, together
from widemargin.models.model import FEW, SPARSE, Model

X, y = load_iris(return_X_y=True)
SCHEMES = {
    "binary": (LinearSVC(), y == 1),
    "ovr": (LinearSVC(), y),
    "ovo": (LinearSVC(multi_class="ovo"), y),
    "kernel": (SVC(kernel="linear"), y),
    "at once": (LinearSVC(solver="batch"), y),
    "numbers": (LinearSVR(), X[:, 0]),
}


@pytest.mark.parametrize(("machine", "target"), SCHEMES.values(), ids=SCHEMES)
def test_weights_lie_as_products_with_sparse_rows_take_them(machine, target):
    machine.fit(X, target)
    W = machine.coef_.T
    assert W.flags.c_contiguous
    assert np.shares_memory(machine.model_._scorer[1], machine.coef_)
    again = pickle.loads(pickle.dumps(machine))
    assert again.coef_.T.flags.c_contiguous


@pytest.mark.parametrize("name", ["binary", "ovr", "ovo", "numbers"])
def test_predictions_do_not_read_all_weights_for_a_certificate(name, monkeypatch):
    machine, target = SCHEMES[name]
    machine.fit(X, target)
    expected = machine.predict(X)

    def refuse(estimator):
        raise AssertionError("the weights are read")

    monkeypatch.setattr(certified, "checksum_of", refuse)
    with pytest.raises(AssertionError, match="the weights are read"):
        machine.model_
    for rows in (X, X[:3], sparse.csr_array(X), sparse.csr_array(X)[:3]):
        found = machine.predict(rows)
        np.testing.assert_allclose(found, expected[: len(found)], rtol=1e-13)


def test_weights_that_change_in_place_count():
    clf = LinearSVC().fit(X, y)
    before = clf.decision_function(X)
    clf.coef_ *= 2.0
    clf.intercept_ *= 2.0
    np.testing.assert_allclose(clf.decision_function(X), 2.0 * before, rtol=1e-13)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("m", [2, FEW + 10])
def test_weights_set_by_hand_count_in_any_order(order, dtype, m):
    clf = LinearSVC().fit(X, y)
    clf.coef_ = np.array(clf.coef_[::-1], dtype, order=order)
    clf.intercept_ = [0.5, 1.0, -1.0]
    expected = X[:m] @ clf.coef_.T.astype(float) + clf.intercept_
    for rows in (X[:m], sparse.csr_array(X[:m]), sparse.csc_matrix(X[:m])):
        np.testing.assert_allclose(clf.decision_function(rows), expected, rtol=1e-13)


def test_a_search_predicts_as_its_best_machine():
    search = LinearSVCCV(Cs=2).fit(X, y)
    assert np.shares_memory(search.model_._scorer[1], search.coef_)


def test_many_entries_are_scored_block_by_block_as_few_at_once():
    clf = LinearSVC().fit(X, y)
    thin = np.where(np.abs(X) > 3.0, X, 0.0)
    times = 2 * SPARSE // thin.size + 2
    many = sparse.csr_array(np.tile(thin, (times, 1)))
    assert many.nnz > SPARSE // 2
    few = clf.decision_function(sparse.csr_array(thin))
    assert np.array_equal(clf.decision_function(many), np.tile(few, (times, 1)))


def test_sparse_rows_that_are_scored_at_once_refuse_nan():
    clf = LinearSVC().fit(X, y)
    broken = np.where(np.abs(X) > 3.0, X, 0.0)
    broken[100, 2] = np.nan
    with pytest.raises(ValueError, match="Got NaN at row 100, column 2"):
        clf.predict(sparse.csr_array(broken))


# -- decisions of a matrix -------------------------------------------------------------

W, B = np.arange(6.0).reshape(3, 2), np.array([0.5, -1.0])


def test_decisions_of_a_matrix_are_like_a_tuple_of_them():
    found = Decisions(W, B)
    assert len(found) == 2
    assert [d.b for d in found] == [0.5, -1.0]
    assert np.array_equal(found[-1].w, [1.0, 3.0, 5.0])
    assert found[:1][0].b == 0.5
    assert repr(found) == repr(tuple(found))
    with pytest.raises(IndexError):
        found[2]
    given = tuple(Decision(w, b) for w, b in zip(W.T, B.tolist(), strict=True))
    for columns in (None, np.array([2, 0])):
        for one, other in zip(
            together(found, columns), together(given, columns), strict=True
        ):
            assert np.array_equal(one, other)


def test_decisions_of_a_matrix_make_a_model():
    model = Model(np.array([0, 1]), "binary", Decisions(W[:, :1], B[:1]))
    assert model.n_features == 3
    assert model.predict([[0.0, 1.0, 1.0], [-1.0, -1.0, -1.0]]).tolist() == [1, 0]


def test_weights_and_intercepts_of_other_numbers_are_refused():
    clf = LinearSVC().fit(X, y)
    clf.intercept_ = clf.intercept_[:2]
    with pytest.raises(ValueError, match=r"Got shapes \(3, 4\) and \(2,\) instead"):
        clf.predict(X)
