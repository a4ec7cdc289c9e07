"""Equivalent problems that are safer or cheaper to solve, and the way back."""

import contextlib
import copy
import dataclasses
import functools
import zlib
from collections.abc import Generator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Index64, Vector
from widemargin.data.doubled import DoubledRows
from widemargin.data.equal_rows import equal_rows, may_be_equal, places
from widemargin.data.memory import as_rows
from widemargin.data.row_vector import RowVector
from widemargin.data.rows import Rows
from widemargin.data.state import RowState
from widemargin.kernels.matrix import NoRoomError
from widemargin.numerics import linalg
from widemargin.numerics.rounding import SLACK, UNIT, gamma_n
from widemargin.problems.base import Problem
from widemargin.problems.nu import most_mass
from widemargin.problems.scores import Scores
from widemargin.solution import Certificate

# Columns whose mean is this many times their deviation lose digits in X'DX - cc'/s;
# centering them is exact for a free intercept (measured: 3 digits at 1e2, all at 1e6).
CENTER_RATIO = 30.0
# Number of rows from which equal rows are looked for, rows that are looked at first,
# and the share of them that must equal another: reading all rows must pay. (A fifth and
# five times of the first, a quarter and twice of the second, 0.1 and 0.6: 0.6 to 1.2 of
# the time, benchmarks/core/untuned.py.)
MERGED_ROWS, MERGE_SAMPLE, MERGE_SHARE = 10_000, 4096, 0.3
# The same of problems with a kernel, whose fits take a hundred times as long as to look
# at all rows, and the share of the memory that must be left for kernel values.
KERNEL_ROWS, KERNEL_SHARE, LEFT_SHARE = 1000, 0.1, 0.5


class _Groups(NamedTuple):
    """Groups of equal rows: the first ones, the group of each row, and their sizes.

    And these first rows, where they are few.
    """

    first: Index64
    group: Index64
    counts: Index64
    rows: Rows | None


# By matrix and labels: what problems share that are solved one after the other.
_GROUPS: ContextVar[dict[Any, tuple[Any, _Groups]] | None] = ContextVar(
    "groups", default=None
)


@dataclass(frozen=True)
class Lift:
    """Maps answers between a problem and its equivalent, by default the same one.

    Attributes
    ----------
    problem : Problem, the original one
    center : ndarray (n,) or None
        The equivalent has the columns x' = x - center, and b' = b + center'w.
    unit, shift : float
        The equivalent has the margins q' = (q - y shift) / unit, v' = (v - shift of the
        intercept) / unit, alpha' = alpha / unit, and objectives that are 1 / unit^2 of
        what they are.
    group : int ndarray (m,) or None
        The row of the equivalent that a kept row was merged into.
    whole : ndarray or None, the sum of the weights of each group
    """

    problem: Problem
    center: Vector | None = None
    unit: float = 1.0
    shift: float = 0.0
    group: Index64 | None = None
    whole: Vector | None = None

    @property
    def checksum(self) -> int:
        """What tells it from others, with the equivalent problem known."""
        found = zlib.crc32(repr((self.unit, self.shift)).encode())
        for vector in (self.center, self.group, self.problem.C):
            if isinstance(vector, np.ndarray):
                found = zlib.crc32(vector.tobytes(), found)
        return found

    def up(self, v: Vector) -> Vector:
        """V of the original problem."""
        if self.unit == 1.0 and self.shift == 0.0:
            return self._move(v, -1.0)
        v = self.unit * self._move(v, -1.0)
        v[-1] += self.shift
        return v

    def down(self, v: Vector) -> Vector:
        """V of the equivalent problem."""
        if self.unit == 1.0 and self.shift == 0.0:
            return self._move(v, 1.0)
        v = v.copy()
        v[-1] -= self.shift
        return self._move(v / self.unit, 1.0)

    def value(self, objective: float) -> float:
        """An objective of the original problem, from that of the equivalent one."""
        return self.unit * (self.unit * objective)  # unit^2 may overflow alone

    def _move(self, v: Vector, sign: float) -> Vector:
        if self.center is None:
            return v
        return np.append(v[:-1], v[-1] + sign * (self.center @ v[:-1]))

    def alpha_up(self, alpha: Vector) -> Vector:
        """Dual variables of the original problem (m,): shares by weight."""
        alpha = alpha if self.unit == 1.0 else self.unit * alpha
        if self.group is None:
            return alpha
        whole: Any = self.whole
        problem, share = self.problem, alpha / whole
        if problem.has_equal_weights:
            return problem.spread((problem.C[0] * share)[self.group])
        return problem.spread(self._kept(problem.C) * share[self.group])

    def slopes(self, core: Problem, v: Vector) -> tuple[Any, Certificate]:
        """Dual variables of the original problem that v says, and the bounds of both.

        ``v`` is of the equivalent ``core``. Where rows were merged, and nothing else
        was done, its sums are those of the original problem but for the rounding of
        weights: each of these has a few roundings more, for which the bounds allow so
        many times what they allow for the sums themselves.
        """
        problem = self.problem
        is_moved = self.center is not None or (self.unit, self.shift) != (1.0, 0.0)
        if self.group is None or is_moved:
            state, bounds = problem.slopes(self.up(v))
            return problem.gather(state), bounds
        state, bounds = core.slopes(v)
        times = 1
        if not problem.has_equal_weights:
            times += int(np.bincount(self.group).max())
        return self.alpha_up(core.gather(state)), bounds.widened(times)

    def alpha_down(self, alpha: Vector) -> Vector:
        """Dual variables of the equivalent problem."""
        alpha = alpha if self.unit == 1.0 else alpha / self.unit
        if self.group is None:
            return alpha
        return np.bincount(self.group, self._kept(alpha)).astype(np.float64)

    def _kept(self, vector: Vector) -> Vector:
        kept = self.problem.kept
        return vector if kept is None else vector[kept]


@dataclass(frozen=True)
class KernelLift(Lift):
    """Maps answers of a problem with a kernel whose equal rows are merged.

    Where dual variables are bounded and equal rows have equal weights, a merged one is
    given to its rows one after the other, as much as each can have: few support
    vectors. Others are shared by weight.

    Attributes
    ----------
    core : KernelProblem, the equivalent
    """

    core: Any = None

    def up(self, v: Vector) -> Vector:
        """V of the original problem."""
        m = len(self.core.signs)
        return np.append(self._coefficients(v[:m]), v[m:])

    def down(self, v: Vector) -> Vector:
        """V of the equivalent problem."""
        own: Any = self.group
        return np.append(np.bincount(own, v[: len(own)]), v[len(own) :])

    def alpha_up(self, alpha: Vector) -> Vector:
        """Dual variables of the original problem (m,)."""
        return self.problem.spread(self._parts(alpha))

    def _coefficients(self, c: Vector) -> Vector:
        signs: Vector = self.core.signs
        return np.asarray(signs[self.group] * self._parts(signs * c))

    def _parts(self, alpha: Vector) -> Vector:
        """Dual variables of the kept rows."""
        own: Any = self.group
        C, whole, most = self._kept(self.problem.C), alpha[own], self.core.C[own]
        if self.problem.is_bounded and self._is_even:
            parts = np.clip(whole - self._place * C, 0.0, C)
            return np.asarray(np.where(whole >= most, C, parts))
        return np.asarray(np.where(self._count[own] == 1, whole, C * (whole / most)))

    @functools.cached_property
    def _count(self) -> Index64:
        """How many rows each merged one is."""
        own: Any = self.group
        return np.bincount(own)

    @functools.cached_property
    def _is_even(self) -> bool:
        """Whether equal rows have equal weights."""
        own: Any = self.group
        C, first = self._kept(self.problem.C), np.empty(len(self._count))
        first[own[::-1]] = C[::-1]
        return bool(np.array_equal(first[own], C))

    @functools.cached_property
    def _place(self) -> Index64:
        """How many rows before each one are equal to it."""
        own: Any = self.group
        return places(own)

    def lend_scores(self, scores: Scores) -> Scores:
        """Let the original problem know the scores of the equivalent one: as its own.

        Equal rows have equal scores, but what a merged row is given to its rows rounds:
        a bound of that is added to those of the errors.
        """
        own: Any = self.group
        c, s = scores.c, self.core.columns.value_bounds.s
        lost = np.where(self._count > 1, gamma_n(4) + 2.0 * UNIT * self._count, 0.0)
        off = SLACK * float((lost * np.abs(c) * s).sum())
        problem: Any = self.problem
        lent = scores.of_equals(problem.columns, own, self._coefficients(c), off * s)
        problem.scores = lent
        return lent


def conditioned(problem: Problem) -> tuple[Problem, Lift]:
    """An equivalent problem that is safer or cheaper to solve, and the way back.

    With a free intercept, columns whose mean is large beside their deviation are
    centered: b' = b + c'w changes nothing else, neither ``alpha`` nor an objective.
    Else equal rows with equal labels are merged where there are many, their weights C
    added up. Margins other than 1 are measured in a unit of their size, from a shift of
    a free intercept; before, equal samples of a regression with equal targets are
    merged. Of problems with a kernel equal rows are merged, and nothing else is done.
    """
    if problem.couples:
        core, group = _merged_with_kernel(problem)
        if group is None:
            return problem, Lift(problem)
        return core, KernelLift(problem, group=group, core=core)
    if not problem.has_unit_margins:
        fewer, group = _merged(problem)
        scaled, lift = _in_units(fewer)
        merged: dict[str, Any] = {"group": group, "whole": fewer.C}
        return scaled, dataclasses.replace(lift, problem=problem, **merged)
    if problem.intercept == "free":
        mean, std = problem.rows.moments
        center = np.where(np.abs(mean) > CENTER_RATIO * std, mean, 0.0)
        if center.any():
            centered = copy.copy(problem)
            centered.view(problem.rows.mapped(_Centered(center)))
            return centered, Lift(problem, center=center)
    fewer, group = _merged(problem)
    return fewer, Lift(problem, group=group, whole=fewer.C)


def _in_units(problem: Problem) -> tuple[Problem, Lift]:
    """The problem with margins of about 1, as solvers of classification problems like.

    The unit is a power of 2, so that only the shift of a free intercept rounds.
    """
    center = None
    if problem.intercept == "free":
        mean, std = problem.rows.moments
        center = np.where(np.abs(mean) > CENTER_RATIO * std, mean, 0.0)
    there = isinstance(problem.q, RowVector)
    q, unit, shift = _units_there(problem) if there else _units_here(problem)
    scaled, rows = problem.with_margins(q, unit), problem.rows
    if center is not None and center.any():
        rows = rows.mapped(_Centered(center))
    else:
        center = None
    scaled.view(rows)
    return scaled, Lift(problem, center, unit, shift)


def _units_here(problem: Problem) -> tuple[Vector, float, float]:
    """Margins in their unit, the unit, and the shift of a free intercept."""
    q, y, shift = problem.q, problem.y, 0.0
    if problem.intercept == "free":
        shift = float((problem.C * (y * q)).sum() / problem.total_weight)
        q = q - y * shift
    unit = _unit(problem, float(np.abs(q).mean()))
    return q / unit, unit, shift


def _units_there(problem: Problem) -> tuple[Any, float, float]:
    """`_units_here` where margins are beside the rows."""
    state, shift = problem.state(), 0.0
    if problem.intercept == "free":
        shift = float(state.sweep(_pull)) / problem.total_weight
    unit = _unit(problem, float(state.sweep(_sizes, shift)) / problem.rows.shape[0])
    made = problem.rows.state(scaled=0.0)
    state.join(made).sweep(_scale, shift, unit)
    return made.scaled, unit, shift


def _unit(problem: Problem, size: float) -> float:
    """A power of 2 near the size of margins; 1 where C over that is no float."""
    unit = float(2.0 ** np.round(np.log2(size))) if size > 0.0 else 1.0
    bounded = problem.total_weight if problem.is_bounded else 0.0
    return unit if bounded / unit < np.inf else 1.0


def _pull(part: RowState) -> float:
    return float((part.C * (part.labels * part.q)).sum())


def _sizes(part: RowState, shift: float) -> float:
    return float(np.abs(part.q - part.labels * shift).sum())


def _scale(part: RowState, shift: float, unit: float) -> None:
    part.scaled = (part.q - part.labels * shift) / unit


class _Centered:
    """Feature map x -> x - c."""

    def __init__(self, center: Vector) -> None:
        self.rank = center.shape[0]
        self._center = center

    def map(self, block: Any) -> Any:
        return linalg.shifted(block, self._center)


@contextlib.contextmanager
def sharing_groups() -> Generator[None, None, None]:
    """Let problems over the same rows, with other C, look for equal rows only once."""
    token = _GROUPS.set({})
    try:
        yield
    finally:
        _GROUPS.reset(token)


def _grouped(
    X: Any, y: NDArray[Any], options: Mapping[str, Any], share: float, keeps: bool
) -> _Groups:
    """The groups of equal rows and their first rows, where these are few.

    Where it ``keeps`` them, the next problem of the same rows has them.
    """
    known = _GROUPS.get() if keeps else None
    key = id(X), y.tobytes()
    if known is not None and key in known:
        return known[key][1]
    most = (1.0 - share) * len(y)
    first = group = np.zeros(0, np.int64)
    if not keeps or _may_merge(X, y):
        first, group = equal_rows(X, y, most)
    found = _Groups(first, group, group[:0], None)
    if 0 < len(first) <= most:
        merged = as_rows(X[first], **options)
        found = _Groups(first, group, np.bincount(group), merged)
    if known is not None:
        known[key] = X, found  # X lives as long as its id is a key
    return found


def _merged(problem: Problem) -> tuple[Problem, Index64 | None]:
    """The problem with equal rows merged, and the groups, or as it is if not worth it.

    Of a regression both rows of a sample are merged with those of its equals: samples
    that are equal in what they have to reach.
    """
    rows = _samples(problem)
    m = rows.shape[0]
    if m < MERGED_ROWS or not rows.is_in_memory:
        return problem, None
    if rows is problem.rows and not problem.has_unit_margins:
        return problem, None
    return _with_groups(problem, rows, _alike(problem, rows), MERGE_SHARE)


def _may_merge(X: Any, alike: NDArray[Any]) -> bool:
    """Whether a sample of the rows says that a share of them is equal to others."""
    sample = np.arange(MERGE_SAMPLE) * X.shape[0] // MERGE_SAMPLE
    first, _ = equal_rows(X[sample], alike[sample])
    return len(first) <= (1.0 - MERGE_SHARE) * MERGE_SAMPLE


def _merged_with_kernel(problem: Any) -> tuple[Any, Index64 | None]:
    """A problem with a kernel, equal rows merged, where memory has room for both."""
    takes = problem.norm is None and not problem.kernel.is_precomputed
    rows = _samples(problem)
    X = rows.in_memory() if takes and rows.shape[0] >= KERNEL_ROWS else None
    if X is None:
        return problem, None
    alike = _alike(problem, rows)
    if not may_be_equal(X, alike, (1.0 - KERNEL_SHARE) * rows.shape[0]):
        return problem, None
    columns = problem.columns
    limit = columns.limit - columns.n_bytes
    if limit < LEFT_SHARE * columns.limit:
        return problem, None
    form: dict[str, Any] = {"kernel": problem.kernel, "memory_limit": limit}
    try:
        return _with_groups(problem, rows, alike, KERNEL_SHARE, **form)
    except NoRoomError:
        return problem, None


def _samples(problem: Problem) -> Rows:
    """Rows, each of which is there once."""
    rows = problem.rows
    return rows.base if isinstance(rows, DoubledRows) else rows


def _alike(problem: Problem, rows: Rows) -> NDArray[Any]:
    """What is equal beside the rows where samples are, of rows in memory."""
    kept = slice(None) if problem.kept is None else problem.kept
    if rows is problem.rows:
        return np.asarray(problem.y[kept])
    return np.asarray(problem.q[kept][: rows.shape[0]])


def _with_groups(
    problem: Problem, rows: Rows, alike: NDArray[Any], share: float, **form: Any
) -> tuple[Any, Index64 | None]:
    """The problem with equal rows merged, if these are at least a share."""
    X, m = rows.in_memory(), rows.shape[0]
    if X is None:
        return problem, None
    groups = _grouped(X, alike, rows.options, share, not form)
    first, group, counts, merged = groups
    if merged is None:
        return problem, None
    kept = slice(None) if problem.kept is None else problem.kept
    y, C, q = problem.y[kept], problem.C[kept], problem.q[kept]
    if rows is not problem.rows:
        group = np.concatenate([group, group + len(first)])
        first, counts = np.concatenate([first, first + m]), np.tile(counts, 2)
        merged = DoubledRows(merged)
    if not (q.strides == (0,) or np.array_equal(q[first][group], q)):
        return problem, None  # rounded alike in one of two rows only
    margins = q[0] if q.strides == (0,) else q[first]
    even = problem.has_equal_weights
    weights = counts * C[0] if even else np.bincount(group, C)
    if problem.mass is not None:  # sums of weights round
        form["mass"] = min(problem.mass, most_mass(y[first], weights))
    loss, intercept = problem.loss, problem.intercept
    return Problem(merged, y[first], weights, loss, intercept, q=margins, **form), group
