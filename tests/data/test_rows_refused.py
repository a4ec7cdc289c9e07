"""What rows refuse, and in which words."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from tests.cases.rows import Shifted, on_some_storages, ones
from tests.conftest import STORAGES
from widemargin import as_rows

# -- bad arguments ---------------------------------------------------------------------

NO_MATRIX = r"X must be a matrix of real numbers \(m rows, n columns\). Got "


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones(3), NO_MATRIX + r"dtype float64 in 1 dimension\(s\) instead."),
        (np.ones((1, 2, 3)), NO_MATRIX + r"dtype float64 in 3 dimension\(s\) instead."),
        (3.0, NO_MATRIX + r"dtype float64 in 0 dimension\(s\) instead."),
        (None, NO_MATRIX + r"dtype object in 0 dimension\(s\) instead."),
        (np.ones((2, 2), complex), NO_MATRIX + "dtype complex128 in 2"),
        (np.array([["a", "b"]]), NO_MATRIX + "dtype <U1 in 2"),
        (np.zeros((1, 1), "M8[s]"), NO_MATRIX + r"dtype datetime64\[s\] in 2"),
        (sparse.coo_array(np.ones(3)), NO_MATRIX + "dtype float64 in 1"),
        (sparse.csr_array([[1j]]), NO_MATRIX + "dtype complex128 in 2"),
        ([[1.0, 2.0], [3.0]], NO_MATRIX + "rows of different lengths instead."),
        (
            pd.DataFrame({"a": ["x"]}).astype(object),
            NO_MATRIX + "an entry that is no number",
        ),
        (pd.DataFrame({"a": [pd.NA]}), NO_MATRIX + "an entry that is no number"),
        (np.array([[1j]], dtype=object), NO_MATRIX + "an entry that is no number"),
        (np.ones((0, 3)), r"at least one row and one column. Got shape \(0, 3\)"),
        (
            sparse.csr_array((3, 0)),
            r"at least one row and one column. Got shape \(3, 0\)",
        ),
        (
            np.ma.masked_array([[1.0, 2.0]], [[True, False]]),
            "X must have no masked entries",
        ),
    ],
)
def test_what_is_no_matrix_is_refused(X, message):
    with pytest.raises(ValueError, match=message):
        as_rows(X)


def broken(format="csr", **arrays):
    """The 3 x 2 matrix [[1, 0], [0, 2], [3, 4]], with some of its arrays replaced."""
    X = sparse.csr_array([[1.0, 0.0], [0.0, 2.0], [3.0, 4.0]]).asformat(format)
    for name, array in arrays.items():
        setattr(X, name, np.array(array))
    return X


@pytest.mark.parametrize(
    ("X", "got"),
    [
        (broken(indices=[0, 2, 0, 1]), "index 2 at entry 1"),
        (broken(indices=[0, 1, -1, 1]), "index -1 at entry 2"),
        (broken(indices=np.int32([0, 1, 0, -(2**31)])), "index -2147483648 at entry 3"),
        (
            broken(indices=np.uint64([0, 1, 0, 2**63])),
            "index 9223372036854775808 at entry",
        ),
        (broken(indices=np.int16([0, 1, 0, -3])), "index -3 at entry 3"),
        (broken(indices=np.array([0, 1, 0, 2], dtype=">i4")), "index 2 at entry 3"),
        (broken(indices=[0, 1, 0]), "3 indices for 4 entries"),
        (broken(data=[1.0, 2.0]), "4 indices for 2 entries"),
        (broken(indices=[0.0, 1.0, 0.0, 1.0]), "indices of dtype int32 and float64"),
        (broken(indices=[[0, 1], [0, 1]]), "4 indices for 4 entries"),
        (
            broken(indptr=[0, 3, 2, 4]),
            "an indptr that does not rise from 0 to at most 4",
        ),
        (
            broken(indptr=[0, 1, 2, 5]),
            "an indptr that does not rise from 0 to at most 4",
        ),
        (
            broken(indptr=[1, 1, 2, 4]),
            "an indptr that does not rise from 0 to at most 4",
        ),
        (
            broken(indptr=[-5, 1, 2, 4]),
            "an indptr that does not rise from 0 to at most 4",
        ),
        (
            broken(indptr=[0, -9, 2, 4]),
            "an indptr that does not rise from 0 to at most 4",
        ),
        (broken(indptr=np.uint32([0, 3, 2, 4])), "an indptr that does not rise"),
        (broken(indptr=[0, 1, 4]), r"an indptr of shape \(3,\)"),
        (broken(indptr=[0, 1, 2, 3, 4]), r"an indptr of shape \(5,\)"),
        (broken("csc", indices=[0, 2, 1, 3]), "index 3 at entry 3"),
        (broken("csc", indptr=[0, 9, 4]), "an indptr that does not rise"),
        (broken("bsr", indices=[0, 2, 0, 7]), "index 2 at entry 1"),
    ],
)
def test_broken_sparse_matrices_are_refused(X, got):
    message = f"X must be a valid {X.format.upper()} matrix of shape .3, 2.. Got {got}"
    with pytest.raises(ValueError, match=message):
        as_rows(X)


def test_broken_coordinates_are_refused():
    X = sparse.coo_array(np.eye(2))
    X.coords = (np.array([0, 7]), np.array([0, 1]))
    with pytest.raises(ValueError, match="index 7 exceeds matrix dimension 2"):
        as_rows(X)


@on_some_storages
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda r: r.matvec(np.ones(3)),
            r"W must have length 2. Got shape \(3,\) instead.",
        ),
        (lambda r: r.matvec(1.0), r"W must have length 2. Got shape \(\) instead."),
        (
            lambda r: r.matvec(np.ones((2, 1, 1))),
            r"W must have length 2. Got shape \(2, 1, 1\)",
        ),
        (lambda r: r.matvec([1j, 0]), "W must hold real numbers. Got dtype complex128"),
        (lambda r: r.matvec(["a", "b"]), "W must hold real numbers. Got dtype <U1"),
        (
            lambda r: r.rmatvec(np.ones(2)),
            r"V must have length 5. Got shape \(2,\) instead.",
        ),
        (
            lambda r: r.gram(np.ones(2)),
            r"d must have length 5. Got shape \(2,\) instead.",
        ),
        (
            lambda r: r.gram(np.ones((5, 1))),
            r"d must have length 5. Got shape \(5, 1\)",
        ),
        (
            lambda r: r.gram([1, 2, -3, 4, 5]),
            "d must be nonnegative. Got -3.0 instead.",
        ),
        (
            lambda r: r.gram([1, 2, np.nan, 4, 5]),
            "d must be nonnegative. Got nan instead.",
        ),
        (
            lambda r: r.gram(np.ones(5), np.ones(5)),
            "active must hold bools. Got dtype float64",
        ),
        (
            lambda r: r.gram(np.ones(5), [True]),
            r"active must have length 5. Got shape \(1,\)",
        ),
        (
            lambda r: r.signed([1, -1, 1]),
            r"y must have length 5. Got shape \(3,\) instead.",
        ),
        (
            lambda r: r.signed(np.ones((5, 1))),
            r"y must have length 5. Got shape \(5, 1\)",
        ),
        (
            lambda r: r.signed([1, -1, 0, 1, 1]),
            r"y must hold \+1 and -1 only. Got 0.0 instead.",
        ),
        (lambda r: r.signed([1, -1, np.nan, 1, 1]), "y must hold .* Got nan instead."),
        (lambda r: r.select([1, 0, 1, 1, 0]), "mask must hold bools. Got dtype int64"),
        (
            lambda r: r.select([True, False]),
            r"mask must have length 5. Got shape \(2,\)",
        ),
        (
            lambda r: r.select(np.ones((5, 1), bool)),
            r"mask must have length 5. Got shape",
        ),
        (lambda r: r.select(np.zeros(5, bool)), "mask must select at least one row."),
        (
            lambda r: r.take([0, 5]),
            r"index must be in the range \[0, 5\). Got 5 instead.",
        ),
        (
            lambda r: r.take([-1]),
            r"\[0, 5\). Got -1 instead. Rows are not counted from the end.",
        ),
        (
            lambda r: r.take(3),
            r"index must be a vector of integers. Got .* in 0 dimension",
        ),
        (
            lambda r: r.take([0.0]),
            "index must be a vector of integers. Got dtype float64",
        ),
        (
            lambda r: r.take([True, False]),
            r"Got dtype bool .* Of a mask give numpy.flatnonzero\(mask\)",
        ),
    ],
)
@pytest.mark.parametrize("view", ["plain", "selected"])
def test_bad_arguments_are_refused(storage, view, call, message):
    with pytest.raises(ValueError, match=message):
        call(ones(storage, view, 5))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_jobs": 0}, "'n_jobs' parameter of as_rows must be a nonzero int or None"),
        (
            {"n_jobs": 1.5},
            "'n_jobs' parameter of as_rows must be a nonzero int or None",
        ),
        (
            {"memory_limit": 0},
            "'memory_limit' parameter of as_rows must be an int in the",
        ),
        (
            {"memory_limit": -5},
            "'memory_limit' parameter of as_rows must be an int in the",
        ),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        as_rows(np.ones((2, 2)), **options)


def test_the_mask_and_the_signs_of_a_view_are_its_own():
    X = np.arange(8.0).reshape(4, 2)
    mask, y = np.array([True, False, True, True]), np.array([1.0, -1.0, 1.0, 1.0])
    half, A = as_rows(X).select(mask), as_rows(X).signed(y, intercept=False)
    mask[:], y[:] = False, 0.0
    np.testing.assert_array_equal(half.matvec([1.0, 1.0]), [1.0, 9.0, 13.0])
    np.testing.assert_array_equal(half.take([1, 2]), X[[2, 3]])
    np.testing.assert_array_equal(A.matvec([1.0, 1.0]), [1.0, -5.0, 9.0, 13.0])
    np.testing.assert_array_equal(A.take([1]), -X[[1]])


@pytest.mark.parametrize("convert", [np.array, sparse.csr_array])
def test_a_block_refuses_a_vector_of_another_length(convert):
    # The C++ core takes the length for granted.
    rows = as_rows(convert(np.ones((4, 3))))
    for view in (
        rows,
        rows.signed(np.ones(4)),
        rows.signed(np.ones(4), intercept=False),
    ):
        with pytest.raises((ValueError, IndexError)):
            view.sweep(lambda block, part: block @ np.ones(1))
        with pytest.raises(ValueError, match=r"."):
            view.sweep(lambda block, part: block.T @ np.ones(2))


# -- NaN and infinity ------------------------------------------------------------------

FLOATS = [s for s in STORAGES if s.exact(np.full((1, 1), 0.5)) == 0.5]


@pytest.mark.cover(2)
@pytest.mark.parametrize("storage", FLOATS, ids=lambda s: s.name)
@pytest.mark.parametrize("memory_limit", [None, 1])
@pytest.mark.parametrize(
    ("value", "name"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "-infinity")]
)
def test_nan_and_infinity_are_found(storage, memory_limit, value, name):
    X = np.ones((9, 4))
    X[6, 2] = X[6, 3] = X[8, 0] = value
    column = "(2|'x2')"  # by its name where the data have names
    found = (
        f"X must hold finite numbers .* Got {name} at row 6, column {column} instead."
    )
    rows = storage.make(X.copy(), memory_limit=memory_limit)
    y = np.array([1.0] * 6 + [-1.0] * 3)
    even = np.arange(9) % 2 == 0
    for view in (
        rows,
        rows.signed(y),
        rows.mapped(Shifted(np.ones(4))),
        rows.select(even),  # row 3 of the selection is row 6 of the data
        rows.signed(y).select(even),
        rows.select(even).signed(y[even]),
        rows.select(even).select(np.arange(5) > 1),
        rows.select(even).mapped(Shifted(np.ones(4))),
    ):
        for refuse in (view.refuse_nonfinite, lambda view=view: view.moments):
            with pytest.raises(ValueError, match=found):
                refuse()
    finite = rows.select(np.arange(9) % 4 == 1)
    finite.refuse_nonfinite()
    np.testing.assert_array_equal(finite.moments.mean, np.ones(4))


@on_some_storages
def test_what_a_feature_map_breaks_is_its_own(storage):
    rows = storage.make(np.ones((9, 4))).select(np.arange(9) > 3)
    broken = rows.mapped(Shifted(np.array([0.0, np.inf, 0.0, 0.0])))
    found = "X after its feature map must hold finite .* -infinity at row 4, column 1"
    for view in (broken, broken.signed(np.ones(5))):
        with pytest.raises(ValueError, match=found):
            view.refuse_nonfinite()


@pytest.mark.parametrize("convert", [np.array, sparse.csr_array])
def test_numbers_with_infinite_squares_are_refused(convert):
    X = convert([[1.0, 1e200], [1.0, 1.0]])
    with pytest.raises(ValueError, match="squares are finite. Column 1 is too large."):
        as_rows(X).moments
    X = convert([[1e308, 1.0], [1e308, 1.0]])
    with pytest.raises(ValueError, match="squares are finite. Column 0 is too large."):
        as_rows(X).moments
