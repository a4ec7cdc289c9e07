"""Seconds over rows of subsets: growth.txt, growth.png and the exponents."""

import math
from statistics import median

import numpy as np

from benchmarks.pictures import STYLES
from benchmarks.ratios import OURS, group


def write_growth(folder, runs):
    """Write the table and the picture; the lines of text."""
    curves = {
        name: {peer: _curve(mine) for peer, mine in _by(same, "peer")}
        for name, same in _by([run for run in runs if "failed" not in run], "set")
    }
    if not curves:
        return []
    lines = ["Seconds of a fit over rows, the certified gap of each; exponent p of m^p"]
    for name, peers in curves.items():
        sizes = sorted({m for curve in peers.values() for m in curve})
        lines.append(f"{name:12}" + "".join(f"{m:>16,}" for m in sizes) + f"{'p':>7}")
        for peer, curve in peers.items():
            cells = "".join(f"{_cell(curve.get(m)):>16}" for m in sizes)
            lines.append(f"  {peer:10}{cells}{exponent(curve):7.2f}")
    (folder / "growth.txt").write_text("\n".join(lines) + "\n")
    _draw(folder, curves)
    return ["", *lines]


def _by(runs, name):
    return group(runs, lambda run: run[name]).items()


def _curve(runs):
    """Rows -> (seconds, gap), medians."""
    return {
        m: (median(r["seconds"] for r in same), median(r["own_gap"] for r in same))
        for m, same in sorted(_by(runs, "m"))
    }


def _cell(found):
    return f"{found[0]:.3f} ({found[1]:.0e})" if found else "-"


def exponent(curve):
    """The least squares slope of log seconds over log rows; nan of one point."""
    if len(curve) < 2:
        return math.nan
    seconds = [found[0] for found in curve.values()]
    return float(np.polyfit(np.log(list(curve)), np.log(seconds), 1)[0])


def _draw(folder, curves):
    """A panel for each set."""
    from matplotlib.figure import Figure

    columns = min(len(curves), 3)
    lines = math.ceil(len(curves) / columns)
    figure = Figure(figsize=(3.6 * columns, 3.2 * lines), layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False).ravel()
    for ax, (name, peers) in zip(axes, curves.items(), strict=False):
        for peer, curve in peers.items():
            line, marker = STYLES.get(peer, (":", "*"))
            ax.plot(
                list(curve),
                [found[0] for found in curve.values()],
                color="black" if peer == OURS else "0.4",
                linestyle=line,
                marker=marker,
                markersize=4.5,
                label=f"{peer}: {exponent(curve):.2f}",
            )
        ax.set(xscale="log", yscale="log", title=name)
        ax.set(xlabel="rows", ylabel="seconds")
        ax.xaxis.set_minor_formatter("")  # two thousand, three thousand, ... overlap
        ax.grid(visible=True, color="0.9", linewidth=0.6)
        ax.legend(fontsize=7, title="exponent", title_fontsize=7)
    for ax in axes[len(curves) :]:
        ax.set_axis_off()
    figure.savefig(folder / "growth.png", dpi=120)
