"""Pictures of how the solves went: gaps against time, active rows by iteration."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator
from numpy.typing import NDArray

from widemargin.models.schemes import PAIRED
from widemargin.report import drawing
from widemargin.report.drawing import DARK, GRAY, GREEN, PALE, POINTS, PURPLE, Picture
from widemargin.report.html import seconds, short
from widemargin.solution import UNPROVED, Solution, Status
from widemargin.solvers.kernel.batch import NAME as BATCH

LINES = 40  # of problems: enough to see what there is
_BROAD: dict[str, Any] = {"color": PALE, "lw": 6, "solid_capstyle": "round"}
_CIRCLES: dict[str, Any] = {"color": GREEN, "ls": "--", "marker": "o", "ms": 4}
_SQUARES: dict[str, Any] = {"color": PURPLE, "ls": ":", "marker": "s", "ms": 4}
_SLOWEST: dict[str, Any] = _SQUARES | {"color": DARK}
# Where the first and the last point are all: no line between them, which would look
# like a measurement; and no point cut by the left axis.
_ENDS: dict[str, Any] = {"ls": "none", "clip_on": False}


def convergence(solution: Solution) -> Picture:
    """Relative gap, primal and dual of one problem against time."""
    figure, (axes,) = drawing.figure(3.1)
    goal = draw_convergence(axes, solution)
    drawing.legend(figure, 4)
    first, end = solution.trace[0].best_gap, solution.certificate.relative_gap
    proof = "certificate, recomputed from the answer"
    if end >= UNPROVED:
        proof = "certificate, which proves nothing of this yet"
        end = solution.trace[-1].best_gap
    course = (
        f"The relative gap of the best bounds so far (broad line) goes from {first:.1e}"
        f" to {end:.1e} in {seconds(solution.seconds)} and {goal}. It has two parts: "
        "how far the primal objective is above the best lower bound (circles), and how "
        "far the dual is below the best upper bound (squares). The diamond is the "
        f"{proof}."
    )
    if not np.isfinite(first) and keeps_ends([solution]):
        course = (
            f"The diamond is the certificate, recomputed from the answer: {end:.1e} "
            f"after {seconds(solution.seconds)}, which {goal}."
        )
    return Picture(
        "Convergence",
        drawing.svg(
            figure, "gap", "Line chart: relative gap, primal and dual against time"
        ),
        f"{course} {between([solution])}",
    )


def keeps_ends(solutions: Sequence[Solution]) -> bool:
    """Whether the first and the last point are all that was recorded."""
    return all(s.solver == BATCH and len(s.trace) <= 2 for s in solutions)


def between(solutions: Sequence[Solution]) -> str:
    """What lines say between two points."""
    if keeps_ends(solutions):
        if all(np.isfinite(s.trace[0].best_gap) for s in solutions):
            what = "no line joins them"
        else:
            what = "a first one that proves nothing is not drawn"
        return f"The solver {BATCH} records its first and its last point only: {what}."
    return (
        "Lines are flat while a solver works on a part of the rows, before it looks at "
        "all of them again."
    )


def draw_convergence(axes: Axes, solution: Solution) -> str:
    """Draw the bounds of one problem against time; whether they got near enough."""
    certificate, trace = solution.certificate, solution.trace
    time, primal, gap = map(trace.column, ("seconds", "best_primal", "best_gap"))
    dual = trace.column("best_dual")
    upper, lower = certificate.primal, certificate.dual
    if certificate.relative_gap >= UNPROVED:
        upper, lower = primal[-1], dual[-1]
    # Distances to the other bound: they prove something, and are never zero.
    with np.errstate(all="ignore"):  # where the objective is infinite or zero
        above = (primal - lower) / np.abs(primal)
        below = (upper - dual) / np.abs(primal)
    points = _ENDS if keeps_ends([solution]) else {}
    broad = _BROAD | {"marker": "o", "ms": 9} if points else _BROAD
    _line(axes, time, gap, label="relative gap", **broad | points)
    _line(axes, time, above, label="primal", **_CIRCLES | points)
    _line(axes, time, below, label="dual", **_SQUARES | points)
    end = certificate.relative_gap
    axes.plot(solution.seconds, end, "D", color=DARK, label="certificate")
    return _goal(axes, solution.tol, _reached(solution))


def convergence_of_many(
    solutions: Sequence[Solution], names: Sequence[str], scheme: str = "ovr"
) -> Picture:
    """Relative gaps of the binary problems against time."""
    figure, (axes,) = drawing.figure(3.1)
    _lines(axes, solutions, names, "seconds", "best_gap")
    goal = _goal(axes, solutions[0].tol, max(map(_reached, solutions)))
    drawing.legend(figure, 3)
    time = seconds(max(s.seconds for s in solutions))
    which = "of two classes" if scheme in PAIRED else "a class against the rest"
    return Picture(
        "Convergence",
        drawing.svg(
            figure, "gap", "Line chart: relative gaps of all classes against time"
        ),
        f"The relative gaps of {len(solutions)} binary problems, each {which}: "
        f"none took more than {time}, and the slowest {goal}. "
        + (f"{_KEY_OF_POINTS} {between(solutions)}" if keeps_ends(solutions) else _KEY),
    )


def activity(solutions: Sequence[Solution], names: Sequence[str]) -> list[Picture]:
    """Rows in the active set, and mu where the solver has one, by iteration.

    None where no iteration was recorded.
    """
    if keeps_ends(solutions):
        return []
    with_mu = any(np.isfinite(s.trace.column("mu")).any() for s in solutions)
    figure, panels = drawing.figure(3.9 if with_mu else 2.6, 1 + with_mu)
    _lines(panels[0], solutions, names, "iteration", "active")
    caption = _row_axis(panels[0], solutions)
    if with_mu:
        _lines(panels[1], solutions, names, "iteration", "mu")
        _log(panels[1])
        panels[1].set_ylabel("mu")
        caption += (
            " Below: mu, the mean product of the constraints and their multipliers, "
            "which the solver drives to zero."
        )
    panels[-1].set(xlabel="iteration", xlim=(-0.5, _end(panels[-1]) + 0.5))
    panels[-1].xaxis.set_major_locator(MaxNLocator(6, integer=True))
    if len(solutions) > 1:
        drawing.legend(figure, 3)
        caption = f"{caption} {_KEY}"
    alt = "Line chart: active rows by iteration" + (", and mu" if with_mu else "")
    return [Picture("Work per iteration", drawing.svg(figure, "rows", alt), caption)]


_KEY = "Broad: the median problem; with squares: the slowest; thin: the others."
_KEY_OF_POINTS = "Large: the median problem; squares: the slowest; small: the others."


def _row_axis(axes: Axes, solutions: Sequence[Solution]) -> str:
    """Scale the number of active rows, and say what it was."""
    m = max(len(s.alpha) for s in solutions)
    used = np.concatenate([s.trace.column("active") for s in solutions])
    low, high = int(used.min()), int(used.max())
    axes.set_ylabel("active rows")
    axes.axhline(m, color=DARK, lw=0.8)
    drawing.label(
        axes, f"all {m:,} rows", (1, m), ("axes fraction", "data"), (0, 6), "right"
    )
    if 0 < 20 * low < high:
        _log(axes)
    else:
        axes.set_ylim(0, 1.25 * m)
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.0f}"))
    if low == high:
        which = f"all {m:,}" if low == m else f"{low:,} of the {m:,}"
        return f"Every iteration worked on {which} rows."
    return (
        f"An iteration worked on {low:,} to {high:,} of the {m:,} rows, the active "
        "ones. The others are settled for the moment: fewer active rows make a cheaper "
        "iteration."
    )


def _reached(solution: Solution) -> float:
    """Seconds until the gap was ``tol``; infinite if it never was."""
    if solution.status != Status.SOLVED:
        return np.inf
    good = solution.trace.column("best_gap") <= solution.tol
    times = solution.trace.column("seconds")[good]
    return float(times[0]) if times.size else solution.seconds


def _goal(axes: Axes, tol: float, reached: float) -> str:
    """Mark ``tol`` and when it was reached, and say so."""
    axes.set(xlabel="seconds", ylabel="relative to the objective")
    end = _end(axes)
    axes.set_xlim(0, 1.04 * (max(end, reached) if np.isfinite(reached) else end))
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.axhline(tol, color=DARK, lw=0.8)
    drawing.label(axes, f"tol = {tol:.0e}", (0, tol), ("axes fraction", "data"), (4, 3))
    _log(axes)
    if not np.isfinite(reached):
        return f"does not reach the {tol:.0e} asked for"
    axes.axvline(reached, color=DARK, lw=0.8)
    place = "right" if reached > 0.5 * axes.get_xlim()[1] else "left"
    drawing.label(
        axes, "tol reached", (reached, 1), ("data", "axes fraction"), (0, 3), place
    )
    return f"reaches the {tol:.0e} asked for"


def _end(axes: Axes) -> float:
    """Where the lines end; 0 where a solver had nothing to do, and there are none."""
    return max(0.0, float(axes.dataLim.x1))


def _lines(
    axes: Axes, solutions: Sequence[Solution], names: Sequence[str], x: str, y: str
) -> None:
    """One line a problem; the median and the slowest problem stand out."""
    lines = [(s.trace.column(x), s.trace.column(y)) for s in solutions]
    points = _ENDS if keeps_ends(solutions) else {}
    large, small = ({"marker": "o", "ms": size} if points else {} for size in (9, 4))
    if len(lines) == 1:
        _line(axes, *lines[0], **_SLOWEST)
        return
    time = [(_reached(s), s.certificate.relative_gap) for s in solutions]
    order = sorted(range(len(lines)), key=time.__getitem__)
    median, slowest = order[(len(order) - 1) // 2], order[-1]
    for k in order[:: -(-len(order) // LINES)]:
        if k not in (median, slowest):
            _line(axes, *lines[k], color=GRAY, lw=0.6, **points | small)
    typical = f"median: {short(names[median], 18)}"
    _line(axes, *lines[median], label=typical, **_BROAD | points | large)
    slow = f"slowest: {short(names[slowest], 18)}"
    _line(axes, *lines[slowest], label=slow, **_SLOWEST | points)


def _line(axes: Axes, x: NDArray[Any], y: NDArray[Any], **look: Any) -> None:
    """A line through at most POINTS points, denser where it begins."""
    kept = np.flatnonzero(np.isfinite(y) & (y > 0))
    if kept.size > POINTS:
        thin = np.geomspace(1, kept.size, POINTS).round().astype(int) - 1
        kept = kept[np.unique(thin)]
    axes.plot(x[kept], y[kept], markevery=max(1, kept.size // 15), **look)


def _log(axes: Axes) -> None:
    """A logarithmic axis with the numbers of the text: 1e-04."""
    axes.set_yscale("log")
    low, high = np.log10(axes.get_ylim())
    if high - low < 2:  # else an axis may have a single number
        axes.set_ylim(10 ** np.floor(low), 10 ** np.ceil(high))
    axes.yaxis.set_major_locator(LogLocator(numticks=7))
    axes.yaxis.set_minor_locator(LogLocator(numticks=7, subs=(0.1,)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:.0e}"))
