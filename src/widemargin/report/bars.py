"""Times of several programs on the same problems, as bars beside their gaps."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from widemargin.report import drawing
from widemargin.report.html import seconds
from widemargin.report.timing import Timing

_HEADING: Any = {"ha": "left", "va": "center", "weight": "bold", "fontsize": 9}


class _Line(NamedTuple):
    """A bar, or the name of a problem above its bars."""

    timing: Timing | None
    words: str


def bars(timings: Sequence[Timing]) -> drawing.Picture:
    """Seconds of each program, with the relative gap that it reached."""
    lines = list(_lines(timings))
    figure, (axes,) = drawing.figure(0.7 + 0.27 * len(lines))
    low = min(t.seconds for t in timings) / 3
    for place, line in enumerate(lines):
        if line.timing is None:
            sides = axes.get_yaxis_transform()  # shares of the panel, and lines
            axes.text(0.0, place, line.words, transform=sides, **_HEADING)
            continue
        look = drawing.OURS if line.timing.ours else drawing.THEIRS
        width = line.timing.seconds - low
        axes.barh(place, width, left=low, height=0.7, **look)
        beside = (line.timing.seconds, place)
        drawing.label(axes, line.words, beside, ("data", "data"), (4, -3))
    _axis(axes, lines, low)
    return drawing.Picture(
        "Seconds to a gap",
        drawing.svg(figure, "timings", "Bar chart: seconds and gaps of programs"),
        "Short bars are good. Each program solved the same problem on the same rows; "
        "its gap says how far the objective of its answer is above the smallest "
        "possible one at most, by the bounds of this library. The axis is logarithmic.",
    )


def _lines(timings: Sequence[Timing]) -> list[_Line]:
    """The bars of each problem below its name."""
    lines = []
    for problem in dict.fromkeys(t.problem for t in timings):
        lines.append(_Line(None, problem))
        for timing in (t for t in timings if t.problem == problem):
            words = f"{seconds(timing.seconds)}, gap {timing.gap:.0e}"
            lines.append(_Line(timing, words))
    return lines


def _axis(axes: Axes, lines: list[_Line], low: float) -> None:
    """Names of the programs, and seconds; the first line on top."""
    named = [k for k, line in enumerate(lines) if line.timing is not None]
    axes.set_yticks(named, [line.timing.name for line in lines if line.timing])
    axes.set_ylim(len(lines) - 0.5, -0.6)
    axes.set_xscale("log")
    longest = max(line.timing.seconds for line in lines if line.timing)
    axes.set_xlim(low, longest * float(np.exp(0.8 * np.log(longest / low))))
    axes.xaxis.set_major_locator(LogLocator(numticks=6))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.set_xlabel("seconds")
    axes.grid(visible=False, axis="y")
