"""Labels and weights of a fit: what they mean, and what is refused."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.model_selection import cross_val_score

from widemargin import SVC, SVCCV, SVR, LinearSVC, LinearSVCCV, NuSVC, NuSVR
from widemargin.estimators import labels
from widemargin.parameters import Checker


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


@pytest.mark.parametrize(
    "machine",
    [SVC(), LinearSVC(), NuSVC(nu=0.1), SVCCV(), LinearSVCCV(), SVCCV(scoring="f1")],
    ids=str,
)
@pytest.mark.parametrize("dtype", [int, float, bool])
def test_objects_that_are_numbers_can_be_scored(binary, machine, dtype):
    X, y = binary
    plain = (y > 0).astype(dtype)
    clf = machine.fit(X, plain.astype(object))
    expected = clf.score(X, plain)
    assert clf.score(X, plain.astype(object)) == expected
    assert clf.score(X, pd.Series(plain, dtype=object), np.ones(len(y))) == expected


def test_objects_that_are_numbers_can_be_validated(binary):
    X, y = binary
    objects = (y > 0).astype(int).astype(object)
    assert np.all(cross_val_score(LinearSVC(), X, objects) > 0.9)


def test_objects_of_several_kinds_are_left_to_scikit_learn():
    for given in ([None, 1], [True, 1], ["a", 1], ["a", "b"]):
        y = np.array(given, dtype=object)
        assert labels.of_objects(y) is y


NUMPY_STRINGS = np.dtypes.StringDType()


@pytest.mark.parametrize(
    ("labels", "dtype"),
    [
        (np.array(["no", "yes"], dtype=NUMPY_STRINGS), "<U3"),
        (np.array(["no", "yes"], dtype=np.dtypes.StringDType(na_object=None)), "<U3"),
        (np.array([3, 4], dtype=object), "int64"),
        (np.array([3, np.int8(4)], dtype=object), "int64"),
        (np.array([3.0, 4], dtype=object), "float64"),
        (np.array([False, True], dtype=object), "bool"),
        (np.array(["2020-01-01", "2020-01-02"], dtype="M8[D]"), "M8[D]"),
        (np.array([1, 2], dtype="m8[s]"), "m8[s]"),
        (pd.Series([3, 4], dtype="Int64"), "int64"),
        (pd.Series([False, True], dtype="boolean"), "bool"),
        (pd.Series(["no", "yes"]), object),
        (pd.Series(["no", "yes"], dtype="string"), object),
        (pd.Series(["no", "yes"], dtype="category"), object),
        (pl.Series(["no", "yes"]), "<U3"),
        (pl.Series(["no", "yes"], dtype=pl.Categorical), object),
        (pl.Series([3, 4]), "int64"),
        (["no", "yes"], "<U3"),
        ([3, 4], "int64"),
    ],
)
def test_labels_of_any_container_work(labels, dtype):
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    if isinstance(labels, list):
        y = [labels[0]] * 2 + [labels[1]] * 2
    else:
        y = labels[np.array([0, 0, 1, 1])]
    clf = LinearSVC().fit(X, y)
    assert clf.classes_.dtype == dtype
    assert list(clf.classes_) == list(np.asarray(labels))
    assert list(clf.predict(X)) == list(np.asarray(y))


NAN = float("nan")


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.array(["a", None, "b"], dtype=object), "Got None at row 1 instead"),
        (["a", "b", NAN], "Got NaN at row 2"),
        ([1, None, 2], "Got None at row 1"),
        ([1.0, 2.0, NAN], "Got NaN at row 2"),
        ([1.0, np.inf, 2.0], "Got inf at row 1"),
        (np.array([1.0, 2.0, NAN]), "a label in each row .* Got NaN at row 2"),
        (np.array([1, "NaT", 2], dtype="M8[D]"), "Got NaT at row 1"),
        (pd.Series(["a", None, "b"]), "Got NaN at row 1"),
        (pd.Series(["a", None, "b"], dtype="string"), "Got <NA> at row 1"),
        (pd.Series([1, None, 2], dtype="Int64"), "Got (NaN|<NA>) at row 1"),
        (pd.Series([True, None, False], dtype="boolean"), "Got <NA> at row 1"),
        (pd.Series(["a", None, "b"], dtype="category"), "Got NaN at row 1"),
        (pl.Series(["a", None, "b"]), "Got None at row 1"),
        (
            np.array(["a", None, "b"], dtype=np.dtypes.StringDType(na_object=None)),
            "Got None at row 1",
        ),
        (["a", 2, "b"], "labels of one kind. Got 2 at row 1, after strings, instead"),
        ([1, 2, "b"], "labels of one kind. Got 'b' at row 2, after numbers"),
        ([True, 2, False], "labels of one kind. Got 2 at row 1, after booleans"),
        ([1, (2, 3), 4], r"numbers, booleans or strings. Got \(2, 3\) at row 1"),
        ([[1], [2, 3], [4]], r"numbers, booleans or strings. Got \[1\] at row 0"),
        (
            [datetime.date(2020, 1, k) for k in (1, 2, 3)],
            r"numbers, booleans or strings. Got datetime.date\(2020, 1, 1\) at row 0",
        ),
        ([2**70, 1, 2], "numbers of at most 64 bits"),
        (np.array([b"a", b"b", b"c"]), "strings. Got an array of dtype .S1"),
        (np.array([1j, 2.0, 3.0]), "Got an array of dtype complex128"),
        (np.zeros(3, dtype="i4,f4"), "Got an array of dtype"),
        ([0.5, 1.5, 2.5], "Unknown label type: continuous"),
        ([0, 1], "'y' parameter of LinearSVC.fit must have length 3. Got length 2"),
        ([[0, 1], [1, 0], [1, 1]], "y should be a 1d array"),
        (None, "requires y to be passed, but the target y is None"),
    ],
)
def test_bad_labels(y, message):
    with pytest.raises(ValueError, match=message):
        LinearSVC().fit([[0.0], [1.0], [2.0]], y)


# -- weights ---------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_weight_is_a_number_of_rows_exactly(iris, loss):
    X, y = iris
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = LinearSVC(loss=loss, tol=1e-8).fit(X, y, sample_weight=weight)
    repeated = LinearSVC(loss=loss, tol=1e-8).fit(
        np.repeat(X, weight, axis=0), np.repeat(y, weight)
    )
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, rtol=1e-7)


@pytest.mark.parametrize("kind", [LinearSVC, SVC, LinearSVCCV, SVCCV])
def test_a_class_without_weight_is_removed_with_a_warning(iris, kind):
    X, y = iris
    said = r"^Rows of weight 0 count as removed, .* of the class\(es\) setosa: the mod"
    with pytest.warns(UserWarning, match=said):
        clf = kind().fit(X, y, sample_weight=(y != "setosa").astype(float))
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


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (-1.0, "all samples have zero or negative weights"),
        (
            [1.0] * 568 + [-1.0],
            "'sample_weight' parameter of LinearSVC.fit must be finite and nonnegative. Got -1.0 at row 568",
        ),
        ([1.0, 2.0], "'sample_weight' .* must have length 569. Got length 2"),
        (np.nan, "'sample_weight' .* must be finite"),
        (0.0, "all samples have zero or negative weights"),
        (
            ["a"] * 569,
            "'sample_weight' .* must hold real numbers. Got 'a' at row 0",
        ),
        ([1.0] * 568 + [None], "must hold real numbers. Got None at row 568"),
        (np.full(569, 1j), "must hold real numbers. Got 1j at row 0"),
        (np.ones((569, 1)), r"must be one-dimensional. Got shape \(569, 1\)"),
        ([[1.0], [2.0, 3.0]], "must be one-dimensional. Got lists of several lengths"),
    ],
)
def test_bad_weights(binary, weights, message):
    with pytest.raises(ValueError, match=message):
        LinearSVC().fit(*binary, sample_weight=weights)


@pytest.mark.parametrize("kind", [SVC, NuSVC, SVR, NuSVR])
@pytest.mark.parametrize("bad", ["NaN", "inf"])
def test_machines_that_take_negative_weights_ask_for_finite_ones(binary, kind, bad):
    X, y = binary
    weights = np.full(len(y), -1.0)
    weights[1:] = 1.0
    weights[7] = float(bad)
    said = f"of {kind.__name__}.fit must be finite. Got {bad} at row 7 instead.$"
    with pytest.raises(ValueError, match=said):
        kind().fit(X, y, sample_weight=weights)


@pytest.mark.parametrize(
    "y",
    [[3, 3, -1], [2.5, 2.5], [0.0, 1.0, 2.0, 1.0], [-2, 0, -2], [5], [4, 2, 3, -99]],
)
@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float32])
def test_labels_are_those_that_unique_finds(y, dtype):
    y = np.array(y, dtype)
    found = labels.distinct(y)
    np.testing.assert_array_equal(found, np.unique(y))
    assert found.dtype == y.dtype


def test_labels_near_each_other_may_be_far_from_zero():
    for dtype, first in ((np.int8, -128), (np.uint64, 2**64 - 256)):
        y = np.tile(np.arange(256, dtype=np.int64), 2).astype(dtype)
        y += np.array(first, dtype)
        found = labels.distinct(y)
        np.testing.assert_array_equal(found, np.unique(y))
        assert found.dtype == dtype
        known = labels.find_classes(Checker("a"), y, None)[1]
        np.testing.assert_array_equal(known, np.searchsorted(np.unique(y), y))


def test_each_row_has_the_place_of_its_class():
    for y in ([7, 2, 7, 7], ["no", "yes", "no"], [3, 1, 2, 1]):
        classes, place = labels.find_classes(Checker("a"), np.array(y), None)
        np.testing.assert_array_equal(classes[place], y)
