"""Cholesky factors that do not fail, with the threads that suit their order."""

import contextlib
import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import cython_lapack
from scipy.linalg.lapack import dpotrs

from widemargin.arrays import Vector
from widemargin.system import deadline
from widemargin.system.threads import ONE_BLAS_THREAD

# Order up to which one thread factors: two gain little, and wait for each other where
# other work has the cores (n = 300: 6 s instead of 1 s in all; n = 1100: 600 ms instead
# of 8 ms for one matrix).
SERIAL_ORDER = 1500


def _routine(name: str, *types: Any) -> Any:
    """A routine of SciPy's LAPACK that lets other threads of Python run meanwhile.

    The functions of `scipy.linalg.lapack` do not: factors of several classes, each in a
    thread, would wait for each other.
    """
    # Objects of our own: attributes of `pythonapi` are those of all the process.
    named, pointer = map(
        ctypes.pythonapi.__getitem__, ("PyCapsule_GetName", "PyCapsule_GetPointer")
    )
    named.restype, named.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer.restype = ctypes.c_void_p
    pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    capsule = cython_lapack.__pyx_capi__[name]
    return ctypes.CFUNCTYPE(None, *types)(pointer(capsule, named(capsule)))


_INT = ctypes.POINTER(ctypes.c_int)
_potrf = _routine("dpotrf", ctypes.c_char_p, _INT, ctypes.c_void_p, _INT, _INT)


def factor_in_place(A: Vector) -> int:
    """Make the lower triangle of a matrix in Fortran's order its Cholesky factor L.

    Returns
    -------
    int, 0, or the order of the leading minor that is not positive definite
    """
    n, info = len(A), ctypes.c_int()
    stride = ctypes.c_int(max(1, n))
    _potrf(b"L", ctypes.c_int(n), A.ctypes.data, stride, info)
    return info.value


def threads_for(order: int) -> contextlib.AbstractContextManager[Any]:
    """Context in which BLAS has the threads that suit a matrix of this order."""
    return ONE_BLAS_THREAD if order <= SERIAL_ORDER else contextlib.nullcontext()


def cholesky(M: Vector) -> tuple[Callable[[Vector], Vector], float]:
    """Solver with a symmetric positive definite matrix, which it overwrites.

    Also returns the jitter: the least share added to the diagonal that lets it factor,
    0 where rounding left the matrix positive definite.
    """
    n = M.shape[0]
    diagonal = M.diagonal().copy()
    # In place where the numbers of a column, or as it is symmetric of a row, follow
    # each other: a copy of 1,500 rows takes a third of the time, of memory that is new.
    A = np.asfortranarray(M if M.flags.f_contiguous else M.T, np.float64)

    def factored(jitter: float) -> Callable[[Vector], Vector]:
        deadline.check(n**3 / 3.0)
        if jitter:  # of a failure the other triangle is as it was
            A[...] = np.triu(A, 1) + np.triu(A, 1).T
        A[np.diag_indices(n)] = diagonal * (1.0 + jitter)
        with threads_for(n):
            info = factor_in_place(A)
        if info != 0:
            raise np.linalg.LinAlgError("the matrix is not positive definite")
        return lambda r: np.asarray(dpotrs(A, r, lower=True)[0])

    return with_jitter(factored)


def with_jitter(factor: Callable[[float], Any]) -> tuple[Any, float]:
    """Factors of a matrix, with the least share added to its diagonal that lets it."""
    for jitter in (0.0, 1e-14, 1e-12, 1e-10, 1e-8):
        try:
            return factor(jitter), jitter
        except np.linalg.LinAlgError:
            pass
    return factor(1e-6), 1e-6
