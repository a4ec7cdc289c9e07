"""Several classes: one against one, graphs, shapes of decision values, and ties."""

import copy
import functools
import itertools

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.svm import SVC as LibSVC

from tests.cases.pairwise import product
from widemargin import SVC, BudgetSVC, LinearSVC, load_model, open_rows, save_model

KINDS = {
    "svc": SVC,
    "linear": LinearSVC,
    "budget": functools.partial(BudgetSVC, budget=0.5),
}


def _iris():
    X, y = load_iris(return_X_y=True)
    return X, np.array(["a", "b", "c"])[y]


def _digits():
    X, y = load_digits(return_X_y=True)
    return X[:300] / 16.0, y[:300]


def _tied():
    """Three clouds around a point where each wins one of its two pairs."""
    angle = np.array([90.0, 210.0, 330.0]) * np.pi / 180.0
    centers = np.column_stack([np.cos(angle), np.sin(angle)])
    turned = np.column_stack([-np.sin(angle), np.cos(angle)])
    X = np.vstack([centers + s * t * turned for s in (0.0, 0.6) for t in (0.5, 1.0)])
    return X, np.tile([0, 1, 2], 4)


DATA = {"iris": _iris, "digits": _digits, "tied": _tied}
GRID = np.stack(np.meshgrid(*2 * [np.linspace(-1, 1, 81)]), -1).reshape(-1, 2)


def rows_of(name):
    return GRID if name == "tied" else DATA[name]()[0]


@product(name=DATA, kernel=["rbf", "linear"], shape=["ovr", "ovo"])
def test_decision_values_are_those_of_scikit_learn(name, kernel, shape):
    options = {"kernel": kernel, "gamma": 0.3, "decision_function_shape": shape}
    ours = SVC(tol=1e-7, **options).fit(*DATA[name]())
    theirs = LibSVC(tol=1e-9, **options).fit(*DATA[name]())
    found, known = (clf.decision_function(rows_of(name)) for clf in (ours, theirs))
    assert found.shape == known.shape
    near = np.abs(found - known) <= 1e-3
    # A value near zero may vote otherwise.
    assert near.mean() > (0.99 if shape == "ovr" else 1.0 - 1e-12)


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("break_ties", [False, True])
def test_ties_are_those_of_scikit_learn(name, break_ties):
    X, y = DATA[name]()
    options = {"gamma": 0.3, "break_ties": break_ties}
    ours = SVC(tol=1e-9, **options).fit(X, y)
    theirs = LibSVC(tol=1e-9, **options).fit(X, y)
    rows, pairs = rows_of(name), _pairs(ours, rows_of(name))
    scores = ours.decision_function(rows)
    apart = np.diff(np.sort(scores, axis=1)[:, -2:], axis=1).ravel()
    clear = (np.abs(pairs).min(axis=1) > 1e-4) & (apart > 1e-4)
    np.testing.assert_array_equal(
        ours.predict(rows)[clear], theirs.predict(rows)[clear]
    )
    by_score = ours.classes_[scores.argmax(axis=1)]
    if break_ties:
        np.testing.assert_array_equal(ours.predict(rows), by_score)
    elif name == "tied":
        most = np.sort(np.rint(scores), axis=1)
        tied = most[:, -1] == most[:, -2]
        assert tied.any()
        assert (ours.predict(rows) != by_score)[tied].any()
        assert (ours.predict(rows)[tied] == np.rint(scores)[tied].argmax(axis=1)).all()


def _pairs(clf, X):
    """The decisions of all pairs."""
    changed = {"decision_function_shape": "ovo", "break_ties": False}
    return copy.copy(clf).set_params(**changed).decision_function(X)


@pytest.mark.cover(1)
@product(kind=KINDS, name=DATA, shape=["ovr", "ovo"])
def test_a_graph_walks_over_the_pairs_of_one_against_one(kind, name, shape):
    X, y = DATA[name]()
    rows = rows_of(name)
    ovo = KINDS[kind](multi_class="ovo", decision_function_shape="ovo").fit(X, y)
    dag = KINDS[kind](multi_class="dag", decision_function_shape=shape).fit(X, y)
    c = len(ovo.classes_)
    values = ovo.decision_function(rows)
    order = {pair: k for k, pair in enumerate(itertools.combinations(range(c), 2))}
    expected = []
    for row in values:
        first, last = 0, c - 1
        while first < last:
            if row[order[first, last]] >= 0:
                last -= 1
            else:
                first += 1
        expected.append(first)
    np.testing.assert_array_equal(dag.predict(rows), dag.classes_[expected])
    if shape == "ovo":
        np.testing.assert_array_equal(dag.decision_function(rows), values)
    else:
        np.testing.assert_array_equal(
            dag.decision_function(rows).argmax(axis=1), expected
        )
    assert [s.status for s in dag.solutions_] == ["solved"] * len(order)
    assert dag.score(X, y) > 0.9 or name == "tied"


@pytest.mark.parametrize("multi_class", ["ovo", "dag"])
def test_linear_machines_of_pairs(multi_class, tmp_path):
    X, y = _iris()
    clf = LinearSVC(multi_class=multi_class, loss="hinge", tol=1e-7).fit(X, y)
    assert clf.coef_.shape == (3, 4)
    assert clf.intercept_.shape == (3,)
    assert clf.dual_coef_.shape == (2, len(clf.support_))
    theirs = LibSVC(kernel="linear", tol=1e-9).fit(X, y)
    np.testing.assert_allclose(clf.coef_, theirs.coef_, atol=2e-3)
    names = ["a", "b", "c"]
    for solution, (i, j) in zip(
        clf.solutions_, itertools.combinations(range(3), 2), strict=True
    ):
        chosen = np.isin(y, [names[i], names[j]])
        single = LinearSVC(loss="hinge", tol=1e-7)
        single.fit(X[chosen], y[chosen] == names[i])
        assert solution.certificate.primal == pytest.approx(
            single.solution_.certificate.primal, rel=1e-6
        )
    np.save(tmp_path / "X.npy", X)
    stored = LinearSVC(multi_class=multi_class, loss="hinge", tol=1e-7)
    stored.fit(open_rows(tmp_path / "X.npy"), y)
    np.testing.assert_allclose(stored.coef_, clf.coef_, atol=2e-3)
    np.testing.assert_array_equal(stored.predict(X), clf.predict(X))


DECIDING = [
    {"multi_class": "dag"},
    {"multi_class": "ovo", "break_ties": True},
    {"multi_class": "ovo", "decision_function_shape": "ovo"},
]


@pytest.mark.cover(1)
@pytest.mark.parametrize("options", DECIDING)
@pytest.mark.parametrize("kind", [*KINDS, "fourier"])
def test_a_model_file_decides_as_the_estimator(kind, options, tmp_path):
    X, y = _digits()
    if kind == "fourier":
        clf = SVC(rank=40, approximation="fourier", tol=1e-2, **options).fit(X, y)
    else:
        clf = KINDS[kind](tol=1e-2, **options).fit(X, y)
    save_model(clf, tmp_path / "m.wm")
    model = load_model(tmp_path / "m.wm")
    np.testing.assert_array_equal(model.decision_function(X), clf.decision_function(X))
    np.testing.assert_array_equal(model.predict(X), clf.predict(X))


def test_a_shape_counts_from_when_it_is_set():
    X, y = _iris()
    clf = SVC().fit(X, y)
    votes = clf.decision_function(X[:5])
    clf.decision_function_shape = "ovo"
    assert np.abs(clf.decision_function(X[:5]) - votes).max() > 0.1
    clf.break_ties = True
    with pytest.raises(ValueError, match="break_ties must be False when"):
        clf.predict(X)


def test_two_classes_have_one_shape():
    X, y = _iris()
    for options in DECIDING:
        clf = SVC(**options).fit(X, y == "a")
        assert clf.decision_function(X).shape == (150,)
        assert clf.model_.scheme == "binary"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"multi_class": "pairs"}, "'multi_class' .* must be one of .*'dag'"),
        (
            {"decision_function_shape": "pairs"},
            "'decision_function_shape' .* must be one of 'ovr', 'ovo'. Got 'pairs'",
        ),
        ({"break_ties": 2}, "'break_ties' parameter .* must be one of False, True"),
        (
            {"multi_class": "ovr", "decision_function_shape": "ovo"},
            "'decision_function_shape' parameter of .* must be 'ovr' where "
            "multi_class='ovr'. Got 'ovo' instead",
        ),
    ],
)
def test_bad_combinations(kind, options, words):
    clf = KINDS[kind](**({"multi_class": "ovo"} | options))
    with pytest.raises(ValueError, match=words):
        clf.fit(*_iris())
    with pytest.raises(NotFittedError):
        clf.predict(_iris()[0])
