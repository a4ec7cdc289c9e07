"""Figure 5.9: which patterns the method uses, on points around an ellipse."""

import itertools

import numpy as np

from papers import style
from papers.crsvm import datasets, methods
from widemargin import Problem

NAME = "figure_5.9"
PANELS = 6


def history(problem, tol=methods.TIGHT):
    """What each iteration sees: mu, |Q|, the rows of Q, w and b."""
    for step in methods.published().iterate(problem, None, tol):
        v, state = step.point()
        yield {
            "iteration": step.iteration,
            "mu": step.details["mu"],
            "active": step.active,
            "patterns": np.flatnonzero(state.chosen).tolist(),
            "w": v[:-1].tolist(),
            "b": float(v[-1]),
        }
        if step.relative_gap <= tol:
            return


def run(options):
    """A record for each iteration."""
    _, data = datasets.ellipse(400 if options.quick else 2000)
    return list(history(Problem(data.X, data.y)))


def table(records):
    """Lines of text."""
    yield "iteration    mu        |Q|"
    for r in records:
        yield f"{r['iteration']:6}{r['mu']:12.1e}{r['active']:8}"


def snapshots(records):
    """Some iterations from first to last: as |Q| falls."""
    places = np.linspace(0, len(records) - 1, PANELS).round().astype(int)
    return [records[k] for k in dict.fromkeys(places.tolist())]


def draw(records, folder):
    """Chosen patterns, the classifier, and the boundary curves, at six iterations."""
    quick = len(records[0]["patterns"]) < 1000
    x, data = datasets.ellipse(400 if quick else 2000)
    figure, axes = style.panels(2, 3, width=3.5, height=3.7)
    for axis, r in itertools.zip_longest(axes, snapshots(records)):
        if r is None:
            axis.set_axis_off()
        else:
            _snapshot(axis, x, data.y, r)
    style.legend(figure, axes[0], 5)
    style.save(figure, folder, NAME)


def _snapshot(axis, x, y, r):
    chosen = np.zeros(len(y), dtype=bool)
    chosen[r["patterns"]] = True
    big = 3 if chosen.sum() > 150 else 8
    axis.plot(*x[~chosen].T, ".", color="0.85", ms=2, label="not in Q")
    axis.plot(*x[chosen & (y > 0)].T, "k+", ms=big + 1, label="in Q, inside")
    outside = {"mfc": "none", "mec": "0.35", "mew": 0.7, "label": "in Q, outside"}
    axis.plot(*x[chosen & (y < 0)].T, "o", ms=big, **outside)
    _curves(axis, r)
    axis.set_title(
        rf"iteration {r['iteration']}: |Q| = {r['active']}, $\mu$ = {r['mu']:.0e}"
    )
    axis.set(xlim=(-1.05, 1.05), ylim=(-1.05, 1.05), xlabel="$x_1$", ylabel="$x_2$")
    axis.set_aspect("equal")


def _curves(axis, r):
    """Where w'phi(x) + b is 0 (solid), and 1 or -1 (dashed)."""
    grid = np.linspace(-1.0, 1.0, 201)
    a, b = np.meshgrid(grid, grid)
    z = datasets.homogeneous(np.c_[a.ravel(), b.ravel()]) @ r["w"] + r["b"]
    places = a, b, z.reshape(a.shape)
    dashed = {"linestyles": "--", "linewidths": 1.0}
    if np.ptp(z) > 0:  # w = 0 has no curve
        axis.contour(*places, [0.0], colors="black", linewidths=1.8)
        axis.contour(*places, [-1.0, 1.0], colors="black", **dashed)
    axis.plot([], [], "k-", lw=1.8, label="classifier")
    axis.plot([], [], "k--", lw=1.0, label="boundary curves")
