"""The problem with a kernel: w is a sum of features, and products are kernel values.

    w = sum_j c_j phi(x_j),   x_i'w = (K c)_i,   |w|^2 = c'K c.

The dual point alpha has w = sum alpha_i y_i phi(x_i), so c = Y alpha, and with f = K c

    P = 1/2 c'f [+ 1/2 b^2] + sum_i C_i L(1 - y_i (f_i + b)),
    D = sum alpha - 1/2 c'f [- 1/2 b^2] [- sum alpha_i^2 / (4 C_i)],

b = sum c where it is penalized. Section 6 of the specification of IRWLS.
"""

import functools
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from widemargin.columns import Columns
from widemargin.data.memory import as_rows
from widemargin.data.rows import Rows
from widemargin.data.state import RowState, finite
from widemargin.intercept import best_intercept
from widemargin.kernel_blocks import padded
from widemargin.kernels import Kernel
from widemargin.model import Decision
from widemargin.parameters import Checker
from widemargin.problem import Problem
from widemargin.solution import Certificate

Vector = NDArray[np.float64]

# Margins that are this far above 1 need no exact score, at first; and how many times
# the largest error that was found they have to be. Not tuned.
NEAR, SAFE = 1e-3, 10.0
# So many rows far above that get exact scores too: errors are not looked for near the
# margin only. All rows, where that takes no more multiplications than these: 5 ms.
SAMPLE, ALL_ROWS = 256, 1e8
# A gap so large needs no exact scores: it only says that there is no answer yet.
COARSE = 1e-2
# Rounding of c'Kc, made in random order, as a multiple of sum_j c_j^2 k_jj: two and a
# half times the largest of 40 random problems (linear, poly, rbf; C to 1e7; data as far
# as 1e5 widths from zero), by long double.
ROUNDING = 8.0 * float(np.finfo(np.float64).eps)


class KernelProblem(Problem):
    """A support vector problem with a kernel: what `Problem` makes when it has one.

    Parameters
    ----------
    features : Rows, array or sparse matrix (m, n)
    y, C, loss, intercept : as of `Problem`
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
    core, about 1e9 a second for sparse rows; a certificate of the driver only those
    of rows that have a loss or could have: see `answer`.
    """

    couples = True

    def __init__(
        self,
        features: Rows | ArrayLike,
        y: ArrayLike,
        C: ArrayLike = 1.0,
        loss: str = "hinge",
        intercept: str = "auto",
        *,
        kernel: Any,
        memory_limit: int | None = None,
    ) -> None:
        check = Checker("Problem")
        if not isinstance(kernel, Kernel):
            check.refuse("kernel", "a Kernel or None", kernel)
        check.count("memory_limit", memory_limit, optional=True)
        rows = features if isinstance(features, Rows) else as_rows(features)
        super().__init__(rows, y, C, loss, intercept)
        n_jobs = rows.options.get("n_jobs")
        self.kernel = kernel.resolved(self.rows)
        if self.kept is None or kernel.name != "precomputed":
            self.columns = Columns(self.rows, self.kernel, memory_limit, n_jobs)
        else:
            whole = Columns(rows, self.kernel, memory_limit, n_jobs)
            self.columns = whole.select(self.kept)
        self.scores: Scores | None = None

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

    @property
    def signs(self) -> Vector:
        """Labels of the rows with C > 0, float64."""
        y = self.y if self.kept is None else self.y[self.kept]
        return y.astype(np.float64)

    @property
    def weights(self) -> Vector:
        """C of the rows with C > 0."""
        return self.C if self.kept is None else self.C[self.kept]

    @property
    def kernel_facts(self) -> dict[str, Any]:
        """Name and numbers of the kernel; a callable is known by its name only."""
        name = self.kernel.name
        named = name if isinstance(name, str) else getattr(name, "__qualname__", "?")
        facts = {"kernel": named, "gamma": float(self.kernel.gamma)}
        return facts | {"degree": self.kernel.degree, "coef0": float(self.kernel.coef0)}

    # -- objectives --------------------------------------------------------------------

    def expand(self, c: Vector) -> "Scores":
        """Scores K c that follow c; the problem knows them from then on."""
        self.scores = Scores(self.columns, c)
        return self.scores

    def values(self, c: Vector, f: Vector, b: float) -> Certificate:
        """P and D of (c, b) and alpha = Y c, given the scores f = K c."""
        # No products of BLAS: its threads cost more than these vectors are worth.
        y, C = self.signs, self.weights
        alpha, t = y * c, np.maximum(1.0 - y * (f + b), 0.0)
        square = self.squared_norm(c, f)
        losses = float((C * (t if self.loss == "hinge" else t * t)).sum())
        primal = 0.5 * (square + self._penalty_of(b)) + losses
        dual = 0.5 * (square + self._penalty_of(float(c.sum())))
        dual = float(alpha.sum()) - dual - self.squares(alpha)
        return Certificate(primal, dual, self._floor)

    def squared_norm(self, c: Vector, f: Vector) -> float:
        """The squared norm c'f, as large as rounding may have hidden.

        Coefficients of both signs cancel where C is large; without this the lower bound
        would prove too much.
        """
        sizes = c * self._roots
        return float((c * f).sum()) + ROUNDING * float((sizes * sizes).sum())

    def _penalty_of(self, b: float) -> float:
        return b * b if self.intercept == "penalized" else 0.0

    def squares(self, alpha: Vector) -> float:
        """Sum alpha^2 / (4 C), of the squared hinge."""
        if self.loss == "hinge":
            return 0.0
        return float((alpha * alpha / (4.0 * self.weights)).sum())

    def _exact(self, c: Vector) -> Vector:
        """K c in float64."""
        J = np.flatnonzero(c)
        return self.columns.exact(np.arange(len(c)), J, c[J])

    def primal(self, w: ArrayLike, b: float = 0.0) -> float:
        """Primal objective P of w = sum_j w_j phi(x_j) and b, in float64."""
        c = self.stack(w, b)[: self.rows.shape[0]]
        return self.values(c, self._exact(c), b).primal

    def dual(self, alpha: ArrayLike) -> float:
        """Dual objective D of the repaired ``alpha`` (m,), in float64."""
        state = self.dual_state(alpha)
        self.repair(state)
        c = self.signs * state.alpha
        return self.values(c, self._exact(c), 0.0).dual

    def certify(self, alpha: ArrayLike, w: ArrayLike, b: float = 0.0) -> Certificate:
        """Certificate of an answer: all kernel values it needs, anew in float64."""
        state = self.dual_state(alpha)
        self.repair(state)
        return self.bounds(state, self.stack(w, b))

    def evaluate(self, state: RowState, v: Vector) -> tuple[Certificate, Vector]:
        """Certificate of v and the feasible ``alpha`` of a row state; c = Y alpha."""
        m = self.rows.shape[0]
        c, given = self.signs * state.alpha, v[:m]
        b = float(v[m]) if len(v) > m else 0.0
        bounds = self.values(given, f := self._exact(given), b)
        if not np.array_equal(c, given):
            dual = self.values(c, self._exact(c), 0.0).dual
            bounds = Certificate(bounds.primal, dual, self._floor)
        elif not np.isfinite(f).all():
            bounds = Certificate(np.inf, -np.inf, self._floor)
        return bounds, c

    def repair(self, state: RowState, name: str = "alpha") -> None:
        """Make dual variables feasible: see `Problem.repair`. Rounding may stay."""
        alpha, y = getattr(state, name), self.signs
        clipped = np.clip(alpha, 0.0, self.weights if self.loss == "hinge" else None)
        excess = abs(float(y @ clipped)) if self.intercept == "free" else 0.0
        if np.array_equal(clipped, alpha) and excess <= 1e-13 * float(clipped.sum()):
            return
        super().repair(state, name)

    # -- the answer --------------------------------------------------------------------

    def answer(
        self, alpha: Vector, v: Vector, tol: float
    ) -> tuple[Vector, Vector, float, Certificate]:
        """The answer of a dual point: w = sum alpha_i y_i phi(x_i), the best b.

        Scores are exact (float64) where a row has alpha > 0, a loss, or a margin that
        is at most 1 + t times the length of the row (at least 1, the median): t is ten
        times the largest error per length that the others, which were kept current in
        float32, had where they are known, in a sample of all rows too, and 0.001 at the
        least. Rows beyond have no loss. The exact ones take the place of the others.
        Small problems get exact scores for all rows, and none get them where the gap is
        above 0.01.
        """
        state = self.dual_state(alpha)
        self.repair(state)
        c = self.signs * state.alpha
        scores = self.scores
        if scores is not None:
            scores.settle()
        if scores is None or not np.array_equal(scores.c, c):
            scores = Scores(self.columns, c)
        b = self.intercept_for(scores.values, c, float(v[-1]))
        if self.values(c, scores.values, b).relative_gap <= max(COARSE, tol):
            self.refresh(scores, b)
            b = self.intercept_for(scores.values, c, b)
        certificate = self.values(c, scores.values, b)
        return self.gather(state), self.spread(c), b, certificate

    def refresh(self, scores: "Scores", b: float) -> None:
        """Exact scores for all rows that may have a loss."""
        scores.settle()
        y, known = self.signs, np.zeros(len(scores.c), bool)
        width, largest, error = NEAR, 0.0, 0.0
        some = np.zeros(len(y), bool)
        step = max(1, len(y) // SAMPLE)
        count = max(1, int(np.count_nonzero(scores.c)))  # 0 times infinity is none
        work = float(len(y)) * count * self.columns.cost
        some[:: 1 if work <= ALL_ROWS else step] = True
        while True:
            near = some | (scores.c != 0)
            near |= y * (scores.values + b) < 1.0 + width * self._lengths
            rows = np.flatnonzero(near & ~known)
            errors = scores.refresh(rows)
            error = max(error, errors.max(initial=0.0))
            largest = max(largest, (errors / self._lengths[rows]).max(initial=0.0))
            known |= near
            if known.all() or SAFE * largest <= width:
                break
            width = 2.0 * SAFE * largest
        scores.refreshes, scores.error = scores.refreshes + 1, error

    @functools.cached_property
    def _roots(self) -> Vector:
        """Lengths sqrt k(x, x) of the rows."""
        return np.asarray(np.sqrt(np.abs(self.columns.diag())))

    @functools.cached_property
    def _lengths(self) -> Vector:
        """Lengths of the rows in units of the median one, at least 1.

        What rounding does to the score of a row grows with its length.
        """
        median = max(float(np.median(self._roots)), float(np.finfo(np.float64).tiny))
        return np.asarray(np.maximum(self._roots / median, 1.0))

    def intercept_near(self, c: Vector, near: float) -> float:
        """The b of c: ``near`` where it is free, that of w where it is penalized."""
        if self.intercept == "penalized":
            return float(c.sum())
        return near if self.intercept == "free" else 0.0

    def intercept_for(self, f: Vector, c: Vector, near: float) -> float:
        """The best b for scores f, nearest to ``near``."""
        if self.intercept != "free":
            return self.intercept_near(c, near)
        return best_intercept(self.state(score=f), near, self.loss)

    def recover(self, solution: Any) -> Decision:
        """The decision function of a solution: over all rows, see `Model`."""
        return Decision(solution.w, solution.b)


class Scores:
    """Scores f = K c that follow the coefficients c.

    Attributes
    ----------
    c : ndarray (m,)
    values : ndarray (m,), float64
    current : bool ndarray (m,) or None
        Rows whose scores follow c; None: those of all rows do.
    refreshes : int, how often some were computed in float64
    error : float, the largest error that they had then
    """

    def __init__(self, columns: Columns, c: Vector) -> None:
        self._columns = columns
        m = columns.shape[0]
        self.refreshes, self.error = 0, 0.0
        self.c = np.zeros(m)
        self.current: NDArray[np.bool_] | None = None
        self._all = np.zeros(padded(m))
        self.values = self._all[:m]
        # What is kept current: sums, and their rows if they are not all.
        self._sums = self._all
        self._rows: NDArray[np.intp] | None = None
        J = np.flatnonzero(c)
        if J.size:
            self.add(J, c[J])
            self.c[:] = c  # to the bit

    def add(self, J: NDArray[np.intp], change: Vector) -> None:
        """Add a change to c[J]; where that is interrupted, all is as it was."""
        before = self._sums.copy()
        try:
            self._columns.focus(self._rows)  # other scores may have looked elsewhere
            self._columns.add(J, change, self._sums)
        except BaseException:
            self._sums[:] = before
            raise
        self.c[J] += change
        if self._rows is not None:
            self.values[self._rows] = self._sums[: len(self._rows)]

    def focus(self, rows: NDArray[np.bool_]) -> None:
        """From now on keep only these rows' scores current; c is zero elsewhere."""
        index = np.flatnonzero(rows)
        sums = np.zeros(padded(len(index)))
        sums[: len(index)] = self.values[index]
        self._before = self.c.copy()
        self._sums, self._rows, self.current = sums, index, rows

    def settle(self) -> None:
        """Bring the scores of all rows up to date."""
        if self._rows is None:
            return
        sums = self._all.copy()
        J = np.flatnonzero(self.c != self._before)
        self._columns.focus(None)
        self._columns.add(J, self.c[J] - self._before[J], sums)
        sums[self._rows] = self._sums[: len(self._rows)]
        self._all[:] = sums
        self._sums, self._rows, self.current = self._all, None, None

    def scale(self, t: float) -> None:
        """Multiply c, and the scores with it."""
        self.c *= t
        self._sums *= t

    def refresh(self, rows: NDArray[np.intp]) -> Vector:
        """Compute some scores in float64; the errors that they had."""
        J = np.flatnonzero(self.c)
        exact = self._columns.exact(rows, J, self.c[J])
        errors = np.abs(exact - self.values[rows])
        self.values[rows] = exact
        return errors
