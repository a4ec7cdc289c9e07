"""svmlight text: what is read, how fast and in how much memory."""

import io
import itertools
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.datasets import load_svmlight_file

from tests.cases.pairwise import product
from tests.cases.svmlight_files import (
    SLICES,
    STORAGES,
    assert_same_bits,
    in_one_folder,
    put,
)
from tests.cases.waits import HANGS
from widemargin import _core
from widemargin.data.svmlight import load_svmlight
from widemargin.data.svmlight import read as svmlight_read
from widemargin.data.svmlight import text as svmlight_text


def entries(X):
    """The stored entries of each row."""
    return [
        dict(zip(row.indices.tolist(), row.data.tolist(), strict=True))
        for row in (X[[i]] for i in range(X.shape[0]))
    ]


# text: its rows (column: value) and targets
TEXTS = {
    "plain": ("1 1:2 3:4\n-1 2:0.5\n", [{0: 2, 2: 4}, {1: 0.5}], [1, -1]),
    "no final newline": ("1 1:2\n2 1:3", [{0: 2}, {0: 3}], [1, 2]),
    "no final newline, no entry": ("1 1:2\n2", [{0: 2}, {}], [1, 2]),
    "crlf": ("1 1:2\r\n2 1:3\r\n", [{0: 2}, {0: 3}], [1, 2]),
    "final carriage return": ("1 1:2\r", [{0: 2}], [1]),
    "blank lines": ("\n1 1:2\n \t\n\r\n2 1:3\n\n", [{0: 2}, {0: 3}], [1, 2]),
    "blanks": (" 1\t1:2  3:4 \t\n2 \n", [{0: 2, 2: 4}, {}], [1, 2]),
    "comments": (
        "# 9:9\n1 1:2 # 3:4\n2#5:6\n3 1:7#\n",
        [{0: 2}, {}, {0: 7}],
        [1, 2, 3],
    ),
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
    "tiny values": (
        "1 1:1e-999 2:4.9e-324 3:-1e-999\n",
        [{0: 0, 1: 5e-324, 2: -0.0}],
        [1],
    ),
}


@product(
    indirect=["slice_bytes", "n_jobs"],
    name=TEXTS,
    storage=STORAGES,
    slice_bytes=SLICES,
    n_jobs=[1, 2],
)
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
    st.from_regex(
        r"[+-]?[0-9]{1,20}(\.[0-9]{0,5})?[eE][+-]?[0-9]{1,2}", fullmatch=True
    ),
)


@in_one_folder
@given(numbers=st.lists(number_text, min_size=1, max_size=9))
@example(["9007199254740993", "9007199254740993.00000000000000000000000000001"])
@example(["9223372036854776832", "9223372036854776833", "9223372036854777856"])
@example(["2.2250738585072011e-308", "1.7976931348623157e308", "8.5e-324"])
@example(["4503599627370497.5", "4503599627370496.5", "0.500000000000000166533453694"])
@example(["99999999999999999999", "0.99999999999999999999", "1.8446744073709551616e-3"])
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
    monkeypatch.setattr(svmlight_text, "SLICE_BYTES", 64)
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


# --------------------------------------------------------------------- time and memory


def run_child(code, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.cover(1)
@pytest.mark.parametrize("lines", [1, 10**4])
def test_ctrl_c_ends_a_long_read(tmp_path, lines, n_jobs):
    entries = range(1, 10**6 // lines + 1)
    row = " ".join(f"{j}:1e5" for j in entries)  # the slowest kind of number
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
    time.sleep(0.1)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=HANGS)
    assert said.rstrip().endswith("KeyboardInterrupt")


@pytest.mark.one_of(2)
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
# Two threads: each may hold a slice of 1 MiB and the 2 MiB that Linux maps: 6.5 %.
@pytest.mark.parametrize(("storage", "limit"), [("", 1.07), (".gz", 1.15)])
def test_peak_memory_is_that_of_the_result(tmp_path, storage, limit):
    row = "1 " + " ".join(f"{j}:0.{j:06d}" for j in range(1, 100)) + "\n"
    path = put(tmp_path, row * 80000, "a.svm" + storage)
    small = put(tmp_path, row, "small.svm" + storage)
    child = run_child(
        """
        import re, sys
        from widemargin.data.svmlight import load_svmlight

        def peak():  # ru_maxrss would start from the peak of the parent
            status = open("/proc/self/status").read()
            return 1024 * int(re.search(r"VmHWM:\\s*(\\d+) kB", status)[1])

        load_svmlight(sys.argv[2], n_jobs=2)  # threads and late imports
        before = peak()
        X, y = load_svmlight(sys.argv[1], n_jobs=2)
        result = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes + y.nbytes
        print(result, peak() - before)
        """,
        *(path, small),
    )
    said, errors = child.communicate()
    assert errors == ""
    result, grown = map(int, said.split())
    assert result > 90e6
    assert 0.9 * result < grown < limit * result


def test_calls_are_short(tmp_path, monkeypatch):
    """No call reads more than a slice, and so none takes longer, in one line too."""
    monkeypatch.setattr(svmlight_text, "SLICE_BYTES", 1000)
    steps = []

    class Spy:
        count_svmlight = staticmethod(_core.count_svmlight)

        @staticmethod
        def read_svmlight(*arguments):
            before = int(arguments[-1][0])
            fault = _core.read_svmlight(*arguments)
            steps.append(int(arguments[-1][0]) - before)
            return fault

    monkeypatch.setattr(svmlight_read, "_core", Spy)
    entries = " ".join(f"{j}:{j}" for j in range(1, 10000))
    X, _ = load_svmlight(put(tmp_path, f"1 {entries}\n1 {entries}\n"), n_jobs=1)
    assert X.nnz == 2 * 9999
    assert max(steps) < 1020
    assert len(steps) > 100


def test_slices_meet_at_every_byte(tmp_path, monkeypatch):
    text = b"1 qid:2 1:0.5 22:-1e-3\r\n\n# c 1:1\n-1 3:4\n"
    path = put(tmp_path, text)
    X, y = load_svmlight(path)
    for size, n_jobs in itertools.product(range(1, len(text) + 1), [1, 2]):
        monkeypatch.setattr(svmlight_text, "SLICE_BYTES", size)
        Z, z = load_svmlight(path, n_jobs=n_jobs)
        assert (Z != X).nnz == 0
        np.testing.assert_array_equal(z, y)
