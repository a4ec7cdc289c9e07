"""``widemargin generate``: made-up data of any size, in a format named by the file."""

import argparse
import re
import sys
from collections.abc import Iterable, Iterator

from tqdm import tqdm

from widemargin.cli.output import SOLVED
from widemargin.data.ndc import ndc_blocks
from widemargin.data.writing import Block, format_of, write_blocks

_DTYPE = "int16"
_DELAY = 1.0  # seconds before progress is shown
# Parameters of the generator in the words of the command line.
_WORDS = {"m": "rows", "n": "features", "random_state": "seed"}


def run(options: argparse.Namespace) -> int:
    """Generate data."""
    try:
        blocks = ndc_blocks(
            options.rows,
            options.features,
            options.seed,
            part=options.part,
            expand=options.expand,
            centers=options.centers,
            dtype=_dtype(options),
        )
        write_blocks(options.output, _shown(blocks, options.rows))
    except ValueError as error:
        raise ValueError(_in_words(str(error))) from None
    return SOLVED


def _dtype(options: argparse.Namespace) -> str:
    """The dtype of the numbers in the file; text has none, and holds any number."""
    if format_of(options.output) != "text":
        return options.dtype or _DTYPE
    if options.dtype is not None:
        raise ValueError(
            f"{options.output}: expected no --dtype for svmlight text, "
            f"found {options.dtype}"
        )
    return "float64"


def _shown(blocks: Iterable[Block], rows: int) -> Iterator[Block]:
    """The blocks, with a bar on a terminal while they are written."""
    nowhere = True if sys.stderr is None else None  # None: only a terminal
    with tqdm(
        total=rows,
        unit=" rows",
        unit_scale=True,
        delay=_DELAY,
        leave=False,
        disable=nowhere,
    ) as bar:
        for X, y in blocks:
            yield X, y
            bar.update(len(y))


def _in_words(sentence: str) -> str:
    """A sentence about a parameter as one about an option."""
    return re.sub(
        r"^The '(\w+)' parameter of \w+",
        lambda name: f"--{_WORDS.get(name[1], name[1])}",
        sentence,
    )
