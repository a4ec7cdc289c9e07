"""Markup of the report: words, numbers, tables and the page.

What comes from data passes `plain` once; whatever puts words into markup escapes them.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Index

# From this share above the optimum on, objectives are told by factors, and a budget is
# called too small: "130 % above" is read more slowly than "2.3 times".
COSTLY = 1.0
# From this shade on the letters of a cell are those of the page's color.
DARK_CELL = 0.62

# -- words and numbers -----------------------------------------------------------------


def plain(value: Any) -> str:
    """A name from the data, as one line of printable text."""
    text = f"{value:.12g}" if isinstance(value, float | np.floating) else str(value)
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text) or "''"


def short(text: str, most: int = 16) -> str:
    """The text, cut where it is too long for a picture or a narrow column."""
    return text if len(text) <= most else text[: most - 1] + "…"


def percent(share: float | np.floating[Any]) -> str:
    """A share as a percentage: "84.98 %"."""
    return f"{100 * share:.2f} %"


def rounded(value: float) -> str:
    """A number to three digits, without an exponent where it has few zeros: "1000"."""
    return f"{float(f'{value:.3g}'):g}"


def above(share: float) -> str:
    """How far an objective is above another: "1.53 % above", or "13 times" it."""
    if share < COSTLY:  # below zero by rounding
        return f"{100 * max(share, 0.0):.3g} % above"
    if share == np.inf:
        return "infinitely many times"
    return f"{1 + share:,.{0 if share >= 9 else 1}f} times"


def is_too_small(classifier: Any) -> bool:
    """Whether a budget is, by what the cut costs: not an unsolved machine."""
    cut = bool(np.any(classifier.pruned_)) and classifier.status_ == "solved"
    return cut and bool(classifier.increase_.max() >= COSTLY)


def seconds(time: float) -> str:
    """A time with its unit: "0.14 s", "3 min 5 s"."""
    whole = round(time)
    if time < 9.5:
        return f"{time:.2g} s"
    if whole < 120:
        return f"{whole} s"
    if whole < 7200:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def decimals(largest: float) -> int:
    """Digits after the point of a column, to show ten digits of its largest number."""
    return int(np.clip(9 - np.floor(np.log10(max(abs(largest), 1e-300))), 0, 12))


# A number with its unit, in which a line must not break.
_NUMBER = re.compile(r"(-?\d[\d.,]*(?:e[-+]\d+)?(?: %| s\b)?)")


def prose(words: str) -> str:
    """Words as markup."""
    parts = [escape(part) for part in _NUMBER.split(words)]
    parts[1::2] = [f"<span>{number}</span>" for number in parts[1::2]]
    return "".join(parts)


# -- tables ----------------------------------------------------------------------------


def facts(name: str, rows: Iterable[tuple[str, str]]) -> str:
    """A table of labels and what is to be said of each."""
    lines = [f"<tr>{_th(a, 'row')}<td>{escape(b)}</td></tr>" for a, b in rows]
    return _box(name, f"<table>{''.join(lines)}</table>")


def table(
    name: str,
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    words: Collection[str] = (),
) -> str:
    """A table with a name for each row, and numbers in all columns but ``words``."""
    kinds = ["" if title in words else ' class="n"' for title in header[1:]]
    heads = zip(header, ["", *kinds], strict=True)
    lines = ["".join(_th(title, "col", kind) for title, kind in heads)]
    for first, *others in rows:
        cells = zip(others, kinds, strict=True)
        texts = [f"<td{kind}>{escape(cell)}</td>" for cell, kind in cells]
        lines.append(_th(first, "row") + "".join(texts))
    return _box(name, f"<table><tr>{'</tr><tr>'.join(lines)}</tr></table>")


def matrix(counts: Index, rows: list[str], columns: list[str]) -> str:
    """A confusion matrix (r, c), each cell as dark as its share of the row."""
    top = f'<td></td><th scope="colgroup" colspan="{len(columns)}">predicted</th>'
    # The root lets an error of 1 % be seen beside the 99 % that are right.
    shades = np.sqrt(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))
    right = np.eye(*counts.shape) > 0
    return _grid("Confusion matrix", (counts, shades, right), (rows, columns), top)


def heat(name: str, counts: Index, names: list[str]) -> str:
    """Counts by two classes (c, c), each cell as dark as its share of the largest."""
    shades = np.sqrt(counts / max(1, counts.max()))
    return _grid(name, (counts, shades, np.zeros_like(counts, bool)), (names, names))


def _grid(
    name: str,
    cells: tuple[NDArray[Any], NDArray[Any], NDArray[Any]],
    names: tuple[list[str], list[str]],
    top: str | None = None,
) -> str:
    """A table of shaded counts; of these, shades and what is right."""
    counts, shades, right = cells
    rows, columns = names
    heads = "".join(_th(short(column), "col") for column in columns)
    lines = [f"<td>{'true' if top else ''}</td>{heads}"]
    for i, row in enumerate(rows):
        places = range(len(columns))
        cell = [_cell(counts[i, j], shades[i, j], bool(right[i, j])) for j in places]
        lines.append(_th(short(row), "row") + "".join(cell))
    body = "</tr><tr>".join([top, *lines] if top else lines)
    return _box(name, f'<table class="matrix"><tr>{body}</tr></table>')


def _cell(number: int, shade: float, right: bool) -> str:
    """A cell of a matrix, from the page's color to its darkest."""
    kind = ("right " if right else "") + ("dark" if shade > DARK_CELL else "")
    mixed = f"color-mix(in srgb,var(--heat) {100 * shade:.0f}%,var(--paper))"
    # Browsers before 2023 know no color-mix, and take the first one.
    plain_color = f"{255 + shade * (70 - 255):.0f}"
    first = f"rgb({plain_color},{plain_color},{plain_color})"
    style = f"background:{first};background:{mixed}"
    return f'<td class="{kind}" style="{style}">{number:,}</td>'


def _th(text: str, scope: str, kind: str = "") -> str:
    return f'<th scope="{scope}"{kind}>{escape(text)}</th>'


def _box(name: str, content: str) -> str:
    """A box that scrolls sideways, by touch or keys, where the screen is too narrow."""
    label = f'role="region" tabindex="0" aria-label="{escape(name)}"'
    return f'<div class="box" {label}>{content}</div>'


# -- the page --------------------------------------------------------------------------

_STYLE = """
:root,.light{color-scheme:light dark;--ink:#1a1a1a;--paper:#fff;--gray:#8a8a8a;
--pale:#b4bec9;--blue:#10345c;--rust:#a8431a;--green:#1e6b4a;--purple:#6b3f94;
--grid:#ddd;--line:#dde2e8;--up:#dfe8f2;--down:#f8e9e0;--heat:#464646}
@media(prefers-color-scheme:dark){:root{--ink:#e8e8e8;--paper:#16191d;--gray:#8a8a8a;
--pale:#4d5866;--blue:#8fbcf0;--rust:#f0936a;--green:#6fcf9f;--purple:#c3a0e8;
--grid:#33383f;--line:#333a42;--up:#1d2c3d;--down:#3d251a;--heat:#d0d0d0}
svg.light{background:#fff;color:#1a1a1a}}
@media print{:root{color-scheme:light;--ink:#1a1a1a;--paper:#fff;--pale:#b4bec9;
--blue:#10345c;--rust:#a8431a;--green:#1e6b4a;--purple:#6b3f94;--grid:#ddd;
--line:#dde2e8;--up:#dfe8f2;--down:#f8e9e0;--heat:#464646}}
body{margin:0 auto;max-width:72rem;padding:1rem;background:var(--paper);
color:var(--ink);font:1rem/1.5 system-ui,sans-serif;overflow-wrap:break-word}
h1{font-size:1.7rem;line-height:1.2;margin:.5rem 0}
h2{font-size:1.25rem;margin:2rem 0 .5rem;border-bottom:1px solid var(--pale)}
p{max-width:48rem}
p span,figcaption span{white-space:nowrap}
.lead{font-size:1.2rem}
.note{border-left:.3rem solid var(--rust);background:var(--down);padding:.5rem .8rem}
.grid{columns:26rem 2;column-gap:2.5rem}
.columns{columns:33rem 2;column-gap:2.5rem}
.columns section{break-inside:avoid;overflow:hidden}
.wide{column-span:all}
figure{margin:0 0 1.5rem;break-inside:avoid}
figcaption{max-width:36rem;font-size:.95rem}
svg{width:100%;max-width:36rem;height:auto;display:block}
svg *{stroke-linejoin:round;stroke-linecap:butt}
svg text{font-family:inherit!important;fill:var(--ink)}
.box{overflow-x:auto;background:
linear-gradient(90deg,var(--paper) 40%,transparent) 0 0/3rem 100% no-repeat local,
linear-gradient(270deg,var(--paper) 40%,transparent) 100% 0/3rem 100% no-repeat local,
linear-gradient(90deg,var(--gray),transparent) 0 0/.5rem 100% no-repeat scroll,
linear-gradient(270deg,var(--gray),transparent) 100% 0/.5rem 100% no-repeat scroll}
.box th[scope=row]{position:sticky;left:0;background:var(--paper)}
table{border-collapse:collapse;margin:.5rem 0;font-variant-numeric:tabular-nums}
th,td{padding:.25rem .6rem;text-align:left;vertical-align:top;
border-bottom:1px solid var(--line)}
th{font-weight:600}
.n{text-align:right}
td.n{white-space:nowrap}
.matrix th,.matrix td{padding:.2rem .4rem;text-align:right;
border:1px solid var(--paper);print-color-adjust:exact}
.matrix th{max-width:7rem}
.matrix td{min-width:1.5rem}
.matrix th[colspan]{text-align:left;max-width:none}
.matrix .right{font-weight:700;outline:2px solid var(--ink);outline-offset:-2px}
.matrix .dark{color:var(--paper)}
.wide .matrix{font-size:.8rem}
@media(max-width:72rem){th,td{padding:.25rem .4rem}}
@media(max-width:30rem){th,td{padding:.25rem .35rem}
.matrix{font-size:.8rem}.matrix th,.matrix td{padding:.15rem;min-width:1.2rem}}
"""


def figure(heading: str, content: str, caption: str, wide: bool = False) -> str:
    """A picture or table with its caption."""
    words = f"<strong>{escape(heading)}.</strong> {prose(caption)}"
    kind = ' class="wide"' if wide else ""
    return f"<figure{kind}>{content}<figcaption>{words}</figcaption></figure>"


def section(heading: str, content: str) -> str:
    """A part of the page."""
    return f"<section>\n<h2>{escape(heading)}</h2>\n{content}\n</section>\n"


def page(title: str, content: str) -> str:
    """The whole document."""
    name = escape(title)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{name}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n<h1>{name}</h1>\n{content}</main>\n</body>\n</html>\n"
    )
