"""The problem with a kernel: w is a sum of features, and products are kernel values.

    w = sum_j c_j phi(x_j),   x_i'w = (K c)_i,   |w|^2 = c'K c.

The dual point alpha has w = sum alpha_i y_i phi(x_i), so c = Y alpha, and with f = K c

    P = 1/2 c'f [+ 1/2 b^2] + sum_i C_i L(q_i - y_i (f_i + b)),
    D = q'alpha - 1/2 c'f [- 1/2 b^2] [- sum alpha_i^2 / (4 C_i)],

b = sum c where it is penalized. Section 6 of the specification of IRWLS.
"""

import contextlib
import functools
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from widemargin.arrays import Index, Mask, Vector
from widemargin.data.memory import as_rows
from widemargin.data.rows import Rows
from widemargin.data.state import RowState, finite
from widemargin.kernels.doubled import columns_of
from widemargin.kernels.kernel import Kernel
from widemargin.numerics import rounding, twofold
from widemargin.numerics.rounding import SLACK, Heavy, gamma_n
from widemargin.parameters import Checker
from widemargin.problems.base import KINDS, Problem
from widemargin.problems.constant import ConstantRows
from widemargin.problems.intercept import best_intercept
from widemargin.problems.scores import PARTS, Scores, Sums
from widemargin.solution import Certificate, Step
from widemargin.system import deadline

# All rows get exact scores where that takes no more multiplications than these: 5 ms.
ALL_ROWS = 1e8
# Margins that are this far above q have no loss, while a solver is at work, in units of
# the mean |q|: 1e4 times what float32 rounds off a score of 1.
NEAR = 1e-3
# Above this gap exact scores are not needed: there is no answer yet anyway.
COARSE = 1e-2
# Share of sum alpha by which y'alpha may miss zero: that is rounding.
BALANCED = 1e-13


class KernelProblem(Problem):
    """A support vector problem with a kernel: what `Problem` makes when it has one.

    Parameters
    ----------
    features : Rows, array or sparse matrix (m, n)
    y, C, loss, intercept, q : as of `Problem`
        For the kernel "precomputed" the features are K, (m, m).
    kernel : Kernel
    memory_limit : int or None, in bytes
        For kernel values that are kept, and the packed samples.

    Attributes
    ----------
    columns : Columns of the rows with C > 0
    kernel : Kernel, with gamma as a number
    order : int, numbers of v = (c, b): one for each row with C > 0, and b if any

    Notes
    -----
    `certify` computes m times (number of alpha > 0) kernel values in float64, by the
    core, about 1e9 a second for sparse rows; a certificate of the driver only needs
    rows that have a loss or could have one: see `answer`.
    """

    couples = True

    def __init__(  # noqa: PLR0913  (options, by keyword)
        self,
        features: Rows | ArrayLike,
        y: ArrayLike,
        C: ArrayLike = 1.0,
        loss: str = "hinge",
        intercept: str = "auto",
        *,
        q: ArrayLike = 1.0,
        kernel: Any,
        memory_limit: int | None = None,
    ) -> None:
        check = Checker("Problem")
        if not isinstance(kernel, Kernel):
            check.refuse("kernel", "a Kernel or None", kernel)
        check.memory_limit(memory_limit)
        rows = features if isinstance(features, Rows) else as_rows(features)
        super().__init__(rows, y, C, loss, intercept, q=q)
        n_jobs = rows.options.get("n_jobs")
        self.kernel = kernel.resolved(self.rows)
        if self.kept is None or not kernel.is_precomputed:
            self.columns = columns_of(self.rows, self.kernel, memory_limit, n_jobs)
        else:
            whole = columns_of(rows, self.kernel, memory_limit, n_jobs)
            self.columns = whole.select(self.kept)
        self.scores: Scores | None = None
        self._answered: Scores | None = None  # of an answer that is being made

    @property
    def order(self) -> int:
        """Length of v = (c, b)."""
        return self.rows.shape[0] + (self.intercept != "none")

    def split(self, v: Vector) -> tuple[Vector, float]:
        """The pair (c, b) of v, with c over all rows."""
        m = self.rows.shape[0]
        return self.spread(v[:m].copy()), float(v[m]) if len(v) > m else 0.0

    def stack(self, w: ArrayLike, b: float = 0.0) -> Vector:
        """The vector v of (c, b), with c over all rows."""
        c = finite("w", np.ravel(w), self.shape[0])
        c = c if self.kept is None else c[self.kept]
        return c if self.intercept == "none" else np.append(c, finite("b", [b], 1))

    @functools.cached_property
    def signs(self) -> Vector:
        """Labels of the rows with C > 0, float64."""
        y = self.y if self.kept is None else self.y[self.kept]
        return np.asarray(y, dtype=np.float64)

    @property
    def weights(self) -> Vector:
        """C of the rows with C > 0."""
        return self.C if self.kept is None else self.C[self.kept]

    @property
    def margins(self) -> Any:
        """Q of the rows with C > 0: the number 1, or a vector."""
        if self.has_unit_margins:
            return 1.0
        return self.q if self.kept is None else self.q[self.kept]

    @functools.cached_property
    def unit(self) -> float:
        """The size of margins: 1, or the mean ``|q|``."""
        return 1.0 if self.has_unit_margins else float(np.abs(self.q).mean())

    def reach(self, alpha: Vector) -> float:
        """The linear part of the dual: q'alpha, of the rows with C > 0."""
        if self.has_unit_margins:
            return float(alpha.sum())
        return float((self.margins * alpha).sum())

    def _size(self, alpha: Vector) -> float:
        """The sum of ``|q_i| alpha_i``."""
        if self.has_unit_margins:
            return float(alpha.sum())
        return float((np.abs(self.margins) * alpha).sum())

    @property
    def kernel_facts(self) -> dict[str, Any]:
        """Name and numbers of the kernel; a callable is known by its name only."""
        name = self.kernel.name
        named = name if isinstance(name, str) else getattr(name, "__qualname__", "?")
        facts = {"kernel": named, "gamma": float(self.kernel.gamma)}
        return facts | {"degree": self.kernel.degree, "coef0": float(self.kernel.coef0)}

    # -- objectives --------------------------------------------------------------------

    def expand(self, c: Vector, values: Vector | None = None) -> "Scores":
        """Scores K c that follow c; the problem knows them from then on.

        ``values``: what `known_scores` said of c in another run, which saves making
        them.
        """
        if values is None:
            self.scores = Scores(self.columns, c)
        else:
            self.scores = Scores.known(self.columns, c, values)
        return self.scores

    def known_scores(self, c: Vector) -> Vector | None:
        """The scores of c, if a run has them now; NaN for rows that it leaves out."""
        scores = self.scores
        if scores is None or not np.array_equal(scores.c, c):
            return None
        if scores.current is None:
            return scores.values
        return np.where(scores.current, scores.values, np.nan)

    def values(self, c: Vector, f: Vector, b: float) -> Certificate:
        """P and D of (c, b) and alpha = Y c by the scores f = K c: no proof yet."""
        # No products of BLAS: its threads cost more than these vectors are worth. And
        # one piece of memory: that of five took five times as long.
        y, room = self.signs, f + b
        room *= y
        losses = self._sum_losses(np.subtract(self.margins, room, out=room))
        square = float(np.multiply(c, f, out=room).sum())
        alpha = np.multiply(y, c, out=room)
        primal = 0.5 * (square + self._penalty_of(b)) + losses
        dual = 0.5 * (square + self._penalty_of(self.intercept_near(c, 0.0)))
        dual = self.reach(alpha) - dual - self.squares(alpha)
        return Certificate(primal, dual, self.scale)

    def _losses_of(self, t: Vector, most: Vector) -> tuple[float, float]:
        """What slacks t cost, and the most that slacks up to ``most`` do."""
        return self._sum_losses(t), self._sum_losses(most)

    def _sum_losses(self, t: Vector) -> float:
        """What slacks t of the kept rows cost."""
        losses = self.pointwise.value(t)
        losses *= self.weights
        return float(losses.sum())

    def step(
        self,
        iteration: int,
        point: tuple[Vector, Vector, float],
        active: int,
        details: dict[str, float],
        bounds: Certificate | None = None,
    ) -> Step:
        """The step at c = Y alpha, with the scores f = K c that are known, and b.

        ``bounds``: their `values`, where they are known too.
        """
        c, f, b = point
        bounds = bounds or self.values(c, f, b)
        details = {
            "support_vectors": float(np.count_nonzero(c)),
            "evaluations": float(self.columns.evaluations),
            "hits": float(self.columns.hits),
            **details,
        }
        v = c.copy() if self.intercept == "none" else np.append(c, b)
        pair = v, self.state(alpha=np.abs(c))
        return Step(
            iteration,
            bounds.primal,
            bounds.dual,
            0.0,
            active,
            details,
            lambda: pair,
            scale=self.scale,
        )

    def prove(self, c: Vector, f: "Sums", b: float) -> Certificate:
        """Bounds of the optimum by (c, b), alpha = Y c and scores f = K c with errors.

        No rounding makes the upper bound too small, or the lower one too large.
        """
        primal, over = self.upper_bound(c, f, b)
        dual, under = self.lower_bound(c, f)
        return Certificate(primal, dual, self.scale, over + under)

    @property
    def constant(self) -> tuple[Certificate, float]:
        """The bounds that no function proves, and its b, which is the best there is.

        It is 0 where a sum of alpha is given, or a norm of losses.
        """
        if self.mass is not None or self.norm is not None:
            return self.zero_certificate, 0.0
        rows = self._rows_at(np.zeros(self.rows.shape[0]))
        form = self.pointwise, self.intercept, self.scale
        return rows.proved(*form, not self.has_unit_margins)

    def upper_bound(self, c: Vector, f: "Sums", b: float) -> tuple[float, float]:
        """Upper bound P, and how much of it may be rounding."""
        slacks = f.slacks(self.signs, b, self.margins, self.q_rounding)
        plain, largest = self._losses_of(*slacks)
        losses = (1.0 + gamma_n(len(c) + 8)) * largest
        square, error = f.squared_norm(c)
        rest = 0.5 * (square + self._penalty_of(b))
        over = 0.5 * error + gamma_n(8) * abs(rest)
        return rest + over + losses, over + losses - plain

    def lower_bound(self, c: Vector, f: "Sums") -> tuple[float, float]:
        """Lower bound D, and how much it may lack by rounding."""
        alpha, off = self.signs * c, gamma_n(len(c) + 8)
        linear, squares = self.reach(alpha), self.squares(alpha)
        mass, size = float(alpha.sum()), self._size(alpha)
        total = abs(float(c.sum())) + off * mass
        square, error = f.squared_norm(c)
        rest = 0.5 * (square + self._penalty_of(total)) + squares
        cost, more = self._cost_of_sums(c, f)
        under = 0.5 * error + off * (size + abs(rest)) + more
        return linear - rest - cost - under, under

    def _cost_of_sums(self, c: Vector, f: "Sums") -> tuple[float, float]:
        """What it costs to make sums exact that are given, and how far off that is."""
        return self._cost_by_scores(c, f) if self.intercept == "free" else (0.0, 0.0)

    def _cost_by_scores(self, c: Vector, f: "Sums") -> tuple[float, float]:
        """What exact feasibility costs, and how far off that may be."""
        y, off = self.signs, gamma_n(len(c) + 8)
        total, low, error = twofold.dot(c, np.ones(len(c)), np.zeros(len(c)))
        alpha, heavy = y * c, y * total > 0.0
        slack = alpha * (self.margins - y * f.values)
        errors = alpha * (f.errors + np.abs(f.low))
        slope = float((np.abs(slack) + errors).sum()) * SLACK
        rounded = float(errors.sum()) * SLACK + off * (slope + self._size(alpha))
        mass = float(alpha[heavy].sum())
        part = Heavy(mass, off, float(slack[heavy].sum()), rounded)
        square = float((alpha * self._roots).sum()) ** 2
        whole = float(alpha.sum()), slope, square
        return rounding.repair_cost(abs(total), abs(low) + error, part, whole)

    def _penalty_of(self, b: float) -> float:
        return b * b if self.intercept == "penalized" else 0.0

    def squares(self, alpha: Vector) -> float:
        """The dual term of the loss: sum alpha^2 / (4 C), or 0."""
        return self.pointwise.dual_term(alpha, self.weights)

    def _exact(self, c: Vector) -> "Sums":
        """K c in float64."""
        J = np.flatnonzero(c)
        return Sums(*self.columns.bounded(np.arange(len(c)), J, c[J]))

    def _twofold(self, c: Vector, rows: Index | None = None) -> "Sums":
        """K c in twice the precision: for some rows, or for all."""
        J, rows = np.flatnonzero(c), np.arange(len(c)) if rows is None else rows
        return Sums(*self.columns.twofold(rows, J, c[J]))

    def primal(self, w: ArrayLike, b: float = 0.0) -> float:
        """Primal objective P of w = sum_j w_j phi(x_j) and b, in float64."""
        c = self.stack(w, b)[: self.rows.shape[0]]
        return self.values(c, self._exact(c).values, b).primal

    def dual(self, alpha: ArrayLike) -> float:
        """Dual objective D of the repaired ``alpha`` (m,), in float64."""
        state = self.dual_state(alpha)
        self.repair(state)
        c = self.signs * state.alpha
        return self.values(c, self._exact(c).values, 0.0).dual

    def evaluate(self, state: RowState, v: Vector) -> tuple[Certificate, Vector]:
        """Certificate of v and the feasible ``alpha`` of a row state; c = Y alpha."""
        bounds = self._bounds_by(self._exact, state, v)
        return bounds, self.signs * state.alpha

    def twofold_bounds(self, state: RowState, v: Vector) -> Certificate:
        """The certificate of an answer from scores in twice the precision."""
        return self._bounds_by(self._twofold, state, v)

    def slopes(self, v: Vector) -> tuple[RowState, Certificate]:
        """Row state with alpha = C L'(q - y (f + b)), and its `bounds` with v."""
        m = self.rows.shape[0]
        b = float(v[m]) if len(v) > m else 0.0
        t = self.margins - self.signs * (self._exact(v[:m]).values + b)
        state = self.state(alpha=self.weights * self.pointwise.slope(t))
        return state, self.bounds(state, v)

    def best_intercept(self, w: ArrayLike, b: float = 0.0) -> float:
        """The best b of w = sum_j w_j phi(x_j): see `Problem.best_intercept`."""
        v = self.stack(w, b)
        if self.intercept != "free":
            return self.split(v)[1]
        return self.intercept_for(self._exact(v[:-1]).values, v[:-1], b)

    def _bounds_by(self, scores: Any, state: RowState, v: Vector) -> Certificate:
        """Certificate of v and ``alpha`` by a function that makes the scores."""
        m = self.rows.shape[0]
        c, given = self.signs * state.alpha, v[:m]
        b = float(v[m]) if len(v) > m else 0.0
        f = scores(given)
        if not np.isfinite(f.values).all():
            return Certificate(np.inf, -np.inf)
        primal, over = self.upper_bound(given, f, b)
        dual, under = self.lower_bound(c, f if np.array_equal(c, given) else scores(c))
        return Certificate(primal, dual, self.scale, over + under)

    def repair(self, state: RowState, name: str = "alpha") -> None:
        """Make dual variables feasible: see `Problem.repair`. Rounding may stay."""
        alpha, y = getattr(state, name), self.signs
        clipped = self.pointwise.clipped(alpha, self.weights)
        excess = abs(float((y * clipped).sum())) if self.intercept == "free" else 0.0
        if np.array_equal(clipped, alpha) and excess <= BALANCED * float(clipped.sum()):
            return
        super().repair(state, name)

    # -- the answer --------------------------------------------------------------------

    def answer(
        self, alpha: Vector, v: Vector, tol: float
    ) -> tuple[Vector, Vector, float, Certificate]:
        """The answer of a dual point: w = sum alpha_i y_i phi(x_i), the best b.

        Scores are computed again in float64 where a row has alpha > 0, a loss, or could
        have one by the error that its kept score has at most. Other rows have none. In
        small problems all scores are computed again, and none where the gap is above
        0.01 and hardly any of it is rounding. Where rounding decides whether the gap is
        ``tol``: in twice the precision. Where a deadline has no time for that, what was
        proved before stands.
        """
        state = self.dual_state(alpha)
        self.repair(state)
        if self.columns.twins is not None:
            state.alpha = _with_exact_differences(state.alpha)
        c = self.signs * state.alpha
        scores, b, exact = self.scores_for(c, float(v[-1]), tol)
        sums = scores.sums()
        bounds = self.prove(c, sums, b)
        if exact and bounds.hides(tol):
            with contextlib.suppress(deadline.OutOfTime):
                near = np.flatnonzero(self._matters(c, sums, b))
                sums = sums.replaced(near, self._twofold(c, near))
                bounds = self.prove(c, sums, b)
        self._answered = None
        return self.gather(state), self.spread(c), b, bounds

    def scores_for(self, c: Vector, b: float, tol: float) -> tuple[Scores, float, bool]:
        """Scores K c, the best b, and whether scores that matter are exact."""
        scores = self.scores
        if scores is None or not np.array_equal(scores.c, c):
            scores = self._scores_of(c)
        self._answered = scores
        scores.settle()
        b = self.intercept_for(scores.values, c, b)
        exact = self.values(c, scores.values, b).is_within(max(COARSE, tol))
        # Of scores that a checkpoint knew nothing is proved: bounds would be infinite.
        is_known = bool(np.isfinite(scores.sums().errors).all())
        if exact or not is_known or self.prove(c, scores.sums(), b).hides(tol):
            self.refresh(scores, b)
            b = self.intercept_for(scores.values, c, b)
        return scores, b, exact

    def _scores_of(self, c: Vector) -> Scores:
        """Scores K c that nothing is known of.

        Of float32 first, as few rows may matter; but where the time may end, all rows
        at once in float64, which takes hardly longer.
        """
        if deadline.current() is None:
            return Scores(self.columns, c)
        scores = Scores(self.columns, np.zeros(len(c)))
        scores.forget(c)
        scores.refresh(np.arange(len(c)))
        return scores

    def rehearse(self, alpha: Vector) -> float:
        """Exact scores of some of the rows, for who wants to know how long all take.

        Returns
        -------
        float, the share of the rows
        """
        c = self.signs * (alpha if self.kept is None else alpha[self.kept])
        J, m = np.flatnonzero(c), self.columns.twins or len(c)
        rows = np.arange(0, m, PARTS)
        self.columns.bounded(rows, J, c[J])
        return len(rows) / m

    @property
    def scores_at_hand(self) -> Scores | None:
        """The scores of an answer that had no time, or of the current point of a run.

        None where the scores of some rows are left out, or not known.
        """
        for scores in (self._answered, self.scores):
            if scores is None or scores.current is not None:
                continue
            if np.isfinite(scores.sums().errors).all():
                return scores
        return None

    def answer_at_hand(
        self, scores: Scores
    ) -> tuple[Vector, Vector, float, Certificate]:
        """The point of some scores as an answer, with the bounds that they prove.

        These take vectors only, and no kernel value but the diagonal of a callable.
        """
        with deadline.without():
            state = self.state(alpha=np.abs(scores.c))
            self.repair(state)
        c, sums = self.signs * state.alpha, scores.sums()
        if not np.array_equal(c, scores.c):  # no value is above s_i s_j
            s = self.columns.value_bounds.s
            moved = SLACK * float((np.abs(c - scores.c) * s).sum())
            sums = sums._replace(errors=sums.errors + moved * s)
        b = self._intercept_at_hand(sums.values, c)
        return self.gather(state), self.spread(c), b, self.prove(c, sums, b)

    def _intercept_at_hand(self, f: Vector, c: Vector) -> float:
        """The best b for scores f, without a sweep."""
        if self.intercept != "free" or self.mass is not None or self.norm is not None:
            return self.intercept_for(f, c, 0.0)
        return self._rows_at(f).best_intercept(self.pointwise, 0.0)

    def _rows_at(self, f: Vector) -> ConstantRows:
        """The rows with the margins that scores f leave to a constant."""
        weights = np.broadcast_to(self.weights, len(f))
        return ConstantRows(self.signs, weights, self.margins - self.signs * f)

    def _matters(self, c: Vector, f: "Sums", b: float) -> Mask:
        """Rows with alpha > 0, or with a loss that is more than 0 perhaps."""
        safe = self.signs * (f.values + b) >= self.margins + f.errors  # false for NaN
        return np.asarray((c != 0) | ~safe)

    def refresh(self, scores: "Scores", b: float) -> None:
        """Exact scores for all rows that may have a loss, by bounds of their errors."""
        scores.settle()
        self._refresh(scores, self._matters(scores.c, scores.sums(), b))

    def refresh_near(self, scores: "Scores", b: float) -> None:
        """Exact scores for rows that have a loss, or nearly one: no proof yet."""
        scores.settle()
        near = self.signs * (scores.values + b) < self.margins + NEAR * self.unit
        self._refresh(scores, near | (scores.c != 0))

    def _refresh(self, scores: "Scores", rows: Mask) -> None:
        """Exact scores for these rows, or for all where that takes little."""
        count = max(1, int(np.count_nonzero(scores.c)))  # 0 times infinity is none
        work = float(len(scores.c)) * count * self.columns.cost
        rows = (rows | (work <= ALL_ROWS)) & ~scores.is_exact
        if self.columns.twins is not None:  # what one row has, the other has too
            rows = np.tile(np.logical_or(*np.split(rows, 2)), 2)
        error = scores.refresh(np.flatnonzero(rows))
        scores.refreshes, scores.error = scores.refreshes + 1, error

    @functools.cached_property
    def _roots(self) -> Vector:
        """Lengths sqrt k(x, x) of the rows."""
        return np.asarray(np.sqrt(np.abs(self.columns.diag())))

    def intercept_near(self, c: Vector, near: float) -> float:
        """The b of c: ``near`` where it is free, sum c where it is penalized."""
        if self.intercept == "penalized":
            return float(c.sum())
        return near if self.intercept == "free" else 0.0

    def intercept_for(self, f: Vector, c: Vector, near: float) -> float:
        """The best b for scores f, nearest to ``near``."""
        if self.intercept != "free":
            return self.intercept_near(c, near)
        return best_intercept(self.state(score=f), near, self.pointwise)


KINDS["kernel"] = KernelProblem


def _with_exact_differences(alpha: Vector) -> Vector:
    """Dual variables of both rows of each sample, whose differences predict.

    Of two that are not zero the smaller one is rounded to the last digit of the other.
    """
    larger = np.tile(np.maximum(*np.split(alpha, 2)), 2)
    return np.asarray((alpha + larger) - larger)
