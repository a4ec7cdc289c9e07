"""Curves over the size of the working set, a panel for each problem."""

import numpy as np

from papers import style


def save(records, key, kinds, value, ylabel, folder, name):
    """Draw ``value(record)`` over q, a curve for each of the ``kinds`` of ``key``.

    Where a run did not get to the gap the curve has a break, and its marker stands
    hollow above the panel.
    """
    problems = list(dict.fromkeys((r["set"], r["C"]) for r in records))
    figure, axes = style.panels(1, len(problems), width=4.2, height=3.6)
    for axis, (problem, C) in zip(axes, problems, strict=True):
        for k, kind in enumerate(kinds):
            mine = [
                r for r in records if (r["set"], r["C"], r[key]) == (problem, C, kind)
            ]
            late = [r["q"] for r in mine if r["status"] != "solved"]
            values = [np.nan if r["q"] in late else value(r) for r in mine]
            style.curve(axis, [r["q"] for r in mine], values, k, kind)
            style.hollow(axis, late, 1.04 + 0.055 * k, k)
        axis.set(xscale="log", yscale="log")
        axis.set_title(f"{problem}, C = {C:g}", pad=8 + 12 * len(kinds))
        for side in "xy":
            style.plain(axis, side, (1, 2, 5))
        axis.set_xlabel("q, rows of a working set (hollow: gap not reached)")
    axes[0].set_ylabel(ylabel)
    style.legend(figure, axes[0], 6)
    style.save(figure, folder, name)
