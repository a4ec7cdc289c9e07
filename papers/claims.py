"""The numbers of a paper's `claim.md`, each of which comes from `results/`.

A number is a link to the file that it comes from; at the end of the claim the title of
the link says where it stands:

    takes [0.90][longest] s

    [longest]: results/ndc.json "max seconds; rows=7000000; method=default"

The title is a field of the one record with these values. Where many have them, a word
before the field says what is taken: max, min, sum, count, or slope X Y, the exponent of
Y over X in log-log. Two of these may be added, subtracted or divided: "A + B", "A - B",
"A / B".

A table stands between <!-- results/NAME.txt --> and the end of the code block below.
"""

import csv
import json
import operator
import re

import numpy as np

MARK = re.compile(r"\[([^\]]+)\]\[([^\]]+)\]")
SOURCE = re.compile(r'^\[([^\]]+)\]: (\S+) "([^"]+)"$', re.MULTILINE)
TABLE = re.compile(r"(?<=<!-- )(\S+\.txt)( -->\n```text\n)(.*?)(?=```)", re.DOTALL)
TAKEN = {"max": max, "min": min, "sum": sum, "count": len}
JOINED = {"+": operator.add, "-": operator.sub, "/": operator.truediv}
NUMBERS = 3  # of a cell
# What is no figure: code, links, headings, comments, places in journals and in papers.
NO_FIGURE = re.compile(
    r"""```.*?```|^[ ]{4}[^\n]*|`[^`]*`|<!--.*?-->|^\#[^\n]*
    |!?\[[^\]]*\]\([^)]*\)|\(\d[ab]?\)|\d+[ ]\(\d{4}\)[ ][\d-]+
    |(?:Algorithm|Sections?|Tables?|Figures?)[ ][\d.]+
    (?:(?:,|[ ]and|[ ]to)[ ][\d.]+)*""",
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
# What is no number of a cell: calls, options and messages in code, formulas, addresses
# of links, years of papers and places in them.
CODE = re.compile(r"`[^`]*`")
NO_VALUE = re.compile(r"\w\(|--|\w=[\w.]|:[ ]")
NO_NUMBER = re.compile(
    r"""\$[^$]*\$|(?<=\])\([^)]*\)
    |\(\d+(?:\.\d+)?[ab]?\)|\(\d{4}\)|\bstep[ ]`\d\w?`
    |(?:Algorithm|Sections?|Tables?|Figures?|Theorems?)[ ][\d.]+
    (?:(?:,|[ ]and|[ ]to)[ ][\d.]+)*""",
    re.VERBOSE,
)
# One that is no part of a name: 1,360 and -0.9 and 2e-14, but not L1, w1a or Adult-4.
NUMBER = re.compile(r"(?<![\w.])(?<!\w-)\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?(?!\w)")


def wrong(claim):
    """A line for each number and each table that results/ say otherwise."""
    text = claim.read_text()
    marks, sources = MARK.findall(text), {k: v for k, *v in SOURCE.findall(text)}
    for key in {key for _, key in marks} ^ set(sources):
        yield f"{claim}: [{key}] is a number without a source, or the reverse"
    for shown, key in marks:
        there = value(claim.parent, *sources[key]) if key in sources else np.nan
        if not same(shown, there):
            yield f"{claim}: {shown} is {there:.6g}: {key}"
    if refreshed(claim) != text:
        yield f"{claim}: a table is not that of results/"


def loose(claim):
    """Figures without a source; not those of the paper.

    What the paper says stands in the columns before the last one.
    """
    text = claim.read_text()
    rest = MARK.sub("", SOURCE.sub("", text))
    for line in NO_FIGURE.sub("", rest).splitlines():
        said = line.rsplit("|", 2)[-2] if line.startswith("|") else line
        if re.search(r"(?<!\w)\d", said):
            yield f"{claim}: a figure without a source: {said.strip()}"


def crowded(page):
    """Cells of tables with more numbers than a reader takes in at once.

    Every number counts: with a source, in code and plain, of ours and of the paper.
    """
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    for row in re.findall(r"^\|.*", text, re.MULTILINE):
        for cell in re.split(r"(?<!\\)\|", row):
            if len(NUMBER.findall(_values(cell))) > NUMBERS:
                yield f"{page}: more than {NUMBERS} numbers: {cell.strip()}"


def refreshed(claim):
    """The text of the claim with its tables as they are in results/ now."""

    def table(found):
        file, between, _ = found.groups()
        return file + between + (claim.parent / file).read_text()

    return TABLE.sub(table, claim.read_text())


def value(folder, file, source):
    """The number that a title names."""
    records = _records(folder / file)
    first, *rest = re.split(r" ([-+/]) ", source)
    found = _term(records, first)
    for sign, term in zip(rest[::2], rest[1::2], strict=True):
        found = JOINED[sign](found, _term(records, term))
    return found


def same(shown, number):
    """Whether the number rounds to what is shown: 1,234 or +0.65 or 2e-14."""
    digits, _, exponent = shown.replace(",", "").partition("e")
    places = len(digits.partition(".")[2])
    rounded = f"{number:.{places}{'e' if exponent else 'f'}}"
    return float(rounded) == float(shown.replace(",", ""))


def _values(cell):
    """The cell without what is no number, marks without their sources."""

    def value_in(code):
        return "" if NO_VALUE.search(code[0]) else code[0]

    return NO_NUMBER.sub("", CODE.sub(value_in, MARK.sub(r"\1", cell)))


def _records(file):
    if file.suffix == ".json":
        return json.loads(file.read_text())["records"]
    with file.open(newline="") as lines:
        return list(csv.DictReader(lines))


def _term(records, term):
    """A field of records: [TAKEN] FIELD; KEY=VALUE; ..."""
    head, *pairs = (part.strip() for part in term.split(";"))
    *taken, field = head.split()
    wanted = dict(pair.split("=", 1) for pair in pairs)
    mine = [r for r in records if all(_is(r.get(k), v) for k, v in wanted.items())]
    numbers = [float(r[field]) for r in mine]
    if taken and taken[0] == "slope":
        over = [float(r[taken[1]]) for r in mine]
        return float(np.polyfit(np.log(over), np.log(numbers), 1)[0])
    if taken:
        return TAKEN[taken[0]](numbers)
    (number,) = numbers
    return number


def _is(found, wanted):
    """Whether a value of a record is the one that is written in a title."""
    if isinstance(found, int | float):
        return float(found) == float(wanted)
    return found == wanted
