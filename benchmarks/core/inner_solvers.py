"""Solvers of the small problems of working sets, which `IRWLS` takes by name."""

import contextlib

from widemargin.solvers.kernel import irwls
from widemargin.solvers.kernel.working_set import Solved

__all__ = ["Solved", "known", "named"]


def known():
    """{name: solver} of the library's own; ``solver(small, stop)`` is a `Solved`."""
    return {name: make() for name, make in irwls.INNER.items()}


@contextlib.contextmanager
def named(solvers):
    """While it is open, ``IRWLS(inner=name)`` knows these, too: {name: solver}."""
    kept = dict(irwls.INNER)
    irwls.INNER.update({name: lambda f=solver: f for name, solver in solvers.items()})
    try:
        yield
    finally:
        irwls.INNER.clear()
        irwls.INNER.update(kept)
