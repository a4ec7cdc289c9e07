"""Progress on standard error, as a callback of a solve."""

import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tqdm import tqdm

from widemargin.solution import Step

_BAR = 20  # characters, where the terminal has room for them
_TEXT = 74  # characters beside the bar, mostly: its width is not to change with them
_NO_WIDTH = 80  # columns of a terminal that does not say how many it has
_NO_GAP = 1e12  # stands for infinity
_KNOWN = 0.1  # share of the work from which the rest can be guessed
_SECONDS_A_LINE = 1.0  # where lines cannot be written over
_START = 1.0  # the relative gap of the answer zero: an empty bar


class Printer:
    """Shows a bar that fills as the gap falls, on a logarithmic scale.

    A terminal or a notebook shows one line that changes; a file or a pipe gets a line a
    second, and the last one. Beside the bar are the iterations or, with a kernel, the
    support vectors (SV) of all problems together.

    Parameters
    ----------
    tol : float, the relative gap that fills the bar
    solves : int, default=1
        Solves that report to this printer, told apart by ``step.problem``.
    delay : float, default=0
        Seconds before anything is shown.
    terminal_only : bool, default=False
        Show nothing where standard error is not a terminal.
    """

    def __init__(
        self,
        tol: float,
        solves: int = 1,
        delay: float = 0.0,
        terminal_only: bool = False,
    ) -> None:
        self._tol, self._solves = tol, solves
        self._first: dict[int, float] = {}  # by solve, as are the next three
        self._gap: dict[int, float] = {}
        self._share: dict[int, float] = {}
        self._iterations: dict[int, int] = {}
        self._details: dict[int, dict[str, float]] = {}
        self._rows = ""  # what has been counted before the first step
        self._begin = time.perf_counter()
        self.before: Callable[[], Any] | None = None  # called before the first step
        where: dict[str, Any] = {"file": sys.stderr}
        if not (terminal_only or _is_written_over(sys.stderr)):
            where = {"file": _Lines(sys.stderr), "mininterval": _SECONDS_A_LINE}
        self._bar: Any = tqdm(
            total=1.0,
            bar_format=self._line(_columns()),
            ascii="-=",
            ncols=_columns(),
            nrows=20,  # given, or tqdm asks and shows nothing where there is no answer
            delay=delay,
            miniters=0,  # a slow iteration or a small step is news too
            leave=not terminal_only,
            disable=None if terminal_only else False,
            **where,
        )

    def __call__(self, step: Step) -> None:
        """Show a step."""
        if self.before is not None:
            self.before()
        self._iterations[step.problem] = step.iteration
        self._details[step.problem] = step.details
        self._note(step.problem, step.relative_gap)
        self._show()

    def count(self, done: int, of: int) -> None:
        """Show how many rows have features, before the first step."""
        if self.before is not None:
            self.before()
        self._rows = f"features of {done:,} of {of:,} rows"
        self._show(done / of)

    def finish(self, problems: Iterable[int], gaps: Sequence[float]) -> None:
        """Show the certified gaps with which solves ended."""
        for problem, gap in zip(problems, gaps, strict=True):
            self._note(problem, gap)
        self._show()

    def close(self) -> None:
        """Finish the line, or take it away where it was for a terminal only."""
        self._bar.close()

    def _note(self, problem: int, gap: float) -> None:
        """Keep the best of each solve: the driver keeps the best point too."""
        least = 10.0 * self._tol
        gap = _NO_GAP if math.isnan(gap) else min(max(gap, 0.0), _NO_GAP)
        gap = min(gap, self._gap.get(problem, gap))
        first = min(max(gap, least), max(_START, least))
        first = self._first.setdefault(problem, first)
        fall = math.log(first / max(gap, self._tol)) / math.log(first / self._tol)
        self._gap[problem], self._share[problem] = gap, max(fall, 0.0)

    @property
    def _done(self) -> float:
        """Share of the work that is done: an unheard solve has done none."""
        return min(sum(self._share.values()) / self._solves, 1.0)

    def _show(self, share: float | None = None) -> None:
        if self._bar.disable:
            return
        columns = _columns()
        self._bar.n = self._done if share is None else share
        # What is less than before, as the first step after features, is news too.
        self._bar.last_print_n = min(self._bar.last_print_n, self._bar.n)
        self._bar.bar_format, self._bar.ncols = self._line(columns), columns
        self._bar.update(0)

    def _line(self, columns: int) -> str:
        """The line, as wide as there are columns; only the bar is left to fill in."""
        if not self._gap:
            head = f"{self._rows[: columns - 5]}  " if self._rows else ""
            room = max(columns - len(head) - 2, 1)
            return f"{head}[{{bar:{min(_BAR, room)}}}]"
        gap = f"gap {max(self._gap.values()):.1e} (goal {self._tol:.0e})"
        head = self._work()
        tail = f"{gap}  {self._time()}"
        if columns >= _TEXT + _BAR // 4:
            return f"{head}  [{{bar:{min(_BAR, columns - _TEXT)}}}]  {tail}"
        room = columns - len(gap) - len("[]  ")
        return f"[{{bar:{min(_BAR, max(room, 1))}}}]  {gap}"

    def _work(self) -> str:
        """Iterations; with a kernel support vectors."""
        counts = [d["support_vectors"] for d in self._details.values() if "hits" in d]
        if not counts:
            return f"{sum(self._iterations.values())} iterations"
        return f"{sum(counts):,.0f} SV"

    def _time(self) -> str:
        """Time since the start, and later a guess at the time left."""
        passed = time.perf_counter() - self._begin
        text = _seconds(passed)
        if _KNOWN <= self._done < 1:
            left = passed * (1 - self._done) / self._done
            text += f", about {_seconds(left)} left"
        return text


class _Lines:
    """A stream that gets what a bar writes over its line as lines, each once."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._last = stream, ""

    def write(self, text: str) -> None:
        """Write the line, if it is another one and says more than an empty bar."""
        line = text.strip()
        if line.strip("[-]") and line != self._last:
            self._stream.write(f"{line}\n")
            self._last = line

    def flush(self) -> None:
        """Let the stream write what it has."""
        self._stream.flush()


def _is_written_over(stream: Any) -> bool:
    """Whether a line that begins anew replaces the one before it."""
    if stream is None or type(stream).__module__.startswith("ipykernel."):
        return True
    return bool(stream.isatty())


def _seconds(seconds: float) -> str:
    """A time for people: 4.2 s, 35 s, 2:05 min, 3:00 h."""
    if seconds < 99.5:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 100:
        return f"{minutes}:{rest:02} min"
    return f"{minutes // 60}:{minutes % 60:02} h"


def _columns() -> int:
    """Columns that a line may use: all but the last, after which terminals break."""
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns
    except (AttributeError, OSError, ValueError):  # a pipe, a notebook, no file
        columns = 0
    return max((columns or _NO_WIDTH) - 1, 10)
