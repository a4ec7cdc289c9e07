"""Many kernel problems over the same samples, and their certificates, all at once.

    minimize over (f, b, rho)   1/2 (|f|^2 + p b^2) - N rho
                                + sum C L(q + rho - y (f(x) + b)),

    maximize   q'alpha - 1/2 c'K c [- 1/2 (sum c)^2] [- sum alpha^2 / (4 C)],

c = Y alpha, alpha >= 0 [alpha <= C], where y'alpha = 0 if the intercept is free, and
sum alpha = N if there is a rho. Classification has q = 1 and no rho; regression has
each row twice, with y = +1 and -1.

The bounds are those of `KernelProblem.prove`. Vectors of all problems are in one array,
one after the other; the core adds up parts of it (`cpp/certificates.cpp`), as NumPy
would take longer than to solve small problems. Where rounding decides whether a gap is
small enough, a problem of its own does better: it has sums in twice the precision.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin import _core
from widemargin.arrays import Index64, Mask, Vector
from widemargin.kernels.grouped import Grouped
from widemargin.losses.pointwise import PointwiseLoss
from widemargin.numerics import linalg
from widemargin.numerics.rounding import SLACK, TINY, gamma_n
from widemargin.problems.base import FLOOR
from widemargin.solution import Certificate

# How the core knows intercepts.
INTERCEPTS = {"none": 0, "free": 1, "penalized": 2}
# All places get exact scores where that takes no more multiplications than these: 0.3
# ms.
ALL_PLACES = 1e6
# Numbers of a group, of all places with it, up to which each has products of its own:
# certificates take 0.3 to 0.9 of the time with up to 6,000, 0.4 to 1.7 times with more.
FEW_NUMBERS = 6_000
# Places that are looked at first, where there are many.
SOME_PLACES = 1 << 12


@dataclass(frozen=True)
class ManyProblems:
    """Binary problems, each over all rows of some groups: the rows are its *places*.

    Attributes
    ----------
    samples : Grouped
    groups, group_ends : int ndarray, the groups of the problems; where these end
        The same group twice is the same rows twice, which share their kernel values.
    ends : int ndarray (t,), where the places of each problem end
    y, C : ndarray, labels +1 and -1, and weights >= 0, of each place
        Where C is 0 a row has no loss, but it has a score.
    loss : PointwiseLoss
    intercept : {"free", "penalized", "none"}
    after : int ndarray (t,)
        The problem at whose answer another one starts, which has the same groups and
        comes earlier; -1: it starts at zero, or, if an earlier one has its rows and
        labels, near the answer of that. No two follow the same one.
    q : ndarray, of each place, or a number, default=1.0
    mass : ndarray (t,) or None, default=None
        N, which the sum of alpha has to be; NaN, or None for all: there is no rho. With
        a free intercept both classes have half of it; without one all labels are +1.
    begin_at : ndarray or None, default=None
        Coefficients of each place to start at, where no other problem is followed.
        None: zero, or what has the sums that are given. The answer takes their place.
    X : ndarray or CSR array (m, n) or None, default=None
        The rows, where the kernel is their products and answers are weights of the
        columns: then bounds are those of weights.
    known_rows : int ndarray or None, default=None
        The row at each place; None: they are looked up.
    enough : float, default=0.0
        The relative gap that scores in float32 may prove, by the bounds of their
        errors: then none are made in float64. Not of problems that have a mass.
    """

    samples: Grouped
    groups: Index64
    group_ends: Index64
    ends: Index64
    y: Vector
    C: Vector
    loss: PointwiseLoss
    intercept: str
    after: Index64
    q: Vector | float = 1.0
    mass: Vector | None = None
    begin_at: Vector | None = None
    X: Any = None
    known_rows: Index64 | None = None
    enough: float = 0.0

    @functools.cached_property
    def starts(self) -> Index64:
        """Where the places of each problem begin."""
        starts = np.zeros(len(self.ends), np.int64)
        starts[1:] = self.ends[:-1]
        return starts

    @functools.cached_property
    def sizes(self) -> Index64:
        """How many places each problem has."""
        return self.ends - self.starts

    @functools.cached_property
    def n_samples(self) -> Index64:
        """How many rows of the data each problem has: a regression has them twice."""
        first = self.groups[: self.group_ends[0]].tolist()
        return np.asarray(self.sizes * len(set(first)) // len(first))

    @functools.cached_property
    def rows(self) -> Index64:
        """The row at each place."""
        if self.known_rows is not None:
            return self.known_rows
        return self.samples.rows_of(self.groups)

    @functools.cached_property
    def _runs(self) -> Index64 | None:
        """Where runs of problems end that have the same groups; None: all differ."""
        if (self.after < 0).all():  # no path: pairs of classes, or one problem
            return None
        count = np.diff(self.group_ends, prepend=0)
        if (count != count[0]).any():
            return None
        changes = (self._groups[1:] != self._groups[:-1]).any(axis=1)
        return np.append(changes.nonzero()[0] + 1, len(self.ends))

    @property
    def _groups(self) -> Index64:
        """The groups of each problem, where all have as many: (t, groups)."""
        return self.groups.reshape(len(self.ends), -1)

    @functools.cached_property
    def order(self) -> Index64:
        """The places by problems, those of each in the order of the data: (places,).

        Where rows are there twice, one copy of all comes after the other.
        """
        m, copies = len(self.samples.order), self.sizes // self.n_samples
        if len(self.ends) == 1 and self.n_samples[0] == len(self.rows) == m:
            order = np.empty(m, np.int64)
            order[self.rows] = np.arange(m)
            return order
        copy = np.arange(copies.sum()).repeat(self.n_samples.repeat(copies))
        return (copy * m + self.rows).argsort(kind="stable")  # merges sorted runs

    def count(self, chosen: Mask) -> Index64:
        """How many places of each problem are chosen: (t,)."""
        return np.asarray(np.add.reduceat(chosen, self.starts, dtype=np.int64))

    def sums(self, values: Vector) -> Vector:
        """Sums over the places of each problem: (t,)."""
        return np.asarray(np.add.reduceat(values, self.starts))

    @functools.cached_property
    def is_plain(self) -> bool:
        """Whether these are classifiers: q is 1, and there is no rho."""
        return self.mass is None and isinstance(self.q, float) and self.q == 1.0

    @functools.cached_property
    def zero_objectives(self) -> Vector:
        """The objectives at zero: (t,)."""
        if self.is_plain:
            return self.sums(self.C)
        return self.sums(self.C * self.loss.value(np.zeros(len(self.y)) + self.q))

    @functools.cached_property
    def may_be_zero(self) -> bool:
        """Whether optima are zero where there is no margin: q is 0, and there is a rho.

        Then `MassProblem` says what gaps are relative to.
        """
        if isinstance(self.q, float):
            return self.mass is not None and self.q == 0.0
        return self.mass is not None and not self.q.any()

    @functools.cached_property
    def squares(self) -> Vector:
        """The largest ``|f|^2`` that masses allow: (t,)."""
        squares = np.where(self.C > 0.0, self.samples.diagonal[self.rows], 0.0)
        largest = np.maximum.reduceat(squares, self.starts)
        return np.asarray(np.fmax(self.data[3], 0.0) ** 2 * largest)  # NaN is 0

    @functools.cached_property
    def data(self) -> tuple[Vector, Vector, Vector, Vector]:
        """Labels, C and q of each place, and the mass of each problem."""
        q: Any = self.q
        if isinstance(q, float):
            q = self.samples.filled(q, len(self.y))
        none = np.full(len(self.ends), np.nan)
        return self.y, self.C, q, none if self.mass is None else self.mass

    def part(self, chosen: list[int], c: Vector) -> "ManyProblems":
        """Some of the problems; each starts at its coefficients among ``c``."""
        sizes = np.diff(self.group_ends, prepend=0)
        of_groups = np.isin(np.repeat(np.arange(len(sizes)), sizes), chosen)
        places = np.repeat(np.isin(np.arange(len(self.ends)), chosen), self.sizes)
        return dataclasses.replace(
            self,
            groups=self.groups[of_groups],
            group_ends=np.cumsum(sizes[chosen]),
            ends=np.cumsum(self.sizes[chosen]),
            y=self.y[places],
            C=self.C[places],
            after=np.full(len(chosen), -1),
            q=self.q if isinstance(self.q, float) else self.q[places],
            mass=None if self.mass is None else self.mass[chosen],
            begin_at=c[places],
            known_rows=None,
        )

    def start(self) -> Vector:
        """Coefficients c = y alpha to start at: with the sums that are given."""
        if self.begin_at is not None:
            return self.begin_at
        c = np.zeros(len(self.y))
        if self.mass is not None:
            form = self.loss.is_bounded, self.intercept == "free"
            _core.fill_sums(self.ends, self.data, *form, c)
        return c

    @property
    def sums_given(self) -> list[tuple[Index64, float]]:
        """The places whose alpha has a sum that is given, and this sum."""
        if self.mass is None:
            return []
        free, given = self.intercept == "free", []
        bounds = zip(self.mass.tolist(), self.starts, self.ends, strict=True)
        for mass, first, last in bounds:
            if math.isnan(mass):
                continue
            for sign in (1.0, -1.0) if free else (1.0,):
                own = first + (self.y[first:last] == sign).nonzero()[0]
                given.append((own, 0.5 * mass if free else mass))
        return given

    def keep_answers(
        self,
        found: tuple[Vector, Vector, Vector],
        threads: int,
        weights: Vector,
        sums: Index64,
        coefficients: Vector,
        counts: Sequence[NDArray[np.int16]] = (),
    ) -> None:
        """Add answers of folds and values of C to those of other problems.

        Of each binary problem there is one for each fold, and for each of these one for
        each C, over the same rows.

        Parameters
        ----------
        found : c and scores of each place: see `bounds`; and intercepts (t,)
        threads : int
        weights : ndarray (folds, m), 0 where a fold holds a row out
        sums : int ndarray (binary problems, 2), the sums of a row for c > 0 and c < 0
        coefficients : ndarray (folds, m, sums, C), to which c is added
        counts : two int16 ndarray (folds, m, C), or none
            To the first one is added, for rows that are held out, how many problems are
            sure to say that a row has its label, whatever float32 has lost; to the
            second one, how many that it has the other label.
        """
        step = len(weights) * coefficients.shape[3]
        parts = zip(self.starts[::step], self.ends[::step], strict=True)
        own = np.concatenate([np.arange(*part) for part in parts])
        ends, known = self.sizes[::step].cumsum(), self.samples.kept_bounds
        given = found, threads, weights, sums, coefficients, counts
        _core.keep_answers(known, ends, self.rows[own], self.y[own], *given)

    # -- bounds ------------------------------------------------------------------------

    def bounds(
        self,
        c: Vector,
        scores: Vector,
        b: Vector,
        threads: int,
        stop: Callable[[], bool],
        rho: Vector | None = None,
    ) -> Vector:
        """Bounds of the optima by coefficients c = y alpha, intercepts b, and rho.

        Parameters
        ----------
        c : ndarray, of each place; feasible but for rounding of the sums that are given
        scores : ndarray, K c by `Grouped.solve`, of each place
        b : ndarray (t,)
        threads, stop : of the sums in float64
        rho : ndarray (t,) or None
            None: 0. So it counts where there is no mass.

        Returns
        -------
        ndarray (t, 4), the numbers of a `Certificate` of each problem
            Infinite bounds where a number has left the range, a dual variable its
            bounds, or ``stop`` said yes before the scores were there. Where q is not 1,
            or there is a mass, the optimum can be zero or negative: gaps are relative
            to the largest of ``|P|``, ``|D|`` and 1e-10 of the objective at zero; where
            q is 0 of N^2 k(x, x), and there P is at most 0, that of no function.
        """
        rho = np.zeros(len(b)) if rho is None else rho
        with np.errstate(all="ignore"):
            if self.X is None:
                bounds = self._by_scores(c, scores, (b, rho), threads, stop)
            else:
                bounds = self._by_weights(c, (b, rho))
            if self.may_be_zero:  # the objective of no function at all is 0
                bounds[bounds[:, 0] > 0.0, 0::2] = 0.0
            bounds[:, 3] += bounds[:, 2]
            bounds[:, 2] = 0.0 if self.is_plain else self._scales(bounds[:, 1])
            return bounds

    def certificates(self, *answers: Any) -> list[Certificate]:
        """Bounds of the optima as a list of `Certificate`."""
        return [Certificate(*one) for one in self.bounds(*answers).tolist()]

    def _by_scores(
        self,
        c: Vector,
        scores: Vector,
        line: tuple[Vector, Vector],
        threads: int,
        stop: Callable[[], bool],
    ) -> Vector:
        """P and D, and what each allows for rounding, by scores: (t, 4).

        Scores are made again in float64 where alpha > 0, or where there is a loss or
        could be one by the error that a score has at most. Other places add nothing to
        the bounds, unless sums of alpha are given. So do all places of problems whose
        gap is small ``enough`` by the scores as they are.
        """
        samples, (b, rho) = self.samples, line

        def exact(support: Any, rows: Any) -> Vector:
            """Scores in float64."""
            return samples.exact(support, rows, threads, stop, self._runs)

        alone = self._runs is None
        known = bounds = samples.exact_bounds if alone else samples.shared_bounds
        most = ALL_PLACES / (self.sizes.max() * samples.cost)
        few = all(np.count_nonzero(part) <= most for part in (c[:SOME_PLACES], c))
        if not few:
            known = samples.kept_bounds
        enough, out = 0.0 if few else self.enough, np.empty((len(b), 4))
        places = self.ends, self.rows, self.data, (c, scores, b), rho, self.counted(c)
        kind = few, not self.loss.is_bounded, INTERCEPTS[self.intercept], enough
        _core.prove_many(known, bounds, *places, *kind, threads, exact, out)
        return out

    def _by_weights(self, c: Vector, line: tuple[Vector, Vector]) -> Vector:
        """`_by_scores` with scores by the weights of the columns."""
        values, errors, squares = self._scores_of_weights(c)
        out = np.empty((len(self.ends), 4))
        _core.certify_many(
            self.ends,
            self.data,
            not self.loss.is_bounded,
            INTERCEPTS[self.intercept],
            (c, values, errors),
            np.ones(len(c), bool),
            self.rows,
            self.samples.lengths,
            line,
            squares,
            out,
        )
        return out

    def weights(self, c: Vector) -> Vector:
        """Weights of the columns that coefficients c make: (t, n).

        Those that were made last are kept: bounds ask for them, and then the answer.
        """
        known = vars(self).get("_last")
        if known is not None and np.array_equal(known[0], c):
            return np.asarray(known[1])
        W = self._weights_of(c)
        vars(self)["_last"] = c.copy(), W
        return W

    def _weights_of(self, c: Vector) -> Vector:
        """Weights of the columns of coefficients c, made anew: (t, n)."""
        if self._have_few_numbers:
            terms = c[:, np.newaxis] * self.X[self.rows]
            return np.asarray(np.add.reduceat(terms, self.starts))
        W = np.zeros((len(self.ends), self.X.shape[1]))
        for X, k, places in self._of_groups:
            np.add.at(W, k, linalg.rmatvec(X, c[places].T).T)  # some have it twice
        return W

    @functools.cached_property
    def _have_few_numbers(self) -> bool:
        """Whether products of each place take less time than those of each group."""
        few = len(self.rows) * self.X.shape[1] <= FEW_NUMBERS * len(self.samples.count)
        return few and isinstance(self.X, np.ndarray)

    @functools.cached_property
    def _of_groups(self) -> list[tuple[Any, Index64, Index64]]:
        """Of each group its rows, the k problems with it, its places: (k, rows)."""
        count, all_rows = self.samples.count, self.X[self.samples.order]
        of = np.repeat(np.arange(len(self.ends)), np.diff(self.group_ends, prepend=0))
        begin, first = count[self.groups].cumsum() - count[self.groups], 0
        # Where each group is among all of the problems.
        by_group = np.split(
            np.argsort(self.groups, kind="stable"),
            np.bincount(self.groups, minlength=len(count)).cumsum()[:-1],
        )
        found = []
        for own, rows in zip(by_group, count.tolist(), strict=True):
            places = begin[own, np.newaxis] + np.arange(rows)
            found.append((all_rows[first : first + rows], of[own], places))
            first += rows
        return found

    def _scores_of_weights(self, c: Vector) -> tuple[Vector, Vector, Vector]:
        """Scores by weights, how far off they may be, and squared norms of these.

        Products of a row are off by a share of its length; sums over rows by a share of
        the sum of theirs.
        """
        W, f, lengths = self.weights(c), np.empty(len(c)), self.samples.lengths
        if self._have_few_numbers:
            np.einsum("ij,ij->i", W.repeat(self.sizes, 0), self.X[self.rows], out=f)
        else:
            for X, k, places in self._of_groups:
                f[places] = linalg.matvec(X, W[k].T).T
        off = gamma_n(self.X.shape[1] + 8) * SLACK
        squares = np.empty((len(W), 4))
        squares[:, 0] = squares[:, 2] = np.einsum("ij,ij->i", W, W)
        size = np.sqrt(squares[:, 0]) * SLACK + TINY
        squares[:, 1] = squares[:, 3] = 2.0 * off * squares[:, 0]
        terms = gamma_n(int(self.sizes.max()) + 8) * SLACK
        moved = terms * (self.sums(np.abs(c) * lengths[self.rows]) + TINY)
        squares[:, 3] += 2.0 * (size + moved) * moved * SLACK
        return (
            f,
            off * np.repeat(size, self.sizes) * lengths[self.rows] * SLACK + TINY,
            squares,
        )

    def _scales(self, dual: Vector) -> Vector:
        """What gaps are relative to at least: (t,)."""
        least = FLOOR * (self.squares if self.may_be_zero else self.zero_objectives)
        known = np.where(np.isfinite(dual), np.abs(dual), 0.0)
        return np.asarray(np.maximum(least, known))

    def counted(self, c: Vector) -> Vector:
        """Coefficients that scores are sums by: of all places.

        Of two places of one row that both have one, the first has the sum of both where
        that is exact. Places without one stay so: scores do not look there.
        """
        if not self._is_paired:
            return c
        first, second = c.reshape(2, -1)
        total = first + second
        more = total - first
        rest = (first - (total - more)) + (second - more)  # Knuth's sum
        joins = (first != 0.0) & (second != 0.0) & (rest == 0.0)
        return np.where(joins, [total, np.zeros_like(total)], [first, second]).ravel()

    def round_pairs(self, c: Vector) -> None:
        """Make sums exact that `counted` has: the smaller of two loses its last digits.

        Both may be far larger than their sum, and errors of scores are shares of what
        these are sums by.
        """
        if self._is_paired:
            first, second = np.split(c, 2)
            larger = np.maximum(np.abs(first), np.abs(second))
            for some in (first, second):  # views; the larger one stays
                size = (np.abs(some) + larger) - larger
                some[:] = np.copysign(size, some)

    @property
    def _is_paired(self) -> bool:
        """Whether each row is there twice, and sums of alpha are given."""
        is_one = len(self.ends) == 1 and self.groups.tolist() == [0, 0]
        return is_one and self.mass is not None
