"""svmlight text: what is read, what is refused and in which words, what is written."""

import bz2
import gzip
import io
import itertools
import lzma
import os
import signal
import stat
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy.sparse import coo_array, csc_array, csr_array
from sklearn.datasets import load_svmlight_file

from widemargin.data import _svmlight_text, _svmlight_write
from widemargin.data.svmlight import load_svmlight, save_svmlight

pytestmark = pytest.mark.filterwarnings("error")

STORAGES = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}
in_one_folder = settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


# Small slices put a cut at every line end, one size or another.
SIZES = [1, 7, 16, 4 << 20]


@pytest.fixture(params=[1, 2], ids=["1job", "2jobs"])
def n_jobs(request):
    return request.param


@pytest.fixture(params=SIZES)
def slice_bytes(request, monkeypatch):
    monkeypatch.setattr(_svmlight_text, "SLICE_BYTES", request.param)
    return request.param


def put(folder, text, name="a.svm"):
    """A file that holds `text`, compressed as its name says."""
    path = folder / name
    text = text.encode() if isinstance(text, str) else text
    path.write_bytes(STORAGES.get(path.suffix, bytes)(text))
    return path


def entries(X):
    """The stored entries of each row."""
    return [
        dict(zip(row.indices.tolist(), row.data.tolist(), strict=True))
        for row in (X[[i]] for i in range(X.shape[0]))
    ]


def assert_same_bits(found, expected):
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    np.testing.assert_array_equal(
        np.ascontiguousarray(found).view(np.uint8),
        np.ascontiguousarray(expected).view(np.uint8),
    )


# ----------------------------------------------------------------------------- reading

# text: its rows (column: value) and targets
TEXTS = {
    "plain": ("1 1:2 3:4\n-1 2:0.5\n", [{0: 2, 2: 4}, {1: 0.5}], [1, -1]),
    "no final newline": ("1 1:2\n2 1:3", [{0: 2}, {0: 3}], [1, 2]),
    "no final newline, no entry": ("1 1:2\n2", [{0: 2}, {}], [1, 2]),
    "crlf": ("1 1:2\r\n2 1:3\r\n", [{0: 2}, {0: 3}], [1, 2]),
    "final carriage return": ("1 1:2\r", [{0: 2}], [1]),
    "blank lines": ("\n1 1:2\n \t\n\r\n2 1:3\n\n", [{0: 2}, {0: 3}], [1, 2]),
    "blanks": (" 1\t1:2  3:4 \t\n2 \n", [{0: 2, 2: 4}, {}], [1, 2]),
    "comments": ("# 9:9\n1 1:2 # 3:4\n2#5:6\n3 1:7#\n", [{0: 2}, {}, {0: 7}], [1, 2, 3]),
    "comment at the end": ("1 1:2\n# no line feed", [{0: 2}], [1]),
    "carriage return in a comment": ("1 1:2 # a\rb\n", [{0: 2}], [1]),
    "byte-order mark": ("\ufeff1 1:2\n", [{0: 2}], [1]),
    "byte-order mark, blank line": ("\ufeff\n1 1:2\n", [{0: 2}], [1]),
    "zero based": ("1 0:2 3:4\n2 1:5\n", [{0: 2, 3: 4}, {1: 5}], [1, 2]),
    "zero met late": ("1 2:2\n2 1:5\n3 0:1\n", [{2: 2}, {1: 5}, {0: 1}], [1, 2, 3]),
    "explicit zeros": ("1 1:0 2:-0.0\n", [{0: 0.0, 1: -0.0}], [1]),
    "only targets": ("1\n-1\n0.5\n", [{}, {}, {}], [1, -1, 0.5]),
    "real targets": ("-1.5e-3 1:1\n+.25 1:1\n", [{0: 1}, {0: 1}], [-1.5e-3, 0.25]),
    "value forms": (
        "1 1:1 2:-1 3:+1 4:1. 5:.5 6:1e5 7:1E-05 8:-.5e+3 9:007\n",
        [{0: 1, 1: -1, 2: 1, 3: 1, 4: 0.5, 5: 1e5, 6: 1e-5, 7: -500, 8: 7}],
        [1],
    ),
    "index with zeros": ("1 0000000000000000000000000007:1\n", [{6: 1}], [1]),
    "qid": ("1 qid:3 1:2\n2  qid:-4\n3 qid:5#\n", [{0: 2}, {}, {}], [1, 2, 3]),
    "tiny values": ("1 1:1e-999 2:4.9e-324 3:-1e-999\n", [{0: 0, 1: 5e-324, 2: -0.0}], [1]),
}


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("name", TEXTS)
def test_reads(tmp_path, name, storage, slice_bytes, n_jobs):
    text, rows, targets = TEXTS[name]
    X, y = load_svmlight(put(tmp_path, text, "a.svm" + storage), n_jobs=n_jobs)
    assert repr(entries(X)) == repr([{j: float(v) for j, v in r.items()} for r in rows])
    assert y.tolist() == targets
    assert isinstance(X, csr_array)
    assert X.dtype == y.dtype == np.float64
    assert X.indices.dtype == X.indptr.dtype == np.int32
    assert X.shape == (len(rows), max((j + 1 for row in rows for j in row), default=0))
    assert X.has_canonical_format
    X.check_format(full_check=True)


number_text = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-1e6, 1e6).map("{:.6f}".format),
    st.from_regex(r"[+-]?([0-9]{1,25}\.?[0-9]{0,25}|\.[0-9]{1,25})", fullmatch=True),
    st.from_regex(r"[+-]?[0-9]{1,20}(\.[0-9]{0,5})?[eE][+-]?[0-9]{1,2}", fullmatch=True),
)


@in_one_folder
@given(numbers=st.lists(number_text, min_size=1, max_size=50))
@example(["9007199254740993", "9007199254740993.00000000000000000000000000001"])
@example(["2.2250738585072011e-308", "1.7976931348623157e308", "8.5e-324"])
@example(["4503599627370497.5", "4503599627370496.5", "0.500000000000000166533453694"])
@example(["123456789" * 30, "0." + "0" * 300 + "123456789", "1" + "0" * 30 + "e-30"])
def test_numbers_are_those_of_python(tmp_path, numbers):
    path = put(tmp_path, "".join(f"{text} 1:{text}\n" for text in numbers))
    X, y = load_svmlight(path)
    expected = np.array([float(text) for text in numbers])
    assert_same_bits(X.data, expected)
    assert_same_bits(y, expected)


@in_one_folder
@given(numbers=st.lists(st.floats(-3e38, 3e38).map(repr), min_size=1))
def test_float32_is_the_rounded_float64(tmp_path, numbers):
    path = put(tmp_path, "".join(f"1 1:{text}\n" for text in numbers))
    X, y = load_svmlight(path, dtype="float32")
    assert_same_bits(X.data, np.array(numbers, np.float64).astype(np.float32))
    assert y.dtype == np.float64


def random_text(rng, n_rows):
    """Valid text in every form that scikit-learn reads too."""
    lines = []
    for _ in range(n_rows):
        columns = np.flatnonzero(rng.random(30) < rng.random()) + 1
        values = rng.normal(size=columns.size) * 10.0 ** rng.integers(-8, 8)
        form = [repr, "{:.6f}".format, "{:.0f}".format, "{:e}".format][rng.integers(4)]
        row = [f"{j}:{form(v)}" for j, v in zip(columns, values.tolist(), strict=True)]
        end = ["\n", "\r\n", " \n", " # 1:2\n", "\n\n"][rng.integers(5)]
        lines.append(" ".join([f"{rng.integers(-1, 2)}", *row]) + end)
    return "".join(lines)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("zero_based", [True, False, "auto"])
def test_agrees_with_scikit_learn(tmp_path, seed, zero_based, slice_bytes):
    text = random_text(np.random.default_rng(seed), 50)
    X, y = load_svmlight(put(tmp_path, text), zero_based=zero_based, n_features=31)
    Z, z = load_svmlight_file(
        io.BytesIO(text.encode()), zero_based=zero_based, n_features=31
    )
    np.testing.assert_array_equal(X.toarray(), Z.toarray())
    np.testing.assert_array_equal(y, z)


@pytest.mark.parametrize("storage", ["", ".gz"])
def test_the_base_of_indices(tmp_path, storage):
    path = put(tmp_path, "1 1:5 2:6\n", "a.svm" + storage)
    assert load_svmlight(path)[0].toarray().tolist() == [[5, 6]]
    assert load_svmlight(path, zero_based=False)[0].toarray().tolist() == [[5, 6]]
    assert load_svmlight(path, zero_based=True)[0].toarray().tolist() == [[0, 5, 6]]


def test_n_features_adds_empty_columns(tmp_path):
    path = put(tmp_path, "1 2:5\n")
    assert load_svmlight(path, n_features=4)[0].shape == (1, 4)
    assert load_svmlight(path, n_features=2)[0].shape == (1, 2)
    assert load_svmlight(path, n_features=4, zero_based=True)[0].shape == (1, 4)
    X, _ = load_svmlight(path, n_features=2**40)
    assert X.shape == (1, 2**40)
    assert X.indices.dtype == np.int64


@pytest.mark.parametrize("storage", ["", ".gz"])
@pytest.mark.parametrize("zero", ["", "9 0:1\n"])
def test_indices_grow_to_int64(tmp_path, storage, zero, slice_bytes, n_jobs):
    biggest = 2**63 - 2 if zero else 2**63 - 1
    for largest in (2**31 - 2, 2**31 - 1, 2**31, 2**40, biggest):
        path = put(tmp_path, f"{zero}1 1:5\n2 3:1 {largest}:2\n", "a.svm" + storage)
        X, _ = load_svmlight(path, n_jobs=n_jobs)
        assert X.indices[-1] == largest - (not zero)
        assert X.shape[1] == X.indices[-1] + 1
        needs_int64 = X.shape[1] > 2**31 - 1
        assert X.indices.dtype == (np.int64 if needs_int64 else np.int32)
        assert X.indices.dtype == X.indptr.dtype


@pytest.mark.parametrize("storage", STORAGES)
def test_qid_is_returned(tmp_path, storage, slice_bytes, n_jobs):
    text = f"1 qid:3 1:2\n2\tqid:-4\n3 qid:{2**63 - 1}# end\n"
    path = put(tmp_path, text, "a.svm" + storage)
    X, y, qid = load_svmlight(path, return_qid=True, n_jobs=n_jobs)
    assert qid.dtype == np.int64
    assert qid.tolist() == [3, -4, 2**63 - 1]
    assert (X.shape, y.tolist()) == ((3, 1), [1, 2, 3])


def test_a_line_longer_than_many_slices(tmp_path, monkeypatch, n_jobs):
    monkeypatch.setattr(_svmlight_text, "SLICE_BYTES", 64)
    long = " ".join(f"{j}:{j}" for j in range(1, 500))
    for storage in STORAGES:
        path = put(tmp_path, f"1 1:1\n2 {long}\n3 2:2\n", "a.svm" + storage)
        X, y = load_svmlight(path, n_jobs=n_jobs)
        assert y.tolist() == [1, 2, 3]
        assert X[[1]].toarray().tolist() == [list(range(1, 500))]


def test_a_pipe_is_read_once(tmp_path):
    os.mkfifo(path := tmp_path / "pipe")
    child = subprocess.Popen(["sh", "-c", f"echo '1 1:2' > '{path}'"])
    X, y = load_svmlight(path)
    assert child.wait() == 0
    assert (X.toarray().tolist(), y.tolist()) == ([[2]], [1])


# ---------------------------------------------------------------------------- refusals

# text, options: line, column, what was expected and found
NUMBER = "a number as the target"
FAULTS = [
    (b"1 1:2\n1 3:1 14:1,5\n", {}, 2, 10, 'a number after "14:"', '"1,5"'),
    (b"1 1:\n", {}, 1, 5, 'a number after "1:"', "the end of the line"),
    (b"1 1:\r\n", {}, 1, 5, 'a number after "1:"', "the end of the line"),
    (b"1 1:\r", {}, 1, 5, 'a number after "1:"', "the end of the line"),
    (b"1 1:", {}, 1, 5, 'a number after "1:"', "the end of the line"),
    (b"1 1: 2\n", {}, 1, 5, 'a number after "1:"', "a blank"),
    (b"1 1:#2\n", {}, 1, 5, 'a number after "1:"', "the end of the line"),
    (b"1 1:nan\n", {}, 1, 5, 'a number after "1:"', '"nan"'),
    (b"1 1:-inf\n", {}, 1, 5, 'a number after "1:"', '"-inf"'),
    (b"1 1:0x1p3\n", {}, 1, 5, 'a number after "1:"', '"0x1p3"'),
    (b"1 1:1e\n", {}, 1, 5, 'a number after "1:"', '"1e"'),
    (b"1 1:1e+\n", {}, 1, 5, 'a number after "1:"', '"1e+"'),
    (b"1 1:.\n", {}, 1, 5, 'a number after "1:"', '"."'),
    (b"1 1:--1\n", {}, 1, 5, 'a number after "1:"', '"--1"'),
    (b"1 1:1_000\n", {}, 1, 5, 'a number after "1:"', '"1_000"'),
    (b"1 1:1.5.2\n", {}, 1, 5, 'a number after "1:"', '"1.5.2"'),
    (b"1 1:2:3\n", {}, 1, 5, 'a number after "1:"', '"2:3"'),
    (b"1 1:\xc3\xa9\"\\\n", {}, 1, 5, 'a number after "1:"', r'"\xc3\xa9\"\\"'),
    (
        b"1 1:" + b"9" * 30 + b"x\n",
        {},
        *(1, 5, 'a number after "1:"', f'"{"9" * 24}..."'),
    ),
    (b"1 1:1e999\n", {}, 1, 5, 'a number that fits a float64 after "1:"', '"1e999"'),
    (
        b"1 1:-3.5e38\n",
        {"dtype": np.float32},
        *(1, 5, 'a number that fits a float32 after "1:"', '"-3.5e38"'),
    ),
    (b"x 1:1\n", {}, 1, 1, NUMBER, '"x"'),
    (b"nan 1:1\n", {}, 1, 1, NUMBER, '"nan"'),
    (b"1\n\n\n # c\n  x 1:1\n", {}, 5, 3, NUMBER, '"x"'),
    (b"1 1:1\n# c\n1 1:1\n1x 1:1\n", {}, 4, 1, NUMBER, '"1x"'),
    (b"1e999 1:1\n", {}, 1, 1, "a target that fits a float64", '"1e999"'),
    (b"qid:1 1:1\n", {}, 1, 1, NUMBER, '"qid:1"'),
    (
        b"1,2 3:4\n",
        {},
        *(1, 1, "one target (multi-label files are not supported)", '"1,2"'),
    ),
    (b"1 1:1\n2:1 3:4\n", {}, 2, 1, 'a target before the first "index:value"', '"2:1"'),
    (b" 2:1\n", {}, 1, 2, 'a target before the first "index:value"', '"2:1"'),
    (b"1 2\n", {}, 1, 4, '":" after "2"', "the end of the line"),
    (b"1 2", {}, 1, 4, '":" after "2"', "the end of the line"),
    (b"1 2 :3\n", {}, 1, 4, '":" after "2"', "a blank"),
    (b"1 2x:3\n", {}, 1, 4, '":" after "2"', '"x:3"'),
    (b"1 2.5:3\n", {}, 1, 4, '":" after "2"', '".5:3"'),
    (b"1 x:3\n", {}, 1, 3, '"index:value"', '"x:3"'),
    (b"1 +2:3\n", {}, 1, 3, '"index:value"', '"+2:3"'),
    (b"1 :3\n", {}, 1, 3, '"index:value"', '":3"'),
    (b"1 1:1 -2:3\n", {}, 1, 7, "an index that is not negative", '"-2"'),
    (b"1 2:1 2:3\n", {}, 1, 7, "an index greater than 2", '"2"'),
    (b"1 1:1 5:1 3:3\n", {}, 1, 11, "an index greater than 5", '"3"'),
    (b"1 0:1 0:3\n", {}, 1, 7, "an index greater than 0", '"0"'),
    (
        b"1 1:1\n2 0:1\n",
        {"zero_based": False},
        *(2, 3, "an index of at least 1 because zero_based is False", '"0"'),
    ),
    (
        b"1 9223372036854775808:1\n",
        {},
        *(1, 3, "an index of at most 9223372036854775807", '"9223372036854775808"'),
    ),
    (
        b"1 99999999999999999999999:1\n",
        {},
        *(1, 3, "an index of at most 9223372036854775807", f'"{"9" * 23}"'),
    ),
    (
        b"2 0:1\n1 9223372036854775807:1\n",
        {},
        *(2, 3, "an index of at most 9223372036854775806", '"9223372036854775807"'),
    ),
    (
        b"1 3:1\n1 2:1 4:1\n",
        {"n_features": 3},
        *(2, 7, "an index of at most 3 because n_features is 3", '"4"'),
    ),
    (
        b"1 3:1\n1 2:1\n",
        {"n_features": 3, "zero_based": True},
        *(1, 3, "an index of at most 2 because n_features is 3", '"3"'),
    ),
    (
        b"1 1:1\n1 3:1\n1 0:1\n",
        {"n_features": 3},
        *(2, 3, "an index of at most 2 because n_features is 3", '"3"'),
    ),
    (b"1 qid:a 1:1\n", {}, 1, 7, 'an integer after "qid:"', '"a"'),
    (b"1 qid:1.5\n", {}, 1, 7, 'an integer after "qid:"', '"1.5"'),
    (b"1 qid: 1:1\n", {}, 1, 7, 'an integer after "qid:"', "a blank"),
    (
        b"1 qid:9223372036854775808\n",
        {},
        *(1, 7, 'an integer after "qid:"', '"9223372036854775808"'),
    ),
    (b"1 1:1 qid:3\n", {}, 1, 7, '"qid:" only after the target', '"qid:3"'),
    (b"1 qid:1 qid:3\n", {}, 1, 9, '"qid:" only after the target', '"qid:3"'),
    (
        b"1 qid:1\n1 1:2\n",
        {"return_qid": True},
        *(2, 3, '"qid:" after the target because return_qid is True', '"1:2"'),
    ),
    (
        b"1 1:1\r2 1:1\n",
        {},
        *(1, 6, "a line feed after the carriage return", r'"\x0d2"'),
    ),
    (b"1 1:1\x0b2:2\n", {}, 1, 5, 'a number after "1:"', r'"1\x0b2:2"'),
    (b"\x7fELF\x02\x00\n", {}, 1, 1, NUMBER, r'"\x7fELF\x02\x00"'),
    (b"1 1:1\n\x00\x00\x00\x00", {}, 2, 1, NUMBER, r'"\x00\x00\x00\x00"'),
    (b"1 1:1\n\x1f\x8b\x08", {}, 2, 1, NUMBER, r'"\x1f\x8b\x08"'),
    (b"\xef\xbb\xbfx\n", {}, 1, 4, NUMBER, '"x"'),
    (b"1\n\xef\xbb\xbf2\n", {}, 2, 1, NUMBER, r'"\xef\xbb\xbf2"'),
    (b"", {}, 1, 1, "at least one row", "the end of the file"),
    (b"\n \n", {}, 3, 1, "at least one row", "the end of the file"),
    (b"\n# no rows", {}, 2, 10, "at least one row", "the end of the file"),
    (b"\xef\xbb\xbf", {}, 1, 4, "at least one row", "the end of the file"),
    # The first fault counts, whatever stands behind it.
    (b"1 1:x\n1,2 1:1\n\x00", {}, 1, 5, 'a number after "1:"', '"x"'),
    (b"1 1:1\n" * 99 + b"1 1:y\n" * 99, {}, 100, 5, 'a number after "1:"', '"y"'),
]


@pytest.mark.parametrize("storage", ["", ".gz"])
@pytest.mark.parametrize("fault", FAULTS, ids=range(len(FAULTS)))
def test_refuses_with_line_and_column(tmp_path, monkeypatch, fault, storage):
    text, options, line, column, expected, found = fault
    path = put(tmp_path, text, "a.svm" + storage)
    where = f"{path}, line {line}, column {column}"
    for size, n_jobs in itertools.product(SIZES, [1, 2]):
        monkeypatch.setattr(_svmlight_text, "SLICE_BYTES", size)
        with pytest.raises(ValueError, match="line") as error:
            load_svmlight(path, n_jobs=n_jobs, **options)
        assert str(error.value) == f"{where}: expected {expected}, found {found}"


@in_one_folder
@given(text=st.binary(max_size=60), n_jobs=st.sampled_from([1, 2]))
def test_any_bytes_are_read_or_refused(tmp_path, text, n_jobs):
    path = put(tmp_path, text)
    try:
        X, _ = load_svmlight(path, n_jobs=n_jobs)
    except ValueError as error:
        assert str(error).startswith(f"{path}, line ")
    else:
        X.check_format(full_check=True)


@pytest.mark.parametrize("storage", [".gz", ".bz2", ".xz"])
def test_damaged_data_is_refused(tmp_path, storage, slice_bytes, n_jobs):
    path = put(tmp_path, "1 1:2\n" * 1000, "a.svm" + storage)
    whole = path.read_bytes()
    kind = storage[1:]
    said = f"^{path}, line [0-9]+, column 1: expected more {kind} data, found damage"
    for damaged in (
        whole[:-1],
        whole[: len(whole) // 2],
        whole[:-12] + bytes(12),
        b"1 1:2\n",
    ):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=said):
            load_svmlight(path, n_jobs=n_jobs)


def test_a_fault_before_the_damage_comes_first(tmp_path, slice_bytes, n_jobs):
    path = put(tmp_path, "1 1:x\n" + "1 1:2\n" * 1000, "a.svm.gz")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r'line 1, column 5: .* found "x"$'):
        load_svmlight(path, n_jobs=n_jobs)


def test_a_missing_file_names_one_that_is_there(tmp_path, monkeypatch):
    put(tmp_path, "1 1:1\n", "adult.svm")
    monkeypatch.chdir(tmp_path)
    for name, hint in {
        "adlt.svm": " (did you mean adult.svm?)",
        "./adlt.svm": " (did you mean ./adult.svm?)",
        "quite different": "",
        "no folder/adult.svm": "",
    }.items():
        with pytest.raises(FileNotFoundError) as error:
            load_svmlight(name)
        assert str(error.value) == f"no such file: {name}{hint}"


def test_what_is_no_readable_file(tmp_path, monkeypatch):
    with pytest.raises(IsADirectoryError) as error:
        load_svmlight(tmp_path)
    assert str(error.value) == f"expected a file, found a directory: {tmp_path}"

    def refuse(path):
        raise PermissionError(13, "Permission denied")

    path = put(tmp_path, "1 1:1\n")
    monkeypatch.setattr(_svmlight_text.os, "stat", refuse)  # root may read everything
    with pytest.raises(PermissionError) as error:
        load_svmlight(path)
    assert str(error.value) == f"no permission to read {path}"


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ({"n_features": 0}, r"None or an int in the range \[1, 2\^63\). Got 0"),
        ({"n_features": 2.0}, r"None or an int in the range \[1, 2\^63\). Got 2.0"),
        ({"zero_based": 1}, "one of True, False, 'auto'. Got 1"),
        ({"zero_based": "no"}, "one of True, False, 'auto'. Got 'no'"),
        ({"dtype": np.int32}, "float32 or float64. Got 'int32'"),
        ({"n_jobs": 0}, r"None, -1 or an int in the range \[1, inf\). Got 0"),
    ],
)
def test_parameters_of_load(tmp_path, option, said):
    (name,) = option
    said = f"^The '{name}' parameter of load_svmlight must be {said} instead.$"
    with pytest.raises(ValueError, match=said):
        load_svmlight(put(tmp_path, "1 1:1\n"), **option)


# ----------------------------------------------------------------------------- writing


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


@in_one_folder
@given(data=st.data(), X=matrices(), zero_based=st.booleans())
@pytest.mark.parametrize("storage", STORAGES)
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


@pytest.mark.parametrize("room", [128, 130, 200, 1 << 20])
def test_rows_go_on_in_the_next_buffer(tmp_path, monkeypatch, room):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 9)) * (rng.random((40, 9)) < 0.7), rng.normal(size=40)
    save_svmlight(X, y, expected := tmp_path / "expected.svm")
    monkeypatch.setattr(_svmlight_write, "WRITE_BYTES", room)
    monkeypatch.setattr(_svmlight_write, "_PART_ENTRIES", 30)
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
        ((ONE.astype(np.longdouble), [1, 2]), "'X' .* 64 bits. Got (longdouble|float1)"),
        ((ONE[0], [1, 2]), r"'X' .* two dimensions and a row. Got shape \(2,\)"),
        ((ONE[:0], []), r"'X' .* two dimensions and a row. Got shape \(0, 2\)"),
        ((np.array([[2**53 + 1]]), [1]), r"'X' .* below 2\^53 in size. Got 90071"),
        ((ONE, [1, -(2**60)]), r"'y' .* below 2\^53 in size. Got -11529"),
    ],
)
def test_refuses_to_write(tmp_path, arguments, said):
    put(tmp_path, "old")
    with pytest.raises(ValueError, match=f"^The {said}.* instead.$"):
        save_svmlight(*arguments, tmp_path / "a.svm")
    assert (tmp_path / "a.svm").read_text() == "old"
    assert os.listdir(tmp_path) == ["a.svm"]


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ({"zero_based": "auto"}, "be one of True, False. Got 'auto'"),
        ({"qid": [1]}, r"hold int64 numbers in shape \(2,\). Got int64 of shape \(1,\)"),
        ({"qid": [1.0, 2.0]}, r"hold int64 numbers in shape \(2,\). Got float64"),
    ],
)
def test_parameters_of_save(tmp_path, option, said):
    (name,) = option
    said = f"^The '{name}' parameter of save_svmlight must {said}.* instead.$"
    with pytest.raises(ValueError, match=said):
        save_svmlight(ONE, [1, 2], tmp_path / "a.svm", **option)
    assert os.listdir(tmp_path) == []


def test_a_file_is_replaced_at_once(tmp_path):
    path = put(tmp_path, "old")
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
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(OSError, match="^expected a path for a file, found"):
            save_svmlight(ONE, [1, 2], path)


# --------------------------------------------------------------------- time and memory


def run_child(code, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("lines", [1, 10**4])
def test_ctrl_c_ends_a_long_read(tmp_path, lines, n_jobs):
    entry = "0." + "0123456789" * 50  # takes the longest: all digits must be looked at
    row = " ".join(f"{j}:{entry}" for j in range(1, 40000 // lines + 2))
    path = put(tmp_path, f"1 {row}\n" * lines)
    child = run_child(
        """
        import sys
        from widemargin.data.svmlight import load_svmlight
        print("ready", flush=True)
        while True:
            load_svmlight(sys.argv[1], n_jobs=int(sys.argv[2]))
        """,
        *(path, n_jobs),
    )
    assert child.stdout.readline() == "ready\n"
    time.sleep(0.3)
    start = time.perf_counter()
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=20)
    assert time.perf_counter() - start < 1
    assert said.rstrip().endswith("KeyboardInterrupt")


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in KiB on Linux only")
@pytest.mark.parametrize("storage", ["", ".gz"])
def test_peak_memory_is_that_of_the_result(tmp_path, storage):
    row = "1 " + " ".join(f"{j}:0.{j:06d}" for j in range(1, 100)) + "\n"
    path = put(tmp_path, row * 40000, "a.svm" + storage)
    child = run_child(
        """
        import resource, sys
        from widemargin.data.svmlight import load_svmlight
        peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        load_svmlight(sys.argv[1], n_jobs=2)  # buffers, threads, lazy imports
        """.replace("load_svmlight(sys.argv[1]", "load_svmlight(sys.argv[2]", 1)
        + """
        before = peak()
        X, y = load_svmlight(sys.argv[1], n_jobs=2)
        result = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes + y.nbytes
        print(result, peak() - before)
        """,
        *(path, put(tmp_path, row, "small.svm" + storage)),
    )
    said, errors = child.communicate()
    assert errors == ""
    result, grown = map(int, said.split())
    assert result > 40e6
    assert grown < 1.1 * result + (24 << 20)


def test_slices_meet_at_every_byte(tmp_path, monkeypatch):
    text = b"1 qid:2 1:0.5 22:-1e-3\r\n\n# c 1:1\n-1 3:4\n"
    path = put(tmp_path, text)
    X, y = load_svmlight(path)
    for size, n_jobs in itertools.product(range(1, len(text) + 1), [1, 2]):
        monkeypatch.setattr(_svmlight_text, "SLICE_BYTES", size)
        Z, z = load_svmlight(path, n_jobs=n_jobs)
        assert (Z != X).nnz == 0
        np.testing.assert_array_equal(z, y)
