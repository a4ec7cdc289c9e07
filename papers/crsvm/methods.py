"""Solvers of the comparison, and the numbers of a run."""

import numpy as np

from papers.measure import in_turn, outcome, rounded, spread
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


def runs(data, solvers, *, tol=TOL, time_limit=60.0, **options):
    """The last solution of each solver, and the seconds of all: {label: both}."""
    return in_turn(
        lambda: Problem(data.X, data.y),
        solvers,
        tol=tol,
        time_limit=time_limit,
        **options,
    )


def record(solution, seconds):
    """The numbers of one solver on one problem."""
    trace = solution.trace
    active = trace.column("active")
    return {
        **spread(seconds),
        "iterations": trace[-1].iteration,
        **outcome(solution),
        "residual": rounded(trace[-1].residual, 3),
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
