"""Section 5.2: a Gaussian kernel and its approximations of low rank.

Kernel values for scores and errors are scikit-learn's: they share no code with what
they measure.
"""

import statistics
import time

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from papers.crsvm.methods import ONE_CORE
from widemargin import Kernel
from widemargin.features.methods import feature_map

METHODS = {"EIGS": "eigen", "CHOL": "cholesky"}
# The ranks of Figures 5.7b, d and 5.8.
RANKS = {"EIGS": 64, "CHOL": 300}
TILE = 1 << 24  # kernel values in memory at a time


def kernel(data):
    """With sigma = sqrt(l / 2), of l input columns: gamma = 1 / l."""
    return Kernel("rbf", gamma=1.0 / data.inputs)


@ONE_CORE.wrap(limits=1)
def approximation(data, method, rank, repeat):
    """A map of EIGS or CHOL, and the median of its processor seconds.

    A map says its seconds by the wall, without those of its error estimate; what else
    the machine does takes as large a share of them as of all.
    """
    seconds = []
    for _ in range(repeat):
        wall, busy = time.perf_counter(), time.process_time()
        z = feature_map(data.X, kernel(data), METHODS[method], rank, random_state=0)
        share = (time.process_time() - busy) / (time.perf_counter() - wall)
        seconds.append(z.seconds * share)
    return z, round(statistics.median(seconds), 4)


def errors(data, maps):
    """The paper's errors |K - Z Z'|_inf / |K|_inf, largest row sums, of all rows."""
    whole, apart = 0.0, np.zeros(len(maps))
    for part, K in _tiles(data.X, data.X, data):
        whole = max(whole, K.sum(axis=1).max())
        for k, z in enumerate(maps):
            rest = np.abs(K - z.features[part] @ z.features.T)
            apart[k] = max(apart[k], rest.sum(axis=1).max())
    return (apart / whole).tolist()


def scores(data, X, c, b):
    """sum_j c_j k(x, x_j) + b of the rows x of X."""
    used = np.flatnonzero(c)
    tiles = _tiles(X, data.X[used], data)
    return np.concatenate([K @ c[used] for _, K in tiles]) + b


def accuracy(scores, y):
    """Percent of signs that are right."""
    return 100.0 * float(np.mean(np.where(scores >= 0, 1.0, -1.0) == y))


def _tiles(A, B, data):
    """k(A, B), some rows at a time; dense, which is faster here than sparse."""
    B = B.toarray()
    size = max(1, TILE // len(B))
    for start in range(0, A.shape[0], size):
        part = slice(start, start + size)
        yield part, rbf_kernel(A[part].toarray(), B, gamma=1.0 / data.inputs)
