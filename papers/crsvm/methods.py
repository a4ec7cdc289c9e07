"""Solvers of the comparison, and the numbers of a run."""

import dataclasses
import statistics
import time

import numpy as np
from threadpoolctl import ThreadpoolController

from papers.measure import in_turn, outcome, rounded, spread
from widemargin import Problem, solve
from widemargin.solvers import InteriorPoint

# The paper stops where residuals and mu are below 1e-8: at a relative gap 2 m mu / P,
# another on each set ("The end" in claim.md). Our times are to a certified 1e-6.
TOL, TIGHT = 1e-6, 1e-8
RULES = {"omega": "omega", "one-sided": "one_sided"}
# What is timed runs on one core: its processor seconds are those of one thread.
ONE_CORE = ThreadpoolController()


def published(rule="omega", *, share=1.0, balanced=True, adaptive=True):
    """Algorithm 1 as printed."""
    return InteriorPoint(
        mode="published",
        reduction=rule,
        max_active=share,
        balanced=balanced,
        adaptive=adaptive,
    )


def damped(rule="omega", **options):
    """As printed, but for damped second-order terms."""
    return dataclasses.replace(published(rule, **options), mode="damped")


def repaired(rule="omega", **options):
    """Ours: conjugate gradients repair a direction where Q was too small."""
    return dataclasses.replace(published(rule, **options), mode="repaired")


FORMS = {"published": published, "damped": damped, "repaired": repaired}


def unreduced():
    """The algorithm as printed with every row in every iteration."""
    return published(None)


def compare(data, solvers, **options):
    """Run each solver several times, in turn: {label: record}."""
    found = runs(data, solvers, **options)
    return {label: record(*numbers) for label, numbers in found.items()}


@ONE_CORE.wrap(limits=1)
def runs(data, solvers, *, repeat=3, tol=TOL, time_limit=600.0):
    """{label: (solutions, processor seconds)}: each run draws its own first Q."""
    found = {label: ([], []) for label in solvers}
    for seed in range(repeat):
        once = in_turn(
            lambda: Problem(data.X, data.y),
            {k: dataclasses.replace(v, random_state=seed) for k, v in solvers.items()},
            repeat=1,
            tol=tol,
            time_limit=time_limit,
            clock=time.process_time,
        )
        for label, (solution, seconds) in once.items():
            found[label][0].append(solution)
            found[label][1].extend(seconds)
    return found


def record(solutions, seconds):
    """The numbers of one solver on one problem, over the seeds.

    Iterations and patterns are medians; status, objective and gap those of the run with
    the largest gap.
    """
    worst = max(solutions, key=lambda s: s.certificate.relative_gap)
    iterations = [s.trace[-1].iteration for s in solutions]
    active = [s.trace.column("active") for s in solutions]
    return {
        **spread(seconds),
        "iterations": round(statistics.median(iterations)),
        "fewest": min(iterations),
        "most": max(iterations),
        "unsolved": sum(s.status != "solved" for s in solutions),
        **outcome(worst),
        "residual": rounded(worst.trace[-1].residual, 3),
        "patterns": round(statistics.median(int(part.sum()) for part in active)),
        "active_mean": round(float(active[-1].mean()), 1),
        "active_last": int(active[-1][-1]),
        "pcg_steps": int(np.nansum(worst.trace.column("pcg_steps"))),
    }


def beside(records, whole):
    """Records with time and patterns over those of the run with all rows.

    Patterns are those in all normal matrices of a run: the work that reduction saves.
    """
    for r in records:
        ratio = r["seconds"] / whole["seconds"]
        work = r["patterns"] / whole["patterns"]
        yield r | {"ratio": rounded(ratio), "work": rounded(work)}


def marks(record):
    """A mark for each seed of which the run did not end at the gap."""
    return "!" * record["unsolved"]


def support_vectors(data, tol=1e-10, least=1e-4):
    """Support vectors and on-boundary ones: all, of class +1, of class -1.

    An alpha counts from ``least`` C on (C = 1), and as C from 1 - ``least``: nothing
    but one pattern of isolet (alpha = 8e-5) is that near.
    """
    alpha = solve(Problem(data.X, data.y), repaired(None), tol=tol).alpha
    on = (alpha > least) & (alpha < 1 - least)
    return _by_class(alpha > least, data.y), _by_class(on, data.y)


def _by_class(chosen, y):
    counts = (chosen, chosen & (y > 0), chosen & (y < 0))
    return [int(np.count_nonzero(c)) for c in counts]


def disagreement(records):
    """Largest relative difference of the objectives among solved runs."""
    primal = [r["primal"] for r in records if r["status"] == "solved"]
    return (max(primal) - min(primal)) / min(primal) if primal else float("nan")
