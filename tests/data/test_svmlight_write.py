"""svmlight text: what is written comes back with the same bits."""

import bz2
import gzip
import itertools
import lzma
import os
import stat

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy.sparse import coo_array, csc_array, csr_array

from tests.cases.svmlight_files import assert_same_bits, in_one_folder
from widemargin.data.svmlight import load_svmlight, save_svmlight
from widemargin.data.svmlight import write as svmlight_write


@st.composite
def matrices(draw):
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    shape = draw(st.tuples(st.integers(1, 5), st.integers(1, 6)))
    values = st.floats(
        allow_nan=False, allow_infinity=False, width=np.dtype(dtype).itemsize * 8
    )
    X = draw(npst.arrays(dtype, shape, elements=values))
    stored = draw(npst.arrays(np.bool_, shape))
    return csr_array((X[stored], np.nonzero(stored)), shape=shape)


@pytest.mark.one_of(2)
@in_one_folder
@given(data=st.data(), X=matrices(), zero_based=st.booleans())
@pytest.mark.parametrize("storage", ["", ".gz", ".bz2", ".xz"])
def test_round_trip(tmp_path, storage, data, X, zero_based):
    finite = st.floats(allow_nan=False, allow_infinity=False)
    y = data.draw(npst.arrays(np.float64, X.shape[0], elements=finite))
    qid = data.draw(npst.arrays(np.int64, X.shape[0]))
    path = tmp_path / f"a.svm{storage}"
    save_svmlight(X, y, path, zero_based=zero_based, qid=qid, comment="two\nlines")
    Z, z, found_qid = load_svmlight(
        path,
        zero_based=zero_based,
        n_features=X.shape[1],
        dtype=X.dtype,
        return_qid=True,
    )
    assert_same_bits(Z.data, X.data)
    np.testing.assert_array_equal(Z.indices, X.indices)
    np.testing.assert_array_equal(Z.indptr, X.indptr)
    assert_same_bits(z, y)
    assert_same_bits(found_qid, qid)


@pytest.mark.parametrize("form", [gzip, bz2, lzma])
def test_files_are_compressed_as_their_name_says(tmp_path, form):
    suffix = {gzip: ".GZ", bz2: ".bz2", lzma: ".xz"}[form]
    save_svmlight([[1]], [2], tmp_path / f"a.svm{suffix}")
    assert form.decompress((tmp_path / f"a.svm{suffix}").read_bytes()) == b"2 1:1\n"


@pytest.mark.parametrize("room", [128, 130, 200, 1 << 20])
def test_rows_go_on_in_the_next_buffer(tmp_path, monkeypatch, room):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 9)) * (rng.random((40, 9)) < 0.7), rng.normal(size=40)
    save_svmlight(X, y, expected := tmp_path / "expected.svm")
    monkeypatch.setattr(svmlight_write, "WRITE_BYTES", room)
    monkeypatch.setattr(svmlight_write, "_PART_ENTRIES", 30)
    save_svmlight(X, y, found := tmp_path / "found.svm")
    assert found.read_bytes() == expected.read_bytes()
    save_svmlight(csr_array(X), y, found)
    assert found.read_bytes() == expected.read_bytes()
    assert_same_bits(load_svmlight(found, n_features=9)[0].toarray(), X + 0.0)


def test_the_text_that_is_written(tmp_path):
    X = [[0.1, 0, 1e300], [0, 0, 0], [-2, 3, 123456.75]]
    save_svmlight(X, [1, -1, 0.5], path := tmp_path / "a.svm", comment="a\nb")
    assert path.read_text() == (
        "# a\n# b\n1 1:0.1 3:1e+300\n-1\n0.5 1:-2 2:3 3:123456.75\n"
    )
    X32 = np.array([[0.1, 16777216]], np.float32)
    save_svmlight(X32, [2], path, zero_based=True, qid=[7])
    assert path.read_text() == "2 qid:7 0:0.1 1:16777216\n"


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        *itertools.product(
            [np.asarray, csr_array, csc_array, coo_array],
            [bool, np.int8, np.uint64, np.int64],
        ),
        (np.asarray, np.float16),
    ],
)
def test_kinds_of_matrices(tmp_path, kind, dtype):
    X = np.array([[1, 0, 1], [0, 0, 0]]).astype(dtype)
    save_svmlight(kind(X), np.array([1, 0]), tmp_path / "a.svm")
    assert load_svmlight(tmp_path / "a.svm")[0].toarray().tolist() == X.tolist()


def test_a_float32_whose_shortest_text_is_too_short(tmp_path):
    # As float64 its shortest text, 7.038531e-26, lies on the edge to the next float32.
    X = np.array([[np.float32(7.03853069e-26)]])
    assert np.float32(np.float64("7.038531e-26")) != X[0, 0]
    save_svmlight(X, [1], tmp_path / "a.svm")
    assert_same_bits(load_svmlight(tmp_path / "a.svm", dtype="float32")[0].data, X[0])


def test_strides_and_byte_orders(tmp_path):
    X = np.arange(24.0).reshape(4, 6)
    for same in (X.T.copy().T, X.astype(">f8"), np.repeat(X, 2, axis=1)[:, ::2]):
        save_svmlight(same, X[:, 1].astype(">f4"), tmp_path / "a.svm")
        Z, z = load_svmlight(tmp_path / "a.svm")
        np.testing.assert_array_equal(Z.toarray(), X)
        np.testing.assert_array_equal(z, X[:, 1])


def test_unsorted_rows_are_sorted_in_a_copy(tmp_path):
    X = csr_array((np.array([3.0, 1.0, 2.0]), [2, 0, 2], [0, 3]), shape=(1, 3))
    save_svmlight(X, [1], tmp_path / "a.svm")
    assert (tmp_path / "a.svm").read_text() == "1 1:1 3:5\n"
    assert X.data.tolist() == [3, 1, 2]
    assert X.indices.tolist() == [2, 0, 2]


def test_wide_indices_are_written(tmp_path):
    X = csr_array((np.ones(1), [2**63 - 3], [0, 1]), shape=(1, 2**63 - 1))
    save_svmlight(X, [1], tmp_path / "a.svm")
    Z, _ = load_svmlight(tmp_path / "a.svm")
    assert Z.indices.tolist() == X.indices.tolist()


ONE = np.ones((2, 2))
NAN = np.array([[1, 1], [0, np.nan]])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((NAN, [1, 2]), "'X' .* hold finite numbers. Got nan in row 1, column 1"),
        ((csr_array(NAN), [1, 2]), "'X' .* numbers. Got nan in row 1, column 1"),
        ((ONE * np.inf, [1, 2]), "'X' .* numbers. Got inf in row 0, column 0"),
        ((ONE, [1, np.nan]), "'y' .* hold finite numbers. Got nan in row 1"),
        ((ONE, [1]), r"'y' .* have shape \(2,\). Got shape \(1,\)"),
        ((ONE, ["a", "b"]), "'y' .* real numbers of at most 64 bits. Got <U1"),
        ((ONE * 1j, [1, 2]), "'X' .* real numbers of at most 64 bits. Got complex128"),
        (
            (ONE.astype(np.longdouble), [1, 2]),
            "'X' .* 64 bits. Got (longdouble|float1)",
        ),
        ((ONE[0], [1, 2]), r"'X' .* two dimensions and a row. Got shape \(2,\)"),
        ((ONE[:0], []), r"'X' .* two dimensions and a row. Got shape \(0, 2\)"),
        ((np.array([[2**53 + 1]]), [1]), r"'X' .* below 2\^53 in size. Got 90071"),
        ((ONE, [1, -(2**60)]), r"'y' .* below 2\^53 in size. Got -11529"),
    ],
)
def test_refuses_to_write(tmp_path, arguments, said):
    (tmp_path / "a.svm").write_text("old")
    with pytest.raises(ValueError, match=f"^The {said}.* instead.$"):
        save_svmlight(*arguments, tmp_path / "a.svm")
    assert (tmp_path / "a.svm").read_text() == "old"
    assert os.listdir(tmp_path) == ["a.svm"]


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ({"zero_based": "auto"}, "be one of True, False. Got 'auto'"),
        (
            {"qid": [1]},
            r"hold int64 numbers in shape \(2,\). Got int64 of shape \(1,\)",
        ),
        ({"qid": [1.0, 2.0]}, r"hold int64 numbers in shape \(2,\). Got float64"),
        ({"comment": 3}, "be a str or None. Got 3"),
    ],
)
def test_parameters_of_save(tmp_path, option, said):
    (name,) = option
    said = f"^The '{name}' parameter of save_svmlight must {said}.* instead.$"
    with pytest.raises(ValueError, match=said):
        save_svmlight(ONE, [1, 2], tmp_path / "a.svm", **option)
    assert os.listdir(tmp_path) == []


def test_a_file_is_replaced_at_once(tmp_path):
    (path := tmp_path / "a.svm").write_text("old")
    path.chmod(0o640)
    (tmp_path / "link.svm").symlink_to(path)
    save_svmlight(ONE, [1, 2], tmp_path / "link.svm")
    assert (tmp_path / "link.svm").is_symlink()
    assert path.read_text() == "1 1:1 2:1\n2 1:1 2:1\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert sorted(os.listdir(tmp_path)) == ["a.svm", "link.svm"]


def test_where_nothing_can_be_written(tmp_path):
    with pytest.raises(FileNotFoundError, match=f"^no such folder: {tmp_path}/none$"):
        save_svmlight(ONE, [1, 2], tmp_path / "none" / "a.svm")
    os.mkfifo(tmp_path / "pipe")
    for path, found in ((tmp_path, "directory"), (tmp_path / "pipe", "pipe or device")):
        message = f"^expected a file, found a {found}: {path}$"
        with pytest.raises((ValueError, OSError), match=message):
            save_svmlight(ONE, [1, 2], path)
