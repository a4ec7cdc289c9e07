"""Curves over the size of the working set, a panel for each problem."""

from papers import style


def save(records, key, kinds, value, ylabel, folder, name):
    """Draw ``value(record)`` over q, a curve for each of the ``kinds`` of ``key``."""
    problems = list(dict.fromkeys((r["set"], r["C"]) for r in records))
    figure, axes = style.panels(1, len(problems), width=3.8, height=3.3)
    for axis, (problem, C) in zip(axes, problems, strict=True):
        for k, kind in enumerate(kinds):
            mine = [
                r
                for r in records
                if (r["set"], r["C"], r[key]) == (problem, C, kind)
                and r.get("status", "solved") == "solved"
            ]
            sizes, values = [r["q"] for r in mine], [value(r) for r in mine]
            style.curve(axis, sizes, values, k, kind)
        axis.set(xscale="log", yscale="log", title=f"{problem}, C {C:g}")
        style.plain(axis, "x", (1, 2, 5))
        axis.set_xlabel("rows of a working set")
    axes[0].set_ylabel(ylabel)
    style.legend(figure, axes[0], 4)
    style.save(figure, folder, name)
