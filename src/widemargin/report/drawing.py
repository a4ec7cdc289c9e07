"""What all drawings of the report share: colors, sizes, a figure, its SVG.

Lines differ by style and marker, areas by hatch and label. The drawings are as wide as
a phone, so that their letters are as large as the letters of the text.
"""

import io
import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from widemargin.arrays import Vector

WIDTH = 4.5  # inches, with letters of 10 points
# One color, one meaning: rust and blue are the first and the second class, green and
# purple the primal and the dual objective, black what is measured, gray what is beside.
DARK, GRAY, PALE, BLUE, RUST = "#1a1a1a", "#8a8a8a", "#b4bec9", "#10345c", "#a8431a"
GREEN, PURPLE = "#1e6b4a", "#6b3f94"
# Colors that the page has names for, and sets anew on a dark screen.
_NAMES = {
    "#000000": "ink",
    DARK: "ink",
    "#ffffff": "paper",
    GRAY: "gray",
    PALE: "pale",
    BLUE: "blue",
    RUST: "rust",
    GREEN: "green",
    PURPLE: "purple",
    "#dddddd": "grid",
    "#dfe8f2": "up",
    "#f8e9e0": "down",
}
_COLOR = re.compile("|".join(_NAMES))
# Points of a line, bins of a histogram, rows drawn as markers: enough to see what there
# is, and few enough for a small page.
POINTS, BINS, MARKERS = 200, 60, 500
ENDS = "The outermost bars also hold what lies beyond them."

_STYLE: Any = {
    "font.sans-serif": ["DejaVu Sans"],
    "text.parse_math": False,  # a class may be named "$x"
    "svg.fonttype": "none",
    "svg.hashsalt": "widemargin",
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.5,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "legend.columnspacing": 1.0,
    "legend.handlelength": 1.8,
}
PLAIN: dict[str, Any] = {"hatch": "////", "ec": GRAY, "fc": "white"}
# Bars of this library, and of others.
OURS: dict[str, Any] = {"fc": DARK, "ec": DARK}
THEIRS: dict[str, Any] = {"fc": PALE, "ec": GRAY, "hatch": "////"}
PAPER: dict[str, Any] = {"fc": "white", "ec": "none", "alpha": 0.8, "pad": 1.5}


class Picture(NamedTuple):
    """A drawing between its heading and its caption."""

    heading: str
    svg: str
    caption: str


@contextmanager
def style() -> Iterator[None]:
    """Settings of matplotlib for the drawings, whatever the user has set."""
    with mpl.rc_context(), warnings.catch_warnings():
        # The layout's font may lack letters of a name; the browser has them.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        # A plane may be outside the picture.
        warnings.filterwarnings("ignore", "No contour levels were found")
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        yield


# Pictures whose fills are no colors of the page: they stay as on paper.
_LIGHT = ("plane", "heat")
_LINK = "{http://www.w3.org/1999/xlink}href"


def figure(height: float, panels: int = 1) -> tuple[Figure, list[Axes]]:
    """A figure with panels below each other."""
    made = Figure(figsize=(WIDTH, height), layout="constrained")
    return made, list(made.subplots(panels, 1, sharex=True, squeeze=False)[:, 0])


def shares(axes: Axes, values: Vector, reach: float, look: dict[str, Any]) -> None:
    """Histogram of values in percent, from -reach to reach, with a line at 0."""
    edges = np.linspace(-reach, reach, BINS + 1)
    counts, _ = np.histogram(np.clip(values, -reach, reach), edges)
    axes.stairs(100.0 * counts / len(values), edges, fill=True, lw=1, **look)
    axes.axvline(0, color=DARK, lw=1.2)


def label(
    axes: Axes,
    words: str,
    point: tuple[float, float],
    units: tuple[str, str],
    offset: tuple[float, float],
    side: str = "left",
) -> None:
    """Words beside a point, by an offset in points."""
    axes.annotate(words, point, offset, units, "offset points", ha=side, fontsize=9)


def legend(figure: Figure, columns: int) -> None:
    """The lines of the first panel, above the panels."""
    lines = figure.axes[0].get_legend_handles_labels()
    figure.legend(*lines, loc="outside upper left", ncols=columns)


def svg(figure: Figure, name: str, alt: str) -> str:
    """The figure as SVG for a page: ids of its own, nothing that is not drawn."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    root = ET.fromstring(buffer.getvalue())
    for unneeded in root[:2]:  # metadata, and a style that the page has for all
        root.remove(unneeded)
    for element in root.iter():
        element.tag, element.tail = element.tag.split("}")[-1], None
        if _LINK in element.attrib:
            element.set("href", element.attrib.pop(_LINK))
        if "fill" in element.attrib:  # below hatches; only styles know names of colors
            element.set("style", f"fill: {element.attrib.pop('fill')}")
        for key, value in element.items():
            element.set(key, _of_page(key, value, name))
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", "aria-label": alt}
    if name in _LIGHT:
        root.set("class", "light")
    return ET.tostring(root, encoding="unicode")


def _of_page(key: str, value: str, name: str) -> str:
    """An attribute whose ids begin with a name, and whose colors are the page's."""
    if key == "id":
        return f"{name}-{value}"
    if key == "href":
        return f"#{name}-{value[1:]}" if value[0] == "#" else value
    value = " ".join(value.split()).replace("url(#", f"url(#{name}-")
    if key == "style":
        return _COLOR.sub(lambda c: f"var(--{_NAMES[c[0]]})", value)
    return value
