"""Public methods of a model: names of columns, scores, and one row like many."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import load_digits, load_iris

from widemargin import SVC, LinearSVC, as_rows, load_model, open_rows, save_model
from widemargin.kernels.table import KERNELS
from widemargin.models.model import FEW, Decision, Model

NAMES = ["sepal length", "sepal width", "petal length", "petal width"]


def arrow(frame):
    pa = pytest.importorskip("pyarrow")
    return pa.Table.from_pandas(frame)


class Exchanged:
    """Nothing but the exchange protocol and its numbers."""

    def __init__(self, frame):
        self._frame = frame

    def __dataframe__(self):
        return self

    def column_names(self):
        return list(self._frame.columns)

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self._frame, dtype=dtype)


TABLES = {
    "pandas": lambda frame: frame,
    "polars": lambda frame: pl.DataFrame(frame.to_dict("list")),
    "arrow": arrow,
    "protocol": Exchanged,
    "rows": as_rows,
    "many": lambda frame: pd.concat([frame] * (FEW // 2)),
}


@pytest.fixture(scope="module")
def frame():
    X, y = load_iris(return_X_y=True)
    return pd.DataFrame(X, columns=NAMES), y


@pytest.fixture(scope="module", params=["linear", "rbf"])
def model(request, frame, tmp_path_factory):
    clf = LinearSVC() if request.param == "linear" else SVC()
    path = tmp_path_factory.mktemp("models") / "model.wm"
    save_model(clf.fit(*frame), path)
    return load_model(path)


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("rows", [5, 150])
def test_columns_are_matched_by_name(model, frame, kind, rows):
    X, y = frame[0][::-1][:rows], frame[1][::-1][:rows]
    table, shuffled = TABLES[kind](X), TABLES[kind](X[[NAMES[j] for j in (2, 0, 3, 1)]])
    for method in ("decision_function", "predict"):
        found, expected = (
            getattr(model, method)(shuffled),
            getattr(model, method)(table),
        )
        np.testing.assert_array_equal(found, expected)
    for method in (model.scores, lambda rows: model.scored(rows).scores):
        found, expected = method(as_rows(shuffled)), method(as_rows(table))
        np.testing.assert_array_equal(found, expected)
    if kind != "many":
        assert model.score(shuffled, y) == model.score(table, y) > 0.9


def test_and_so_are_those_of_parquet(model, frame, tmp_path):
    pytest.importorskip("pyarrow")
    frame[0][NAMES[::-1]].to_parquet(tmp_path / "x.parquet")
    rows = open_rows(tmp_path / "x.parquet")
    np.testing.assert_array_equal(model.predict(rows), model.predict(frame[0]))


REFUSED = {
    "missing": (NAMES[:3], "Got no column 'petal width' instead"),
    "unknown": ([*NAMES, "color"], "Got 'color', which it does not know instead"),
    "renamed": (
        ["a", *NAMES[1:]],
        "Got no column 'sepal length' and 'a', which it does not know instead",
    ),
    "twice": ([*NAMES, NAMES[0]], "Got 'sepal length' more than once instead"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_names_are_refused(model, case):
    names, words = REFUSED[case]
    table = pd.DataFrame(np.ones((2, len(names))), columns=names)
    calls = [model.predict, model.decision_function, lambda X: model.score(X, [0, 0])]
    calls += [lambda X: model.scores(as_rows(X)), lambda X: model.scored(as_rows(X))]
    for call in calls:
        with pytest.raises(ValueError, match=words):
            call(table)


def test_what_has_no_names_is_taken_as_it_comes(model, frame):
    X, expected = frame[0].to_numpy(), model.predict(frame[0])
    for data in (X, as_rows(X), pd.DataFrame(X), X.tolist()):
        np.testing.assert_array_equal(model.predict(data), expected)
    with pytest.raises(ValueError, match="X has 3 features, but the model expects 4"):
        model.predict(X[:, :3])


def test_what_a_model_says_of_its_data(model, frame):
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.n_features_in_ == model.n_features == 4
    assert model.feature_names_in_.tolist() == NAMES
    nameless = LinearSVC().fit(frame[0].to_numpy(), frame[1]).model_
    assert not hasattr(nameless, "feature_names_in_")
    np.testing.assert_array_equal(  # names that nobody can match
        nameless.predict(frame[0]), nameless.predict(frame[0].to_numpy())
    )


def test_score(model, frame):
    X, y = frame
    right = model.predict(X) == y
    assert model.score(X, y) == right.mean()
    weights = np.arange(150.0)
    assert model.score(X, y, weights) == pytest.approx(right @ weights / weights.sum())
    with pytest.raises(ValueError, match="y must have length 150"):
        model.score(X, y[:3])


@pytest.mark.parametrize(
    "kernel", [k for k in KERNELS if k not in ("linear", "sigmoid")]
)
def test_the_scores_of_a_row_are_the_same_alone(kernel):
    X, y = load_digits(return_X_y=True)
    clf = SVC(kernel=kernel, gamma=0.002).fit(X[:600], y[:600])
    scores = clf.decision_function(X)
    for some in (slice(3, 4), slice(5, 14), slice(0, FEW), slice(7, 8 + FEW)):
        np.testing.assert_array_equal(clf.decision_function(X[some]), scores[some])


def test_a_model_is_kept_until_an_attribute_is_another(frame):
    X, y = frame
    clf = SVC().fit(X, y)
    before, model = clf.decision_function(X), clf.model_
    assert clf.model_ is model
    with pytest.raises(ValueError, match="read-only"):
        clf.dual_coef_ *= 2.0
    clf.intercept_ = clf.intercept_ + 100.0
    assert not np.array_equal(clf.decision_function(X), before)
    clf.fit(X, y)
    np.testing.assert_array_equal(clf.decision_function(X), before)
    assert clf.model_ is not model


def test_a_decision_of_zero_speaks_for_the_first_of_a_pair():
    zero = Decision(np.zeros(2), 0.0)
    model = Model(np.arange(3), "ovo", (zero, zero, zero))
    scores = model.decision_function(np.ones((2, 2)))
    np.testing.assert_array_equal(scores, [[2.0, 1.0, 0.0]] * 2)
