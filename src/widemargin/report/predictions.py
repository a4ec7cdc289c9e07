"""Pictures of predictions: against the targets, and their errors."""

from typing import Any

import numpy as np
from matplotlib.ticker import FuncFormatter

from widemargin.arrays import Vector
from widemargin.report import drawing
from widemargin.report.drawing import DARK, ENDS, MARKERS, PLAIN, Picture
from widemargin.report.html import percent


def against_truth(truth: Vector, found: Vector, epsilon: float, data: str) -> Picture:
    """Predictions of some rows against their targets, the diagonal and the tube."""
    figure, (axes,) = drawing.figure(4.2)
    m = len(truth)
    index = np.sort(np.random.default_rng(0).choice(m, min(m, MARKERS), replace=False))
    look: dict[str, Any] = {
        "marker": "o",
        "ls": "",
        "ms": 4,
        "mfc": "none",
        "mec": DARK,
        "mew": 0.8,
    }
    axes.plot(truth[index], found[index], label="row", **look)
    ends = np.array([truth[index].min(), truth[index].max()])
    axes.plot(ends, ends, color=DARK, lw=1.2, label="prediction = target")
    if epsilon > 0:
        tube: dict[str, Any] = {"color": DARK, "lw": 1.0, "ls": "--"}
        axes.plot(ends, ends + epsilon, label="± epsilon", **tube)
        axes.plot(ends, ends - epsilon, **tube)
    axes.set(xlabel="target", ylabel="prediction")
    drawing.legend(figure, 3)
    which = (
        f"{MARKERS} of the {data} rows, chosen at random"
        if m > MARKERS
        else (f"The {m:,} {data} rows")
    )
    tube_said = " Between the dashed lines errors are smaller than epsilon." * (
        epsilon > 0
    )
    return Picture(
        "Predictions",
        drawing.svg(figure, "predictions", "Scatter plot: targets, predictions"),
        f"{which}: on the solid line the prediction is the target, above it is too "
        f"large, below too small.{tube_said}",
    )


def residuals(error: Vector, epsilon: float, data: str) -> Picture:
    """How often the targets are how far from the predictions."""
    figure, (axes,) = drawing.figure(3.1)
    low, high = np.percentile(error, [0.5, 99.5])
    reach = max(-low, high, 1.2 * epsilon)
    reach = reach if reach > 0 else 1.0  # all predictions are right
    drawing.shares(axes, error, reach, PLAIN)
    for side in (-epsilon, epsilon) if epsilon > 0 else ():
        axes.axvline(side, color=DARK, lw=1.2, ls="--")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    axes.set(xlabel="target less prediction", ylabel="share of the rows (%)")
    inside = ""
    if epsilon > 0:
        share = percent(np.mean(np.abs(error) <= epsilon))
        inside = f" {share} are in the tube, between the dashed lines."
    return Picture(
        "Residuals",
        drawing.svg(figure, "residuals", "Histogram: targets less predictions"),
        f"The {data} rows by target less prediction: left of 0 (solid) the prediction "
        f"is too large, right of it too small. The median is {np.median(error):.3g}."
        f"{inside} {ENDS}",
    )
