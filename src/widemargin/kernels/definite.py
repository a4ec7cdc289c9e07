"""Whether some rows show that a kernel is not positive semidefinite.

The least eigenvalue of a part of K is at least that of K: where a part has a negative
one, K has. The converse does not hold: what a sample does not show may be there.
"""

import numpy as np
from scipy.linalg.lapack import dpotrf

from widemargin.arrays import Index, Mask, Vector
from widemargin.kernels.matrix import Columns
from widemargin.system.threads import ONE_BLAS_THREAD

# Rows that are looked at: 0.5 ms, where a fit of 1,000 given rows takes 6, and one
# of 3,000 takes 40.
SAMPLE = 200
# Parts of up to so many rows are factored all at once, in steps of NumPy: 780 of 20
# rows in 4 ms, where calls of LAPACK take 40; 45 of 200 rows would take 160. Their
# values are made at once, too, up to so many rows: 32 MB.
FEW, FEW_TOGETHER = 64, 2_000
# The least eigenvalue, in units of the largest value, that may be rounding: values of
# users may be those of float32, whose rounding has norms of 3e-6 here.
ROUNDING = 1e-5


def is_indefinite(K: Vector) -> bool:
    """Whether a symmetric matrix (k, k) has an eigenvalue that is clearly below 0."""
    size = float(np.abs(K).max(initial=0.0))
    if not 0.0 < size < np.inf:
        return False
    M = np.array(K / size, order="F")
    M[np.diag_indices(len(M))] += ROUNDING
    with ONE_BLAS_THREAD:
        return bool(dpotrf(M, lower=True, overwrite_a=True)[1] > 0)


def are_indefinite(K: Vector) -> Mask:
    """Whether symmetric matrices (t, k, k) have eigenvalues clearly below 0: (t,)."""
    n = K.shape[1]
    size = np.abs(K).max(axis=(1, 2), initial=0.0)
    told: Mask = (size > 0.0) & (size < np.inf)
    M = K[told] / size[told, np.newaxis, np.newaxis]
    M[:, np.arange(n), np.arange(n)] += ROUNDING
    found = np.zeros(len(M), np.bool_)
    for j in range(n):  # a step of Cholesky's factorization of all matrices
        pivot = M[:, j, j]
        found |= ~(pivot > 0.0)
        share = M[:, j + 1 :, j] / np.where(found, 1.0, pivot)[:, np.newaxis]
        share[found] = 0.0
        M[:, j + 1 :, j + 1 :] -= share[:, :, np.newaxis] * M[:, np.newaxis, j, j + 1 :]
    told[told] = found
    return told


def sample(m: int, most: int = SAMPLE) -> Index:
    """Some of m rows, always the same: all of them, if they are few."""
    count = min(m, most)
    if count == m:
        return np.arange(m)
    return np.sort(np.random.default_rng(0).choice(m, count, replace=False))


def shows_indefinite(columns: Columns) -> bool:
    """Whether a sample of rows shows that their kernel is indefinite."""
    if columns.kernel.is_psd:
        return False
    most = min(columns.block_rows, SAMPLE)
    J = sample(columns.twins or columns.shape[0], most)
    return is_indefinite(columns.block(J, J).astype(np.float64))
