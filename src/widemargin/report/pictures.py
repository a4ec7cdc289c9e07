"""Pictures of a model on its rows: scores of a search, margins, errors and regions."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from numpy.typing import NDArray

from widemargin.arrays import Index, Vector
from widemargin.data.memory import as_rows
from widemargin.data.rows import Rows
from widemargin.models.model import Model
from widemargin.models.schemes import PAIRED
from widemargin.report import drawing
from widemargin.report.drawing import (
    BINS,
    BLUE,
    DARK,
    ENDS,
    GRAY,
    MARKERS,
    PALE,
    PAPER,
    PLAIN,
    RUST,
    Picture,
)
from widemargin.report.html import percent, rounded, short

Labels = NDArray[np.integer[Any]]

GRID = 160  # points along an axis of the plane
# Support vectors are on a plane up to rounding: less than this is none of the margin.
ON_PLANE = 1e-3
_NAMED = 35  # classes whose names have room beside a map
_CELLS, _LEVELS = 2000, 8  # of a map: the largest shares, in some grays
_GAMMAS: list[dict[str, Any]] = [
    {"color": DARK, "ls": "-", "marker": "o"},
    {"color": GRAY, "ls": "--", "marker": "s"},
    {"color": DARK, "ls": ":", "marker": "^"},
    {"color": GRAY, "ls": "-.", "marker": "v"},
    {"color": DARK, "ls": "-.", "marker": "x"},
    {"color": GRAY, "ls": ":", "marker": "+"},
]
_UP: dict[str, Any] = {"hatch": "////", "ec": BLUE, "fc": "#dfe8f2"}
_DOWN: dict[str, Any] = {"hatch": "\\\\\\\\", "ec": RUST, "fc": "#f8e9e0"}
# What scores of pairs count, and how far the true class is before the others.
_COUNTED = {
    "ovo": "Votes for the true class less the most votes for another one",
    "dag": "How many classes were dropped before the true class, less that of the best "
    "other class",
}


def selection(search: Any) -> Picture:
    """Scores on held-out rows against C, a line each gamma, with their spread."""
    figure, (axes,) = drawing.figure(3.1)
    Cs, gammas = search.Cs_, getattr(search, "gammas_", np.zeros(1))
    scores, widths = search.scores_, getattr(search, "epsilons_", np.zeros(1))
    if len(widths) > 1:
        scores = scores[..., np.flatnonzero(widths == search.epsilon_)[0], :]
    scores = scores.reshape(len(scores), len(gammas), len(Cs))
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
    drawing.legend(figure, 3)
    folds, left = len(scores), len(gammas) - len(shown)
    gamma = f" and gamma = {rounded(search.gamma_)}" if len(gammas) > 1 else ""
    width = f" and epsilon = {rounded(search.epsilon_)}" if len(widths) > 1 else ""
    drawn = " All that is drawn is of this epsilon." * bool(width)
    others = f" The {left} values of gamma with lower peaks are left out." * bool(left)
    return Picture(
        "Selection",
        drawing.svg(
            figure, "selection", "Line chart: score on held-out rows against C"
        ),
        f"Mean scores of {folds} folds: the best one is {search.best_score_:.4f}, at "
        f"C = {rounded(search.C_)}{gamma}{width} (diamond).{drawn} The band goes from "
        "the lowest to the highest fold at this gamma. The largest certified relative "
        f"gap of all fits is {np.nanmax(search.path_):.1e}.{others}",
    )


def margins(
    margin: Vector, labels: Labels, names: Sequence[str], which: str = ""
) -> Picture:
    """Margins y f(x) of two classes: the second upwards, the first downwards."""
    figure, (axes,) = drawing.figure(3.1)
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
        drawing.svg(
            figure, "margins", "Histogram: margins of the training rows by class"
        ),
        f"The training rows by y f(x): {percent(wrong)} are left of the plane 0 "
        f"(solid), on the wrong side, and {percent(close)} between it and the plane +1 "
        "(dashed, right), on the right side but too close; right of +1 a row costs "
        f"nothing. {percent(far)} are even left of -1 (dashed, left), as far on the "
        "wrong side as rows should be on the right one. Bars up: class "
        f"{names[1]}; bars down: class {names[0]}. {ENDS}{which}",
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
    figure, (axes,) = drawing.figure(3.1)
    _bars(axes, margin, _edges(margin), "")
    axes.set(xlabel="true class less the best other", ylabel="share of the rows (%)")
    return Picture(
        "Margins",
        drawing.svg(figure, "margins", "Histogram: margins of the training rows"),
        f"{words} {ENDS}{which}",
    )


def sides(scores: Vector, outside: str) -> Picture:
    """Scores of one class, less its offset."""
    figure, (axes,) = drawing.figure(3.1)
    low, high = np.percentile(scores, [0.5, 99.5])
    reach = max(-low, high) or 1.0  # all rows are on the boundary
    drawing.shares(axes, scores, reach, _UP)
    axes.set(xlabel="score less the offset", ylabel="share of the rows (%)")
    return Picture(
        "Scores",
        drawing.svg(figure, "scores", "Histogram: scores of the training rows"),
        f"The training rows by score: {outside} are left of the line, which is to say "
        f"outliers. {ENDS}",
    )


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
    look = PLAIN if not label else _UP if up else _DOWN
    axes.stairs(share * counts, edges, fill=True, lw=1, **look)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{abs(y):g}"))
    axes.axvline(0, color=DARK, lw=1.2)
    y, va = (0.97, "top") if up else (0.03, "bottom")
    corner = axes.transAxes
    axes.text(0.98, y, label, ha="right", va=va, transform=corner, bbox=PAPER)
    if up:
        top = ("data", "axes fraction")
        drawing.label(axes, "← wrong side", (0, 1), top, (-4, 3), "right")
        drawing.label(axes, "right side →", (0, 1), top, (4, 3))


def heat(counts: Index, rows: Sequence[str], columns: Sequence[str]) -> Picture:
    """A confusion matrix of many classes as a map."""
    figure, (axes,) = drawing.figure(4.4)
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
        drawing.svg(figure, "heat", "Heat map: true classes by predicted classes"),
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
    figure, (axes,) = drawing.figure(4.4)
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
        drawing.legend(figure, 2)
    drawn = (
        f"{MARKERS} of the {m:,} rows, chosen at random" if m > MARKERS else "all rows"
    )
    lines = "decision line (solid), the planes -1 and 1 (dashed)"
    lines = lines if len(names) == 2 else "lines between the classes"
    return Picture(
        "Regions",
        drawing.svg(figure, "plane", f"Map of two features: regions, rows, {vectors}"),
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
            axes.text(*middle, short(name), bbox=PAPER, **_NAME)
    axes.set(xlim=(x[0, 0], x[0, -1]), ylim=(y[0, 0], y[-1, 0]))


_NAME: dict[str, Any] = {"weight": "bold", "ha": "center", "va": "center", "zorder": 5}
_MARKERS = "o^sDvPX*"
_RING: dict[str, Any] = {"ls": "", "marker": "o", "ms": 8, "mfc": "none", "mew": 0.6}


def _marker(k: int) -> dict[str, Any]:
    """Look of the rows of class k."""
    face = (RUST, BLUE, "white", PALE)[k % 4]
    shape = _MARKERS[k % len(_MARKERS)]
    return {"marker": shape, "ls": "", "ms": 4, "mfc": face, "mec": DARK, "mew": 0.6}
