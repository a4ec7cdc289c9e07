"""Files that the workers of a cluster read for themselves."""

import re

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cases.clusters import cluster, mixture, relative
from widemargin import LinearSVC, open_rows, save_svmlight

pytestmark = pytest.mark.dask
TIGHT = 1e-10
COLUMNS = list("abcde")


@pytest.fixture(scope="module")
def client():
    with cluster(2) as client:
        yield client


@pytest.fixture(scope="module")
def data():
    return mixture(900)


def write_parquet(folder, X, y):
    """Two files of two row groups each."""
    for k in range(2):
        own = slice(450 * k, 450 * (k + 1))
        table = pa.table(dict(zip(COLUMNS, X[own].T, strict=True)))
        words = pa.array(np.where(y[own] > 0, "up", "down"))
        table = table.append_column("way", words)
        table = table.append_column("w", pa.array(np.full(450, k + 1.0)))
        pq.write_table(table, folder / f"part-{k}.parquet", row_group_size=300)


def test_parquet_by_row_groups(client, data, tmp_path):
    X, y = data
    write_parquet(tmp_path, X, y)
    w = np.repeat([1.0, 2.0], 450)
    here = LinearSVC(tol=TIGHT).fit(X, np.where(y > 0, "up", "down"), w)
    rows = open_rows(tmp_path, label="way", weight="w", client=client)
    assert (len(rows), rows.shape) == (4, (900, 5))
    there = LinearSVC(tol=TIGHT).fit(rows, rows.vector("label"), rows.vector("weight"))
    assert there.classes_.tolist() == ["down", "up"]
    assert there.feature_names_in_.tolist() == COLUMNS
    assert relative(there, here) <= 1e-9
    two = open_rows(
        tmp_path / "*-1.parquet", label="way", columns=["b", "a"], client=client
    )
    there = LinearSVC(tol=TIGHT).fit(two, two.vector("label"))
    assert relative(there, LinearSVC(tol=TIGHT).fit(X[450:, [1, 0]], y[450:])) <= 1e-9


def write_text(folder, X, y):
    for k in range(3):
        own = slice(300 * k, 300 * (k + 1))
        save_svmlight(X[own], y[own], folder / f"part-{k}.svm")


def test_svmlight_text_by_files(client, data, tmp_path):
    X, y = data
    write_text(tmp_path, X, y)
    here = LinearSVC(tol=TIGHT).fit(X, y)
    options = {"n_features": 5, "zero_based": False, "client": client}
    rows = open_rows(tmp_path / "*.svm", **options)
    there = LinearSVC(tol=TIGHT).fit(rows, rows.vector("label"))
    assert relative(there, here) <= 1e-9


@pytest.mark.parametrize("kind", ["npy", "parquet", "svm"])
def test_files_behind_a_protocol(client, data, tmp_path, kind):
    """As s3:// would be; memory:// is there for workers of this process."""
    X, y = data
    options = {"client": client}
    if kind == "npy":
        np.save(tmp_path / "X-0.npy", X)
        np.save(tmp_path / "y-0.npy", y)
        pattern = "X-*.npy"
    elif kind == "parquet":
        write_parquet(tmp_path, X, y)
        pattern, options = "*.parquet", {"label": "way", "weight": "w"} | options
    else:
        write_text(tmp_path, X, y)
        pattern, options = "*.svm", {"n_features": 5, "zero_based": False} | options
    fsspec.filesystem("memory").put(f"{tmp_path}/", f"/{kind}/", recursive=True)
    rows = open_rows(f"memory://{kind}/{pattern}", **options)
    there = LinearSVC(tol=TIGHT).fit(rows, rows.vector("label"))
    assert relative(there, LinearSVC(tol=TIGHT).fit(X, y)) <= 1e-9


def test_what_files_cannot_be_read_is_said(client, data, tmp_path):
    X, y = data
    for name in ("t.parquet", "t.csv", "t.svm"):
        (tmp_path / name).write_text("1 1:2\n")
    pq.write_table(pa.table({"a": ["x"], "b": [1.0]}), tmp_path / "words.parquet")
    np.save(tmp_path / "X.npy", X)
    head = (tmp_path / "X.npy").read_bytes().replace(b"), }", b"    ")
    (tmp_path / "head.npy").write_bytes(head)
    (tmp_path / "none").mkdir()
    for name, options, message in [
        ("t.parquet", {}, "expected Parquet"),
        ("t.csv", {}, "use dask.dataframe.read_csv"),
        ("t.svm", {}, "'n_features' parameter of open_rows must be a positive int"),
        ("t.svm", {"n_features": 5}, "'zero_based' parameter of open_rows must be"),
        ("t.svm", {"label": "y"}, "must be None for svmlight text"),
        ("words.parquet", {}, "column 'a' must hold numbers on a cluster. Got string"),
        ("words.parquet", {"label": "c"}, "expected a column 'c', found none"),
        ("X.npy", {"n_features": 5}, "must be None for what is no svmlight text"),
        ("X.npy", {"columns": ["a"]}, "must be None for what is no Parquet"),
        ("q*.npy", {}, "expected files of this pattern, found none"),
        ("*", {"n_features": 5}, "use dask.dataframe.read_csv"),
        ("head.npy", {}, "head.npy: expected a .npy array, found something else"),
        ("none", {}, "expected X-*.npy or *.parquet, found neither"),
    ]:
        with pytest.raises((TypeError, ValueError), match=re.escape(message)):
            open_rows(tmp_path / name, client=client, **options)
