"""How runs are timed and summed up, alike for every paper."""

import statistics
import time

import numpy as np

from widemargin import solve


def in_turn(make, solvers, *, repeat, tol, time_limit, clock=time.perf_counter):
    """{label: (last solution, seconds of all runs)} of {label: solver}.

    ``make()`` is the problem, which is part of the time. The solvers take turns, so
    that what else the machine does meets all of them alike.
    """
    found = {label: (None, []) for label in solvers}
    for _ in range(repeat):
        for label, solver in solvers.items():
            begin = clock()
            solution = solve(make(), solver, tol=tol, time_limit=time_limit)
            found[label] = solution, [*found[label][1], clock() - begin]
    return found


def repeated(run, repeat, limit):
    """What the last ``run()`` returned, and the seconds of all, or of a long one."""
    seconds = []
    while len(seconds) < repeat:
        begin = time.perf_counter()
        found = run()
        seconds.append(time.perf_counter() - begin)
        if seconds[-1] > limit / 3:
            break
    return found, seconds


def spread(seconds):
    """Median, least and largest of some seconds."""
    return {
        "seconds": rounded(statistics.median(seconds)),
        "fastest": rounded(min(seconds)),
        "slowest": rounded(max(seconds)),
    }


def outcome(solution):
    """How a solve ended: status, objective and relative gap."""
    return {
        "status": str(solution.status),
        "primal": solution.certificate.primal,
        "gap": rounded(solution.certificate.relative_gap, 3),
    }


def coefficients(model, m):
    """C = y alpha (m,) of a fitted SVC of scikit-learn, dense or sparse."""
    c, held = np.zeros(m), model.dual_coef_
    c[model.support_] = np.ravel(held.toarray() if hasattr(held, "toarray") else held)
    return c


def growth_exponent(sizes, seconds):
    """Slope of seconds over size in log-log, by least squares."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def rounded(number, digits=4):
    """To so many digits."""
    return float(f"{number:.{digits}g}")
