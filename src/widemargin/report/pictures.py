"""Pictures of the report: inline SVG that needs no color, with words for each.

Lines differ by style and marker, areas by hatch and label. The drawings are as wide as
a phone, so that their letters are as large as the letters of the text.
"""

import io
import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from numpy.typing import NDArray

from widemargin.data.memory import as_rows
from widemargin.data.rows import Rows
from widemargin.models.model import Model
from widemargin.models.schemes import PAIRED
from widemargin.report.html import percent, rounded, seconds, short
from widemargin.solution import Solution, Status
from widemargin.solvers.kernel.batch import NAME as BATCH

Vector = NDArray[np.float64]
Labels = NDArray[np.integer[Any]]

WIDTH = 4.5  # inches, with letters of 10 points
# One color, one meaning: rust and blue are the first and the second class, green and
# purple the primal and the dual objective, black what is measured, gray what is beside.
DARK, GRAY, PALE, BLUE, RUST = "#1a1a1a", "#8a8a8a", "#b4bec9", "#10345c", "#a8431a"
GREEN, PURPLE = "#1e6b4a", "#6b3f94"
# Colors that the page has names for, and sets anew on a dark screen.
_NAMES = {
    "#000000": "ink",
    DARK: "ink",
    "#ffffff": "paper",
    GRAY: "gray",
    PALE: "pale",
    BLUE: "blue",
    RUST: "rust",
    GREEN: "green",
    PURPLE: "purple",
    "#dddddd": "grid",
    "#dfe8f2": "up",
    "#f8e9e0": "down",
}
_COLOR = re.compile("|".join(_NAMES))
# Points of a line, lines, bins of a histogram, rows drawn as markers, points along an
# axis of the plane: enough to see what there is, and few enough for a small page.
POINTS, LINES, BINS, MARKERS, GRID = 200, 40, 60, 500, 160
# Support vectors are on a plane up to rounding: less than this is none of the margin.
ON_PLANE = 1e-3
_NAMED = 35  # classes whose names have room beside a map
_CELLS, _LEVELS = 2000, 8  # of a map: the largest shares, in some grays

_STYLE: Any = {
    "font.sans-serif": ["DejaVu Sans"],
    "text.parse_math": False,  # a class may be named "$x"
    "svg.fonttype": "none",
    "svg.hashsalt": "widemargin",
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.5,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "legend.columnspacing": 1.0,
    "legend.handlelength": 1.8,
}
_BROAD: dict[str, Any] = {"color": PALE, "lw": 6, "solid_capstyle": "round"}
_CIRCLES: dict[str, Any] = {"color": GREEN, "ls": "--", "marker": "o", "ms": 4}
_SQUARES: dict[str, Any] = {"color": PURPLE, "ls": ":", "marker": "s", "ms": 4}
_SLOWEST: dict[str, Any] = _SQUARES | {"color": DARK}
_GAMMAS: list[dict[str, Any]] = [
    {"color": DARK, "ls": "-", "marker": "o"},
    {"color": GRAY, "ls": "--", "marker": "s"},
    {"color": DARK, "ls": ":", "marker": "^"},
    {"color": GRAY, "ls": "-.", "marker": "v"},
    {"color": DARK, "ls": "-.", "marker": "x"},
    {"color": GRAY, "ls": ":", "marker": "+"},
]
_UP: dict[str, Any] = {"hatch": "////", "ec": BLUE, "fc": "#dfe8f2"}
_PLAIN: dict[str, Any] = {"hatch": "////", "ec": GRAY, "fc": "white"}
_DOWN: dict[str, Any] = {"hatch": "\\\\\\\\", "ec": RUST, "fc": "#f8e9e0"}
# Bars of this library, and of others.
OURS: dict[str, Any] = {"fc": DARK, "ec": DARK}
THEIRS: dict[str, Any] = {"fc": PALE, "ec": GRAY, "hatch": "////"}
_PAPER: dict[str, Any] = {"fc": "white", "ec": "none", "alpha": 0.8, "pad": 1.5}

# What scores of pairs count, and how far the true class is before the others.
_COUNTED = {
    "ovo": "Votes for the true class less the most votes for another one",
    "dag": "How many classes were dropped before the true class, less that of the best "
    "other class",
}


class Picture(NamedTuple):
    """A drawing between its heading and its caption."""

    heading: str
    svg: str
    caption: str


@contextmanager
def style() -> Iterator[None]:
    """Settings of matplotlib for the drawings, whatever the user has set."""
    with mpl.rc_context(), warnings.catch_warnings():
        # The layout's font may lack letters of a name; the browser has them.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        # A plane may be outside the picture.
        warnings.filterwarnings("ignore", "No contour levels were found")
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        yield


# -- the course of the solves ----------------------------------------------------------


def convergence(solution: Solution) -> Picture:
    """Relative gap, primal and dual of one problem against time."""
    figure, (axes,) = _figure(3.1)
    goal = draw_convergence(axes, solution)
    _legend(figure, 4)
    first, end = solution.trace[0].best_gap, solution.certificate.relative_gap
    course = (
        f"The relative gap of the best bounds so far (broad line) goes from {first:.1e}"
        f" to {end:.1e} in {seconds(solution.seconds)} and {goal}. It has two parts: "
        "how far the primal objective is above the best lower bound (circles), and how "
        "far the dual is below the best upper bound (squares). The diamond is the "
        "certificate, recomputed from the answer."
    )
    if not np.isfinite(first) and keeps_ends([solution]):
        course = (
            f"The diamond is the certificate, recomputed from the answer: {end:.1e} "
            f"after {seconds(solution.seconds)}, which {goal}."
        )
    return Picture(
        "Convergence",
        _svg(figure, "gap", "Line chart: relative gap, primal and dual against time"),
        f"{course} {_between([solution])}",
    )


def keeps_ends(solutions: Sequence[Solution]) -> bool:
    """Whether the first and the last point are all that was recorded."""
    return all(s.solver == BATCH and len(s.trace) <= 2 for s in solutions)


def _between(solutions: Sequence[Solution]) -> str:
    """What lines say between two points."""
    if keeps_ends(solutions):
        if all(np.isfinite(s.trace[0].best_gap) for s in solutions):
            what = "a line between them is no measurement"
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
    # Distances to the other bound: they prove something, and are never zero.
    with np.errstate(all="ignore"):  # where the objective is infinite or zero
        above = (primal - certificate.dual) / np.abs(primal)
        below = (certificate.primal - trace.column("best_dual")) / np.abs(primal)
    _line(axes, time, gap, label="relative gap", **_BROAD)
    _line(axes, time, above, label="primal", **_CIRCLES)
    _line(axes, time, below, label="dual", **_SQUARES)
    end = certificate.relative_gap
    axes.plot(solution.seconds, end, "D", color=DARK, label="certificate")
    return _goal(axes, solution.tol, _reached(solution))


def convergence_of_many(
    solutions: Sequence[Solution], names: Sequence[str], scheme: str = "ovr"
) -> Picture:
    """Relative gaps of the binary problems against time."""
    figure, (axes,) = _figure(3.1)
    _lines(axes, solutions, names, "seconds", "best_gap")
    goal = _goal(axes, solutions[0].tol, max(map(_reached, solutions)))
    _legend(figure, 3)
    time = seconds(max(s.seconds for s in solutions))
    which = "of two classes" if scheme in PAIRED else "a class against the rest"
    return Picture(
        "Convergence",
        _svg(figure, "gap", "Line chart: relative gaps of all classes against time"),
        f"The relative gaps of {len(solutions)} binary problems, each {which}, in "
        f"{time}: the slowest {goal}. {_KEY}"
        + f" {_between(solutions)}"
        * keeps_ends(solutions),
    )


def activity(solutions: Sequence[Solution], names: Sequence[str]) -> list[Picture]:
    """Rows in the active set, and mu where the solver has one, by iteration.

    None where no iteration was recorded.
    """
    if keeps_ends(solutions):
        return []
    with_mu = any(np.isfinite(s.trace.column("mu")).any() for s in solutions)
    figure, panels = _figure(3.9 if with_mu else 2.6, 1 + with_mu)
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
        _legend(figure, 3)
        caption = f"{caption} {_KEY}"
    alt = "Line chart: active rows by iteration" + (", and mu" if with_mu else "")
    return [Picture("Work per iteration", _svg(figure, "rows", alt), caption)]


_KEY = "Broad: the median problem; with squares: the slowest; thin: the others."


def _row_axis(axes: Axes, solutions: Sequence[Solution]) -> str:
    """Scale the number of active rows, and say what it was."""
    m = max(len(s.alpha) for s in solutions)
    used = np.concatenate([s.trace.column("active") for s in solutions])
    low, high = int(used.min()), int(used.max())
    axes.set_ylabel("active rows")
    axes.axhline(m, color=DARK, lw=0.8)
    _label(axes, f"all {m:,} rows", (1, m), ("axes fraction", "data"), (0, 6), "right")
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
    _label(axes, f"tol = {tol:.0e}", (0, tol), ("axes fraction", "data"), (4, 3))
    _log(axes)
    if not np.isfinite(reached):
        return f"does not reach the {tol:.0e} asked for"
    axes.axvline(reached, color=DARK, lw=0.8)
    place = "right" if reached > 0.5 * axes.get_xlim()[1] else "left"
    _label(axes, "tol reached", (reached, 1), ("data", "axes fraction"), (0, 3), place)
    return f"reaches the {tol:.0e} asked for"


def _end(axes: Axes) -> float:
    """Where the lines end; 0 where a solver had nothing to do, and there are none."""
    return max(0.0, float(axes.dataLim.x1))


def _lines(
    axes: Axes, solutions: Sequence[Solution], names: Sequence[str], x: str, y: str
) -> None:
    """One line a problem; the median and the slowest problem stand out."""
    lines = [(s.trace.column(x), s.trace.column(y)) for s in solutions]
    if len(lines) == 1:
        _line(axes, *lines[0], **_SLOWEST)
        return
    time = [(_reached(s), s.certificate.relative_gap) for s in solutions]
    order = sorted(range(len(lines)), key=time.__getitem__)
    median, slowest = order[(len(order) - 1) // 2], order[-1]
    for k in order[:: -(-len(order) // LINES)]:
        if k not in (median, slowest):
            _line(axes, *lines[k], color=GRAY, lw=0.6)
    _line(axes, *lines[median], label=f"median: {short(names[median], 18)}", **_BROAD)
    slow = f"slowest: {short(names[slowest], 18)}"
    _line(axes, *lines[slowest], label=slow, **_SLOWEST)


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


# -- margins and regions ---------------------------------------------------------------


def selection(search: Any) -> Picture:
    """Scores on held-out rows against C, a line each gamma, with their spread."""
    figure, (axes,) = _figure(3.1)
    Cs, gammas = search.Cs_, getattr(search, "gammas_", np.zeros(1))
    scores = search.scores_.reshape(-1, len(gammas), len(Cs))
    means = scores.mean(axis=0)
    peaks = np.where(np.isfinite(means), means, -np.inf).max(axis=1)
    shown = np.sort(np.argsort(-peaks, kind="stable")[: len(_GAMMAS)])
    for look, g in zip(_GAMMAS, shown, strict=False):
        if len(gammas) == 1 or search.gamma_ == gammas[g]:
            low, high = scores[:, g].min(axis=0), scores[:, g].max(axis=0)
            axes.fill_between(Cs, low, high, color=PALE, alpha=0.5, lw=0)
        name = f"gamma {rounded(gammas[g])}" if len(gammas) > 1 else "mean score"
        axes.plot(Cs, means[g], label=name, ms=4, **look)
    axes.plot(search.C_, search.best_score_, "D", color=DARK, label="best")
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(numticks=7))
    if Cs[-1] < 100.0 * Cs[0]:  # else an axis may have a single number
        axes.set_xticks(Cs[:: 1 + len(Cs) // 7])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda C, _: rounded(C)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("C")
    axes.set_ylabel("score on held-out rows")
    _legend(figure, 3)
    folds, left = len(scores), len(gammas) - len(shown)
    gamma = f" and gamma = {rounded(search.gamma_)}" if len(gammas) > 1 else ""
    others = f" The {left} values of gamma with lower peaks are left out." * bool(left)
    return Picture(
        "Selection",
        _svg(figure, "selection", "Line chart: score on held-out rows against C"),
        f"Mean scores of {folds} folds: the best one is {search.best_score_:.4f}, at "
        f"C = {rounded(search.C_)}{gamma} (diamond). The band goes from the lowest to "
        "the highest fold at this gamma. The largest certified relative gap of all "
        f"fits is {np.nanmax(search.path_):.1e}.{others}",
    )


def margins(
    margin: Vector, labels: Labels, names: Sequence[str], which: str = ""
) -> Picture:
    """Margins y f(x) of two classes: the second upwards, the first downwards."""
    figure, (axes,) = _figure(3.1)
    edges = _edges(margin)
    _bars(axes, margin[labels == 1], edges, f"▲ class {short(names[1])}")
    _bars(axes, margin[labels == 0], edges, f"▼ class {short(names[0])}", up=False)
    for dashed in (-1, 1):
        axes.axvline(dashed, color=DARK, lw=1.2, ls="--")
    axes.set(xlabel="margin y f(x)", ylabel="share of the class (%)")
    axes.margins(y=0.2)  # room for the labels
    far = np.mean(margin < -1 - ON_PLANE)
    wrong, close = np.mean(margin < 0), np.mean((margin >= 0) & (margin < 1 - ON_PLANE))
    return Picture(
        "Margins",
        _svg(figure, "margins", "Histogram: margins of the training rows by class"),
        f"The training rows by y f(x): {percent(wrong)} are left of the plane 0 "
        f"(solid), on the wrong side, and {percent(close)} between it and the plane +1 "
        "(dashed, right), on the right side but too close; right of +1 a row costs "
        f"nothing. {percent(far)} are even left of -1 (dashed, left), as far on the "
        "wrong side as rows should be on the right one. Bars up: class "
        f"{names[1]}; bars down: class {names[0]}. {_ENDS}{which}",
    )


def margins_of_many(margin: Vector, which: str = "", scheme: str = "ovr") -> Picture:
    """Scores of the true class less the best other score."""
    far = percent(np.mean(margin < 0))
    words = (
        "Score of the true class less the best score of another class: "
        f"{far} of the training rows are left of 0, which is to say misclassified."
    )
    if scheme in PAIRED:
        words = (
            f"{_COUNTED[scheme]}, with a part that says how clear they are: {far} of "
            "the training rows are left of 0."
        )
    figure, (axes,) = _figure(3.1)
    _bars(axes, margin, _edges(margin), "")
    axes.set(xlabel="true class less the best other", ylabel="share of the rows (%)")
    return Picture(
        "Margins",
        _svg(figure, "margins", "Histogram: margins of the training rows"),
        f"{words} {_ENDS}{which}",
    )


def sides(scores: Vector, outside: str) -> Picture:
    """Scores of one class, less its offset."""
    figure, (axes,) = _figure(3.1)
    low, high = np.percentile(scores, [0.5, 99.5])
    reach = max(-low, high) or 1.0  # all rows are on the boundary
    edges = np.linspace(-reach, reach, BINS + 1)
    counts, _ = np.histogram(np.clip(scores, -reach, reach), edges)
    axes.stairs(100.0 * counts / len(scores), edges, fill=True, lw=1, **_UP)
    axes.axvline(0, color=DARK, lw=1.2)
    axes.set(xlabel="score less the offset", ylabel="share of the rows (%)")
    return Picture(
        "Scores",
        _svg(figure, "scores", "Histogram: scores of the training rows"),
        f"The training rows by score: {outside} are left of the line, which is to say "
        f"outliers. {_ENDS}",
    )


_ENDS = "The outermost bars also hold what lies beyond them."


def _edges(margin: Vector) -> Vector:
    """Edges of the bins of a histogram, among them the planes -1, 0 and 1."""
    low, high = np.percentile(margin, [0.5, 99.5])
    low, high = min(low, -1.5), max(high, 1.5)
    power = 10.0 ** np.floor(np.log10((high - low) / BINS))
    step = power * next(s for s in (1, 2, 5, 10) if s * power * BINS >= high - low)
    steps = np.arange(np.floor(low / step), np.ceil(high / step) + 1)
    return np.asarray(step * steps - ON_PLANE * min(step, 1.0))


def _bars(
    axes: Axes, margin: Vector, edges: Vector, label: str, up: bool = True
) -> None:
    """Histogram in percent, hatched and labeled, and the plane 0 with its sides."""
    counts, _ = np.histogram(np.clip(margin, edges[0], edges[-1]), edges)
    share = (100.0 if up else -100.0) / max(1, margin.size)
    look = _PLAIN if not label else _UP if up else _DOWN
    axes.stairs(share * counts, edges, fill=True, lw=1, **look)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{abs(y):g}"))
    axes.axvline(0, color=DARK, lw=1.2)
    y, va = (0.97, "top") if up else (0.03, "bottom")
    corner = axes.transAxes
    axes.text(0.98, y, label, ha="right", va=va, transform=corner, bbox=_PAPER)
    if up:
        top = ("data", "axes fraction")
        _label(axes, "← wrong side", (0, 1), top, (-4, 3), "right")
        _label(axes, "right side →", (0, 1), top, (4, 3))


def heat(
    counts: NDArray[np.intp], rows: Sequence[str], columns: Sequence[str]
) -> Picture:
    """A confusion matrix of many classes as a map."""
    figure, (axes,) = _figure(4.4)
    shares = np.sqrt(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))
    cells = np.argsort(-shares, axis=None, kind="stable")[:_CELLS]
    true, guessed = np.unravel_index(cells[shares.flat[cells] > 0], shares.shape)
    level = np.ceil(_LEVELS * shares[true, guessed]) / _LEVELS
    size = 200.0 / max(shares.shape)  # points, in a panel of some 230
    for shade in np.unique(level):
        some = level == shade
        tint = str(1.0 - shade)
        axes.plot(guessed[some], true[some], "s", ms=size, c=tint, mec="none")
    axes.set(xlim=(-0.7, shares.shape[1] - 0.3), ylim=(shares.shape[0] - 0.3, -0.7))
    for axis, names in ((axes.xaxis, columns), (axes.yaxis, rows)):
        named = range(0, len(names), -(-len(names) // _NAMED))
        axis.set_ticks(list(named), [short(names[k], 10) for k in named], fontsize=6)
    axes.tick_params(axis="x", rotation=90)
    axes.set(xlabel="predicted", ylabel="true")
    axes.grid(visible=False)
    return Picture(
        "Confusion map",
        _svg(figure, "heat", "Heat map: true classes by predicted classes"),
        "A line holds the rows of one true class, by the class they were taken for: "
        "dark off the diagonal is a frequent error. A light gray is one of few "
        f"percent. Every class is drawn, and about {_NAMED} are named.",
    )


class Plane(NamedTuple):
    """Training rows with two features, and the model that decides between them."""

    model: Model
    rows: Rows
    labels: Labels
    support: Labels
    names: Sequence[str]
    columns: Sequence[str]


def regions(plane: Plane) -> Picture:
    """Regions of the classes in two features, some rows and the vectors."""
    figure, (axes,) = _figure(4.4)
    m, names = plane.rows.shape[0], plane.names
    index = np.sort(np.random.default_rng(0).choice(m, min(m, MARKERS), replace=False))
    points = np.asarray(plane.rows.take(index) @ np.eye(2))
    _shade(axes, plane, points)
    for k, name in enumerate(names):
        chosen = points[plane.labels[index] == k]
        axes.plot(*chosen.T, **_marker(k), label=f"class {short(name, 12)}")
    first, last = (np.searchsorted(plane.support, index, s) for s in ("left", "right"))
    chosen = points[last > first]
    vectors = plane.model.vectors_name
    axes.plot(*chosen.T, **_RING, mec=DARK, label=vectors.removesuffix("s"))
    axes.grid(visible=False)
    axes.set(xlabel=short(plane.columns[0], 40), ylabel=short(plane.columns[1], 40))
    if len(names) <= len(_MARKERS):
        _legend(figure, 2)
    drawn = (
        f"{MARKERS} of the {m:,} rows, chosen at random" if m > MARKERS else "all rows"
    )
    lines = "decision line (solid), the planes -1 and 1 (dashed)"
    lines = lines if len(names) == 2 else "lines between the classes"
    return Picture(
        "Regions",
        _svg(figure, "plane", f"Map of two features: regions, rows, {vectors}"),
        "The plane of the two features, shaded by the class that wins there, with the "
        f"{lines} and {drawn}.",
    )


def _shade(axes: Axes, plane: Plane, points: Vector) -> None:
    """Shade where each class wins, draw the lines between, and name the regions."""
    low, high = np.percentile(points, [0.5, 99.5], axis=0)
    pad = np.where(high > low, 0.1 * (high - low), 1.0)
    x, y = np.meshgrid(*np.linspace(low - pad, high + pad, GRID).T)
    scores = plane.model.scores(as_rows(np.stack([x.ravel(), y.ravel()], axis=1)))
    line: dict[str, Any] = {"colors": DARK, "linewidths": 1.2}
    if scores.ndim == 1:
        axes.contour(x, y, scores.reshape(x.shape), [-1, 1], linestyles="--", **line)
        scores = np.stack([-scores, scores], axis=1)
    for k, name in enumerate(plane.names):
        lead = scores[:, k] - np.delete(scores, k, axis=1).max(axis=1)
        won = lead > 0
        if won.any():
            tint = [0.98 - 0.2 * k / (len(plane.names) - 1)] * 3
            grid = lead.reshape(x.shape)
            axes.contourf(x, y, grid, [0, np.max(lead)], colors=[tint])
            axes.contour(x, y, grid, [0], **line)
            middle = x.ravel()[won].mean(), y.ravel()[won].mean()
            axes.text(*middle, short(name), bbox=_PAPER, **_NAME)
    axes.set(xlim=(x[0, 0], x[0, -1]), ylim=(y[0, 0], y[-1, 0]))


_NAME: dict[str, Any] = {"weight": "bold", "ha": "center", "va": "center", "zorder": 5}
_MARKERS = "o^sDvPX*"
_RING: dict[str, Any] = {"ls": "", "marker": "o", "ms": 8, "mfc": "none", "mew": 0.6}


def _marker(k: int) -> dict[str, Any]:
    """Look of the rows of class k."""
    face = (RUST, BLUE, "white", PALE)[k % 4]
    shape = _MARKERS[k % len(_MARKERS)]
    return {"marker": shape, "ls": "", "ms": 4, "mfc": face, "mec": DARK, "mew": 0.6}


# -- drawing ---------------------------------------------------------------------------


def _figure(height: float, panels: int = 1) -> tuple[Figure, list[Axes]]:
    """A figure with panels below each other."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    return figure, list(figure.subplots(panels, 1, sharex=True, squeeze=False)[:, 0])


def _label(
    axes: Axes,
    words: str,
    point: tuple[float, float],
    units: tuple[str, str],
    offset: tuple[float, float],
    side: str = "left",
) -> None:
    """Words beside a point, by an offset in points."""
    axes.annotate(words, point, offset, units, "offset points", ha=side, fontsize=9)


def _legend(figure: Figure, columns: int) -> None:
    """The lines of the first panel, above the panels."""
    lines = figure.axes[0].get_legend_handles_labels()
    figure.legend(*lines, loc="outside upper left", ncols=columns)


# Pictures whose fills are no colors of the page: they stay as on paper.
_LIGHT = ("plane", "heat")
_LINK = "{http://www.w3.org/1999/xlink}href"


def _svg(figure: Figure, name: str, alt: str) -> str:
    """The figure as SVG for a page: ids of its own, nothing that is not drawn."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    root = ET.fromstring(buffer.getvalue())
    for unneeded in root[:2]:  # metadata, and a style that the page has for all
        root.remove(unneeded)
    for element in root.iter():
        element.tag, element.tail = element.tag.split("}")[-1], None
        if _LINK in element.attrib:
            element.set("href", element.attrib.pop(_LINK))
        if "fill" in element.attrib:  # below hatches; only styles know names of colors
            element.set("style", f"fill: {element.attrib.pop('fill')}")
        for key, value in element.items():
            if key == "id":
                value = f"{name}-{value}"
            elif key == "href":
                value = f"#{name}-{value[1:]}" if value[0] == "#" else value
            elif key == "style":
                value = " ".join(value.split()).replace("url(#", f"url(#{name}-")
                value = _COLOR.sub(lambda c: f"var(--{_NAMES[c[0]]})", value)
            else:
                value = " ".join(value.split()).replace("url(#", f"url(#{name}-")
            element.set(key, value)
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", "aria-label": alt}
    if name in _LIGHT:
        root.set("class", "light")
    return ET.tostring(root, encoding="unicode")
