"""Parquet files as rows: the numbers, in any order, by any way, with little work."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from tests.cases.waits import HANGS
from widemargin.data.outofcore import parquet, parquet_files
from widemargin.data.outofcore.parquet import ParquetSource
from widemargin.numerics import linalg

NUMBERS = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"]
NUMBERS += ["uint64", "float16", "float32", "float64"]


def write(frame, path, rows=None, **options):
    frame.to_parquet(path, row_group_size=rows or max(1, len(frame)), **options)
    return path


def everything(source):
    return linalg.dense(source.read(0, source.shape[0]))


def one_hot(frame):
    """The features as pandas makes them, categories sorted, in the order of columns."""
    parts = []
    for name in frame.columns:
        column = frame[name]
        if isinstance(column.dtype, pd.CategoricalDtype):
            kinds = sorted(column.cat.categories)
            column = column.cat.set_categories(kinds)
            parts.append(pd.get_dummies(column, prefix=name, prefix_sep="="))
        else:
            parts.append(column.to_frame())
    return pd.concat(parts, axis=1)


def mixed(m=1000, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(17, 90, m).astype(np.int16),
            "work": pd.Categorical(rng.choice(["Private", "State", "None"], m)),
            "gain": rng.normal(size=m).astype(np.float32),
            "code": pd.Categorical(rng.choice([7, 1, 30], m), categories=[30, 1, 7]),
            "town": pd.Categorical(rng.choice([f"t{i}" for i in range(20)], m)),
            "rich": rng.choice(["no", "yes"], m),
            "weight": rng.random(m),
        }
    )


def same(X, Y):
    assert type(X) is type(Y)
    assert X.dtype == Y.dtype
    assert X.shape == Y.shape
    if sparse.issparse(X):
        assert X.indices.dtype == Y.indices.dtype
        np.testing.assert_array_equal(X.indptr, Y.indptr)
        np.testing.assert_array_equal(X.indices, Y.indices)
        X, Y = X.data, Y.data
    np.testing.assert_array_equal(X, Y)


# -- the numbers -----------------------------------------------------------------------


@st.composite
def frames(draw):
    m = draw(st.integers(1, 30))
    columns = {}
    for j in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from([*NUMBERS, "category", "numbered"]))
        rng = np.random.default_rng(draw(st.integers(0, 2**32)))
        values = rng.integers(0, 120, m)
        if kind == "category":
            letters = np.array(list("zyxwv"))[: draw(st.integers(1, 5))]
            columns[f"c.{j}"] = pd.Categorical(rng.choice(letters, m))
        elif kind == "numbered":
            columns[f"c{j}"] = pd.Categorical(values % 4)
        else:
            columns[f"c{j}"] = values.astype(kind)
    return pd.DataFrame(columns), draw(st.integers(1, 12)), draw(st.integers(1, 40))


@given(
    frames(), st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=6)
)
def test_any_range_of_any_table(tmp_path_factory, case, ranges):
    frame, group_rows, batch_rows = case
    path = tmp_path_factory.mktemp("parquet") / "a.parquet"
    write(frame, path, group_rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "LARGEST_BATCH_ROWS", batch_rows)
        source = ParquetSource(path)
    expected = one_hot(frame)
    m = len(frame)
    assert source.names == list(expected.columns)
    assert source.shape == expected.shape
    X = expected.to_numpy(np.float64)
    np.testing.assert_array_equal(everything(source), X)
    for start, stop in ranges:
        start, stop = sorted((start % (m + 1), stop % (m + 1)))
        block = source.read(start, stop)
        assert block.dtype == source.dtype
        assert sparse.issparse(block) == (source.density < 1)
        np.testing.assert_array_equal(linalg.dense(block), X[start:stop])
    index = np.array([start % m for start, _ in ranges], dtype=np.intp)
    np.testing.assert_array_equal(linalg.dense(source.take(index)), X[index])
    assert source.borders.tolist() == [*range(0, m, group_rows), m]


@pytest.mark.parametrize(
    ("kinds", "dtype"),
    [
        (["bool"], "uint8"),
        (["uint8", "bool"], "uint8"),
        (["int8"], "int16"),
        (["uint8", "int8"], "int16"),
        (["int16", "float32"], "float32"),
        (["uint16"], "float32"),
        (["float16"], "float32"),
        (["int32"], "float64"),
        (["int32", "float32"], "float64"),
        (["uint32"], "float64"),
        (["int64"], "float64"),
        (["uint64", "bool"], "float64"),
        (["float64"], "float64"),
    ],
)
def test_blocks_have_the_smallest_dtype(tmp_path, kinds, dtype):
    frame = pd.DataFrame(
        {f"c{j}": np.array([0, 1, 1], kind) for j, kind in enumerate(kinds)}
    )
    source = ParquetSource(write(frame, tmp_path / "a.parquet"))
    block = source.read(0, 3)
    assert source.dtype == block.dtype == dtype
    assert block.flags.c_contiguous
    assert block.flags.owndata
    np.testing.assert_array_equal(block, frame.to_numpy(np.float64))
    assert source.density == 1.0


def test_extreme_numbers_are_exact(tmp_path):
    for kind in ("int8", "int16", "int32", "uint8", "uint16", "uint32"):
        limits = np.iinfo(kind)
        frame = pd.DataFrame({"x": np.array([limits.min, limits.max], kind)})
        source = ParquetSource(write(frame, tmp_path / "a.parquet"))
        assert everything(source).ravel().tolist() == [limits.min, limits.max]


def test_decimals_and_special_floats(tmp_path):
    table = pa.table(
        {
            "price": pa.array([Decimal("1.25"), Decimal("-3.50")]),
            "x": np.array([np.nan, -np.inf], np.float32),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    X = ParquetSource(tmp_path / "a.parquet").read(0, 2)
    np.testing.assert_array_equal(X, [[1.25, np.nan], [-3.5, -np.inf]])


def test_categories_of_many_values_are_sparse(tmp_path):
    frame = mixed()
    source = ParquetSource(write(frame, tmp_path / "a.parquet", 300), label="rich")
    expected = one_hot(frame.drop(columns="rich"))
    assert source.names == list(expected.columns)
    assert source.names[-2:] == ["town=t9", "weight"]
    block = source.read(100, 900)
    assert isinstance(block, sparse.csr_array)
    assert block.dtype == source.dtype == np.float64
    assert block.has_canonical_format
    assert source.density == 6 / len(source.names) == linalg.density(block)
    block.check_format()
    np.testing.assert_array_equal(block.toarray(), expected.to_numpy(float)[100:900])


def test_categories_of_few_values_are_dense(tmp_path):
    frame = pd.DataFrame({"c": pd.Categorical(list("abba")), "x": np.uint8(3)})
    source = ParquetSource(write(frame, tmp_path / "a.parquet"))
    block = source.read(0, 4)
    assert block.dtype == source.dtype == np.uint8
    assert source.density == 1.0
    np.testing.assert_array_equal(block, [[1, 0, 3], [0, 1, 3], [0, 1, 3], [1, 0, 3]])


def test_small_numbers_beside_categories_are_float32(tmp_path):
    frame = mixed()[["age", "gain", "town"]]
    source = ParquetSource(write(frame, tmp_path / "a.parquet"))
    assert source.dtype == source.read(0, 3).data.dtype == np.float32


def test_categories_of_all_files_together(tmp_path):
    first = pd.DataFrame({"c": pd.Categorical(list("db")), "x": [1, 2]})
    many = pd.Categorical([f"a{i:03}" for i in range(300)])  # wider codes
    second = pd.DataFrame({"x": np.arange(300), "c": many})  # and another order
    third = pd.DataFrame({"c": pd.Categorical(list("cb")), "x": [3, 4]})
    for name, frame in zip("bca", (first, second, third), strict=True):
        write(frame, tmp_path / f"{name}.parquet")
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / ".hidden.crc").write_text("x")
    source = ParquetSource(tmp_path)
    kinds = [f"c={x}" for x in sorted([*many.categories, "b", "c", "d"])]
    assert source.names == [*kinds, "x"]
    whole = pd.concat([third, first, second])
    whole["c"] = pd.Categorical(whole["c"].astype(str))
    np.testing.assert_array_equal(everything(source), one_hot(whole).to_numpy(float))
    assert source.borders.tolist() == [0, 2, 4, 304]


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["b", "a", "unused"])])
def test_categories_of_polars(tmp_path, kind):
    frame = pl.DataFrame({"c": pl.Series(["a", "b", "a"], dtype=kind), "x": [1, 2, 3]})
    frame.write_parquet(tmp_path / "a.parquet")
    source = ParquetSource(tmp_path / "a.parquet", columns=["c"])
    assert source.names[:2] == ["c=a", "c=b"]
    np.testing.assert_array_equal(everything(source)[:, :2], [[1, 0], [0, 1], [1, 0]])


def test_columns_are_chosen_and_ordered(tmp_path):
    path = write(mixed(), tmp_path / "a.parquet")
    source = ParquetSource(path, label="rich", columns=["gain", "work", "age"])
    assert source.names == ["gain", "work=None", "work=Private", "work=State", "age"]
    expected = one_hot(mixed()[["gain", "work", "age"]]).to_numpy(float)
    np.testing.assert_array_equal(everything(source), expected)


def test_an_index_of_pandas_is_no_feature(tmp_path):
    frame = pd.DataFrame({"x": [1.0, 2.0]}, index=pd.Index([70, 90], name="id"))
    path = write(frame, tmp_path / "a.parquet")
    assert ParquetSource(path).names == ["x"]
    assert ParquetSource(path, columns=["id", "x"]).names == ["id", "x"]
    np.testing.assert_array_equal(
        ParquetSource(path, label="id").vector("label"), [70, 90]
    )


# -- labels and weights ----------------------------------------------------------------


@pytest.mark.parametrize(
    "labels",
    [
        np.array([1, -1, 1]),
        np.array([1.5, 0.0, 1.5], np.float32),
        np.array([True, False, True]),
        np.array(["yes", "no", "yes"]),
        np.array(["\u00e4\u00f6", "", "z"]),
        pd.Categorical(["b", "a", "b"]),
        pd.Categorical([3, 1, 3]),
    ],
)
def test_labels(tmp_path, labels):
    frame = pd.DataFrame({"y": labels, "x": [1, 2, 3]})
    source = ParquetSource(write(frame, tmp_path / "a.parquet", 2), label="y")
    y = source.vector("label")
    assert isinstance(y, np.ndarray)
    assert y.dtype.kind == np.asarray(labels).dtype.kind or y.dtype.kind == "U"
    np.testing.assert_array_equal(y, np.asarray(labels))
    np.testing.assert_array_equal(np.unique(y), np.unique(np.asarray(labels)))
    assert source.vector("weight") is None
    assert source.names == ["x"]


def test_weights_are_float64(tmp_path):
    for kind in ("int8", "float32", "bool"):
        frame = pd.DataFrame({"w": np.array([0, 1, 1], kind), "x": 1.0})
        source = ParquetSource(write(frame, tmp_path / "a.parquet", 2), weight="w")
        w = source.vector("weight")
        assert w.dtype == np.float64
        np.testing.assert_array_equal(w, [0, 1, 1])
        assert source.vector("label") is None


# -- the way they are read -------------------------------------------------------------


@pytest.fixture
def opened(monkeypatch):
    """Rows that pyarrow decoded, one number for each batch."""
    decoded = []

    class Counting(pq.ParquetFile):
        def iter_batches(self, *arguments, **options):
            for batch in super().iter_batches(*arguments, **options):
                decoded.append(batch.num_rows)
                yield batch

    monkeypatch.setattr(parquet_files.pq, "ParquetFile", Counting)
    return decoded


def small_parts(m, step):
    return [(start, min(start + step, m)) for start in range(0, m, step)]


@pytest.fixture
def large_group(tmp_path):
    m = 20_000
    frame = pd.DataFrame({"x": np.arange(m), "y": np.arange(m) % 7})
    return write(frame, tmp_path / "large.parquet"), frame.to_numpy(float)


def test_parts_of_a_large_row_group_decode_it_once(large_group, opened, monkeypatch):
    monkeypatch.setattr(parquet, "LARGEST_BATCH_ROWS", 512)
    path, X = large_group
    source = ParquetSource(path)
    for start, stop in small_parts(len(X), 333):
        np.testing.assert_array_equal(source.read(start, stop), X[start:stop])
    assert sum(opened) == len(X)
    assert max(opened) <= 512


def test_a_part_decodes_nothing_behind_it(large_group, opened, monkeypatch):
    monkeypatch.setattr(parquet, "LARGEST_BATCH_ROWS", 512)
    path, X = large_group
    source = ParquetSource(path)
    source.read(3000, 3010)
    assert sum(opened) <= 3010 + 512
    opened.clear()
    np.testing.assert_array_equal(
        source.take(np.array([900, 3, 900])), X[[900, 3, 900]]
    )
    assert sum(opened) <= 901 + 512


def test_a_read_waits_for_the_one_that_ends_where_it_begins(
    large_group, opened, monkeypatch
):
    monkeypatch.setattr(parquet, "LARGEST_BATCH_ROWS", 512)
    path, X = large_group
    source = ParquetSource(path)
    under_way, blocks = threading.Event(), {}
    take = source._cursors._take

    def slowly(group, start):
        if start == 0:
            under_way.set()
            time.sleep(0.2)
        return take(group, start)

    monkeypatch.setattr(source._cursors, "_take", slowly)

    def work(start, stop):
        blocks[start] = source.read(start, stop)

    first = threading.Thread(target=work, args=(0, 3000))
    first.start()
    assert under_way.wait(HANGS)
    work(3000, 5000)
    first.join()
    np.testing.assert_array_equal(np.vstack([blocks[0], blocks[3000]]), X[:5000])
    assert sum(opened) <= 5000 + 512


def test_a_read_that_fails_holds_up_no_other(large_group, monkeypatch):
    path, X = large_group
    source = ParquetSource(path)
    with monkeypatch.context() as patch:
        patch.setattr(parquet.Cursor, "skip", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            source.read(0, 100)
    np.testing.assert_array_equal(source.read(100, 200), X[100:200])


@pytest.mark.parametrize("group_rows", [37, 1000])
def test_threads_read_at_once(tmp_path, group_rows):
    frame = mixed()
    source = ParquetSource(
        write(frame, tmp_path / "a.parquet", group_rows), label="rich"
    )
    whole = source.read(0, 1000)
    ranges = np.sort(np.random.default_rng(0).integers(0, 1001, (30, 2)), axis=1)
    ranges = [*ranges.tolist(), *small_parts(1000, 90), *small_parts(1000, 90)]
    with ThreadPoolExecutor(6) as pool:
        blocks = pool.map(lambda part: source.read(*part), ranges)
        for (start, stop), block in zip(ranges, blocks, strict=True):
            same(block, linalg.row_slice(whole, start, stop))


def test_the_way_of_reading_does_not_matter(tmp_path):
    path = write(mixed(), tmp_path / "a.parquet", 250)
    source = ParquetSource(path, label="rich", weight="weight")
    index = np.random.default_rng(1).integers(0, 1000, 500)
    whole = source.read(0, 1000)
    same(source.take(index), whole[index])
    same(source.take(np.empty(0, np.intp)), source.read(5, 5))
    for start, stop in small_parts(1000, 77)[::-1]:
        same(source.read(start, stop), linalg.row_slice(whole, start, stop))


def test_few_cursors_are_kept_and_closed(large_group):
    path, X = large_group
    source = ParquetSource(path)
    streams = []

    def remember(*arguments, **options):
        streams.append(pa_file(*arguments, **options))
        return streams[-1]

    pa_file = pa.OSFile
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet_files.pa, "OSFile", remember)
        for start in range(0, 4000, 100):
            source.read(start, start + 7)
        open_now = sum(not stream.closed for stream in streams)
        assert open_now == parquet_files.KEPT_CURSORS
        source.close()
    assert all(stream.closed for stream in streams)
    np.testing.assert_array_equal(source.read(7, 20), X[7:20])  # it opens anew


def test_a_whole_read_leaves_nothing_open(large_group, monkeypatch):
    path, X = large_group
    source = ParquetSource(path)
    for start, stop in small_parts(len(X), 1234):
        source.read(start, stop)
    assert not source._cursors._kept


def test_empty_files_and_row_groups(tmp_path):
    frame = pd.DataFrame({"c": pd.Categorical(list("ab")), "x": [1.0, 2.0]})
    write(frame.iloc[:0], tmp_path / "a.parquet")
    write(frame.iloc[:1], tmp_path / "c.parquet")
    write(frame.iloc[:0], tmp_path / "d.parquet")
    table = pa.Table.from_pandas(frame)
    with pq.ParquetWriter(tmp_path / "b.parquet", table.schema) as writer:
        for rows in (table, table.slice(0, 0), table.slice(0, 1), table.slice(2)):
            writer.write_table(rows)
    source = ParquetSource(tmp_path)
    assert source.shape == (4, 3)
    assert source.borders.tolist() == [0, 2, 3, 4]
    expected = [[1, 0, 1], [0, 1, 2], [1, 0, 1], [1, 0, 1]]
    np.testing.assert_array_equal(everything(source), expected)
    np.testing.assert_array_equal(
        linalg.dense(source.take(np.array([3, 1]))), [[1, 0, 1], [0, 1, 2]]
    )
    assert source.read(4, 4).shape == (0, 3)
