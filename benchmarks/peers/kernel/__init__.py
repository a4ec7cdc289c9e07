"""Packages that solve the problem with an RBF kernel, one file each.

A peer has

* ``DISTRIBUTION``: what pip installs, for its version;
* ``ladders(is_sparse)``: lists of settings, each from coarse to fine, so that after one
  that takes too long the finer ones need no try;
* ``prepared(X, **setting)``: X as this package likes it best, made before the clock
  starts: a C-contiguous float64 array or CSR matrix is given;
* ``trained(X, y, C, gamma, **setting)``: a fitted estimator with ``predict``;
* ``fit``, with the same arguments: an `Answer`. y holds -1 and +1.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse


class Answer(NamedTuple):
    """What a package found.

    Attributes
    ----------
    alpha : ndarray (m,), the dual variables, 0 <= alpha <= C
    b : float
    more : dict, numbers that the package tells: rows of K, working sets
    """

    alpha: np.ndarray
    b: float
    more: dict[str, Any]


def as_given(X, kind):
    """X as ``kind``: "dense" or "sparse", of 64 or 32 bits; for example "dense32"."""
    dtype = np.float32 if kind.endswith("32") else np.float64
    if kind.startswith("dense"):
        dense = X.toarray() if sparse.issparse(X) else X
        return np.ascontiguousarray(dense, dtype=dtype)
    return sparse.csr_matrix(X, dtype=dtype)


def kinds(is_sparse):
    """The kinds of input that are worth a try."""
    return ("dense64", "dense32", *(("sparse64", "sparse32") if is_sparse else ()))


def coefficients(model):
    """Those of the support vectors, 1-D; from sparse rows some packages give sparse."""
    coef = model.dual_coef_
    return np.ravel(coef.toarray() if sparse.issparse(coef) else coef)


def of_model(model, X):
    """The answer of a fitted model with scikit-learn's attributes."""
    alpha = np.zeros(X.shape[0])
    alpha[np.asarray(model.support_)] = np.abs(coefficients(model))
    return Answer(alpha, float(np.ravel(model.intercept_)[0]), {})
