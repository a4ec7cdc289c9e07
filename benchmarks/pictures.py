"""Gap against seconds: one picture a loss and C, one panel a problem."""

import math

from benchmarks.ratios import OURS, SMALLEST_GAP, envelope

# Line style, marker: told apart without color.
STYLES = {
    OURS: ("-", "o"),
    "sklearn": ("--", "s"),
    "liblinear": ("-.", "^"),
    "libsvm": (":", "v"),
    "sklearnex": ((0, (5, 1)), "D"),
    "snapml": ((0, (3, 1, 1, 1)), "x"),
    "rehline": ((0, (1, 1)), "+"),
    "thundersvm": ("--", "^"),
}


def draw_curves(folder, problems):
    """Write curves-LOSS-C.png; nothing without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        print("No pictures: pip install matplotlib")
        return
    matplotlib.use("Agg")
    pictures = {}
    for (name, loss, C, intercept), (_, _, curves) in problems.items():
        panels = pictures.setdefault((loss, C), {})
        panels[f"{name}, {intercept}"] = curves
    for (loss, C), panels in pictures.items():
        figure = draw_panels(panels)
        figure.suptitle(f"{loss}, C = {C:g}: relative gap against seconds of a fit")
        figure.savefig(folder / f"curves-{loss}-{C:g}.png", dpi=120)


def draw_panels(panels):
    """A figure of small multiples with one legend: title -> peer -> points."""
    from matplotlib.figure import Figure

    columns = min(len(panels), 4)
    lines = math.ceil(len(panels) / columns)
    size = (max(3.1 * columns, 6.5), 2.6 * lines + 1.2)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False, sharey=True).ravel()
    for ax, (title, curves) in zip(axes, panels.items(), strict=False):
        _panel(ax, title, curves)
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    _legend(figure, axes)
    return figure


def _legend(figure, axes):
    """One legend of all peers that have a curve somewhere."""
    handles = {}
    for ax in axes:
        handles |= {line.get_label(): line for line in ax.get_lines()}
    names = sorted(handles, key=lambda peer: (peer != OURS, peer))
    figure.legend(
        [handles[peer] for peer in names],
        names,
        loc="outside lower center",
        ncols=4,
        frameon=False,
        handlelength=4,
    )


def _panel(ax, title, curves):
    """The curves of one problem; who has none is named."""
    for peer, curve in curves.items():
        if curve:
            _curve(ax, peer, envelope(curve))
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_ylim(SMALLEST_GAP / 10, 1.5)
    seconds = [point.seconds for curve in curves.values() for point in curve]
    if seconds:  # whole decades, at least two
        low = math.floor(math.log10(min(seconds)))
        high = max(math.ceil(math.log10(max(seconds))), low + 2)
        ax.set_xlim(10.0**low, 10.0**high)
    ax.set_title(title, fontsize=9)
    ax.tick_params(labelsize=8)
    ax.grid(visible=True, color="0.9", linewidth=0.6)
    silent = [peer for peer, curve in curves.items() if not curve]
    if silent:
        text = "no answer: " + ", ".join(silent)
        ax.text(0.02, 0.02, text, transform=ax.transAxes, fontsize=7)


def _curve(ax, peer, kept):
    line, marker = STYLES.get(peer, (":", "*"))
    ours = peer == OURS
    ax.plot(
        [point.seconds for point in kept],
        [max(point.gap, SMALLEST_GAP) for point in kept],
        color="black" if ours else "0.35",
        linestyle=line,
        marker=marker,
        linewidth=2.0 if ours else 1.0,
        markersize=4.5,
        markerfacecolor="black" if ours else "white",
        label=peer,
    )
