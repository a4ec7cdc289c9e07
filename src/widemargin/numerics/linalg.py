"""The only dense/CSR/C++ dispatch: what solvers do with one block of rows.

A *block* is some rows of the data in memory: a dense array, a CSR array, or a view of
one of these (`widemargin.data.rows`). Blocks multiply with ``@``; what ``@`` cannot say
is here. Sums are float64 whatever the dtype of the data.
"""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from widemargin import _core
from widemargin.arrays import Index, Vector

Matrix: TypeAlias = "NDArray[Any] | sparse.csr_array"

# Above this share of nonzeros a BLAS product of the densified block beats scattering
# the outer products of sparse rows (benchmarks/core/sweeps.py).
DENSE_GRAM_DENSITY = 0.25
# Columns up to which the core makes dense Gram matrices: with more, BLAS is as fast.
# (benchmarks/core/sweeps.py; without AVX, in the core and in BLAS, fits of 8 to 126
# columns take 0.6 to 1.0 of the time.) Solvers add them up in float64, while BLAS adds
# up a whole block in float32, which shows in 8 digits how rows are cut into blocks.
CORE_GRAM_COLUMNS = 128

# Entries from which it is worth a second thread to look at them all once: that takes
# 2 ms, and its start 0.1 ms.
SHARED_ENTRIES = 1 << 21

# Entries of dense rows that are looked at for how many are not zero, and the least and
# the most rows of them: a tenth of a millisecond.
LOOKED_AT, LEAST_LOOKED_AT, MOST_LOOKED_AT = 1 << 16, 32, 256
GOLDEN = 0.5 * (5.0**0.5 - 1.0)

# Dense entries that the C++ core reads as they are.
_CORE_TYPES = {np.dtype(t) for t in (np.float64, np.float32, np.int16, np.uint8)}


def n_bytes(X: Matrix) -> int:
    """Bytes of the stored numbers of X."""
    if isinstance(X, np.ndarray):
        return X.nbytes
    return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)


def row_lengths(block: Any) -> NDArray[Any]:
    """How many entries of each row are stored, (k,)."""
    if sparse.issparse(block):
        return np.diff(block.indptr)
    return np.full(block.shape[0], block.shape[1])


def density(X: Matrix) -> float:
    """Share of the entries of X that are stored."""
    return (
        1.0 if isinstance(X, np.ndarray) else float(X.nnz / (X.shape[0] * X.shape[1]))
    )


def sparse_rows(X: Matrix, threads: int = 1) -> sparse.csr_array:
    """CSR rows; of a dense array in 0.4 of the time that SciPy takes, by one thread.

    That finds rows and columns of all entries that are not zero, and sorts them
    (`benchmarks/core/copies.py`).
    """
    if not isinstance(X, np.ndarray):
        return sparse.csr_array(X)
    Z, threads = in_core(X), _worth(threads, X)
    counts, starts = np.empty(len(Z), np.int64), np.zeros(len(Z) + 1, np.int64)
    _core.dense_counts(Z, counts, threads)
    np.cumsum(counts, out=starts[1:])
    # Zeros: columns in range, where another thread clears entries meanwhile.
    columns, values = np.zeros(starts[-1], np.int32), np.empty(starts[-1], Z.dtype)
    _core.dense_entries(Z, starts, columns, values, threads)
    indptr = starts
    if starts[-1] <= np.iinfo(np.int32).max:
        indptr = starts.astype(np.int32)
    else:
        columns = columns.astype(np.int64)
    rows = sparse.csr_array(X.shape, dtype=Z.dtype)  # see row_slice
    rows.data, rows.indices, rows.indptr = values, columns, indptr
    rows.has_canonical_format = True
    return rows


def share_of_nonzeros(X: Matrix) -> float:
    """Share of the entries that are not zero; of some rows, where X is dense."""
    if not isinstance(X, np.ndarray):
        return density(X)
    m, rows = len(X), min(max(LOOKED_AT // X.shape[1], LEAST_LOOKED_AT), MOST_LOOKED_AT)
    # Parts of the golden ratio spread, in step with nothing that may repeat.
    sample = X if m <= rows else X[(np.arange(rows) * GOLDEN % 1.0 * m).astype(np.intp)]
    return float(np.count_nonzero(sample)) / sample.size


def holds_ones(X: Matrix, index: NDArray[Any] | None = None) -> bool:
    """Whether sparse rows have no entries but 0 and 1; no others if they lie in a row.

    False for a dense matrix, for entries that occur twice and zeros that are stored.
    """
    if isinstance(X, np.ndarray) or not X.has_canonical_format:
        return False
    data = X.data
    if index is not None and len(index) and index[-1] - index[0] + 1 == len(index):
        data = data[X.indptr[index[0]] : X.indptr[index[-1] + 1]]
    return bool(np.all(data == 1))


def is_canonical(X: Any) -> bool:
    """Whether columns of a CSR matrix rise in each row, and none is out of range.

    One pass, which believes nothing; False also for numbers that the core does not
    read, and for arrays that are no CSR matrix.
    """
    try:
        rows = _core.csr(X.indptr, X.indices, X.data, X.shape[1])
    except (TypeError, ValueError):
        return False
    fits = len(X.indptr) == X.shape[0] + 1 and X.indptr[0] == 0
    return bool(fits and _core.csr_is_canonical(rows))


def row_slice(X: Matrix, start: int, stop: int) -> Matrix:
    """Rows start..stop-1 of X as a view: (stop - start, n)."""
    if isinstance(X, np.ndarray):
        return X[start:stop]
    low, high = X.indptr[start], X.indptr[stop]
    if stop - start == X.shape[0] and high == len(X.data):
        return X
    # Set field by field: the constructor would scan and may copy the indices.
    rows = sparse.csr_array((stop - start, X.shape[1]), dtype=X.dtype)
    rows.data, rows.indices = X.data[low:high], X.indices[low:high]
    rows.indptr = X.indptr[start : stop + 1] - low
    return rows


def columns(X: Matrix, order: Index) -> Matrix:
    """The columns of X in another order, as a copy."""
    if isinstance(X, np.ndarray):
        return np.take(X, order, axis=1)
    chosen: sparse.csr_array = X[:, order]
    chosen.sort_indices()
    return chosen


def matvec(block: Any, W: Any) -> Vector:
    """Product block W, float64, for W (n,) or (n, j)."""
    in_core = sparse.issparse(block) or _is_mixed(block)
    if in_core and W.ndim == 2 and W.shape[1] == 1:
        return matvec(block, W[:, 0])[:, np.newaxis]
    if not (in_core and W.ndim == 1):
        return np.asarray(block @ W)
    if W.shape[0] != block.shape[1]:
        raise ValueError(
            f"W must have length {block.shape[1]}. Got shape {W.shape} instead."
        )
    out, w = np.empty(block.shape[0]), np.ascontiguousarray(W, dtype=np.float64)
    if sparse.issparse(block):
        _core.csr_matvec(_csr(block), w, out)
    else:
        _core.dense_matvec(block, w, out)
    return out


def rmatvec(block: Any, U: Any) -> Vector:
    """Product block' U, float64, for U (k,) or (k, j)."""
    in_core = sparse.issparse(block) or _is_mixed(block)
    if in_core and U.ndim == 2 and U.shape[1] == 1:
        return rmatvec(block, U[:, 0])[:, np.newaxis]
    if not (in_core and U.ndim == 1):
        return np.asarray(block.T @ U)
    out, u = np.zeros(block.shape[1]), np.ascontiguousarray(U, dtype=np.float64)
    if sparse.issparse(block):
        _core.csr_rmatvec(_csr(block), u, out)
    else:
        _core.dense_rmatvec(block, u, out)
    return out


def _is_mixed(block: Any) -> bool:
    """Whether NumPy would convert a dense block to float64 that the core does not."""
    return (
        isinstance(block, np.ndarray)
        and block.dtype != np.float64
        and is_in_core(block)
    )


def is_in_core(block: Any) -> bool:
    """Whether the core reads the numbers of a block as they are."""
    if isinstance(block, np.ndarray):
        flags = block.flags
        return block.dtype in _CORE_TYPES and flags.c_contiguous and flags.aligned
    return block.data.dtype in (np.float32, np.float64)


def gram(
    block: Any, d: Vector, intercept: bool = False, dtype: Any = np.float64
) -> Vector:
    """Weighted Gram matrix block' diag(d) block: (n, n) float64.

    With ``intercept`` of [block 1], (n + 1, n + 1). Costs what the rows with d != 0
    cost. Dense rows make it in the ``dtype``: float32 takes half of the time, and loses
    about 6e-8 of its trace, or all where that is beyond 1e38.
    """
    if sparse.issparse(block):
        k, n = block.shape
        if block.nnz > DENSE_GRAM_DENSITY * k * n:
            return gram(_float64(block).toarray(), d, intercept, dtype)
        out = np.zeros((n + intercept,) * 2)
        _core.csr_gram(_csr(block), np.ascontiguousarray(d, dtype=np.float64), out)
        return out
    if _has_core_gram(block):
        out = np.empty((block.shape[1] + intercept,) * 2)
        _core.dense_gram(block, d, out, rough=dtype is np.float32)
        return out
    if isinstance(block, SignedBlock):
        inner = block.gram(d, dtype)
    else:
        inner = _blas_gram(block, d, dtype)
    if not intercept:
        return np.asarray(inner, dtype=np.float64)
    n = len(inner)
    out = np.empty((n + 1, n + 1))
    out[:n, :n], out[n, n] = inner, d.sum()
    out[n, :n] = out[:n, n] = rmatvec(block, d)
    return out


def _blas_gram(block: NDArray[Any], d: Vector, dtype: Any) -> NDArray[Any]:
    if d.min(initial=0.0) < 0.0:  # what syrk can do has one sign
        up, down = (_blas_gram(block, np.maximum(e, 0.0), dtype) for e in (d, -d))
        up -= down
        return up
    rows = np.flatnonzero(d)
    if rows.size < 0.8 * d.size:
        block, d = block[rows], d[rows]
    root = np.sqrt(d).astype(np.result_type(block, dtype))
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = (block * root[:, np.newaxis]).astype(dtype, copy=False)
        return np.asarray(scaled.T @ scaled)  # NumPy recognizes A'A and calls syrk


def takes_blas(n: int, density: float) -> bool:
    """Whether BLAS makes Gram matrices of rows with n columns, all or most of them."""
    return n > CORE_GRAM_COLUMNS and density > DENSE_GRAM_DENSITY


def _has_core_gram(block: Any) -> bool:
    """Whether the core makes the Gram matrix of a dense block, faster than BLAS."""
    return (
        isinstance(block, np.ndarray)
        and block.shape[1] <= CORE_GRAM_COLUMNS
        and is_in_core(block)
    )


def sparse_gram(block: Any, d: Vector) -> sparse.csr_array:
    """Weighted Gram matrix of a CSR block, or a signed view of one, kept sparse."""
    if isinstance(block, SignedBlock):
        block = sparse.csr_array(block.matrix())
    return sparse.csr_array(block.T @ sparse.csr_array(sparse.diags_array(d) @ block))


def row_products(block: Any, scale: Vector) -> Vector:
    """Products block diag(scale) block' of all pairs of rows: (k, k)."""
    if isinstance(block, SignedBlock):
        return block.row_products(scale)
    if sparse.issparse(block) and density(block) > DENSE_GRAM_DENSITY:
        block = _float64(block).toarray()
    if not sparse.issparse(block):
        return np.asarray((block * scale) @ block.T, dtype=np.float64)
    out = np.empty((block.shape[0],) * 2)
    _core.csr_row_products(_csr(block), np.ascontiguousarray(scale), out)
    return out


def gram_diagonal(block: Any, d: Vector) -> Vector:
    """Diagonal of the weighted Gram matrix block' diag(d) block: (n,)."""
    if isinstance(block, SignedBlock):
        return block.gram_diagonal(d)
    if sparse.issparse(block):
        return _csr_column_sums(block, d)[1]
    return np.asarray(np.square(block, dtype=np.float64).T @ d)


def weighted_product(block: Any, d: Vector, w: Vector) -> Vector:
    """Product block' diag(d) block w: (n,). Sparse rows with d = 0 are not read."""
    if isinstance(block, SignedBlock):
        return block.weighted_product(d, w)
    if not sparse.issparse(block):
        return rmatvec(block, d * matvec(block, w))
    out = np.zeros(w.size)
    _core.csr_weighted_product(_csr(block), d, w, out)
    return out


def row_squares(block: Any) -> Vector:
    """Squares |x_i|^2 of the rows of a block: (k,)."""
    if isinstance(block, SignedBlock):
        return row_squares(block._X) + float(block._intercept)
    if not isinstance(block, np.ndarray):
        out = np.empty(block.shape[0])
        _core.csr_row_squares(_csr(block), out)
        return out
    return np.asarray(np.einsum("ij,ij->i", block, block, dtype=np.float64))


def column_sums(block: Any, threads: int = 1) -> tuple[Vector, Vector]:
    """Sums and sums of squares of the columns, (n,) each; may overflow, silently.

    They do not depend on the threads.
    """
    block = formed(block)
    if isinstance(block, np.ndarray) and is_in_core(block):
        sums, squares = np.zeros(block.shape[1]), np.zeros(block.shape[1])
        _core.dense_column_sums(block, sums, squares, _worth(threads, block))
        return sums, squares
    ones = np.ones(block.shape[0])
    if sparse.issparse(block):
        return _csr_column_sums(block, ones)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.einsum("ij,ij->j", block, block, dtype=np.float64)
        return rmatvec(block, ones), squares


def _csr_column_sums(block: Any, d: Vector) -> tuple[Vector, Vector]:
    """Block' d, and the diagonal of block' diag(d) block, of CSR rows."""
    sums, squares = np.zeros(block.shape[1]), np.zeros(block.shape[1])
    _core.csr_column_sums(_csr(block), np.ascontiguousarray(d), sums, squares)
    return sums, squares


def reach(X: Any, center: Vector, absolute: bool, threads: int = 1) -> float:
    """The largest |x - center|^2 of dense rows, or |x - center|_1; may overflow."""
    return _core.dense_reach(in_core(X), center, absolute, _worth(threads, X))


def _worth(threads: int, X: Any) -> int:
    """The threads that it is worth to look at all entries with."""
    return threads if X.size >= SHARED_ENTRIES else 1


def nonfinite(block: Any) -> tuple[Index, Index, NDArray[Any]]:
    """Rows, columns and values of the NaN and infinite entries of a block."""
    if isinstance(block, SignedBlock):
        return nonfinite(block._X)  # signs and ones are finite
    if sparse.issparse(block):
        stored = block.tocoo()
        bad = np.flatnonzero(~np.isfinite(stored.data))
        rows, columns = stored.coords
        return rows[bad], columns[bad], stored.data[bad]
    rows, columns = np.nonzero(~np.isfinite(block))
    return rows, columns, block[rows, columns]


def all_finite(block: Any) -> bool:
    """Whether a block holds no NaN and no infinity."""
    if isinstance(block, SignedBlock):
        return all_finite(block._X)  # signs and ones are finite
    stored = block.data[: block.nnz] if sparse.issparse(block) else block
    return bool(np.isfinite(stored).all())


def first_below(block: Any, least: float) -> tuple[int, float] | None:
    """Column and value of an entry of a dense or CSR block that is below, if any."""
    is_sparse = sparse.issparse(block)
    stored = block.data[: block.nnz] if is_sparse else block.ravel()
    if not stored.size or not stored.min() < least:
        return None
    i = int((stored < least).argmax())
    column = block.indices[i] if is_sparse else i % block.shape[1]
    return int(column), float(stored[i])


def formed(block: Any) -> Any:
    """The block as a dense or CSR array, also where it is a view of one."""
    return block.matrix() if isinstance(block, SignedBlock) else block


def _float64(block: Any) -> Any:
    """A CSR block with float64 entries: what repeats is added up in float64 too."""
    return block.astype(np.float64, copy=False)


def stack(blocks: list[Any]) -> Any:
    """Blocks of rows on top of each other: one dense or CSR array, or view of one.

    Of a dtype that holds the numbers of all. Dense blocks are taken out of the list one
    by one: where nobody else refers to them (a band of the rows), they need not stay
    beside their copy.
    """
    if len(blocks) == 1:
        return blocks[0]
    if isinstance(blocks[0], SignedBlock):
        return blocks[0].stacked(blocks)
    if sparse.issparse(blocks[0]):
        return sparse.csr_array(sparse.vstack(blocks))
    dtype = np.result_type(*{block.dtype for block in blocks})
    out = np.empty((sum(map(len, blocks)), blocks[0].shape[1]), dtype)
    end = len(out)
    while blocks:
        block = blocks.pop()
        out[end - len(block) : end] = block
        end -= len(block)
    return out


def dense(X: Any) -> Vector:
    """X as a dense float64 array."""
    array = _float64(X).toarray() if sparse.issparse(X) else X
    return np.asarray(array, dtype=np.float64)


def shifted(block: Any, center: Vector) -> Any:
    """Block minus 1 center'; a CSR block stays sparse where center is zero."""
    block = formed(block)
    if not sparse.issparse(block):
        return block - center
    columns = np.flatnonzero(center)
    ones = np.ones((block.shape[0], columns.size))
    shift = sparse.coo_array(
        ((ones * center[columns]).ravel(), np.nonzero(ones)), shape=ones.shape
    )
    wide = sparse.csr_array(shift)
    wide.indices = columns[wide.indices].astype(wide.indices.dtype)
    return block - sparse.csr_array(
        (wide.data, wide.indices, wide.indptr), shape=block.shape
    )


class SignedBlock:
    """The block Y [X 1] (k, n + 1), or Y X, of a block X and signs y; never formed."""

    def __init__(self, X: Any, y: Vector, intercept: bool) -> None:
        self.shape = (X.shape[0], X.shape[1] + intercept)
        self._X, self._y, self._intercept = X, y, intercept

    def __matmul__(self, V: Any) -> Vector:
        n = self._X.shape[1]
        product = matvec(self._X, V[:n])
        if self._intercept:
            product += V[n]
        return np.asarray(_rows_times(self._y, product))

    @property
    def parts(self) -> tuple[Matrix, Vector, bool]:
        """X, formed, y, and whether there is an intercept."""
        return formed(self._X), self._y, self._intercept

    @property
    def T(self) -> "_TransposedSignedBlock":
        """The transpose, of which there is the product with vectors."""
        return _TransposedSignedBlock(self)

    def __getitem__(self, rows: Index) -> "SignedBlock":
        X = self._X
        # Of an array `take` needs 0.4 of the time.
        own = X.take(rows, 0) if isinstance(X, np.ndarray) else X[rows]
        return SignedBlock(own, self._y[rows], self._intercept)

    def rmatvec(self, U: Any) -> Vector:
        """Product (Y [X 1])' U: (n + 1,) or (n + 1, j)."""
        product = rmatvec(self._X, _rows_times(self._y, U))
        if self._intercept:
            return np.concatenate([product, np.asarray(self._y @ U)[np.newaxis]])
        return product

    def gram(self, d: Vector, dtype: Any = np.float64) -> Vector:
        """[X 1]' diag(d) [X 1], since Y^2 = I: (n + 1, n + 1). See `gram`."""
        return gram(self._X, d, self._intercept, dtype)

    @property
    def has_core_gram(self) -> bool:
        """Whether the core makes `gram`, and beside other sums in the same pass."""
        return _has_core_gram(self._X)

    def gram_diagonal(self, d: Vector) -> Vector:
        """Diagonal of `gram`: (n + 1,)."""
        inner = gram_diagonal(self._X, d)
        return np.append(inner, d.sum()) if self._intercept else inner

    def weighted_product(self, d: Vector, w: Vector) -> Vector:
        """Product [X 1]' diag(d) [X 1] w, since Y^2 = I: (n + 1,)."""
        if sparse.issparse(self._X):
            return weighted_product(self._X, d, w)
        return self.rmatvec(d * (self @ w))

    def row_products(self, scale: Vector) -> Vector:
        """Products of all pairs of rows: see `row_products`."""
        n = self._X.shape[1]
        inner = row_products(self._X, scale[:n])
        if self._intercept:
            inner += scale[n]
        inner *= self._y
        inner *= self._y[:, np.newaxis]
        return inner

    def in_core(self) -> _core.Block:
        """The rows as the sweeps of the C++ core read them."""
        dtype = np.int8 if self._y.dtype == np.int8 else np.float64
        y = np.ascontiguousarray(self._y, dtype=dtype)
        return _core.block(in_core(formed(self._X)), y, self._intercept)

    def stacked(self, blocks: "list[SignedBlock]") -> "SignedBlock":
        """These blocks on top of each other, all with an intercept or none."""
        X, y = stack([b._X for b in blocks]), np.concatenate([b._y for b in blocks])
        return SignedBlock(X, y, self._intercept)

    def matrix(self) -> Matrix:
        """The block, formed: dense or CSR."""
        X = formed(self._X)
        if self._intercept:
            ones = np.ones((X.shape[0], 1))
            X = sparse.hstack([X, ones]) if sparse.issparse(X) else np.hstack([X, ones])
        if sparse.issparse(X):
            return sparse.csr_array(sparse.diags_array(self._y, dtype=np.float64) @ X)
        return np.asarray(self._y[:, np.newaxis] * X)


class _Twin(SignedBlock):
    """A signed block that makes products with a vector for another one too."""

    def __init__(
        self, X: Any, y: Vector, intercept: bool, made: dict[str, Any]
    ) -> None:
        super().__init__(X, y, intercept)
        self._made = made

    def __matmul__(self, V: Any) -> Vector:
        if self._made.get("with") is not V:
            ones = np.ones(self.shape[0])
            product = SignedBlock(self._X, ones, self._intercept) @ V
            self._made |= {"with": V, "product": product}
        return np.asarray(_rows_times(self._y, self._made["product"]))


def twins(X: Any, signs: list[Vector], intercept: bool) -> list[SignedBlock]:
    """Signed blocks of the same X, which share a product with the same vector."""
    made: dict[str, Any] = {}
    return [_Twin(X, y, intercept, made) for y in signs]


class _TransposedSignedBlock:
    """Transpose of a signed block: all it can do is multiply."""

    def __init__(self, block: SignedBlock) -> None:
        self._block = block

    def __matmul__(self, U: Any) -> Vector:
        return self._block.rmatvec(np.asarray(U))


def _rows_times(y: Vector, U: Any) -> Any:
    """diag(y) U for U (k,) or (k, j)."""
    return y * U if U.ndim == 1 else y[:, np.newaxis] * U


def _csr(block: Any) -> _core.Csr:
    """A CSR block as the C++ core reads it: arrays of types that it takes."""
    data = block.data
    if data.dtype not in (np.float32, np.float64):
        data = data.astype(np.float64)
    indptr = block.indptr.astype(block.indices.dtype, copy=False)
    return _core.csr(indptr, block.indices, data, block.shape[1])


def in_core(X: Matrix) -> Any:
    """X as the C++ core reads rows: an array, or `_core.Csr`.

    By reference; entries of other types than the core knows are copied as float64, and
    dense rows that are not contiguous in C order.
    """
    if not isinstance(X, np.ndarray):
        return _csr(X)
    if is_in_core(X):
        return X
    dtype = X.dtype if X.dtype in _CORE_TYPES else np.float64
    return np.require(X, dtype, ["C", "A"])
