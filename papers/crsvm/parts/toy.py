"""Figure 5.9: which patterns the method uses, on points around an ellipse."""

import itertools

import numpy as np

from papers import style
from papers.crsvm import datasets, methods
from widemargin import Problem

NAME = "figure_5.9"
PANELS = 6
THETA, BETA = 100.0, 4.0  # the defaults, and the paper's


def patterns(d, y, mu):
    """Rows of Q by the balanced rule with q_U = m: (3.18) and (3.20) to (3.22)."""
    m = len(y)
    classes = [np.flatnonzero(y < 0), np.flatnonzero(y > 0)]
    least = [np.count_nonzero(d[c] >= THETA * np.sqrt(mu)) for c in classes]
    q = max(min(m, int(np.ceil(mu ** (1.0 / BETA) * m))), sum(least))
    if q > 0.8 * m:  # the library takes all rows: nothing would be saved
        return np.arange(m)
    sizes = [len(c) for c in classes]
    count = [
        min(max(k, int(np.ceil(q / 2))), size)
        for k, size in zip(least, sizes, strict=True)
    ]
    short = max(0, q - sum(count))
    chosen = [
        c[np.argsort(-d[c], kind="stable")[: k + short]]
        for c, k in zip(classes, count, strict=True)
    ]
    return np.sort(np.concatenate(chosen))


def history(problem, y, tol=methods.TIGHT):
    """What each iteration sees: mu, |Q|, the rows of Q, w and b."""
    for step in methods.published().iterate(problem, None, tol):
        v, state = step.point()
        mu = step.details["mu"]
        yield {
            "iteration": step.iteration,
            "mu": mu,
            "active": step.active,
            "patterns": patterns(np.array(state.d), y, mu).tolist(),
            "w": v[:-1].tolist(),
            "b": float(v[-1]),
        }
        if step.relative_gap <= tol:
            return


def run(options):
    """A record for each iteration."""
    _, data = datasets.ellipse(400 if options.quick else 2000)
    return list(history(Problem(data.X, data.y), data.y))


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
    figure, axes = style.plt.subplots(2, 3, figsize=(10.5, 7.4), layout="constrained")
    for axis, r in itertools.zip_longest(axes.flat, snapshots(records)):
        axis.set_axis_off()
        if r is not None:
            _snapshot(axis, x, data.y, r)
    style.save(figure, folder, NAME)


def _snapshot(axis, x, y, r):
    chosen = np.zeros(len(y), dtype=bool)
    chosen[r["patterns"]] = True
    axis.plot(*x[~chosen].T, ".", color="0.85", ms=2)
    big = 3 if chosen.sum() > 150 else 8
    axis.plot(*x[chosen & (y > 0)].T, "k+", ms=big + 1)
    axis.plot(*x[chosen & (y < 0)].T, "o", mfc="none", mec="0.35", ms=big, mew=0.7)
    grid = np.linspace(-1.0, 1.0, 201)
    a, b = np.meshgrid(grid, grid)
    z = datasets.homogeneous(np.c_[a.ravel(), b.ravel()]) @ r["w"] + r["b"]
    z = z.reshape(a.shape)
    axis.contour(a, b, z, [0.0], colors="black", linewidths=1.8)
    axis.contour(a, b, z, [-1.0, 1.0], colors="black", linestyles="--", linewidths=1.0)
    axis.set_title(
        rf"iteration {r['iteration']}: |Q| = {r['active']}, $\mu$ = {r['mu']:.0e}"
    )
    axis.set_aspect("equal")
