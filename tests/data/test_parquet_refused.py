"""Parquet files that are refused, and what the sentence says."""

import os
import re
import subprocess
import sys
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from widemargin.data.outofcore import parquet_files
from widemargin.data.outofcore.parquet import ParquetSource


def write(path, columns, **options):
    pq.write_table(pa.table(columns), path, **options)
    return path


def refusal(error, path, sentence):
    return pytest.raises(error, match=re.escape(f"{path}: {sentence}") + "$")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "train.parquet"


# -- columns ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([date(2020, 1, 1)], "date32[day]"),
        ([[1, 2]], "list<element: int64>"),
        ([{"a": 1}], "struct<a: int64>"),
        ([b"x"], "binary"),
        (pa.nulls(1), "null"),
    ],
)
def test_features_that_are_no_numbers(path, values, found):
    write(path, {"x": [1], "city": values, "date": values})
    sentence = (
        f"expected numbers, text or categories in column 'city', found {found}; "
        "leave it out (columns=...)"
    )
    with refusal(ValueError, path, sentence):
        ParquetSource(path)
    assert ParquetSource(path, columns=["x"]).names == ["x"]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_more_words_than_categories_have(path, kind):
    words = [f"w{k}" for k in range(51)]
    write(path, {"x": range(51), "city": pa.array(words, kind)})
    sentence = (
        "expected at most 50 different words in column 'city', found more (such as "
        "'w0'); make it a dictionary column, which may have more (pandas: "
        "astype('category')), or leave it out (columns=...)"
    )
    with refusal(ValueError, path, sentence):
        ParquetSource(path)
    write(path, {"x": range(51), "city": pa.array(words, kind).dictionary_encode()})
    assert len(ParquetSource(path).names) == 52


def test_labels_and_weights_of_the_wrong_type(path):
    write(path, {"x": [1], "day": [date(2020, 1, 1)], "name": ["a"]})
    with refusal(
        ValueError,
        path,
        "expected numbers, text or categories in column 'day', found date32[day]; "
        "convert it",
    ):
        ParquetSource(path, label="day", columns=["x"])
    with refusal(
        ValueError, path, "expected numbers in column 'name', found string; convert it"
    ):
        ParquetSource(path, weight="name", columns=["x"])


def test_unknown_columns(path):
    write(path, {"age": [1], "income": [2]})
    sentence = "expected a column 'incone', found none of that name"
    near = f"{sentence} (did you mean 'income'?)"
    for options in ({"label": "incone"}, {"weight": "incone"}, {"columns": ["incone"]}):
        with refusal(ValueError, path, near):
            ParquetSource(path, **options)
    unlike = "expected a column 'Q', found none of that name (age, income)"
    with refusal(ValueError, path, unlike):
        ParquetSource(path, label="Q")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"label": "a", "weight": "a"},
            "label and weight must be different columns. Got 'a' for both.",
        ),
        (
            {"label": "a", "columns": ["b", "a"]},
            "columns must not hold 'a', which is the label.",
        ),
        (
            {"weight": "a", "columns": ["a"]},
            "columns must not hold 'a', which is the weight.",
        ),
        ({"columns": ["b", "b"]}, "columns must be different. Got 'b' twice."),
        (
            {"columns": []},
            "columns must be a list of at least one name. Got [] instead.",
        ),
        (
            {"columns": "a"},
            "columns must be a list of at least one name. Got 'a' instead.",
        ),
    ],
)
def test_names_that_contradict_each_other(path, options, sentence):
    write(path, {"a": [1], "b": [2]})
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        ParquetSource(path, **options)


def test_no_feature_is_left(path):
    write(path, {"a": [1], "b": [2]})
    with refusal(ValueError, path, "expected a column of features, found none"):
        ParquetSource(path, label="a", weight="b")


def test_columns_of_one_name(path):
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])
    pq.write_table(table, path)
    sentence = "expected columns with different names, found 'a' twice"
    with refusal(ValueError, path, sentence):
        ParquetSource(path)


def test_no_row(path):
    write(path, {"a": pa.array([], pa.int64())})
    with refusal(ValueError, path, "expected at least one row, found none"):
        ParquetSource(path)


# -- several files ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        (
            {"x": [1.0], "c": ["a"]},
            "expected int64 in column 'x' as in {first}, found double",
        ),
        (
            {"x": [1]},
            "expected string in column 'c' as in {first}, found no such column",
        ),
        (
            {"x": [1], "c": pa.array(["a"]).dictionary_encode()},
            "expected string in column 'c' as in {first}, found categories (string)",
        ),
        (
            {"x": [1], "c": ["a"], "z": [1]},
            "expected the columns of {first}, found column 'z' too",
        ),
        (
            {"x": [Decimal("1.5")], "c": ["a"]},
            "expected int64 in column 'x' as in {first}, found decimal128(2, 1)",
        ),
    ],
)
def test_files_of_different_columns(tmp_path, columns, sentence):
    first = write(tmp_path / "a.parquet", {"x": [1], "c": ["a"]})
    second = write(tmp_path / "b.parquet", columns)
    with refusal(ValueError, second, sentence.format(first=first)):
        ParquetSource(tmp_path, label="c")


def test_files_may_differ_in_columns_that_are_not_read(tmp_path):
    write(tmp_path / "a.parquet", {"x": [1], "note": ["a"]})
    write(tmp_path / "b.parquet", {"more": [1.5], "x": [2]})
    source = ParquetSource(tmp_path, columns=["x"])
    np.testing.assert_array_equal(source.read(0, 2), [[1], [2]])


def test_folders_of_something_else(tmp_path):
    with refusal(ValueError, tmp_path, "expected Parquet files, found none"):
        ParquetSource(tmp_path)
    write(tmp_path / "a.parquet", {"x": [1]})
    (tmp_path / "city=Rome").mkdir()
    sentence = (
        f"expected Parquet files only, found the folder {tmp_path / 'city=Rome'}; "
        "files of partitions must be in one folder, with all their columns"
    )
    with refusal(ValueError, tmp_path, sentence):
        ParquetSource(tmp_path)
    (tmp_path / "notes.txt").write_text("These are no numbers at all.")
    sentence = (
        "expected a folder of data, which has files X-*.npy (and y-*.npy) or files "
        "*.parquet alone, found city=Rome, notes.txt"
    )
    with refusal(ValueError, tmp_path, sentence):
        ParquetSource(tmp_path)
    (tmp_path / "city=Rome").rmdir()
    with pytest.raises(ValueError, match=re.escape("notes.txt: expected a Parquet")):
        ParquetSource(tmp_path)


# -- missing values --------------------------------------------------------------------


def missing(path, name, row):
    return refusal(
        ValueError,
        path,
        f"expected a value in column '{name}', found none in row {row} of the data "
        "(counted from 0); fill it, or leave out the row or the column",
    )


def test_missing_numbers_labels_and_weights(tmp_path):
    write(tmp_path / "a.parquet", {"x": [1, 2, 3], "y": [1, 2, 3]})
    second = write(
        tmp_path / "b.parquet",
        {"x": [1, 2, 3, None], "y": [1, 2, None, 3]},
        row_group_size=2,
    )
    source = ParquetSource(tmp_path, label="y")
    with missing(second, "x", 6):
        source.read(2, 7)
    with missing(second, "x", 6):
        source.take(np.array([0, 6]))
    np.testing.assert_array_equal(source.read(2, 6), [[3], [1], [2], [3]])
    with missing(second, "y", 5):
        source.vector("label")
    with missing(second, "y", 5):
        ParquetSource(tmp_path, weight="y").vector("weight")


def test_missing_categories(path):
    for values in (["a", "b", None], [1, 7, None]):
        write(path, {"c": pa.array(values).dictionary_encode(), "x": [1, 2, 3]})
        with missing(path, "c", 2):
            ParquetSource(path)
        source = ParquetSource(path, label="c")
        with missing(path, "c", 2):
            source.vector("label")


# -- files that are not what they were -------------------------------------------------


def test_changed_files(path):
    write(path, {"x": np.arange(1000)})
    sentence = f"^{re.escape(str(path))} was changed while it was read$"
    for change in (lambda: os.utime(path, ns=(1, 1)), lambda: path.unlink()):
        source = ParquetSource(path)
        source.check_unchanged()
        source.read(0, 10)
        change()
        for use in (
            source.check_unchanged,
            lambda: source.read(10, 20),  # noqa: B023
            lambda: source.take(np.array([3])),  # noqa: B023
        ):
            with pytest.raises(OSError, match=sentence):
                use()


def test_a_file_that_is_replaced_by_a_smaller_one(path):
    write(path, {"x": np.random.default_rng(0).normal(size=10_000)})
    source = ParquetSource(path)
    write(path, {"x": np.zeros(10_000)})
    with pytest.raises(OSError, match="was changed while it was read$"):
        source.read(0, 10_000)


def test_a_category_that_came_later(path, monkeypatch):
    write(path, {"c": pa.array(["a", "b"]).dictionary_encode()})
    source = ParquetSource(path)
    write(path, {"c": pa.array(["a", "c"]).dictionary_encode()})
    with pytest.raises(OSError, match="was changed while it was read$"):
        source.read(0, 2)
    monkeypatch.setattr(parquet_files.FileStamp, "of", lambda path: 0)  # none can tell
    source = ParquetSource(path)
    write(path, {"c": pa.array(["a", "d"]).dictionary_encode()})
    with refusal(
        OSError,
        path,
        "expected Parquet data, found damage (a category new to column 'c')",
    ):
        source.read(0, 2)


def test_truncated_files(path):
    write(path, {"x": np.arange(1000.0)})
    whole = path.read_bytes()
    for length in (0, 3, 7, 12, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: expected a Pa"):
            ParquetSource(path)
    path.write_bytes(b"x,y\n1,2\n" * 10)
    sentence = (
        "expected a Parquet file, found damage or another format "
        "(Parquet magic bytes not found in footer)"
    )
    with refusal(ValueError, path, sentence):
        ParquetSource(path)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("compression", ["none", "snappy"])
def test_flipped_bits(path, compression):
    # Whatever is hit: an error of one sentence, or numbers; never a crash.
    rng = np.random.default_rng(0)
    m = 200
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=m),
            "i": rng.integers(0, 50, m).astype(np.int16),
            "c": pd.Categorical(rng.choice(list("abcdef"), m)),
            "k": pd.Categorical(rng.integers(0, 9, m)),
            "y": rng.choice(["no", "yes"], m),
        }
    )
    frame.to_parquet(path, row_group_size=70, compression=compression)
    whole = path.read_bytes()
    failures = 0
    for _ in range(300):
        damaged = bytearray(whole)
        damaged[rng.integers(len(damaged))] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        try:
            source = ParquetSource(path, label="y")
            source.read(0, source.shape[0])
            source.vector("label")
        except (OSError, ValueError) as error:
            assert str(error).startswith(f"{path}: expected ")
            assert "\n" not in str(error)
            failures += 1
    assert failures > 50


def test_checksums_are_looked_at(path):
    X = np.arange(10_000.0)
    write(path, {"x": X}, write_page_checksum=True, compression="none")
    damaged = bytearray(path.read_bytes())
    damaged[damaged.index(X[5000:5010].tobytes())] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(OSError, match=r"expected Parquet data, found damage \(.*CRC"):
        ParquetSource(path).read(0, 10_000)


# -- files that cannot be opened -------------------------------------------------------


def test_missing_files(path):
    write(path, {"x": [1]})
    wrong = path.with_name("trian.parquet")
    sentence = f"no such file: {wrong} (did you mean {path}?)"
    with pytest.raises(FileNotFoundError, match=f"^{re.escape(sentence)}$"):
        ParquetSource(wrong)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes on this system")
def test_pipes(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="expected a file, found a pipe or device"):
        ParquetSource(tmp_path / "pipe")


def test_no_permission(path, monkeypatch):
    # Not by chmod: the tests may run as a user who may read everything.
    def refuse(*arguments, **options):
        raise PermissionError(13, "Permission denied")

    write(path, {"x": [1, 2]})
    source = ParquetSource(path)
    monkeypatch.setattr(parquet_files.pa, "OSFile", refuse)
    sentence = f"^no permission to read {re.escape(str(path))}$"
    with pytest.raises(PermissionError, match=sentence):
        source.read(0, 2)
    with pytest.raises(PermissionError, match=sentence):
        ParquetSource(path)
    monkeypatch.setattr(parquet_files.os, "listdir", refuse)
    with pytest.raises(PermissionError, match="^no permission to read "):
        ParquetSource(path.parent)


@pytest.mark.parametrize(
    ("module", "reading"), [("parquet", "Parquet or CSV"), ("delimited", "CSV")]
)
def test_pyarrow_is_optional(module, reading):
    program = (
        "import sys, widemargin; assert 'pyarrow' not in sys.modules\n"
        f"sys.modules['pyarrow'] = None; import widemargin.data.outofcore.{module}"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True
    )
    assert run.stderr.endswith(
        f"ImportError: reading {reading} needs the extra 'parquet': "
        'pip install "widemargin[parquet]"\n'
    )
