"""Figures 3 to 6: accuracies, times and coresets of the three methods."""

import numpy as np

from papers import style
from papers.frank_wolfe.datasets import BY_NAME, CVM, FW, METHODS, MFW


def series(sets, names, folder, file, label):
    """Four panels over the rows of a series, as Figures 3 and 4."""
    figure, axes = style.panels(2, 2, width=5.0, height=3.4)
    accuracy, speed, seconds, points = axes
    rows = [sets[n][CVM]["rows"] for n in names]
    for k, method in enumerate(METHODS):
        mine = [sets[n][method] for n in names]
        done = [r for r in mine if not r["over"]]
        known = [r for r in done if r["accuracy"] is not None]
        for axis, key, shown in (
            (accuracy, "accuracy", known),
            (seconds, "seconds", done),
            (points, "coreset", [r for r in done if r["coreset"]]),
        ):
            x = [r["rows"] for r in shown]
            name = method if done else f"{method}: > limit"
            style.curve(axis, x, [r[key] for r in shown], k, name)
        _mark_late(mine, k, accuracy, seconds, points)
    limit = max(r["limit"] for n in names for r in sets[n].values())
    late = any(r["over"] for n in names for r in sets[n].values())
    if late:
        seconds.axhline(limit, color="0.6", lw=1)
        about = {"va": "top", "fontsize": "small", "in_layout": False}
        seconds.text(rows[0], limit, "limit", **about)
    _beside(speed, sets, names, rows)
    accuracy.set_ylabel("test accuracy, %")
    speed.set_ylabel("times faster than CVM")
    seconds.set_ylabel("processor seconds")
    points.set_ylabel("points of the coreset")
    for axis in axes:
        style.logarithmic(axis, "x", (1, 2, 5))
        axis.set_xlabel("rows (+ and x: the limit came first)" if late else "rows")
    for axis in (speed, seconds):
        style.logarithmic(axis, "y")
    style.logarithmic(points, "y", (1, 2, 5))
    figure.suptitle(f"{label}: 59 random points, stop of the paper")
    style.legend(figure, accuracy, 3)
    style.save(figure, folder, file)


def _mark_late(mine, k, accuracy, seconds, points):
    """Mark the sets on which the limit ended a method: + where it is, else crosses."""
    late = [r for r in mine if r["over"]]
    rows, shade = [r["rows"] for r in late], style.LINES[k][0]
    seconds.plot(rows, [r["limit"] for r in late], "+", color=shade, ms=9, mew=1.5)
    for axis in (accuracy, points):
        style.crosses(axis, rows, 0.03 + 0.05 * k, shade)


def _beside(axis, sets, names, rows):
    """Speed-ups over CVM, here and in the paper."""
    for k, method in ((1, FW), (2, MFW)):
        value = [_speedup(sets[n], method) for n in names]
        style.curve(axis, rows, value, k, f"{method} here")
        late = [r for r, v in zip(rows, value, strict=True) if np.isnan(v)]
        style.crosses(axis, late, 0.03 + 0.05 * k, style.LINES[k][0])
        cvm = [BY_NAME[n].seconds[0] / BY_NAME[n].seconds[k] for n in names]
        style.curve(axis, rows, cvm, k + 2, f"{method} in the paper")
    axis.axhline(1.0, color="0.8", lw=1)
    above = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}
    axis.legend(fontsize="small", ncols=2, **above)


def single(sets, names, folder, file):
    """Accuracies and speed-ups of single sets, as Figures 5 and 6."""
    figure, (accuracy, speed) = style.panels(2, 1, width=9.5, height=3.4)
    labels = [sets[n][CVM]["label"] for n in names]
    values = {m: [_accuracy(sets[n][m]) for n in names] for m in METHODS}
    style.bars(accuracy, labels, values, METHODS)
    known = [v for column in values.values() for v in column if not np.isnan(v)]
    accuracy.set_ylim(max(0.0, min(known, default=100.0) - 5.0), 101.0)
    accuracy.set_ylabel("test accuracy, % (x: the limit came first)")
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


def _accuracy(r):
    return np.nan if r["over"] or r["accuracy"] is None else r["accuracy"]


def _speedup(found, method):
    """Nan where one of the two came to no end."""
    if found[method]["over"] or found[CVM]["over"]:
        return np.nan
    return found[CVM]["seconds"] / found[method]["seconds"]
