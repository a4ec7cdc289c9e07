"""Pictures of what other thresholds of the score would do."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from widemargin.arrays import Vector
from widemargin.report import drawing
from widemargin.report.curves import Curves
from widemargin.report.html import percent, short


def pictures_of(
    curves: Curves, names: Sequence[str], data: str
) -> list[drawing.Picture]:
    """Both curves, with the threshold of the model marked."""
    return [_roc(curves, names, data), _precision(curves, names, data)]


def _roc(curves: Curves, names: Sequence[str], data: str) -> drawing.Picture:
    """Share of the second class that is found, against false alarms."""
    figure, (axes,) = drawing.figure(3.1)
    _curve(axes, curves.false, curves.found, start=(0.0, 0.0))
    axes.plot([0, 1], [0, 1], color=drawing.GRAY, lw=0.8, ls="--")
    false, found = _here(curves, curves.false), _here(curves, curves.found)
    _mark(axes, false, found, -14)
    _shares(axes)
    axes.set_xlabel(f"share of class {short(names[0])} taken for {short(names[1])}")
    axes.set_ylabel(f"share of class {short(names[1])} found")
    return drawing.Picture(
        "ROC curve",
        drawing.svg(figure, "roc", "Line chart: rows found against false alarms"),
        f"What other thresholds of the score would do on the {data} rows: upper left "
        f"is good. The model (diamond, threshold 0) finds {percent(found)} of class "
        f"{names[1]}, and takes {percent(false)} of class {names[0]} for it. The area "
        f"below the curve is {curves.area:.4f}; guessing has 0.5 (dashed).",
    )


def _precision(curves: Curves, names: Sequence[str], data: str) -> drawing.Picture:
    """Precision against recall of the second class."""
    figure, (axes,) = drawing.figure(3.1)
    _curve(axes, curves.found, curves.precision)
    axes.axhline(curves.share, color=drawing.GRAY, lw=0.8, ls="--")
    found, precision = _here(curves, curves.found), _here(curves, curves.precision)
    _mark(axes, found, precision, 6)
    _shares(axes)
    axes.set_xlabel(f"recall: share of class {short(names[1])} found")
    axes.set_ylabel("precision")
    said = f"{percent(precision)} of what it takes for class {names[1]} is right"
    if curves.place < 0:
        said = f"it takes no row for class {names[1]}"
    return drawing.Picture(
        "Precision and recall",
        drawing.svg(figure, "precision", "Line chart: precision against recall"),
        f"On the {data} rows: upper right is good. At the threshold of the model "
        f"(diamond) {said}. The mean precision is {curves.average:.4f}; guessing has "
        f"{curves.share:.4f}, the share of that class (dashed).",
    )


def _here(curves: Curves, shares: Vector) -> float:
    """A share at the threshold of the model; 0 where no score is above it."""
    return float(shares[curves.place]) if curves.place >= 0 else 0.0


def _curve(
    axes: Axes, x: Any, y: Any, start: tuple[float, float] | None = None
) -> None:
    """A line through at most POINTS points that are evenly apart along it."""
    if start is not None:
        x, y = np.append(start[0], x), np.append(start[1], y)
    along = np.append(0.0, np.cumsum(np.hypot(np.diff(x), np.diff(y))))
    even = np.linspace(0.0, along[-1], drawing.POINTS)
    kept = np.unique(np.searchsorted(along, even).clip(0, len(x) - 1))
    axes.plot(x[kept], y[kept], color=drawing.DARK, lw=1.5)


def _mark(axes: Axes, x: float, y: float, up: float) -> None:
    """The threshold of the model, named on the empty side of the curve."""
    axes.plot(x, y, "D", color=drawing.DARK, ms=6)
    side, right = ("right", -8) if x > 0.75 else ("left", 8)
    place = ("data", "data")
    drawing.label(axes, "threshold 0", (x, y), place, (right, up), side)


def _shares(axes: Axes) -> None:
    """Both axes from 0 to 1."""
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.04))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
