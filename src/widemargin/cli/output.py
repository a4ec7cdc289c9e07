"""What a command tells: results, notes on standard error, and its exit status."""

import errno
import os
import re
import shutil
import sys
import textwrap
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

SOLVED, NOT_TO_TOL, BAD_INPUT = 0, 1, 2
INTERRUPTED, CLOSED = 130, 141  # 128 + SIGINT and 128 + SIGPIPE, as shells say it

# Characters of a write. With PYTHONUNBUFFERED, what a closed pipe or full disk leaves
# of a write is lost without an error, and only the next one fails.
_PIECE = 4096
SHOWN = 12  # names, or labels, that a sentence has
_DELAY = 1.0  # seconds before a note on the work: as the progress bar's


def wrapped(text: str, stream: Any) -> str:
    """The text with lines as wide as the terminal that it goes to; else as it is."""
    if stream is None or not stream.isatty():
        return text
    width = max(20, shutil.get_terminal_size().columns)
    lines = text.split("\n")
    return "\n".join(_wrapped(line, width) for line in lines)


def _wrapped(line: str, width: int) -> str:
    """A line of words in several; names and JSON stay whole."""
    if len(line) <= width or line.startswith("{"):
        return line
    return textwrap.fill(
        line,
        width,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def say(text: str) -> None:
    """Write to standard output at once; an error names it.

    Raises
    ------
    BrokenPipeError where nobody reads it, OSError where it cannot be written.
    """
    try:
        if sys.stdout is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        text = wrapped(text, sys.stdout)
        for start in range(0, len(text), _PIECE):
            sys.stdout.write(text[start : start + _PIECE])
        sys.stdout.flush()
    except BrokenPipeError:
        _give_up_output()
        raise
    except OSError as error:
        _give_up_output()
        raise OSError(error.errno, error.strerror, "standard output") from None


def _give_up_output() -> None:
    """Send what is left to nowhere, else Python tries again as it ends."""
    with suppress(OSError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def note(sentence: str, program: str = "widemargin") -> None:
    """Write one line to standard error, whatever is in the sentence."""
    _write_error(wrapped(f"{program}: {escaped(sentence)}", sys.stderr) + "\n")


def describe(error: OSError | ValueError) -> str:
    """One sentence for an error of the operating system, or of a file's name."""
    if not isinstance(error, OSError) or error.filename is None or not error.strerror:
        return str(error)
    return f"{error.filename}: {error.strerror.lower()}"


def escaped(text: str) -> str:
    r"""The text with \x1b, \n and the like for what would not print as itself."""
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in text
    )


# What advice calls parameters of Python, and what they are called on the command line.
_OPTIONS = {
    r"\btol\b": "--tol",
    r"\bmax_iter\b": "--max-iter",
    r"\btime_limit\b": "--time-limit",
    r"\bmemory_limit\b": "--memory-limit",
    r"\bn_jobs\b": "--jobs",
    r"intercept='free'": "--intercept free",
    r"decision_function_shape='ovo'": "--decision-shape ovo",
    r"\bC=inf": "-C inf",
    r"(--[a-z-]+)=": r"\1 ",
    r"\(StandardScaler\)": "(--scale standard)",
    r"\('rbf'\)": "(--kernel rbf)",
    r"\bthe search of \w+CV\b": "the search",
    r": see path_\.": ": see the table.",
    r"; the certificate is in extras\['hull'\] of the solution": "",
}


def with_options(advice: str) -> str:
    """Advice with the names of options in the place of parameters."""
    for words, option in _OPTIONS.items():
        advice = re.sub(words, option, advice)
    return advice


def as_text(label: Any) -> str:
    """A label as text: whole numbers without a point, as svmlight files have them."""
    whole = isinstance(label, float) and label.is_integer()
    return str(int(label)) if whole else escaped(str(label))


def listed(labels: Sequence[Any], most: int | None = None) -> str:
    """Labels between commas, as --class-weight takes them: quoted as in CSV.

    More than ``most`` of them end in dots.
    """
    shown = [_quoted(as_text(label)) for label in labels[:most]]
    return ", ".join(shown + ["..."] * (len(shown) < len(labels)))


def _quoted(text: str) -> str:
    """The text in quotes, where it is empty or holds a space, a comma or quotes."""
    plain = text and not re.search(r'[\s,"]', text)
    doubled = text.replace('"', '""')
    return text if plain else f'"{doubled}"'


@contextmanager
def doing(what: str) -> Iterator[None]:
    """Say on a terminal what is being done, while it takes more than a second."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    line = f"{escaped(what)} ..."
    shown = threading.Event()

    def show() -> None:
        """Write the line."""
        shown.set()
        _write_error(line)

    timer = threading.Timer(_DELAY, show)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        if shown.is_set():
            _write_error(f"\r{' ' * len(line)}\r")


def _write_error(text: str) -> None:
    """Write to standard error; there is nobody to tell if that fails."""
    if sys.stderr is not None:
        with suppress(OSError):
            sys.stderr.write(text)
            sys.stderr.flush()
