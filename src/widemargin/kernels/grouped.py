"""Samples in groups, over which the core solves and scores many problems at once.

A group holds the rows of one class, in whole strips. A binary problem has the rows of
some groups, in their order, perhaps of one group twice: *places* count these. The core
makes the values of a kernel that it knows; others are given, all at once.
"""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from widemargin import _core
from widemargin.arrays import Index64, Mask, Vector
from widemargin.kernels.core_engine import TOGETHER, is_rough
from widemargin.kernels.core_sums import SPARSE_MODEL, kernel_values
from widemargin.kernels.definite import (
    FEW,
    FEW_TOGETHER,
    are_indefinite,
    is_indefinite,
    sample,
)
from widemargin.kernels.kernel import Kernel
from widemargin.kernels.layout import WIDE, Layout
from widemargin.kernels.packed import (
    STRIP,
    Batches,
    Samples,
    aligned,
    known_lengths,
    packed_norms,
    padded,
)
from widemargin.numerics import linalg
from widemargin.numerics.rounding import (
    FLUSHED,
    SINGLE,
    UNIT,
    SumBounds,
    ValueBounds,
    errors_by_part,
    gamma_n,
)
from widemargin.numerics.runs import joined_runs
from widemargin.system import deadline

# Bytes of float32 up to which sparse rows of many columns are packed as dense ones:
# 3,000 documents of 3,985 columns take a third of the time of working sets, which leave
# them sparse, and 3,000 rows of 20,000 columns and 60 nonzeros 1.0 s in place of 2.6.
MOST_BYTES = 256 << 20
# Kernel values at once of runs of rows that are looked at for negative eigenvalues.
SEEN_VALUES = 1 << 20
# Errors of sums of float32 values: see `errors_by_part`. Weights, values and
# products that are too small for float32 are lost beside. Sums may be so many times as
# long, in weights and in terms, as those of the coefficients that there are at last.
LONGEST = _core.LONGEST
KEPT_TERMS = LONGEST * gamma_n(TOGETHER + 2, SINGLE), 2.0 * LONGEST**2, 0.0
KEPT_LOST = LONGEST * FLUSHED
# The share of the terms of a sum in float64 that may be added one after the other,
# beside so many: of a problem alone, which is summed up in blocks, and of given values,
# which are in four parts (`cpp/batch_sums.cpp`). Of problems that share their values
# all may be.
IN_BLOCKS, IN_PARTS, SHARED = 1.0 / _core.SUM_BLOCKS, 0.25, 1.0
EXACT_MORE = 2.0 * STRIP


def may_be_coded(X: Any, kernel: Kernel) -> bool:
    """Whether a byte stands for each kernel value: of rows of ones that are near.

    So near that their squared distances, or half of them where all are even, are below
    the number of values that the core chooses from (`KeptParts` in
    `cpp/kept_parts.hpp`): 0 with an instruction set that is slow to choose.
    """
    if kernel.name != "rbf" or not (sparse.issparse(X) and linalg.holds_ones(X)):
        return False
    ones = np.diff(X.indptr)
    step = 2 if len(np.unique(ones % 2)) == 1 else 1
    return bool(2 * ones.max() < step * _core.codes())


class Grouped(ABC):
    """Rows by groups, over which the core solves problems.

    Parameters
    ----------
    group : int ndarray (m,), the group of each row: 0, 1, ...

    Attributes
    ----------
    order : int ndarray (m,), the rows by groups
    count, first : int ndarray (g,), the size of each group; where it begins in `order`
    cost : float, multiplications of a kernel value, about
    in_a_row : float, the share of the terms of `exact` sums that follow each other
    is_fit : bool, whether the core can do it: not where float32 is too rough
    is_fit_exactly : bool, whether it can do it in float64
    may_curve : bool, whether the kernel need not be positive semidefinite
    diagonal : ndarray (m,), k(x, x) of each row
    """

    diagonal: Vector
    cost: float
    in_a_row: float = IN_BLOCKS
    is_fit: bool
    is_fit_exactly: bool
    may_curve: bool = False

    @abstractmethod
    def values(self, rows: Index64) -> Vector:
        """Kernel values of all pairs of some rows, in float64: (k, k)."""

    def show_indefinite(self, rows: Index64, begins: Index64, counts: Index64) -> Mask:
        """Which runs of rows show, by a sample, that the kernel is indefinite: (t,).

        Values that several short runs need are made once.
        """
        seen = np.zeros(len(begins), np.bool_)
        if not self.may_curve:
            return seen
        alone = counts > FEW
        every = np.unique(joined_runs(rows, begins[~alone], counts[~alone]))
        if len(every) > FEW_TOGETHER:
            alone[:] = True
        for k in np.flatnonzero(alone).tolist():
            own = rows[begins[k] : begins[k] + counts[k]]
            seen[k] = is_indefinite(self.values(own[sample(len(own))]))
        if alone.all():
            return seen
        K = self.values(every)
        for count in np.unique(counts[~alone]).tolist():
            which = np.flatnonzero(~alone & (counts == count))
            for part in np.array_split(which, -(-len(which) * count**2 // SEEN_VALUES)):
                own = rows[begins[part, np.newaxis] + np.arange(count)]
                own = np.searchsorted(every, own)
                found = K[own[:, :, np.newaxis], own[:, np.newaxis]]
                seen[part] = are_indefinite(found)
        return seen

    def __init__(self, group: NDArray[Any]) -> None:
        self.order = np.argsort(group, kind="stable")
        self.count = np.bincount(group)
        self.first = np.cumsum(self.count) - self.count
        self._filled = np.empty(0)

    def rows_of(self, groups: Index64) -> Index64:
        """The rows of some groups, one group after the other."""
        return joined_runs(self.order, self.first[groups], self.count[groups])

    def filled(self, value: float, count: int) -> Vector:
        """So many times a number: one array for calls that follow each other."""
        if len(self._filled) < count or self._filled[0] != value:
            self._filled = np.full(count, value)
        return self._filled[:count]

    @functools.cached_property
    def _strips(self) -> Index64:
        """Where the strips of each group begin; their number: (g + 1,)."""
        begin = np.zeros(len(self.count) + 1, np.int64)
        (-(-self.count // STRIP)).cumsum(out=begin[1:])
        return begin

    def pack(self) -> None:
        """Make what `solve` needs of the rows, under the deadline there is.

        Raises
        ------
        OutOfTime
        """
        return

    def solve(
        self,
        problems: tuple[Index64, Index64, Index64, Index64],
        data: tuple[Vector, Vector, Vector, Vector],
        c: Vector,
        loss: tuple[bool, int],
        limits: tuple[float, int, int, int, bool],
        stop: Callable[[], bool],
        ends: tuple[float, float, float, float] = (0.0, np.inf, np.inf, 1.0),
    ) -> tuple[Vector, Vector, Index64, bool]:
        """Solve binary problems by pair steps, from coefficients c = y alpha on.

        Parameters
        ----------
        problems : groups of the problems, one after the other; and for each problem
            where these end, where its places do, and after which one it starts, or -1.
        data : labels +1 and -1, C, and q, of each place; the sum of alpha of each
            problem, or NaN: see `ManyProblems`.
        c : ndarray, of each place; in and out. Sums that are given are met at first.
        loss : whether the loss is squared; intercept 0 (none), 1 (free), 2 (penalized)
        limits : relative gap, steps of a problem, bytes of kernel values, threads, and
            whether problems are solved in float64, each with all its kernel values.
        stop : asked some fifty times a second
        ends : hopeless, seconds, work, moved
            Where no function may be the best one, and none better is known, problems
            end at the share ``hopeless`` of the largest objective there is, if steps
            are slow. They share the seconds: each ends when it has had as much of them
            as it is of the work that is left. Infinite: none ends for the others.
            Newton's steps of a problem end after ``work`` multiplications for each row
            and pair of variables that a basis may have. Problems end where, after an
            eighth as many steps as rows, more than the share ``moved`` of the rows has
            a coefficient.

        Returns
        -------
        The scores K c by float32 kernel values; intercept, P, D and rho of each problem
        (t, 4), by them; steps, steps of negative curvature, and how each ended (t, 3);
        whether Ctrl-C ended it.
        """
        scores, t = aligned((len(c),), np.float64), len(problems[2])
        numbers, counts = np.zeros((t, 4)), np.zeros((t, 3), np.int64)
        ask = (
            *problems,
            *data,
            c,
            scores,
            *loss,
            *limits,
            *ends,
            stop,
            numbers,
            counts,
        )
        _, interrupted = self._ask(ask)
        return scores, numbers, counts, interrupted

    @abstractmethod
    def _ask(self, problems: tuple[Any, ...]) -> tuple[int, bool]:
        """Let the core solve problems; evaluations, and whether Ctrl-C ended it."""

    def exact(
        self,
        support: tuple[Index64, Vector, Index64],
        rows: tuple[Index64, Index64],
        threads: int,
        stop: Callable[[], bool],
        runs: Index64 | None = None,
    ) -> Vector:
        """Scores in float64: for problem t those of some rows, by its support vectors.

        Parameters
        ----------
        support : rows and coefficients of the support vectors, of one problem after the
            other; where these end.
        rows : rows to score, and where these end
        runs : int ndarray or None
            Where runs of problems end that have most of their rows in common, and
            kernel values with them. None: each problem has its own.

        Returns
        -------
        The scores; NaN where ``stop`` says yes.
        """
        out, (J, c, ends) = np.zeros(len(rows[0])), support
        runs = np.arange(1, len(ends) + 1) if runs is None else runs
        self._add_up((J, ends, c, *rows), runs, (out, threads, stop))
        if stop():  # parts of sums may be there
            out[:] = np.nan
        return out

    @abstractmethod
    def _add_up(
        self, sums: tuple[Any, ...], runs: Index64, out: tuple[Any, ...]
    ) -> None:
        """Let the core add up scores: what `exact` is asked for, and where to."""

    def by_group(
        self,
        table: Vector,
        groups: tuple[Index64, Index64],
        rows: tuple[Index64, Index64],
        threads: int,
    ) -> Vector:
        """Sums in float64 of many functions over groups of rows apart, at some rows.

        Parameters
        ----------
        table : ndarray (m, r, k), the weights of all rows in r functions, at k steps
        groups : rows of the groups, one after the other; where these end
        rows : rows to score; and up to which step, from 1 to k, each is to be
            Those of 64 rows are found together: such with few steps belong together.
        threads : int

        Returns
        -------
        ndarray (groups, r, k, rows). What is not asked for may be anything finite.
        """
        _, r, k = table.shape
        out = np.zeros((len(groups[1]), r, k, padded(len(rows[0]))))
        asked = table.reshape(len(table), -1), k, *groups, *rows, out.reshape(-1)
        self._add_table((*asked, threads, deadline.passed))
        deadline.check()
        return out[..., : len(rows[0])]

    @abstractmethod
    def _add_table(self, asked: tuple[Any, ...]) -> None:
        """Let the core make the sums of `by_group`."""

    # -- bounds of the errors of sums of kernel values ---------------------------------

    @property
    @abstractmethod
    def _single(self) -> ValueBounds:
        """Bounds of the values in float32, and of their errors."""

    @property
    @abstractmethod
    def _double(self) -> ValueBounds:
        """Bounds of the values in float64, and of their errors."""

    @property
    def lengths(self) -> Vector:
        """At least sqrt k(x, x) of the rows: (m,)."""
        return self._double.s

    def kept_errors(self, rows: Index64, c: Vector, starts: Index64) -> Vector:
        """Bounds of the errors of scores K c by float32 values, as `solve` has them.

        Sums are over the places of each problem, which begin at ``starts``.
        """
        return errors_by_part(self.kept_bounds, rows, c, starts)

    @functools.cached_property
    def kept_bounds(self) -> SumBounds:
        """What `kept_errors` goes by, as the core takes it."""
        return *self._single.core, *KEPT_TERMS, KEPT_LOST

    def exact_errors(self, rows: Index64, c: Vector, starts: Index64) -> Vector:
        """Bounds of the errors of scores by float64 values, at each place."""
        return errors_by_part(self.exact_bounds, rows, c, starts)

    @functools.cached_property
    def exact_bounds(self) -> SumBounds:
        """What `exact_errors` goes by, as the core takes it: of problems alone."""
        return *self._double.core, 0.0, self.in_a_row, EXACT_MORE, 0.0

    @property
    def shared_bounds(self) -> SumBounds:
        """What bounds of problems go by that share their kernel values."""
        return *self._double.core, 0.0, SHARED, EXACT_MORE, 0.0


class GroupedSamples(Grouped):
    """The rows of X by groups, packed for the core.

    Parameters
    ----------
    X : ndarray or CSR array (m, n)
    group : int ndarray (m,), the group of each row: 0, 1, ...
    kernel : Kernel that the core knows, with gamma as a number

    Attributes
    ----------
    is_fit, is_fit_exactly : bool
        Whether the core can do it: not where the rows are sparse with so many columns
        that they stay so (`MOST_BYTES`), nor where float32 is too rough for the values.
    """

    def __init__(self, X: Any, group: NDArray[Any], kernel: Kernel) -> None:
        super().__init__(group)
        self._X, self.kernel, self.cost = X, kernel, float(X.shape[1])
        wide = max(WIDE, MOST_BYTES // (4 * X.shape[0]))
        self._layout = Layout(kernel.form, X, np.float32, SPARSE_MODEL, wide)
        self.diagonal = kernel.diag(X)
        rough = is_rough(self._layout, kernel, X, self.diagonal)
        self.is_fit_exactly = not self._layout.stays_sparse
        self.is_fit = self.is_fit_exactly and not rough
        self.may_curve = not kernel.is_psd

    def values(self, rows: Index64) -> Vector:
        """Kernel values of all pairs of some rows, in float64: (k, k)."""
        X = self._X[rows]
        return kernel_values(self.kernel.form, X, X)

    @property
    def is_wide(self) -> bool:
        """Whether packed rows take far more memory than these, which are sparse."""
        return bool(self._X.shape[1] > WIDE and sparse.issparse(self._X))

    @property
    def packed_bytes(self) -> int:
        """Bytes of packed rows: by groups and one by one in float32, and in float64.

        Of rows that batches have sparse: by groups, where ones take a byte, and in
        float64 for certificates.
        """
        m, n = self._X.shape
        each = 9 if self._layout.is_ones else 12 if self._layout.is_sparse else 16
        return int(each * m * n)

    def pack(self) -> None:
        """Pack the rows in both precisions, part by part."""
        _ = self._made

    @functools.cached_property
    def _made(self) -> tuple[Any, ...]:
        """What the core takes: samples by groups, all rows, and these in float64.

        These come with their form and with their norms as samples.
        """
        begin, double = self._strips, self._double_layout
        place = np.zeros(begin[-1] * STRIP, np.int64)
        moved = (begin[:-1] * STRIP - self.first).repeat(self.count)
        moved += np.arange(len(moved))
        place[moved] = self.order
        if self._layout.is_sparse:
            samples, batch, exact, norms = self._made_sparse(place)
        else:
            centers = self._layout.center, double.center
            squares = self._layout.expands_squares, double.expands_squares
            X = linalg.in_core(self._X)
            rows = _core.rows_of_groups(X, place, *centers, *squares, deadline.check)
            samples, batch, exact, norms = (
                rows.strips,
                rows.batch,
                rows.exact,
                rows.norms,
            )
        return samples, batch, (double.form, exact, norms)

    def _made_sparse(self, place: Index64) -> tuple[Any, Any, Any, Vector]:
        """What the core takes of sparse batches: samples, all rows twice, and norms."""
        layout, X = self._double_layout, self._X
        if layout.is_sparse:
            X = linalg.sparse_rows(X)  # once, for both precisions
        samples = Samples(self._layout, X, place)
        known = np.empty(len(self.order), np.float32)
        known[place] = samples.norms
        batch = Batches(self._layout, X, known).take(slice(None), samples)
        norms = np.zeros(X.shape[0])
        needed = layout.is_sparse and layout.begins_at_lengths
        if needed or layout.expands_squares:
            norms = packed_norms(layout, X)
        exact = Batches(layout, X, norms if layout.expands_squares else None)
        return samples.core, batch, exact.take(slice(None), samples), norms

    @property
    def _exact(self) -> tuple[Any, Any, Vector]:
        """The form, all rows as a batch, and their norms as samples."""
        form, batch, norms = self._made[2]
        return form, batch, norms

    def _ask(self, problems: tuple[Any, ...]) -> tuple[int, bool]:
        """Let the core solve problems; evaluations, and whether Ctrl-C ended it."""
        samples, batch, exact = self._made
        groups = self._strips, self.count, self.order, self.diagonal
        made = self._layout.form, samples, batch, *groups, *exact
        given: tuple[Any, ...] = (*made, *problems)
        return _core.solve_batch(*given)

    # -- sums of kernel values, and bounds of their errors -----------------------------

    def _add_up(
        self, sums: tuple[Any, ...], runs: Index64, out: tuple[Any, ...]
    ) -> None:
        """Let the core add up scores."""
        asked: tuple[Any, ...] = (*self._exact, *sums, runs, *out)
        _core.sum_batch(*asked)

    def _add_table(self, asked: tuple[Any, ...]) -> None:
        """Let the core make sums by a table."""
        given: tuple[Any, ...] = (*self._exact, *asked)
        _core.sum_table(*given)

    @functools.cached_property
    def _double_layout(self) -> Layout:
        return self._layout.as_double()

    @functools.cached_property
    def _single(self) -> ValueBounds:
        return self._bounds(self._layout, SINGLE)

    @functools.cached_property
    def _double(self) -> ValueBounds:
        return self._bounds(self._double_layout, UNIT)

    @functools.cached_property
    def _known_lengths(self) -> Vector:
        """At least |x|^2 of the rows, from the center."""
        return known_lengths(self._exact[2], self._X.shape[1])

    def _bounds(self, layout: Layout, unit: float) -> ValueBounds:
        # Norms in float64 are those of both, unless it sums differences.
        if self._double_layout.expands_squares:
            lengths = self._known_lengths
        else:
            lengths = layout.lengths(self._X)
        return layout.bounds(lengths, layout.terms(self._X), unit)
