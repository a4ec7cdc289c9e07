"""One look for all figures, readable in black and white."""

import io

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from PIL import Image

# Shade and hatch of bars; shade, marker and line of curves.
BARS = (
    ("0.25", ""),
    ("0.85", "///"),
    ("0.6", "..."),
    ("1.0", "xxx"),
    ("0.75", "\\\\"),
    ("0.5", "--"),
)
LINES = (
    ("black", "o", "-"),
    ("0.45", "s", "--"),
    ("black", "^", ":"),
    ("0.45", "D", "-."),
    ("0.7", "v", (0, (5, 1, 1, 1, 1, 1))),
    ("black", "P", (0, (1, 3))),
)


def panels(rows, columns, *, width=4.6, height=3.2):
    """A figure and its axes, row by row."""
    figure, axes = plt.subplots(
        rows,
        columns,
        figsize=(width * columns, height * rows),
        layout="constrained",
        squeeze=False,
    )
    return figure, list(axes.flat)


def legend(figure, axis, columns):
    """The legend of one panel, below all panels."""
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)


def logarithmic(axis, name, places=None):
    """A logarithmic axis, if the panel shows anything there; ticks as `plain` has them.

    Where every run was given up there is nothing, and no ticks can be found.
    """
    _, high = getattr(axis.dataLim, f"interval{name}")
    if high > 0:
        getattr(axis, f"set_{name}scale")("log")
        if places:
            plain(axis, name, places)


def plain(axis, name, places):
    """Ticks of a logarithmic axis at places between 1 and 10, as decimals."""
    side = getattr(axis, f"{name}axis")
    side.set_major_locator(LogLocator(subs=places))
    side.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    side.set_minor_formatter(NullFormatter())


def save(figure, folder, name):
    """Write FOLDER/NAME.png, in few shades of gray: a small file."""
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=100)
    plt.close(figure)
    gray = Image.open(drawn).convert("L").quantize(16)
    gray.save(folder / f"{name}.png", optimize=True)


def bars(axis, groups, values, labels):
    """Groups of bars; values[label] has one number a group, a cross where it is nan."""
    width = 0.8 / len(labels)
    for k, label in enumerate(labels):
        shade, hatch = BARS[k % len(BARS)]
        places = [g + (k - (len(labels) - 1) / 2) * width for g in range(len(groups))]
        axis.bar(
            places,
            values[label],
            width,
            color=shade,
            hatch=hatch,
            edgecolor="black",
            label=label,
        )
        missing = [x for x, v in zip(places, values[label], strict=True) if v != v]
        crosses(axis, missing, 0.03, "black")
    axis.set_xticks(range(len(groups)), groups)


def crosses(axis, x, height, shade):
    """Marks of what is missing at places x, at a height as a share of the panel."""
    where = axis.get_xaxis_transform()
    about = {"color": shade, "ms": 6, "mew": 1.5, "clip_on": False, "in_layout": False}
    axis.plot(x, [height] * len(x), "x", transform=where, **about)


def hollow(axis, x, height, k):
    """The marks of the k-th curve, not filled, at places x beside the panel."""
    shade, marker, _ = LINES[k % len(LINES)]
    about = {"color": shade, "mfc": "white", "clip_on": False, "in_layout": False}
    where = axis.get_xaxis_transform()
    axis.plot(x, [height] * len(x), marker, ms=6, transform=where, **about)


def curve(axis, x, y, k, label, **options):
    """The k-th curve of a panel."""
    shade, marker, line = LINES[k % len(LINES)]
    axis.plot(x, y, color=shade, marker=marker, ls=line, ms=5, label=label, **options)
