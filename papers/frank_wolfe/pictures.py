"""Figures 3 to 6: accuracies, times and coresets of the three methods."""

import numpy as np

from papers.crsvm.figures import style
from papers.frank_wolfe.datasets import BY_NAME, CVM, FW, METHODS, MFW


def series(sets, names, folder, file, label):
    """Four panels over the rows of a series, as Figures 3 and 4."""
    figure, axes = style.panels(2, 2, width=5.0, height=3.4)
    accuracy, speed, seconds, points = axes
    rows = [sets[n][CVM]["rows"] for n in names]
    for k, method in enumerate(METHODS):
        mine = [sets[n][method] for n in names]
        value = [_nan(r["accuracy"]) for r in mine]
        style.curve(accuracy, rows, value, k, method)
        style.curve(seconds, rows, [r["seconds"] for r in mine], k, method)
        over = [(r["rows"], r["seconds"]) for r in mine if r["over"]]
        for x, y in over:
            seconds.annotate(
                "> limit",
                (x, y),
                (-4, 6),
                textcoords="offset points",
                ha="right",
                fontsize="small",
            )
        style.curve(points, rows, [r["coreset"] for r in mine], k, method)
    for k, method in ((1, FW), (2, MFW)):
        value = [_speedup(sets[n], method) for n in names]
        style.curve(speed, rows, value, k, f"{method} here")
        cvm = [BY_NAME[n].seconds[0] / BY_NAME[n].seconds[k] for n in names]
        style.curve(speed, rows, cvm, k + 2, f"{method} in the paper")
    speed.axhline(1.0, color="0.8", lw=1)
    speed.legend(fontsize="small")
    accuracy.set_ylabel("test accuracy, %")
    speed.set_ylabel("times faster than CVM")
    seconds.set_ylabel("seconds")
    points.set_ylabel("points of the coreset")
    for axis in axes:
        axis.set_xscale("log")
        style.plain(axis, "x", (1, 2, 5))
        axis.set_xlabel("rows")
    for axis in (speed, seconds, points):
        axis.set_yscale("log")
    figure.suptitle(f"{label}: 59 random points, stop of the paper")
    style.legend(figure, accuracy, 3)
    style.save(figure, folder, file)


def single(sets, names, folder, file):
    """Accuracies and speed-ups of single sets, as Figures 5 and 6."""
    figure, (accuracy, speed) = style.panels(2, 1, width=9.5, height=3.4)
    labels = [sets[n][CVM]["label"] for n in names]
    values = {m: [_nan(sets[n][m]["accuracy"]) for n in names] for m in METHODS}
    style.bars(accuracy, labels, values, METHODS)
    least = np.nanmin([v for column in values.values() for v in column] or [0.0])
    accuracy.set_ylim(max(0.0, least - 5.0), 101.0)
    accuracy.set_ylabel("test accuracy, %")
    shown = {}
    for k, m in ((1, FW), (2, MFW)):
        shown[f"{m} here"] = [_speedup(sets[n], m) for n in names]
        shown[f"{m} in the paper"] = [
            BY_NAME[n].seconds[0] / BY_NAME[n].seconds[k] for n in names
        ]
    style.bars(speed, labels, shown, list(shown))
    speed.set_yscale("log")
    speed.axhline(1.0, color="black", lw=1)
    speed.set_ylabel("times faster than CVM")
    for axis, columns in ((accuracy, 3), (speed, 4)):
        axis.legend(
            ncols=columns,
            fontsize="small",
            loc="upper center",
            bbox_to_anchor=(0.5, 1.18),
        )
    style.save(figure, folder, file)


def _nan(value):
    return np.nan if value is None else value


def _speedup(found, method):
    if found[method]["over"]:
        return np.nan
    return found[CVM]["seconds"] / found[method]["seconds"]
