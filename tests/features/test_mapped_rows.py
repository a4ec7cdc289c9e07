"""Feature maps of rows of any storage, and rows after a map: computed or stored once."""

import errno
import gc
import os
import tempfile
from types import SimpleNamespace

import numpy as np
import pytest

from tests.cases.kernels import matrix, plain
from tests.conftest import STORAGES, stored
from widemargin import Kernel, LinearSVC, as_rows
from widemargin.data.blocks import Least
from widemargin.data.outofcore.stored import StoredRows
from widemargin.features.methods import METHODS, eigen, feature_map, fourier, nystroem

RBF, SQUARE = Kernel("rbf", gamma=0.4), Kernel("poly", gamma=0.7, degree=2, coef0=0.5)
# Every method that works on a sample of the rows.
SAMPLED = {
    "cholesky": {"method": "cholesky"},
    **{
        name: {"method": "nystroem", "landmarks": name}
        for name in ("uniform", "kmeans++", "leverage", "residual")
    },
    "fourier": {"method": "fourier"},
}
on_every_method = pytest.mark.parametrize("options", SAMPLED.values(), ids=SAMPLED)
on_every_storage = pytest.mark.parametrize("storage", STORAGES, ids=lambda s: s.name)


def made(rows, rank, **options):
    given = {"random_state": 0, "features": False, **options}
    return feature_map(rows, RBF, rank=rank, **given)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of temporary files, for a look at what is left."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def assert_measured(z, K, Z, rel=1e-9):
    """The residuals of the map are those of features Z of all rows."""
    R, rounding = K - Z @ Z.T, 1e-12
    residual = np.trace(R) / np.trace(K)
    assert z.trace_residual == pytest.approx(residual, rel=rel, abs=rounding)
    error = np.abs(R).sum(axis=1).max() / np.abs(K).sum(axis=1).max()
    assert z.error == pytest.approx(error, rel=rel, abs=rounding)


# -- maps ------------------------------------------------------------------------------


@on_every_storage
def test_a_map_of_every_storage(storage):
    X = np.rint(2.0 * matrix(90, 4))
    rows, exact = storage.make(X), storage.exact(X)
    before = rows.sweeps
    z = feature_map(rows, RBF, "nystroem", 8, random_state=0, features=False)
    # For NaN and for the residuals; and two times rows were taken, where that counts.
    assert 2 <= rows.sweeps - before <= 4
    assert z.features is None
    chosen = rows.take(z.landmarks)
    same = z.vectors != chosen
    assert not (same.any() if isinstance(same, np.ndarray) else same.nnz)
    assert_measured(z, plain(RBF, exact, exact), z.transform(exact))


@on_every_method
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("convert", [stored, as_rows])
def test_landmarks_are_of_a_sample(options, dtype, convert, monkeypatch):
    monkeypatch.setattr("widemargin.features.builder.SAMPLE", 40)
    X = matrix(300, 5)
    z = made(convert(X), 25, dtype=dtype, **options)
    Z = z.transform(X).astype(np.float64)
    assert_measured(z, plain(RBF, X, X), Z, 1e-9 if dtype == np.float64 else 1e-4)
    assert z.error_rows == 300
    assert z.dtype == dtype
    if z.landmarks is not None:
        np.testing.assert_array_equal(z.vectors, X[z.landmarks])
        assert len(set(z.landmarks)) == 25
        assert z.landmarks.max() > 40
    assert made(convert(X), 1000, **options).rank <= (1000 if z.vectors is None else 40)


def test_without_a_sample_it_is_the_same_map():
    X = matrix(200, 4)
    for options in SAMPLED.values():
        lean, z = (made(X, 15, features=f, **options) for f in (False, True))
        assert z.features is not None
        trace = z.trace_residual
        if options.get("landmarks") == "uniform":  # drawn after the sample
            assert lean.trace_residual == pytest.approx(trace, rel=0.3)
        else:
            assert lean.trace_residual <= 1.3 * trace + 1e-12
    z = feature_map(stored(X), SQUARE, "polynomial")
    assert z.features is None
    assert abs(z.trace_residual) < 1e-12


def test_rows_that_may_be_copied_are_few_under_a_limit():
    X = matrix(500, 4)
    rows = stored(X)
    rows.copy_rows = 30.5
    z = made(rows, 100, method="nystroem")
    assert z.rank == 30
    mapped = z.rows(rows, "never")
    assert mapped.copy_rows == pytest.approx(30.5 * 12 / 38)


@pytest.mark.parametrize("name", ["scale", "mean_distance", "auto"])
def test_a_word_for_gamma_takes_no_further_sweep(name):
    X = matrix(60, 3)
    rows = as_rows(X)
    z = nystroem(rows, Kernel("rbf", gamma=name), 10, features=False)
    assert rows.sweeps == 2
    assert z.kernel == Kernel("rbf", gamma=name).resolved(as_rows(X))


# -- rows after a map ------------------------------------------------------------------


@pytest.mark.cover(1)
@on_every_storage
@pytest.mark.parametrize("store", ["never", "always"])
def test_rows_after_a_map(storage, store, folder):
    X = matrix(70, 4)
    rows, X = storage.make(X, memory_limit=2500), storage.exact(X)
    z = nystroem(X, RBF, 9, "residual", random_state=0)
    Z = z.rows(rows, store)
    assert isinstance(Z, StoredRows) == (store == "always")
    expected = z.transform(X)
    atol = 1e-11
    if store == "always":
        expected, atol = expected.astype(np.float32).astype(np.float64), 1e-6
        assert Z.dtype == np.float32
    assert Z.shape == (70, 9)
    assert Z.density == 1.0
    index = np.array([5, 69, 5, 0])
    np.testing.assert_allclose(Z.take(index), expected[index], atol=atol)
    rng = np.random.default_rng(0)
    w, v, d = rng.normal(size=9), rng.normal(size=70), rng.random(70)
    np.testing.assert_allclose(Z.matvec(w), expected @ w, atol=10 * atol)
    np.testing.assert_allclose(Z.rmatvec(v), expected.T @ v, atol=50 * atol)
    gram = expected.T @ (d[:, np.newaxis] * expected)
    np.testing.assert_allclose(Z.gram(d), gram, atol=50 * atol)
    assert not list(folder.iterdir())  # no name


@pytest.mark.parametrize("pieces", [1, 3, 1000])
def test_a_block_is_mapped_in_pieces(pieces, monkeypatch):
    for name in ("MAPPED_ROWS", "MAPPED_NUMBERS", "MOST_NUMBERS"):
        monkeypatch.setattr(f"widemargin.data.rows.{name}", 2 * pieces)
    X = matrix(20, 3)
    Z = fourier(X, RBF, 2, random_state=0).rows(X, "never")
    state = Z.state(row=np.arange(20), seen=np.zeros(20))

    def f(block, part, one):
        part.seen += block[:, 0]
        part.row = part.row + one
        first = Least(float(block[0, 0]), int(part.row[0]))
        return len(block), block.sum(axis=0), [part.row.copy()], first

    count, sums, seen, first = Z.sweep(f, state, 1)
    exact = Z.take(np.arange(20))
    assert count == 20
    np.testing.assert_allclose(sums, exact.sum(axis=0))
    np.testing.assert_array_equal(np.concatenate(seen), np.arange(1, 21))
    np.testing.assert_array_equal(state.row, np.arange(1, 21))
    np.testing.assert_allclose(state.seen, exact[:, 0])
    begins = exact[:: min(pieces, 20), 0]
    assert first.key == begins.min()
    assert first.value == 1 + begins.argmin() * min(pieces, 20)


@pytest.mark.parametrize("store", ["never", "always"])
def test_a_solver_on_rows_in_files_is_one_on_features(store):
    X = matrix(400, 2) * 3.0
    y = np.where((X**2).sum(axis=1) < np.median((X**2).sum(axis=1)), 1, -1)
    z = nystroem(X, RBF, 40, "residual", random_state=0, dtype=np.float32)
    inside, outside = (
        LinearSVC(C=10.0, tol=1e-6).fit(Z, y)
        for Z in (z.features, z.rows(stored(X), store))
    )
    assert outside.status_ == "solved"
    primal = inside.solution_.certificate.primal
    assert outside.solution_.certificate.primal == pytest.approx(primal, rel=1e-4)


def test_auto_stores_what_is_read_faster(monkeypatch):
    X = as_rows(np.random.default_rng(0).normal(size=(300, 4)), n_jobs=1)
    few, many = (
        nystroem(X, RBF, rank, random_state=0, features=False) for rank in (20, 200)
    )
    size = 4 * 300 * many.rank
    for memory, is_stored in ((size, True), (size - 1, False)):
        name = "widemargin.features.maps.free_bytes"
        monkeypatch.setattr(name, lambda memory=memory: memory)
        assert isinstance(many.rows(X), StoredRows) == is_stored
    monkeypatch.setattr("widemargin.features.maps.free_bytes", lambda: 1 << 30)
    assert not isinstance(few.rows(X), StoredRows)
    assert not isinstance(many.rows(as_rows(X.in_memory(), n_jobs=8)), StoredRows)
    for free, is_stored in ((2 * size, True), (2 * size - 1, False)):
        usage = SimpleNamespace(free=free)
        name = "widemargin.features.maps.shutil.disk_usage"
        monkeypatch.setattr(name, lambda _, usage=usage: usage)
        assert isinstance(many.rows(X), StoredRows) == is_stored


def test_auto_needs_no_folder_for_temporary_files(monkeypatch):
    X = matrix(300, 4)
    z = nystroem(X, RBF, 200, random_state=0, features=False)

    def missing():
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr("widemargin.features.maps.tempfile.gettempdir", missing)
    monkeypatch.setattr("widemargin.features.maps.COMPUTED", 1.0)
    assert not isinstance(z.rows(X), StoredRows)


def test_the_file_is_closed_with_the_rows(folder):
    X = matrix(50, 3)
    z = nystroem(X, RBF, 5, random_state=0)
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    Z = z.rows(X, "always")
    assert len(os.listdir("/proc/self/fd")) == before + 1
    assert not list(folder.iterdir())
    del Z
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before


# -- what is refused, and what is left then --------------------------------------------


def test_what_needs_all_rows_says_so():
    X = matrix(40, 3)
    with pytest.raises(ValueError, match="'rows' parameter of eigen must be in memory"):
        eigen(stored(X), RBF, 5)
    with pytest.raises(ValueError, match="'rows' .* nystroem must be in memory"):
        nystroem(stored(X), RBF, 5, features=True)
    for rows, options in ((stored(X @ X.T), {}), (X @ X.T, {"features": False})):
        with pytest.raises(ValueError, match="held, for a precomputed kernel. Got a s"):
            nystroem(rows, Kernel("precomputed"), 5, **options)
    with pytest.raises(TypeError, match="'features' .* one of None, True, False"):
        nystroem(X, RBF, 5, features=[])
    z = nystroem(X, RBF, 5)
    with pytest.raises(
        ValueError, match="be in memory. Got rows that are not .take `r"
    ):
        z.transform(stored(X))
    with pytest.raises(ValueError, match="must have 3 columns. Got 2"):
        z.rows(X[:, :2])
    with pytest.raises(ValueError, match="'store' .* one of 'auto', 'never', 'always'"):
        z.rows(X, "disk")


@pytest.mark.parametrize("method", [name for name in METHODS if name != "eigen"])
def test_bad_rows_in_files_are_refused(method):
    kernel, rank = (SQUARE, None) if method == "polynomial" else (RBF, 4)
    X = matrix(40, 3)
    bad = X.copy()
    bad[7, 1] = np.nan
    with pytest.raises(ValueError, match="Got NaN at row 7, column 1"):
        feature_map(stored(bad), kernel, method, rank)
    z = feature_map(X, kernel, method, rank)
    for store in ("never", "always"):
        with pytest.raises(ValueError, match="Got NaN at row 7, column 1"):
            z.rows(stored(bad), store).refuse_nonfinite()


@on_every_method
def test_duplicates_and_rank_out_of_core(options):
    X = np.repeat(matrix(9, 4), 10, axis=0)
    z = made(stored(X), 40, **options)
    if z.landmarks is not None:
        assert z.rank <= 9
    assert np.isfinite(z.rows(stored(X)).matvec(np.ones(z.rank))).all()
    with pytest.raises(ValueError, match=r"'rank' .* must be an int in the range"):
        made(stored(X), 0, **options)


def test_a_kernel_without_a_trace_is_refused_out_of_core():
    for method in ("cholesky", "nystroem"):
        with pytest.raises(ValueError, match="must have a positive trace .* Got 0 ins"):
            feature_map(stored(np.zeros((9, 2))), Kernel("linear"), method, 2)


def test_no_room_on_the_disk(folder, monkeypatch):
    X = matrix(40, 3)
    z = nystroem(X, RBF, 5, random_state=0)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(
        OSError, match=r"^no room for 800 bytes of rows in .* more room$"
    ):
        z.rows(X, "always")
    assert not list(folder.iterdir())


def test_no_way_to_write(folder, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "missing"))
    X = matrix(40, 3)
    with pytest.raises(
        OSError, match=r"^no way to write for 800 bytes.* TMPDIR to ano"
    ):
        nystroem(X, RBF, 5, random_state=0).rows(X, "always")


def test_ctrl_c_while_storing_leaves_nothing(folder):
    def interrupted(A, B):
        if len(list(folder.iterdir())) == 1:
            raise KeyboardInterrupt
        return plain(RBF, A, B)

    X = matrix(60, 3)
    z = nystroem(X, Kernel(interrupted), 5)
    with pytest.raises(KeyboardInterrupt):
        z.rows(X, "always")
    assert not list(folder.iterdir())
