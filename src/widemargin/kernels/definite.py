"""Whether some rows show that a kernel is not positive semidefinite.

The least eigenvalue of a part of K is at least that of K: where a part has a negative
one, K has. The converse does not hold: what a sample does not show may be there.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf

from widemargin.kernels.matrix import Columns
from widemargin.system.threads import ONE_BLAS_THREAD

# Rows that are looked at: 0.5 ms, where a fit of 1,000 given rows takes 6, and one
# of 3,000 takes 40.
SAMPLE = 200
# The least eigenvalue, in units of the largest value, that may be rounding: values of
# users may be those of float32, whose rounding has norms of 3e-6 here.
ROUNDING = 1e-5


def is_indefinite(K: NDArray[np.float64]) -> bool:
    """Whether a symmetric matrix (k, k) has an eigenvalue that is clearly below 0."""
    size = float(np.abs(K).max(initial=0.0))
    if not 0.0 < size < np.inf:
        return False
    M = np.array(K / size, order="F")
    M[np.diag_indices(len(M))] += ROUNDING
    with ONE_BLAS_THREAD:
        return bool(dpotrf(M, lower=True, overwrite_a=True)[1] > 0)


def sample(m: int, most: int = SAMPLE) -> NDArray[np.intp]:
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
