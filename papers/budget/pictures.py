"""The pictures of Figure 1."""

import numpy as np

from papers import style

DARKEST, LIGHTEST = 50.0, 5.0  # percent, as in the paper
LEVELS = (10, 20, 30, 40)


def heat_maps(records, maps, pick, folder, name):
    """Errors over B and s: a row for each norm, a column for each of the maps."""
    kinds = list(dict.fromkeys(r["norm"] for r in records))
    figure, axes = style.panels(len(kinds), len(maps), width=3.5, height=3.5)
    panels = iter(axes)
    for kind in kinds:
        for machine, key, title in maps:
            axis = next(panels)
            found = pick(records, kind, machine)
            image = _map(axis, found, key)
            axis.set(title=f"{kind}: {title}", xlabel="budget B")
            axis.set_ylabel("support vectors kept, s")
    figure.colorbar(image, ax=axes, shrink=0.6, label="test error, %")
    style.save(figure, folder, name)


def _map(axis, found, key):
    budgets = [r["B"] for r in found]
    errors = np.array([r[key] for r in found]).T
    m = budgets[-1]
    sizes = found[0]["sizes"]
    image = axis.pcolormesh(
        budgets, sizes, errors, cmap="gray_r", vmin=LIGHTEST, vmax=DARKEST
    )
    if min(errors.shape) > 3:
        shades = ["black" if level < 30 else "white" for level in LEVELS]
        lines = axis.contour(
            budgets, sizes, errors, levels=LEVELS, colors=shades, linewidths=1.0
        )
        axis.clabel(lines, fmt="%g %%", fontsize=8)
    axis.plot([0, m], [0, m], color="0.5", ls="--", lw=1.2)
    axis.set(xlim=(budgets[0], m), ylim=(sizes[0], m))
    return image


def curves(records, labels, pick, folder, name):
    """Errors at s = B; ``labels`` of the machines."""
    kinds = list(dict.fromkeys(r["norm"] for r in records))
    figure, axes = style.panels(1, len(kinds), width=5.0, height=4.4)
    for axis, kind in zip(axes, kinds, strict=True):
        for k, (machine, label) in enumerate(labels.items()):
            found = pick(records, kind, machine)
            budgets = [r["B"] for r in found]
            style.curve(axis, budgets, [r["diagonal"] for r in found], k, label)
        axis.set(
            title=f"budget-{kind}-SVM, means over splits",
            xlabel="support vectors kept, s = B",
        )
        axis.set(ylabel="test error, %", ylim=(0, None))
        axis.grid(color="0.9")
    style.legend(figure, axes[0], 2)
    style.save(figure, folder, name)
