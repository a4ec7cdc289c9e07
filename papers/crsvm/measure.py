"""Solvers of the comparison, and how their runs are measured and summed up."""

import statistics
import time

import numpy as np

from widemargin import Problem, solve
from widemargin.solvers import InteriorPoint

# The paper stops where residuals and mu are below 1e-8. mu = 1e-8 is a relative gap
# 2 m mu / P of 1e-7 (waveform) to 3e-5 (isolet): our times are to a certified 1e-6.
TOL, TIGHT = 1e-6, 1e-8
RULES = {"omega": "omega", "one-sided": "one_sided"}


def published(rule="omega", *, share=1.0, balanced=True, adaptive=True):
    """The method as published: directions from the reduced matrix alone."""
    return InteriorPoint(
        reduction=rule,
        max_active=share,
        balanced=balanced,
        adaptive=adaptive,
        pcg_steps=0,
    )


def repaired(rule="omega", *, share=1.0, balanced=True, adaptive=True):
    """Ours: conjugate gradients repair a direction where Q was too small."""
    return InteriorPoint(
        reduction=rule, max_active=share, balanced=balanced, adaptive=adaptive
    )


def unreduced():
    """Every row in every iteration."""
    return InteriorPoint(reduction=None)


def compare(data, solvers, *, repeat=3, tol=TOL, time_limit=60.0):
    """Run each solver several times, in turn: {label: record}."""
    found = runs(data, solvers, repeat=repeat, tol=tol, time_limit=time_limit)
    return {label: record(*numbers) for label, numbers in found.items()}


def runs(data, solvers, *, repeat=3, tol=TOL, time_limit=60.0, clock=time.perf_counter):
    """The last solution of each solver, and the seconds of all: {label: both}.

    In turn, so that what else the machine does meets all of them alike.
    """
    found = {label: (None, []) for label in solvers}
    for _ in range(repeat):
        for label, solver in solvers.items():
            begin = clock()
            problem = Problem(data.X, data.y)
            solution = solve(problem, solver, tol=tol, time_limit=time_limit)
            seconds = [*found[label][1], clock() - begin]
            found[label] = solution, seconds
    return found


def record(solution, seconds):
    """The numbers of one solver on one problem."""
    trace, certificate = solution.trace, solution.certificate
    active = trace.column("active")
    return {
        "seconds": round(statistics.median(seconds), 4),
        "fastest": round(min(seconds), 4),
        "slowest": round(max(seconds), 4),
        "iterations": trace[-1].iteration,
        "status": str(solution.status),
        "primal": certificate.primal,
        "gap": float(f"{certificate.relative_gap:.3g}"),
        "residual": float(f"{trace[-1].residual:.3g}"),
        "active_mean": round(float(active.mean()), 1),
        "active_last": int(active[-1]),
        "pcg_steps": int(np.nansum(trace.column("pcg_steps"))),
    }


def patterns(record):
    """Patterns in all normal matrices of a run: the work that reduction saves."""
    return record["active_mean"] * (record["iterations"] + 1)


def support_vectors(data, tol=1e-10, least=1e-4):
    """Support vectors and on-boundary ones: all, of class +1, of class -1.

    An alpha counts from ``least`` C on (C = 1), and as C from 1 - ``least``: nothing
    but one pattern of isolet (alpha = 8e-5) is that near.
    """
    alpha = solve(Problem(data.X, data.y), unreduced(), tol=tol).alpha
    on = (alpha > least) & (alpha < 1 - least)
    return _by_class(alpha > least, data.y), _by_class(on, data.y)


def _by_class(chosen, y):
    counts = (chosen, chosen & (y > 0), chosen & (y < 0))
    return [int(np.count_nonzero(c)) for c in counts]


def disagreement(records):
    """Largest relative difference of the objectives among solved runs."""
    primal = [r["primal"] for r in records if r["status"] == "solved"]
    return (max(primal) - min(primal)) / min(primal) if primal else float("nan")


def growth_exponent(sizes, seconds):
    """Slope of seconds over size in log-log, by least squares."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
