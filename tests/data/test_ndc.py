"""Normally distributed clusters: facts of the generator, and the files written."""

import _thread
import builtins
import errno
import os
import sys

import numpy as np
import pytest
from pyarrow import parquet

from widemargin import load_svmlight, make_ndc
from widemargin.data import ndc, writing
from widemargin.data.ndc import ndc_blocks
from widemargin.data.writing import format_of, write_blocks

NAMES = ["folder", "a.parquet", "a.svm", "a.TXT.gz", "a.bz2"]


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 100 rows, shards of 250."""
    monkeypatch.setattr(ndc, "_BLOCK_ROWS", 100)
    monkeypatch.setattr(writing, "SHARD_ROWS", 250)


def mixture(n=32, random_state=0, expand=10.0, centers=20):
    dtype = np.dtype(float)
    return ndc._mixture(
        ndc._Settings(n, random_state, "train", expand, centers, dtype, "")
    )


def read(path):
    """The rows of a file or folder, as they are stored."""
    if format_of(path) == "text":
        X, y = load_svmlight(path)
        return X.toarray(), y
    if format_of(path) == "parquet":
        table = parquet.read_table(path)
        columns = [column.to_numpy() for column in table.columns]
        return np.column_stack(columns[:-1]), columns[-1]
    files = sorted(os.listdir(path))
    shards = [np.load(path / name) for name in files]
    half = len(files) // 2
    return np.concatenate(shards[:half]), np.concatenate(shards[half:])


# -- rows ------------------------------------------------------------------------------


def test_rows_are_integers_of_two_classes():
    X, y = make_ndc(3000, 8, 3)
    assert (X.shape, X.dtype, y.shape, y.dtype) == ((3000, 8), float, (3000,), float)
    assert X.flags.c_contiguous
    assert np.array_equal(X, np.round(X))
    assert 100 < np.abs(X).max() < 2**15
    assert set(y) == {-1.0, 1.0}


def test_the_seed_says_all():
    X, y = make_ndc(300, 8, 3)
    for same in (
        make_ndc(300, 8, random_state=3),
        make_ndc(np.int64(300), np.int8(8), 3),
    ):
        np.testing.assert_array_equal(X, same[0])
        np.testing.assert_array_equal(y, same[1])
    assert not np.array_equal(make_ndc(300, 8, 4)[0], X)
    huge = make_ndc(300, 8, 10**30)[0]
    np.testing.assert_array_equal(make_ndc(300, 8, 10**30)[0], huge)


@pytest.mark.parametrize("m", [1, 99, 100, 101, 250])
def test_the_first_rows_do_not_depend_on_how_many_there_are(m, small_blocks):
    X, y = make_ndc(1000, 5)
    fewer, labels = make_ndc(m, 5)
    np.testing.assert_array_equal(fewer, X[:m])
    np.testing.assert_array_equal(labels, y[:m])


def test_the_rows_are_these():
    """The same on every machine: sums are exact, whatever adds them up."""
    X, y = make_ndc(3, 4, 7)
    assert X.tolist() == [[18, -88, -59, -74], [67, 13, -3, -29], [29, 24, 38, -10]]
    assert y.tolist() == [1, 1, 1]


def test_sums_are_exact():
    """Noise and roots are integers times powers of 2: longer arithmetic says the same."""
    made, settings = mixture(40), ndc._Settings(40, 0, "train", 10.0, 20, None, "")
    noise = np.random.default_rng(0).standard_normal((50, 40), dtype=np.float32)
    rows = ndc._cluster(settings, made, 3, noise.copy())
    whole = np.rint(noise.astype(float) * 2**20).astype(object)
    sums = (whole @ made.roots[3].astype(object)).astype(float)
    expected = np.rint(sums * (20.0 / 2**36) + made.points[3])
    np.testing.assert_array_equal(rows, expected)


@pytest.mark.parametrize("dtype", [np.int16, "float32", np.float32, "f8"])
def test_every_dtype_holds_the_same_numbers(dtype):
    X, y = make_ndc(500, 6, dtype=dtype)
    assert X.dtype == dtype
    np.testing.assert_array_equal(X, make_ndc(500, 6)[0])
    assert y.dtype == np.float64


def test_blocks_are_the_rows(small_blocks):
    X, y = make_ndc(350, 5, dtype=np.int16)
    blocks = list(ndc_blocks(350, 5, dtype=np.int16))
    assert [len(labels) for _, labels in blocks] == [100, 100, 100, 50]
    np.testing.assert_array_equal(np.concatenate([rows for rows, _ in blocks]), X)
    np.testing.assert_array_equal(np.concatenate([labels for _, labels in blocks]), y)
    assert all(rows.flags.c_contiguous for rows, _ in blocks)


def test_blocks_of_many_columns_are_small():
    X, y = next(ndc_blocks(10_000, 1000, centers=2, dtype=np.int16))
    assert X.shape == (4000, 1000)


def test_the_test_part_has_the_same_centers_and_other_rows(small_blocks):
    X, y = make_ndc(400, 4, expand=0.02)
    fresh, labels = make_ndc(400, 4, expand=0.02, part="test")
    assert not np.array_equal(X, fresh)
    for rows, classes in ((X, y), (fresh, labels)):
        made = mixture(4, expand=0.02)
        distances = np.abs(rows[:, None] - made.points).max(axis=2)
        assert distances.min(axis=1).max() <= 1
        np.testing.assert_array_equal(classes, made.classes[distances.argmin(axis=1)])


@pytest.mark.parametrize(
    ("expand", "least", "most"),
    [(1.0, 0.85, 1.0), (3.0, 0.7, 0.97), (10.0, 0.55, 0.82)],
)
def test_share_of_rows_on_their_side_of_the_plane(expand, least, most):
    """Published: 1: 0.86 to 0.96, 3: 0.71 to 0.89, 10: 0.57 to 0.74, of three draws."""
    shares = []
    for seed in range(6):
        made = mixture(random_state=seed, expand=expand)
        X, y = make_ndc(5000, random_state=seed, expand=expand)
        shares.append(np.mean(np.where(X @ made.plane >= made.offset, 1, -1) == y))
    assert least < min(shares) <= max(shares) <= most
    assert least < np.mean(shares) < (least + most + 0.1) / 2


def test_columns_are_strongly_correlated():
    X, _ = make_ndc(5000)
    correlation = np.corrcoef(X.T)
    assert correlation.min() > 0.4
    assert np.linalg.eigvalsh(correlation)[-1] > 0.6 * 32


def test_clusters_have_the_moments_that_they_should():
    made = mixture(3, centers=2)
    X, y = make_ndc(50_000, 3, centers=2)
    for j in range(2):
        rows = X[y == made.classes[j]]
        root = 20.0 * made.roots[j] / 2**16
        covariance = root.T @ root
        error = np.sqrt(np.diag(covariance) / len(rows))
        np.testing.assert_array_less(
            np.abs(rows.mean(axis=0) - made.points[j]), 5 * error
        )
        np.testing.assert_allclose(np.cov(rows.T), covariance, rtol=0.1)
    shares = np.diff(made.ends, prepend=0)
    assert np.mean(y == made.classes[0]) == pytest.approx(shares[0], abs=0.01)


@pytest.mark.parametrize("seed", range(30))
def test_both_classes_have_a_center(seed):
    assert set(mixture(1, seed, centers=2).classes) == {-1.0, 1.0}


# -- refusals --------------------------------------------------------------------------


@pytest.mark.parametrize("function", [make_ndc, ndc_blocks])
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"m": 0}, r"'m' .* an int in the range \[1, inf\). Got 0 instead."),
        ({"m": 2.0}, r"'m' .* an int in the range \[1, inf\). Got 2.0 instead."),
        ({"n": 0}, r"'n' .* an int in the range \[1, 4096\]. Got 0 instead."),
        ({"n": 5000}, r"'n' .* an int in the range \[1, 4096\]. Got 5000 instead."),
        ({"n": True}, r"'n' .* an int in the range \[1, 4096\]. Got True instead."),
        ({"random_state": -1}, r"'random_state' .* \[0, inf\). Got -1 instead."),
        ({"random_state": None}, r"'random_state' .* \[0, inf\). Got None instead."),
        ({"part": "rest"}, "'part' .* one of 'train', 'test' .*'test'.*Got 'rest' instead."),
        ({"expand": 0}, r"'expand' .* in the range \(0, 1e\+06\]. Got 0 instead."),
        ({"expand": np.nan}, r"'expand' .* \(0, 1e\+06\]. Got nan instead."),
        ({"centers": 1}, r"'centers' .* in the range \[2, 10000\]. Got 1 instead."),
        ({"n": 4096, "centers": 65}, "'centers' .* be at most 64 with 4096 columns. Got 65"),
        ({"dtype": "int8"}, "'dtype' .* be int16, float32, float64. Got int8 instead."),
        ({"dtype": ">f8"}, "'dtype' .* be int16, float32, float64. Got >f8 instead."),
        ({"dtype": "no"}, "'dtype' .* be int16, float32, float64. Got no instead."),
    ],
)  # fmt: skip
def test_parameters(function, arguments, said):
    said = said.replace("' .* ", f"' parameter of {function.__name__} .*")
    with pytest.raises((ValueError, TypeError), match=f"^The {said}"):
        function(**{"m": 10, **arguments})


@pytest.mark.parametrize(
    ("dtype", "expand"), [("int16", 1e4), ("float32", 1e6), (np.int16, 1e6)]
)
def test_nothing_is_clipped_or_rounded(dtype, expand):
    name = np.dtype(dtype).name
    said = f"must hold every value. Got {name} and the value -?[0-9]+ instead.$"
    with pytest.raises(ValueError, match=f"^The 'dtype' parameter of make_ndc {said}"):
        make_ndc(1000, 100, expand=expand, dtype=dtype)
    X, _ = make_ndc(1000, 100, expand=expand)
    assert np.abs(X).max() > 2**15


# -- files -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("m", [80, 200, 250, 730])
def test_every_format_holds_the_same_rows(tmp_path, small_blocks, name, m):
    path = tmp_path / name
    write_blocks(path, ndc_blocks(m, 5, 1, dtype="int16"))
    X, y = make_ndc(m, 5, 1)
    rows, labels = read(path)
    np.testing.assert_array_equal(rows, X)
    np.testing.assert_array_equal(labels, y)
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("dtype", ["int16", "float32", "float64"])
def test_dtypes_of_files(tmp_path, dtype):
    for name in ("folder", "a.parquet"):
        write_blocks(tmp_path / name, ndc_blocks(10, 3, dtype=dtype))
        rows, labels = read(tmp_path / name)
        assert (rows.dtype, labels.dtype) == (dtype, np.int8)


def test_shards(tmp_path, small_blocks):
    write_blocks(tmp_path / "new", ndc_blocks(500, 5, dtype="float32"))
    names = [f"{letter}-{k:05}.npy" for letter in "Xy" for k in range(3)]
    assert sorted(os.listdir(tmp_path / "new")) == names
    for k, rows in enumerate([200, 200, 100]):
        X = np.load(tmp_path / "new" / f"X-{k:05}.npy", mmap_mode="r")
        y = np.load(tmp_path / "new" / f"y-{k:05}.npy")
        assert (X.shape, X.dtype, X.flags.c_contiguous) == ((rows, 5), np.float32, True)
        assert (y.shape, y.dtype) == ((rows,), np.int8)


def test_a_shard_has_a_million_rows(tmp_path):
    write_blocks(tmp_path / "new", ndc_blocks(1_000_001, 1, dtype="int16"))
    sizes = [len(np.load(tmp_path / "new" / f"y-0000{k}.npy")) for k in range(2)]
    assert sizes == [1_000_000, 1]


def test_parquet_has_a_row_group_for_every_block(tmp_path, small_blocks):
    write_blocks(tmp_path / "a.parquet", ndc_blocks(250, 3, dtype="int16"))
    file = parquet.ParquetFile(tmp_path / "a.parquet")
    assert file.schema_arrow.names == ["x0", "x1", "x2", "label"]
    assert [str(kind) for kind in file.schema_arrow.types] == ["int16"] * 3 + ["int8"]
    groups = [file.metadata.row_group(k).num_rows for k in range(3)]
    assert (file.num_row_groups, groups) == (3, [100, 100, 50])


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("folder", "shards"),
        ("a.svm/", "shards"),
        ("folder.d/name", "shards"),
        ("a.Parquet", "parquet"),
        ("a.libsvm.XZ", "text"),
        ("a.gz", "text"),
    ],
)
def test_the_name_says_the_format(name, found):
    assert format_of(name) == found


@pytest.mark.parametrize(
    ("name", "found"),
    [("a.csv", ".csv"), ("a.parquet.gz", ".gz"), ("a.npy", ".npy"), ("v1.2", ".2")],
)
def test_other_endings_are_refused(name, found):
    said = f"^{name}: expected a name for data, which ends in .*, found '{found}'$"
    with pytest.raises(ValueError, match=said):
        write_blocks(name, [])


@pytest.mark.parametrize("name", NAMES)
def test_no_rows(tmp_path, name):
    with pytest.raises(ValueError, match="expected rows to write, found none$"):
        write_blocks(tmp_path / name, [])
    assert os.listdir(tmp_path) == []


# -- what goes wrong -------------------------------------------------------------------


@pytest.mark.parametrize("what", ["folder", "file", "empty folder"])
def test_shards_replace_nothing(tmp_path, what):
    path = tmp_path / "old"
    if what == "file":
        path.write_text("old")
    else:
        path.mkdir()
        if what == "folder":
            (path / "X-00000.npy").write_text("old")
    kind = what.split()[-1]
    said = f"^expected a new name for a folder, found one of a {kind}: {path}$"
    with pytest.raises(FileExistsError, match=said):
        write_blocks(path, ndc_blocks(10))
    assert os.listdir(tmp_path) == ["old"]
    assert path.is_file() or len(os.listdir(path)) == (what == "folder")


def test_a_folder_that_appears_meanwhile_is_kept(tmp_path, small_blocks):
    def blocks():
        yield from ndc_blocks(300)
        (tmp_path / "new").mkdir()

    with pytest.raises(FileExistsError, match="found one of a folder"):
        write_blocks(tmp_path / "new", blocks())
    assert os.listdir(tmp_path) == ["new"]
    assert os.listdir(tmp_path / "new") == []


@pytest.mark.parametrize("name", NAMES)
def test_a_file_without_a_folder(tmp_path, name):
    with pytest.raises(FileNotFoundError, match=f"^no such folder: {tmp_path}/none$"):
        write_blocks(tmp_path / "none" / name, ndc_blocks(10))


def full_disk(monkeypatch):
    """Have every file that is opened for writing fill the disk at its third write."""

    class Full:
        def __init__(self, file):
            self.file, self.writes = file, 0

        def write(self, data):
            self.writes += 1
            if self.writes > 2:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return self.file.write(data)

        def __getattr__(self, name):
            return getattr(self.file, name)

        def __enter__(self):
            return self

        def __exit__(self, *error):
            self.file.close()

    real = builtins.open

    def opened(path, mode="r", *arguments, **options):
        file = real(path, mode, *arguments, **options)
        return Full(file) if "x" in mode else file

    monkeypatch.setattr(builtins, "open", opened)
    monkeypatch.setattr("widemargin.data.writing.opener", lambda path: opened)
    monkeypatch.setattr(
        "widemargin.system.files.replacing.__wrapped__.__defaults__", (opened,)
    )


@pytest.mark.parametrize("name", ["folder", "a.parquet", "a.svm"])
def test_a_full_disk_leaves_nothing(tmp_path, small_blocks, monkeypatch, name):
    full_disk(monkeypatch)
    with pytest.raises(OSError, match="No space left on device") as caught:
        write_blocks(tmp_path / name, ndc_blocks(1000, dtype="int16"))
    assert caught.value.filename == str(tmp_path / name)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_interruption_leaves_nothing(tmp_path, small_blocks, name, error):
    def blocks():
        yield from ndc_blocks(700)
        assert len(os.listdir(tmp_path)) == 1  # work has begun
        if error is KeyboardInterrupt:
            _thread.interrupt_main()
        else:
            raise error
        yield from ndc_blocks(700)

    with pytest.raises(error):
        write_blocks(tmp_path / name, blocks())
    assert os.listdir(tmp_path) == []


def test_an_interruption_keeps_the_old_file(tmp_path, small_blocks):
    (path := tmp_path / "a.parquet").write_text("old")
    with pytest.raises(ValueError, match="hold every value"):
        write_blocks(path, ndc_blocks(500, expand=1200.0, dtype="int16"))
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.parquet"]


def test_parquet_needs_an_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    said = r"^a Parquet file needs the extra 'parquet': pip install .*\[parquet\]"
    with pytest.raises(ImportError, match=said):
        write_blocks(tmp_path / "a.parquet", ndc_blocks(10))
    assert os.listdir(tmp_path) == []
