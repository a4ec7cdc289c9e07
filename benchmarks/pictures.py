"""Gap against seconds: one picture a loss and C, one panel a problem."""

import math

from ratios import OURS, SMALLEST_GAP, envelope

# Line style, marker: told apart without color.
STYLES = {
    OURS: ("-", "o"),
    "sklearn": ("--", "s"),
    "liblinear": ("-.", "^"),
    "libsvm": (":", "v"),
    "sklearnex": ((0, (5, 1)), "D"),
    "snapml": ((0, (3, 1, 1, 1)), "x"),
    "rehline": ((0, (1, 1)), "+"),
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
        figure = _draw(panels)
        figure.suptitle(f"{loss}, C = {C:g}: relative gap against seconds of a fit")
        figure.savefig(folder / f"curves-{loss}-{C:g}.png", dpi=120)


def _draw(panels):
    """A figure of small multiples with one legend."""
    from matplotlib.figure import Figure

    columns = min(len(panels), 4)
    lines = math.ceil(len(panels) / columns)
    size = (max(3.1 * columns, 6.5), 2.7 * lines + 1.1)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False).ravel()
    for ax, (title, curves) in zip(axes, panels.items(), strict=False):
        _panel(ax, title, curves)
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    handles = {}
    for ax in axes:
        handles |= dict(zip(*ax.get_legend_handles_labels()[::-1], strict=True))
    in_order = sorted(handles, key=list(STYLES).index)
    figure.legend(
        [handles[peer] for peer in in_order],
        in_order,
        loc="outside lower center",
        ncols=min(len(handles), 4),
        frameon=False,
        handlelength=4,
    )
    return figure


def _panel(ax, title, curves):
    """The curves of one problem."""
    for peer, curve in curves.items():
        line, marker = STYLES[peer]
        kept = envelope(curve)
        strong = peer == OURS
        ax.plot(
            [point.seconds for point in kept],
            [max(point.gap, SMALLEST_GAP / 10) for point in kept],
            color="black" if strong else "0.35",
            linestyle=line,
            marker=marker,
            linewidth=2.0 if strong else 1.0,
            markersize=4.5,
            markerfacecolor="black" if strong else "white",
            label=peer,
        )
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_ylim(SMALLEST_GAP / 20, 1.5)
    ax.set_title(title, fontsize=9)
    ax.tick_params(labelsize=8)
    ax.grid(visible=True, color="0.9", linewidth=0.6)
    silent = [peer for peer, curve in curves.items() if not curve]
    if silent:
        text = "no answer: " + ", ".join(silent)
        ax.text(0.02, 0.02, text, transform=ax.transAxes, fontsize=7)
