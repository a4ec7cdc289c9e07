"""Scores K c that follow coefficients, with bounds of their errors."""

import math
from typing import Any, NamedTuple

import numpy as np

from widemargin.arrays import Index, Index64, Mask, Vector
from widemargin.kernels.matrix import Columns
from widemargin.kernels.packed import padded
from widemargin.numerics import twofold
from widemargin.numerics.rounding import (
    FLUSHED,
    SINGLE,
    SLACK,
    UNIT,
    ValueBounds,
    gamma_n,
)
from widemargin.system import deadline

# Parts in which exact scores are made where the time may end first: those that are done
# stay. (Each packs the rows with c != 0 again: 10 ms of 90 ms, 40,000 rows.)
PARTS = 8


class Sums(NamedTuple):
    """Scores f = K c of all rows, and what is known of their errors.

    Attributes
    ----------
    values : ndarray (m,)
    errors : ndarray (m,), bounds of the absolute errors
    low : ndarray (m,) or float, what ``values`` lack: scores are values + low
    """

    values: Vector
    errors: Vector
    low: Vector | float = 0.0

    def slacks(
        self, y: Vector, b: float, q: Any = 1.0, off: float = 0.0
    ) -> tuple[Vector, Vector]:
        """The slacks q - y (f + b), and the most they are without rounding: (m,).

        Of q, too, which may be off by a share ``off`` of itself.
        """
        hi, lo = twofold.add(self.values, self.low, b, 0.0)
        return twofold.slacks(y * hi, y * lo, self.errors, q, off)

    def squared_norm(self, c: Vector) -> tuple[float, float]:
        """The squared norm c'f, and a bound of its error."""
        low = self.low + np.zeros(len(c))
        square, rest, error = twofold.dot(c, self.values, low)
        error += abs(rest)
        return square, error + float((np.abs(c) * self.errors).sum()) * SLACK

    def replaced(self, rows: Index, others: "Sums") -> "Sums":
        """These sums, with other values for some rows."""
        low = np.zeros(len(self.values)) + self.low
        found = Sums(self.values.copy(), self.errors.copy(), low)
        found.values[rows], found.errors[rows], low[rows] = others
        return found


class Then(NamedTuple):
    """What is known of scores at some time, from which bounds of their errors begin.

    Attributes
    ----------
    c, errors : ndarray (m,), the coefficients and bounds of the errors
    is_exact : bool ndarray (m,), rows that were computed in float64
    """

    c: Vector
    errors: Vector
    is_exact: Mask


class Scores:
    """Scores f = K c that follow the coefficients c.

    Attributes
    ----------
    c : ndarray (m,)
    values : ndarray (m,), float64
    current : bool ndarray (m,) or None
        Rows whose scores follow c; None: all rows.
    version : int, which grows where values change, or which rows are current
    refreshes : int, how often some were computed in float64
    error : float, the largest error that they had then
    """

    def __init__(self, columns: Columns, c: Vector) -> None:
        self._columns = columns
        m = columns.shape[0]
        self.version, self.refreshes, self.error = 0, 0, 0.0
        self.c = np.zeros(m)
        self.current: Mask | None = None
        # Since then: columns added, sum |change| s_j, what c lost by rounding; and what
        # rounding of kept rows may have done at most, and its square by chance.
        self._added, self._moved, self._lost = 0, 0.0, 0.0
        self._off = self._variance = 0.0
        # Of the values that are added: bounds, known at less cost by then, and unit.
        self._bounds: ValueBounds | None = None
        self._unit = SINGLE
        self._begin(np.zeros(m))
        self._all = np.zeros(padded(m))
        self.values = self._all[:m]
        # What is kept current: sums, and their rows if they are not all.
        self._sums = self._all
        self._rows: Index | None = None
        # Rows that are not, one after the other, each with c as it was then.
        self._left_out: list[tuple[Index, Vector]] = []
        J = np.flatnonzero(c)
        if J.size:
            self.add(J, c[J])
            self.c[:] = c  # to the bit

    @classmethod
    def known(cls, columns: Columns, c: Vector, values: Vector) -> "Scores":
        """Scores of c that another run had, NaN where it left rows out: no proof."""
        scores, J = cls(columns, np.zeros(len(c))), np.flatnonzero(c)
        scores.values[:] = values
        rows = np.flatnonzero(np.isnan(values))
        if rows.size and J.size:
            some = np.zeros(padded(len(rows)))
            columns.focus(rows)
            columns.add(J, c[J], some)
            scores.values[rows] = some[: len(rows)]
        scores.forget(c)
        return scores

    def add(
        self,
        J: Index,
        change: Vector,
        again: Mask | None = None,
    ) -> None:
        """Add a change to c[J]; where that is interrupted, all is as it was.

        ``again``: which of them are likely to change again; None: any.
        """
        before = self._sums.copy()
        try:
            self._ready()
            self._columns.focus(self._rows)  # other scores may have looked elsewhere
            read = self._columns.add(J, change, self._sums, again)
            self._note(J, change, read)
        except BaseException:
            self._sums[:] = before
            raise
        self.c[J] += change
        self.version += 1
        if self._rows is not None:
            self.values[self._rows] = self._sums[: len(self._rows)]

    @property
    def is_exact(self) -> Mask:
        """The rows whose scores were computed for c in float64."""
        return np.asarray(self._then.is_exact & (self._added == 0))

    @property
    def noise(self) -> float:
        """What rounding of kept rows has made of a score, about."""
        return math.sqrt(self._variance)

    def _ready(self) -> None:
        """Know the values that will be added; where they were others: begin anew."""
        unit = UNIT if self._columns.dtype == np.float64 else SINGLE
        if self._added and unit != self._unit:
            self._begin(self.sums().errors)
        self._unit = unit

    def _note(self, J: Index, change: Vector, read: Vector) -> None:
        """Remember what rounds as a change to c[J] is added, of kept rows ``read``."""
        # Of a callable they grow with its values.
        bounds = self._bounds = self._columns.value_bounds
        moved, s = np.abs(change), bounds.s[J]
        self._moved += float((moved * s).sum())
        self._lost += UNIT * SLACK * float(((np.abs(self.c[J]) + moved) * s).sum())
        off = self._columns.kept_error
        self._off += off * float(np.abs(read).sum())
        self._variance += off**2 / 3.0 * float(read @ read)
        self._added += len(J)

    def sums(self) -> Sums:
        """The scores with bounds of their errors.

        Each value k_ij is the same number whenever it is computed, so that its error
        comes with what c_j has changed by since then, however often; but each addition
        rounds.
        """
        errors = self._then.errors.copy()
        bounds, unit = self._bounds, self._unit
        if self._added == 0 or bounds is None:
            return Sums(self.values, errors)
        added = gamma_n(2 * self._added)  # to scores that were at most so large before:
        errors += added * SLACK * (np.abs(self.values) + bounds.s * self._moved)
        rounded = gamma_n(self._columns.roundings, unit) + added
        errors += bounds.sums(bounds, self.c - self._then.c, 0.0)
        errors += bounds.s * ((rounded * self._moved + self._lost) * SLACK)
        errors += self._off * SLACK
        if unit == SINGLE:  # values and weights too small for float32 are lost
            errors += FLUSHED * (self._moved + self._added)
        return Sums(self.values, errors)

    def _begin(self, errors: Vector) -> None:
        """Let bounds of errors begin here."""
        none = np.zeros(len(self.c), bool)
        self._then = Then(self.c.copy(), errors, none)
        self._added, self._moved, self._lost = 0, 0.0, 0.0
        self._off = self._variance = 0.0

    def focus(self, rows: Mask) -> None:
        """From now on keep only these rows' scores current; c is zero elsewhere.

        Of the rows that are current: others stay left out, as they were then.
        """
        before = np.arange(len(rows)) if self._rows is None else self._rows
        stays = rows[before]
        index = before[stays]
        sums = np.zeros(padded(len(index)))
        sums[: len(index)] = self.values[index]
        current = np.zeros(len(rows), bool)
        current[index] = True
        left_out = self._left_out.copy()
        if len(index) < len(before):
            left_out.append((before[~stays], self.c.copy()))
        self._sums, self._rows, self._left_out = sums, index, left_out
        self.current = current
        self.version += 1

    def settle(self) -> None:
        """Bring the scores of all rows up to date.

        What c changed by since some rows were left out is added at once, however often
        it changed.
        """
        if self._rows is None:
            return
        sums = self._all.copy()
        self._ready()
        for rows, before in self._left_out:
            J = np.flatnonzero(self.c != before)
            some = np.zeros(padded(len(rows)))
            self._columns.focus(rows)
            change = self.c[J] - before[J]
            self._note(J, change, self._columns.add(J, change, some))
            sums[rows] += some[: len(rows)]
        sums[self._rows] = self._sums[: len(self._rows)]
        self._all[:] = sums
        self._sums, self._rows, self.current = self._all, None, None
        self._left_out = []
        self.version += 1

    def of_equals(
        self, columns: Columns, group: Index64, c: Vector, off: Vector
    ) -> "Scores":
        """The scores of rows that are equal to these, by the groups that they are in.

        They have the coefficients c, whose sums by group may miss these coefficients by
        what changes no score by more than ``off``.
        """
        found, sums = Scores(columns, np.zeros(len(group))), self.sums()
        found.c[:], found.values[:] = c, sums.values[group]
        found._begin((sums.errors + off)[group])
        found._then.is_exact[:] = self.is_exact[group]
        return found

    def scale(self, t: float) -> None:
        """Multiply c, and the scores with it."""
        errors = self.sums().errors
        self.c *= t
        self._sums *= t
        self.version += 1
        self._begin(errors * (abs(t) * SLACK) + self._rounded())

    def _rounded(self) -> Vector:
        """Errors of scores that follow c where both are multiplied by a number."""
        s = self._columns.value_bounds.s
        lost = gamma_n(2) * float((np.abs(self.c) * s).sum())
        return np.asarray(gamma_n(2) * np.abs(self.values) + lost * s)

    def forget(self, c: Vector) -> None:
        """Have other coefficients, of whose scores nothing is proved yet."""
        self.c[:] = c
        self._begin(np.full(len(c), np.inf))
        self.version += 1

    def refresh(self, rows: Index) -> float:
        """Compute some scores in float64; the largest error that they had.

        Under a deadline in parts, which stay where it ends the work.
        """
        J, largest = np.flatnonzero(self.c), 0.0
        for part in self._parts(rows, J):
            exact, bounds = self._columns.bounded(part, J, self.c[J])
            errors = np.abs(exact - self.values[part])
            if self._added:
                self._begin(self.sums().errors)
            self.values[part], self._then.errors[part] = exact, bounds
            self._then.is_exact[part] = True
            self.version += 1
            largest = max(largest, float(errors.max(initial=0.0)))
        return largest

    def _parts(self, rows: Index, J: Index) -> Any:
        """Rows in parts, those of a sample beside each other.

        First where c is not zero: both bounds of the optimum need them.
        """
        if deadline.current() is None:
            return [rows]
        m = self._columns.twins or len(self.c)
        waits = np.ones(m, bool)
        waits[J % m] = False
        samples = rows % m
        return np.array_split(rows[np.lexsort((samples, waits[samples]))], PARTS)
