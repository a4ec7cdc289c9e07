"""Solutions of the binary problems of one fit, and what all of them are together."""

import copy
import functools
import os
import re
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from widemargin.arrays import Index64, Mask, Vector
from widemargin.solution import UNPROVED, Certificate, Solution, Status, relative_gaps


@dataclass(frozen=True, eq=False)
class Columns:
    """Numbers of several solutions, one of each in an array.

    Attributes
    ----------
    b, rho : ndarray (t,)
    proofs : ndarray (t, 4), the numbers of the certificates
    iterations : int ndarray (t,)
    statuses : list of Status
    is_convex : bool ndarray (t,)
    seconds : float, of all together
    solvers : list of (solver, reason), each once
    """

    b: Vector
    rho: Vector
    proofs: Vector
    iterations: Index64
    statuses: list[Status]
    is_convex: Mask
    seconds: float
    solvers: list[tuple[str, str]]

    def certificate(self, k: int) -> Certificate:
        """The certificate of one."""
        return Certificate(*self.proofs[k].tolist())

    @functools.cached_property
    def gaps(self) -> Vector:
        """The relative gaps: (t,)."""
        return relative_gaps(self.proofs)

    @property
    def are_solved(self) -> bool:
        """Whether all are."""
        return self.statuses.count(Status.SOLVED) == len(self.statuses)

    @property
    def are_convex(self) -> bool:
        """Whether all are."""
        return bool(self.is_convex.all())

    @property
    def worst(self) -> int:
        """The solution with the largest gap of those that are not solved, if any."""
        if self.are_solved:
            return int(self.gaps.argmax())
        solved = [status is Status.SOLVED for status in self.statuses]
        return int(np.where(solved, -np.inf, self.gaps).argmax())


class Solutions(Sequence[Solution]):
    """Solutions of many problems, each made when it is asked for first.

    A hundred classes have 4,950 pairs, whose solutions as objects take ten times as
    long as to find them: a fit goes by their columns.

    Parameters
    ----------
    columns : Columns
    alpha : ndarray, the dual variables of all, one problem after the other
    W : ndarray (t, n) or None
        Weights, a row each; None: they are y alpha.
    """

    def __init__(self, columns: Columns, alpha: Vector, W: Vector | None) -> None:
        self.columns, self.alpha, self.W = columns, alpha, W
        self._made: dict[int, Solution] = {}

    @abstractmethod
    def _make(self, k: int) -> Solution:
        """The solution of problem k."""

    def certified(self, columns: Columns) -> "Solutions":
        """The same with other certificates, those of ``columns``."""
        other = copy.copy(self)
        other.columns, other._made = columns, {}
        return other

    def __len__(self) -> int:
        return len(self.columns.b)

    @overload
    def __getitem__(self, which: int) -> Solution: ...

    @overload
    def __getitem__(self, which: slice) -> list[Solution]: ...

    def __getitem__(self, which: Any) -> Any:
        chosen = range(len(self))[which]
        if isinstance(chosen, range):
            return [self[k] for k in chosen]
        if chosen not in self._made:
            self._made[chosen] = self._make(chosen)
        return self._made[chosen]

    def __repr__(self) -> str:
        return repr(list(self))


def columns_of(solutions: Sequence[Solution]) -> Columns:
    """The numbers of several solutions."""
    if isinstance(solutions, Solutions):
        return solutions.columns
    proofs = [s.certificate for s in solutions]
    return Columns(
        np.array([s.b for s in solutions]),
        np.array([s.rho for s in solutions]),
        np.array([[c.primal, c.dual, c.scale, c.rounding] for c in proofs]),
        np.array([s.trace[-1].iteration for s in solutions]),
        [Status(s.status) for s in solutions],  # skops keeps their text
        np.array([s.is_convex for s in solutions]),
        sum(s.seconds for s in solutions),
        list(dict.fromkeys((s.solver, s.reason) for s in solutions)),
    )


def dual_variables(solutions: Sequence[Solution]) -> Vector:
    """The dual variables of all problems, one problem after the other."""
    if isinstance(solutions, Solutions):
        return solutions.alpha
    alphas = [solution.alpha for solution in solutions]
    return alphas[0] if len(alphas) == 1 else np.concatenate(alphas)


def weights_of(solutions: Sequence[Solution]) -> Vector:
    """The weights of the columns, a row each problem, of linear machines: (t, n).

    A copy: who changes attributes of an estimator leaves its solutions as they are.
    The weights of a column lie together, as products of CSR rows take them.
    """
    if isinstance(solutions, Solutions) and solutions.W is not None:
        return solutions.W.copy(order="F")
    return np.stack([solution.w for solution in solutions], axis=1).T


def first_of(solutions: Sequence[Solution], columns: Columns | None = None) -> Solution:
    """The first solution of a fit; of several, with what they are together.

    Their columns may be known.
    """
    if len(solutions) == 1:
        return solutions[0]
    together = _together(solutions, columns or columns_of(solutions))
    return solutions[0].changed(together=together)


def _together(solutions: Sequence[Solution], found: Columns) -> dict[str, Any]:
    """What several solutions are: see `Solution`."""
    ended = found.statuses
    return {
        "problems": len(solutions),
        "status": {one.value: ended.count(one) for one in dict.fromkeys(ended)},
        "relative_gap": float(found.gaps.max()),
        "unproved": int((found.gaps >= UNPROVED).sum()),
        "primal": float(found.proofs[:, 0].sum()),
        "dual": float(found.proofs[:, 1].sum()),
        "iterations": int(found.iterations.max()),
        "seconds": found.seconds,
        "message": "" if found.are_solved else solutions[found.worst].message,
        "is_convex": found.are_convex,
        "solvers": _solvers_of(found.solvers),
    }


def _solvers_of(told: list[tuple[str, str]]) -> list[str]:
    """The solvers, each with what the reasons for all its problems begin with."""
    reasons: dict[str, set[str]] = {}
    for solver, reason in told:
        reasons.setdefault(solver, set()).add(reason)
    return [", ".join([n, *_shared(found)]) for n, found in reasons.items()]


def _shared(reasons: set[str]) -> list[str]:
    """The reason, or what reasons that differ in brackets say alike, if any."""
    if len(reasons) == 1:
        return list(reasons)
    alike = set(map(_without_brackets, reasons))
    if len(alike) == 1:
        return list(alike)
    start, bracket, _ = os.path.commonprefix(list(reasons)).partition(" (")
    return [start] if bracket else []


def _without_brackets(text: str) -> str:
    """The text without what it says in brackets, also in brackets of these."""
    while (shorter := re.sub(r" \([^()]*\)", "", text)) != text:
        text = shorter
    return text
