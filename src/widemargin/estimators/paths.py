"""Machines of rising C; large ones begin where that of the smaller C ended."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from widemargin.arrays import Vector
from widemargin.data.distributed import is_collection
from widemargin.data.rows import Rows
from widemargin.estimators.linear_svc import LinearSVC
from widemargin.estimators.linear_svr import LinearSVR
from widemargin.estimators.plans import Fit
from widemargin.estimators.points import after
from widemargin.estimators.selection import grid
from widemargin.estimators.svc import SVC
from widemargin.estimators.svr import SVR
from widemargin.estimators.training import (
    Training,
)
from widemargin.parameters import Checker
from widemargin.problems.conditioning import sharing_groups


def svc_path(
    X: Any,
    y: ArrayLike,
    *,
    Cs: Any = 10,
    sample_weight: ArrayLike | None = None,
    **params: Any,
) -> tuple[Vector, list[SVC], Vector]:
    """A fitted `SVC` for each of several rising C.

    Parameters
    ----------
    X : array, sparse matrix or Rows (m, n)
    y : array (m,) of labels
    Cs : int or list of floats > 0, default=10
        Values of C. An int: so many, equally spaced in log C from 0.01 to 1,000.
    sample_weight : array (m,) of numbers >= 0, or None
    **params : parameters of `SVC` but ``C``

    Returns
    -------
    Cs : ndarray (C,), rising, each value once
    models : list of SVC, fitted, one for each C
    gaps : ndarray (C,), their certified relative duality gaps

    Notes
    -----
    Of machines too large for the batch solver, each begins where that of the next
    smaller C ended.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import svc_path
    >>> X, y = load_iris(return_X_y=True)
    >>> Cs, models, gaps = svc_path(X, y, Cs=[0.1, 1.0], gamma=0.1)
    >>> [round(model.score(X, y), 2) for model in models], bool(gaps.max() <= 1e-4)
    ([0.95, 0.98], True)
    """
    return _path(SVC, "svc_path", X, y, Cs, sample_weight, params)


def linear_svc_path(
    X: Any,
    y: ArrayLike,
    *,
    Cs: Any = 10,
    sample_weight: ArrayLike | None = None,
    **params: Any,
) -> tuple[Vector, list[LinearSVC], Vector]:
    """A fitted `LinearSVC` for each of several rising C.

    Parameters
    ----------
    X : array, sparse matrix or Rows (m, n)
    y : array (m,) of labels
    Cs : int or list of floats > 0, default=10
        Values of C. An int: so many, equally spaced in log C from 0.01 to 1,000.
    sample_weight : array (m,) of numbers >= 0, or None
    **params : parameters of `LinearSVC` but ``C``

    Returns
    -------
    Cs : ndarray (C,), rising, each value once
    models : list of LinearSVC, fitted, one for each C
    gaps : ndarray (C,), their certified relative duality gaps

    Notes
    -----
    Of machines too large to be solved all at once, each begins where that of the next
    smaller C ended.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import linear_svc_path
    >>> X, y = load_iris(return_X_y=True)
    >>> Cs, models, gaps = linear_svc_path(X, y, Cs=[0.01, 0.1, 1.0])
    >>> models[-1].coef_.shape, bool(gaps.max() <= 1e-4)
    ((3, 4), True)
    """
    return _path(LinearSVC, "linear_svc_path", X, y, Cs, sample_weight, params)


def svr_path(
    X: Any,
    y: ArrayLike,
    *,
    Cs: Any = 10,
    sample_weight: ArrayLike | None = None,
    **params: Any,
) -> tuple[Vector, list[SVR], Vector]:
    """A fitted `SVR` for each of several rising C.

    Parameters
    ----------
    X : array, sparse matrix or Rows (m, n)
    y : array (m,) of finite numbers
    Cs : int or list of floats > 0, default=10
        Values of C. An int: so many, equally spaced in log C from 0.01 to 1,000.
    sample_weight : array (m,) of numbers >= 0, or None
    **params : parameters of `SVR` but ``C``

    Returns
    -------
    Cs : ndarray (C,), rising, each value once
    models : list of SVR, fitted, one for each C
    gaps : ndarray (C,), their certified relative duality gaps

    Notes
    -----
    Of machines too large for the batch solver, each begins where that of the next
    smaller C ended.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from widemargin import svr_path
    >>> X, y = make_friedman1(200, random_state=0)
    >>> Cs, models, gaps = svr_path(X, y, Cs=[1.0, 100.0])
    >>> [round(model.score(X, y), 2) for model in models], bool(gaps.max() <= 1e-4)
    ([0.76, 1.0], True)
    """
    return _path(SVR, "svr_path", X, y, Cs, sample_weight, params)


def linear_svr_path(
    X: Any,
    y: ArrayLike,
    *,
    Cs: Any = 10,
    sample_weight: ArrayLike | None = None,
    **params: Any,
) -> tuple[Vector, list[LinearSVR], Vector]:
    """A fitted `LinearSVR` for each of several rising C.

    Parameters
    ----------
    X : array, sparse matrix or Rows (m, n)
    y : array (m,) of finite numbers
    Cs : int or list of floats > 0, default=10
        Values of C. An int: so many, equally spaced in log C from 0.01 to 1,000.
    sample_weight : array (m,) of numbers >= 0, or None
    **params : parameters of `LinearSVR` but ``C``

    Returns
    -------
    Cs : ndarray (C,), rising, each value once
    models : list of LinearSVR, fitted, one for each C
    gaps : ndarray (C,), their certified relative duality gaps

    Notes
    -----
    Of machines too large to be solved all at once, each begins where that of the next
    smaller C ended.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from widemargin import linear_svr_path
    >>> X, y = make_regression(200, 5, noise=1.0, random_state=0)
    >>> Cs, models, gaps = linear_svr_path(X, y, Cs=[0.01, 1.0, 100.0])
    >>> models[-1].coef_.shape, bool(gaps.max() <= 1e-4)
    ((5,), True)
    """
    return _path(LinearSVR, "linear_svr_path", X, y, Cs, sample_weight, params)


def _path(
    kind: Any,
    owner: str,
    X: Any,
    y: ArrayLike,
    Cs: Any,
    sample_weight: ArrayLike | None,
    params: dict[str, Any],
) -> tuple[Vector, list[Any], Vector]:
    """Machines of one kind."""
    if is_collection(X) and kind not in (LinearSVC, LinearSVR):
        raise TypeError(
            f"{owner} takes no Dask collection: on a cluster linear_svc_path and "
            "linear_svr_path are there. X.compute() brings it here."
        )
    Cs = grid(Checker(owner), "Cs", Cs)
    if "C" in params:
        Checker(owner).refuse_part("Cs", "hold the values of C", "C too")
    if is_collection(X):
        from widemargin.estimators import selection_on_cluster

        models = [kind(C=C, **params) for C in Cs.tolist()]
        selection_on_cluster.train_path(models, X, y, sample_weight)
        return Cs, models, np.array([model.dual_gap_ for model in models])
    models = []
    rows: list[Rows] = []  # of the first fit: they know more by then
    with sharing_groups():
        for C in Cs.tolist():
            model = kind(C=C, **params)
            plan = after(model, models[-1] if models else None)
            is_linear = kind in (LinearSVC, LinearSVR)  # others may take objects
            data = rows[0] if rows and is_linear else X  # looked through once
            model._fit(data, y, sample_weight, functools.partial(_over, rows, plan))
            models.append(model)
    return Cs, models, np.array([model.dual_gap_ for model in models])


def _over(
    rows: list[Rows], plan: Callable[..., Fit], training: Training, *target: Vector
) -> Fit:
    """Carry out a plan over the rows of the first fit, which become known here."""
    if not rows:
        rows.append(training.rows)
    return plan(dataclasses.replace(training, rows=rows[0]), *target)
