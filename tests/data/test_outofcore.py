"""Rows in files: what a fit sees of them, what it takes, and what is refused."""

import contextlib
import os
import tempfile
import threading

import numpy as np
import pytest
from scipy import sparse

from tests.cases.problems import PROBLEMS
from tests.cases.waits import HANGS
from widemargin import LinearSVC, Problem, as_rows, open_rows, save_svmlight, solve
from widemargin.data.outofcore import scratch, stored
from widemargin.solvers import ActiveSet, AugmentedLagrangian, InteriorPoint


@pytest.fixture
def shards(tmp_path):
    """A folder of three shards, written from X and y."""

    def write(X, y, weight=None):
        for k, part in enumerate(np.array_split(np.arange(len(X)), 3)):
            np.save(tmp_path / f"X-{k}.npy", X[part])
            np.save(tmp_path / f"y-{k}.npy", y[part].astype(np.int8))
            if weight is not None:
                np.save(tmp_path / f"weight-{k}.npy", weight[part])
        return tmp_path

    return write


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(stored, "BLOCK_BYTES", 20_000)
    monkeypatch.setattr(stored, "LARGE_BLOCK_BYTES", 20_000)
    monkeypatch.setattr(scratch, "WINDOW_BYTES", 4096)


# -- the same as in memory -------------------------------------------------------------

SOLVERS = {
    "interior_point": (InteriorPoint(), "hinge"),
    "interior_point-squared": (InteriorPoint(), "squared_hinge"),
    "augmented_lagrangian": (AugmentedLagrangian(), "hinge"),
    "active_set": (ActiveSet(), "squared_hinge"),
    "asvm": (ActiveSet(mode="asvm"), "squared_hinge"),
}


@pytest.mark.cover(1)
@pytest.mark.parametrize("where", ["memory", "scratch"])
@pytest.mark.parametrize("name", SOLVERS)
def test_solvers_take_the_steps_of_rows_in_memory(name, where, shards, small_blocks):
    solver, loss = SOLVERS[name]
    X, y = PROBLEMS["ndc"]()
    C = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    rows = open_rows(shards(X, y, C))
    assert sum(map(len, rows._blocks._lanes)) > 10
    if where == "scratch":
        rows._room = 0
    assert np.array_equal(rows.vector("weight"), C)
    found = [
        solve(Problem(r, y, C, loss, "penalized"), solver, tol=1e-6)
        for r in (as_rows(X), rows)
    ]
    ours, theirs = (s.trace.column("primal") for s in found)
    assert len(ours) == len(theirs)
    np.testing.assert_allclose(ours, theirs, rtol=1e-7)
    assert [s.status for s in found] == ["solved", "solved"]
    np.testing.assert_allclose(found[0].w, found[1].w, rtol=1e-5)


def test_text_is_converted_once(tmp_path, monkeypatch):
    monkeypatch.setattr("widemargin.data.svmlight.text.SLICE_BYTES", 3000)
    rng = np.random.default_rng(0)
    X = sparse.random_array((400, 30), density=0.2, rng=rng, format="csr")
    X = sparse.csr_array(sparse.vstack([X, sparse.csr_array((1, 30))]))
    y = rng.choice([-1.0, 1.0], 401)
    for base in (0, 1):
        path = tmp_path / f"{base}.svm.gz"
        save_svmlight(X, y, path, zero_based=base == 0)
        rows = open_rows(path)
        path.unlink()  # it is not needed any more
        assert rows.shape == X.shape
        assert np.array_equal(rows.vector("label"), y)
        assert rows.vector("weight") is None
        w = rng.normal(size=30)
        np.testing.assert_allclose(rows.matvec(w), X @ w, atol=1e-14)
        index = rng.integers(0, 401, 50)
        assert np.array_equal(rows.take(index).toarray(), X[index].toarray())


def test_indices_of_64_bits(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1 5000000000:2\n-1 3:4\n")
    rows = open_rows(tmp_path / "a.svm")
    assert rows.shape == (2, 5_000_000_000)
    assert rows.take([1, 0]).indices.tolist() == [2, 0, 4_999_999_999]


def test_the_next_block_is_read_while_one_is_at_work(shards, small_blocks):
    X, y = PROBLEMS["ndc"]()
    rows = open_rows(shards(X, y), n_jobs=1)
    began, read = threading.Event(), rows._source.read

    def watched(start, stop):
        if start > 0:
            began.set()
        return read(start, stop)

    rows._source.read = watched
    seen = []

    def task(block, part):
        seen.append(began.wait(HANGS))

    rows.sweep(task)
    assert all(seen)


def test_labels_are_columns_or_files(tmp_path):
    X = np.arange(12.0).reshape(4, 3)
    np.save(tmp_path / "a.npy", X)
    np.save(tmp_path / "label.npy", np.array([1, 2, 1, 2]))
    rows = open_rows(tmp_path / "a.npy", label=-1, weight=0)
    assert rows.shape == (4, 1)
    assert rows.vector("label").tolist() == [2, 5, 8, 11]
    assert rows.vector("weight").tolist() == [0, 3, 6, 9]
    np.testing.assert_array_equal(rows.take([2, 0]), X[[2, 0], 1:2])
    rows = open_rows(tmp_path / "a.npy", label=tmp_path / "label.npy")
    assert rows.shape == (4, 3)
    assert rows.vector("label").tolist() == [1, 2, 1, 2]


# -- what is refused -------------------------------------------------------------------


def _shard(folder, array, name="X-7.npy"):
    np.save(folder / name, array)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda f: _shard(f, np.ones((2, 4))),
            "X-7.npy: expected 3 columns of float64",
        ),
        (lambda f: _shard(f, np.ones((2, 3), "f4")), "found 3 columns of float32"),
        (lambda f: _shard(f, np.ones(3)), r"expected a matrix .*, found shape \(3,\)"),
        (
            lambda f: _shard(f, np.ones((2, 3))),
            r"expected 62 numbers, one a row, found 60",
        ),
        (
            lambda f: _shard(f, np.array([["a"] * 3])),
            "expected real numbers, found dtype",
        ),
        (
            lambda f: _shard(f, np.ones((2, 3), np.dtype(float).newbyteorder())),
            "expected values in the byte order of this machine, found dtype .f8; save",
        ),
        (lambda f: _shard(f, np.ones((3, 2)).T), r"expected rows one after the other"),
        (lambda f: os.truncate(f / "X-1.npy", 300), "was it written to the end?"),
        (lambda f: os.truncate(f / "X-1.npy", 3), "X-1.npy: expected a .npy array"),
        (lambda f: os.truncate(f / "X-1.npy", 0), "X-1.npy: expected a .npy array"),
        (
            lambda f: (f / "y-1.npy").unlink(),
            "expected 60 numbers, one a row, found 40",
        ),
    ],
)
def test_damaged_shards_are_refused(damage, message, shards):
    folder = shards(np.ones((60, 3)), np.ones(60))
    damage(folder)
    with pytest.raises(ValueError, match=message):
        open_rows(folder)


@pytest.mark.skipif(
    np.dtype(np.longdouble).itemsize == 8, reason="a longdouble is a float64 here"
)
def test_numbers_wider_than_float64_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((4, 3), np.longdouble))
    with pytest.raises(ValueError, match=r"a.npy: expected numbers of at most 8 bytes"):
        open_rows(tmp_path / "a.npy")


def test_booleans_are_zeros_and_ones_as_in_memory(tmp_path):
    X, y = np.eye(6, 3).astype(bool), np.array([1, -1] * 3)
    np.save(tmp_path / "a.npy", X)
    rows = open_rows(tmp_path / "a.npy")
    assert rows.dtype == np.uint8
    here, there = (LinearSVC().fit(x, y) for x in (X, rows))
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-6)


@pytest.mark.parametrize(
    "labels",
    [
        [["no", "no"], ["yes", "no"], ["maybe"]],
        [np.array([1, 2]), np.array([3, 1], np.int32), np.array([1], np.int8)],
        [np.array([0.5, 2]), np.array([0.25], np.float32), np.array([1.0])],
    ],
    ids=["words", "integers", "numbers"],
)
def test_labels_of_shards_have_the_widest_type(labels, tmp_path):
    for k, part in enumerate(labels):
        np.save(tmp_path / f"X-{k}.npy", np.ones((len(part), 2)))
        np.save(tmp_path / f"y-{k}.npy", part)
    found = open_rows(tmp_path).vector("label")
    expected = np.concatenate(labels)
    assert found.dtype == expected.dtype
    assert found.tolist() == expected.tolist()


def test_labels_of_shards_are_of_one_kind(tmp_path):
    for k, part in enumerate([[1, 2], ["a", "b"]]):
        np.save(tmp_path / f"X-{k}.npy", np.ones((2, 2)))
        np.save(tmp_path / f"y-{k}.npy", part)
    with pytest.raises(ValueError, match="y-1.npy: expected int64 as in .*y-0.npy"):
        open_rows(tmp_path)


@pytest.mark.parametrize("zero_based", ["auto", True, False])
def test_text_without_an_index_has_no_columns(zero_based, tmp_path):
    (tmp_path / "a.svm").write_text("1\n-1\n")
    with pytest.raises(ValueError, match=r'a.svm: expected an "index:value" in some'):
        open_rows(tmp_path / "a.svm", zero_based=zero_based)


def _changed_head(path, old, new):
    path.write_bytes(path.read_bytes().replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"), }", b"    "),  # the brackets of NumPy's head never close
        (b"(60, 3)", b"(-1, 3)"),
        (b"(60, 3)", b"(60,-3)"),
        (b"'<f8'", b"[[1]]"),
        (b"{", b"("),
    ],
)
def test_a_damaged_head_is_no_array(old, new, tmp_path):
    np.save(tmp_path / "a.npy", np.ones((60, 3)))
    _changed_head(tmp_path / "a.npy", old, new)
    with pytest.raises(ValueError, match="a.npy: expected a .npy array"):
        open_rows(tmp_path / "a.npy")


@pytest.mark.filterwarnings("ignore")  # of Python, about what it is given to parse
def test_any_damage_of_a_head_is_refused_or_none(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.ones((4, 3)))
    whole = path.read_bytes()
    for place in range(128):
        for byte in b" (0'{,\n\xff":
            path.write_bytes(whole[:place] + bytes([byte]) + whole[place + 1 :])
            with contextlib.suppress(ValueError):
                open_rows(path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": 3}, "expected a label column from -3 to 2, found 3"),
        ({"label": "none.npy"}, "no such file: none.npy"),
        ({"memory_limit": 1000}, "expected a memory_limit of at least [0-9,]+ bytes"),
        ({"memory_limit": -1}, "'memory_limit' parameter of open_rows must be"),
        ({"n_jobs": 0}, "'n_jobs' parameter of open_rows must be"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, message, shards):
    folder = shards(np.ones((60, 3)), np.ones(60))
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        open_rows(folder, **options)


def test_folders_and_files_that_are_not_there(tmp_path):
    said = r"a folder of data, .* files X-\*.npy .* or files \*.parquet alone, found "
    with pytest.raises(ValueError, match=f"{said}nothing"):
        open_rows(tmp_path)
    for name in (".a", "b", "c.npy"):
        (tmp_path / name).touch()
    with pytest.raises(ValueError, match=f"{said}b, c.npy, .a"):
        open_rows(tmp_path)
    for name in ("no.npy", "no.parquet", "no.svm", "no"):
        with pytest.raises(FileNotFoundError, match=f"no such file: .*{name}"):
            open_rows(tmp_path / name)
    np.save(tmp_path / "a.npy", np.ones((0, 3)))
    with pytest.raises(ValueError, match="expected at least one row, found none"):
        open_rows(tmp_path / "a.npy")
    (tmp_path / "a.svm").write_text("1 1:1\n")
    with pytest.raises(ValueError, match="'label' parameter of open_rows must be None"):
        open_rows(tmp_path / "a.svm", label="y")


@pytest.mark.parametrize("how", ["rewritten", "truncated", "removed"])
def test_a_file_that_changes_between_sweeps_is_noticed(how, shards, small_blocks):
    X, y = PROBLEMS["ndc"]()
    folder = shards(X, y)
    rows = open_rows(folder)
    problem = Problem(rows, y)

    def change(step):
        if step.iteration == 2:
            if how == "rewritten":
                np.save(folder / "X-1.npy", np.load(folder / "X-1.npy") + 1.0)
            elif how == "truncated":
                os.truncate(folder / "X-1.npy", 1000)
            else:
                (folder / "X-1.npy").unlink()

    with pytest.raises(OSError, match="X-1.npy was "):
        solve(problem, InteriorPoint(), callback=change)


# -- temporary files -------------------------------------------------------------------


@pytest.fixture
def scratch_folder(tmp_path, monkeypatch):
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.mark.parametrize("error", [None, KeyboardInterrupt, RuntimeError])
def test_nothing_is_left_in_the_scratch_folder(error, shards, scratch_folder):
    X, y = PROBLEMS["ndc"]()
    rows = open_rows(shards(X, y))
    rows._room = 0
    files = []

    def look(step):
        files.append(os.listdir(scratch_folder))
        if error is not None and step.iteration == 2:
            raise error

    try:
        solve(Problem(rows, y), InteriorPoint(), callback=look)
    except RuntimeError:
        assert error is RuntimeError
    assert files[0] == []  # not even while they are used: they have no names
    assert os.listdir(scratch_folder) == []


def test_a_full_disk_is_one_sentence(shards, scratch_folder, monkeypatch):
    def full(fd, offset, size):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    X, y = PROBLEMS["ndc"]()
    rows = open_rows(shards(X, y))
    rows._room = 0
    message = "no room for [0-9,]+ bytes of row vectors in .*; set TMPDIR to a folder"
    with pytest.raises(OSError, match=message):
        Problem(rows, y)
    assert os.listdir(scratch_folder) == []


def test_blocks_of_all_threads_fit_in_the_limit(tmp_path):
    """Eight threads hold four blocks each: no other test has as many threads."""
    np.save(tmp_path / "X-0.npy", np.ones((4000, 256)))
    sizes, limit = [], 24 << 20
    rows = open_rows(tmp_path, memory_limit=limit, n_jobs=1)
    rows.sweep(lambda block, part: sizes.append(block.nbytes) or 0)
    assert sum(sizes) == 8 * 4000 * 256
    assert 8 * 4 * max(sizes) <= limit
