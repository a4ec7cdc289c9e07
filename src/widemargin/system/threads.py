"""How many threads there are, and BLAS kept to one of them while ours are at work."""

import contextlib
import os
import threading
from typing import Any

import numpy as np
import scipy.linalg
import threadpoolctl

# The BLAS libraries of NumPy and SciPy, which scipy.linalg loads. Found here, once:
# it takes 15 ms, which a first fit shall not wait for.
_BLAS: Any = threadpoolctl.ThreadpoolController().select(user_api="blas")


def _touch_buffers() -> None:
    """Let BLAS allocate what it works in, as many times as threads may call it.

    OpenBLAS keeps it for good. Where there is no memory for it later, SciPy's OpenBLAS
    waits forever, or ends the process. First the threads of BLAS take part in one
    call; then as many of ours call it at the same time, each alone: where all of these
    shared their work too, importing took up to a second on a busy machine.
    """
    threads = n_threads(None)
    barrier, A = threading.Barrier(threads), np.eye(256)

    def touch() -> None:
        """Call NumPy's and SciPy's BLAS."""
        np.linalg.cholesky(A @ A)
        scipy.linalg.cholesky(scipy.linalg.blas.dgemm(1.0, A, A))

    def together() -> None:
        """The same, when all of our threads are there."""
        barrier.wait()
        touch()

    touch()
    with ONE_BLAS_THREAD:
        workers = [threading.Thread(target=together) for _ in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()


class _OneBlasThread(contextlib.ContextDecorator):
    """Keeps BLAS to one thread while any sweep runs: the threads are ours.

    Also in functions of a few products of vectors: its threads would turn for 0.1 s
    after each, in wait for more.

    The number is global to the process: the first sweep in sets it, the last one out
    restores it. Where Ctrl-C or a fork came between, the next sweep out does.
    """

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._before: list[int] | None = None  # threads, until they are restored
        if hasattr(os, "register_at_fork"):  # no other thread may hold the lock then
            os.register_at_fork(
                before=self._lock.acquire,
                after_in_parent=self._lock.release,
                after_in_child=self._after_fork,
            )

    def __enter__(self) -> None:
        with self._lock:
            if self._before is None:
                before = _blas_threads()
                _set_blas_threads([1] * len(before))
                self._before = before
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0 and self._before is not None:
                _set_blas_threads(self._before)
                self._before = None

    def _after_fork(self) -> None:
        """Forget the sweeps of threads that the child does not have."""
        self._inside = 0
        self._lock.release()

    def threads(self) -> int:
        """Threads that BLAS may use outside of sweeps."""
        with self._lock:
            return max([1, *(self._before or _blas_threads())])


ONE_BLAS_THREAD = _OneBlasThread()


def _blas_threads() -> list[int]:
    """Threads of each BLAS library."""
    return [int(library.num_threads) for library in _BLAS.lib_controllers]


def _set_blas_threads(threads: list[int]) -> None:
    """Set the number of threads of each BLAS library.

    Not by `threadpoolctl.threadpool_limits`, which takes 60 us: as much as a sweep of a
    small set. Since threadpoolctl 3.8 only the first thread that has ever set the
    number may do so again, and is ignored silently elsewhere, unless it is released:
    the last sweep out may run in another thread.
    """
    for library, number in zip(_BLAS.lib_controllers, threads, strict=True):
        if library.num_threads != number:
            _release(library)
            library.set_num_threads(number)
            _release(library)


def _release(library: Any) -> None:
    """Let any thread set the number of threads of a library."""
    if hasattr(library, "clear_controlling_thread"):
        library.clear_controlling_thread(force=True)


def n_threads(n_jobs: int | None) -> int:
    """Threads a sweep may use: ``n_jobs``, or what BLAS may use (joblib limits it)."""
    return ONE_BLAS_THREAD.threads() if n_jobs is None or n_jobs < 0 else n_jobs


_touch_buffers()  # before anything large is allocated
