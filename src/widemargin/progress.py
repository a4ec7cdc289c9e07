"""Progress on standard error, as a callback of a solve."""

import math
import sys
import threading
from typing import Any

from tqdm import tqdm

from widemargin.solution import Step

_FORMAT = "{desc}  [{bar:20}]  {postfix}  {elapsed}, about {remaining} left"
_PARTS = 1000


class Printer:
    """Shows a bar that fills as the gap falls, on a logarithmic scale.

    Parameters
    ----------
    tol : float, the relative gap that fills the bar
    solves : int, default=1
        Solves that report to this printer, each from a thread of its own.
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
        self._first: dict[int, float] = {}
        self._latest: dict[int, Step] = {}
        self._bar: Any = tqdm(
            total=_PARTS,
            bar_format=_FORMAT,
            ascii="-=",
            delay=delay,
            file=sys.stderr,
            leave=not terminal_only,
            disable=None if terminal_only else False,
        )

    def __call__(self, step: Step) -> None:
        """Show a step."""
        solve = threading.get_ident()
        gap = min(max(step.relative_gap, self._tol), 1e12)
        first = self._first.setdefault(solve, max(gap, 10.0 * self._tol))
        self._latest[solve] = step
        done = math.log(max(first / gap, 1.0)) / math.log(first / self._tol)
        self._bar.set_description_str(f"{step.iteration} iterations", refresh=False)
        worst = max(s.relative_gap for s in self._latest.values())
        self._bar.set_postfix_str(f"gap {worst:.1e} -> {self._tol:.0e}", refresh=False)
        share = done / self._solves + (len(self._latest) - 1) / self._solves
        self._bar.n = max(self._bar.n, min(_PARTS, round(_PARTS * share)))
        self._bar.update(0)

    def close(self) -> None:
        """Finish the line."""
        self._bar.refresh() if not self._bar.disable else None
        self._bar.close()
