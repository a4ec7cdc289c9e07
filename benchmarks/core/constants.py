"""A solver with other constants: changing them for a while, and what a solve costs."""

import contextlib
import time

from widemargin import solve


@contextlib.contextmanager
def changed(constants, *modules):
    """The solver with these constants, each in the first module that has it."""
    homes = {
        name: next(vars(m) for m in modules if hasattr(m, name)) for name in constants
    }
    kept = {name: home[name] for name, home in homes.items()}
    for name, home in homes.items():
        home[name] = constants[name]
    try:
        yield
    finally:
        for name, home in homes.items():
            home[name] = kept[name]


def described(constants):
    """What differs from the solver as it is."""
    return ", ".join(f"{k} {v:g}" for k, v in constants.items()) or "as is"


def measure(problem, solver, tol, limit=30.0):
    """CPU seconds, steps and sweeps of all rows."""
    seconds = []
    while len(seconds) < 3 and sum(seconds) < limit / 3:
        begin = time.process_time()
        solution = solve(problem, solver, tol=tol, time_limit=limit)
        seconds.append(time.process_time() - begin)
    if solution.status != "solved":
        return "-"
    rows = solution.trace.column("rows")
    return f"{min(seconds):.3f} ({len(rows)}, {(rows == rows.max()).sum()})"
