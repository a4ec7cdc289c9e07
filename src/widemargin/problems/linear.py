"""The one problem that every solver solves, and the certificate of an answer.

    minimise over v = (w, b)   P(v) = 1/2 (w'w + p b^2) + sum_i C_i L(1 - (A v)_i),

A = Y [X 1], L(t) = max(0, t) (hinge) or max(0, t)^2 (squared hinge); p = 0 for a free
intercept, p = 1 for a penalized one, and no column of ones without. With g = A'alpha
and R = diag(1, .., 1, p) its dual is

    maximise   D(alpha) = sum alpha - 1/2 g'R^-1 g [- sum alpha_i^2 / (4 C_i)]

over alpha >= 0, with alpha <= C for the hinge and y'alpha = 0 for a free intercept; the
term in brackets belongs to the squared hinge. D <= P always: a feasible pair proves how
far from optimal it can be.
"""

import functools
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from widemargin.data.blocks import Depth
from widemargin.data.memory import as_rows
from widemargin.data.rows import Rows
from widemargin.data.state import RowState, finite, read_only
from widemargin.losses.pointwise import LOSSES, PointwiseLoss
from widemargin.numerics import rounding, twofold
from widemargin.numerics.rounding import Heavy, gamma
from widemargin.numerics.twofold import Twofold
from widemargin.parameters import Checker
from widemargin.problems.intercept import best_intercept
from widemargin.problems.targets import check_targets, distinct
from widemargin.solution import Certificate

Vector = NDArray[np.float64]

INTERCEPTS = ("free", "penalized", "none", "auto")


class Problem:
    """A support vector problem: data, labels, weights, loss and intercept.

    Minimises 1/2 (w'w + p b^2) + sum_i C_i L(1 - y_i (x_i'w + b)), with L(t) =
    max(0, t) or max(0, t)^2; p = 0 (free intercept), 1 (penalized), or b = 0 (none).

    Parameters
    ----------
    features : Rows, or array or sparse matrix (m, n)
        The data, finite numbers.
    y : array (m,) of +1 and -1
        The labels; both must occur with positive C.
    C : float or array (m,), default=1.0
        Weight of the loss, for all rows or per row; finite, >= 0. A row with C = 0 is
        left out.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        The squared hinge has no factor 1/2, as in LIBLINEAR and scikit-learn.
    intercept : {"free", "penalized", "none", "auto"}, default="auto"
        "auto" is free for the hinge (LIBSVM's problem) and penalized for the squared
        hinge (LIBLINEAR's).
    kernel : Kernel or None, default=None
        With a kernel w is a sum of features, w = sum_j w_j phi(x_j), and x'w stands for
        sum_j w_j k(x, x_j): see `widemargin.problems.kernel.KernelProblem`, which this
        is then.
    memory_limit : int or None, in bytes
        For kernel values that are kept; None: half of the free memory.
    norm : LossNorm or None, default=None
        With a kernel: a norm of the losses in place of their sum, and then C is its
        factor, and ``sample_weight`` another keyword: see
        `widemargin.problems.norm.NormProblem`, which this is then.

    Attributes
    ----------
    rows : Rows
        The rows with C > 0.
    A : Rows
        View Y [X 1] of these rows (Y X without intercept).
    penalty : ndarray (k,)
        Diagonal of R: ones, and p for the intercept.
    shape : tuple (m, n) of all rows

    Raises
    ------
    ValueError
        Labels other than +1 and -1, one class only, a C that is negative, not finite or
        zero everywhere, NaN or infinity in the data, wrong lengths.

    Notes
    -----
    Reads the data once, to check it. Vectors of length m live beside the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import Problem, solve
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> problem = Problem(X, [-1, -1, 1, 1], C=10.0)
    >>> solution = solve(problem, tol=1e-8)
    >>> print(solution.status, solution.w.round(4), round(solution.b, 4))
    solved [2.] -3.0
    """

    couples = False  # whether v and alpha say the same
    norm: Any = None  # of the losses, in place of their sum

    def __new__(  # noqa: D102
        cls, *_: Any, kernel: Any = None, norm: Any = None, **__: Any
    ) -> "Problem":
        if cls is not Problem or (kernel is None and norm is None):
            return super().__new__(cls)
        if norm is not None:
            from widemargin.problems.norm import NormProblem

            return super().__new__(NormProblem)
        from widemargin.problems.kernel import KernelProblem

        return super().__new__(KernelProblem)

    def __init__(  # noqa: PLR0913  (options, by keyword)
        self,
        features: Rows | ArrayLike,
        y: ArrayLike,
        C: ArrayLike = 1.0,
        loss: str = "hinge",
        intercept: str = "auto",
        *,
        kernel: None = None,
        memory_limit: None = None,
        norm: None = None,
    ) -> None:
        check = Checker("Problem")
        if memory_limit is not None:
            check.refuse("memory_limit", "None without a kernel", memory_limit)
        check.choice("loss", loss, tuple(LOSSES))
        check.choice("intercept", intercept, INTERCEPTS)
        if intercept == "auto":
            intercept = "free" if loss == "hinge" else "penalized"
        rows = features if isinstance(features, Rows) else as_rows(features)
        self.shape = rows.shape
        self.loss, self.pointwise = loss, LOSSES[loss]
        self.intercept = intercept
        y, C = check_targets(y, C, rows.shape[0])
        self.kept = None if np.all(distinct(C) > 0) else C > 0
        self.y: NDArray[Any] = np.array(y, dtype=np.int8)  # there may be very many
        self.C = C if C.strides == (0,) else C.copy()
        self._total = float(self.C.sum())
        if (more := 8 * (len(distinct(self.C)) > 1) + 32 * (self.kept is not None)) > 0:
            rows.reserve(more * rows.shape[0], "weights of the rows", self)
        self.view(rows if self.kept is None else rows.select(self.kept))
        self.rows.moments  # noqa: B018  (refuses NaN and infinity)

    def view(self, rows: Rows) -> None:
        """Make these the kept rows, and fold labels and intercept into them."""
        kept = slice(None) if self.kept is None else self.kept
        self.rows = rows
        self.A = rows.signed(read_only(self.y)[kept], self.intercept != "none")
        self._state = self.A.labels.join(self.A.state(C=self.C[kept]))
        if self.kept is None and rows.is_in_memory:  # the same vectors, by reference
            self.y, self.C = read_only(self._state.labels), read_only(self._state.C)
        self.penalty = np.ones(self.A.shape[1])
        if self.intercept == "free":
            self.penalty[-1] = 0.0

    def state(self, **vectors: Any) -> RowState:
        """Row vectors of the kept rows, beside their ``C`` and ``labels``."""
        return self._state.join(self.A.state(**vectors))

    def dual_state(self, alpha: ArrayLike) -> RowState:
        """Row state with ``alpha``, from a vector over all rows (m,) or a number."""
        if np.ndim(alpha) == 0:
            return self.state(alpha=alpha)
        alpha = finite("alpha", alpha, self.shape[0])
        return self.state(alpha=alpha if self.kept is None else alpha[self.kept])

    def slopes(self, v: Vector) -> tuple[RowState, Certificate]:
        """Row state with alpha_i = C_i L'(1 - (A v)_i), and its `bounds` with v.

        One sweep. For the squared hinge: (9) in [mangasarian2001]_.
        """
        state = self.state(alpha=0.0)
        losses, sums = self.A.sweep(_slopes, state, v, self.pointwise)
        return state, self._bounds(v, losses, sums)

    def gather(self, state: RowState) -> Vector:
        """The ``alpha`` of a row state, over all rows: (m,), by reference if it can."""
        alpha = state.alpha
        if not alpha.flags.writeable:  # a copy already, but for that of a view
            alpha = alpha if alpha.base is None else alpha.copy()
            alpha.flags.writeable = True
        return self.spread(alpha)

    def spread(self, alpha: Vector) -> Vector:
        """Dual variables of the kept rows over all rows, (m,): zero where C is."""
        if self.kept is None:
            return alpha
        whole = np.zeros(self.shape[0])
        whole[self.kept] = alpha
        return whole

    def split(self, v: Vector) -> tuple[Vector, float]:
        """The pair (w, b) of v."""
        if self.intercept == "none":
            return v.copy(), 0.0
        return v[:-1].copy(), float(v[-1])

    def stack(self, w: ArrayLike, b: float = 0.0) -> Vector:
        """The vector v of (w, b)."""
        w = finite("w", np.ravel(w), self.rows.shape[1])
        if self.intercept == "none":
            return w.copy()
        return np.append(w, finite("b", np.ravel(b), 1))

    # -- objectives and certificate ----------------------------------------------------

    @property
    def order(self) -> int:
        """Length of v."""
        return self.A.shape[1]

    @property
    def zero_objective(self) -> float:
        """Objective of v = 0, which is sum C."""
        return self._total

    @property
    def kernel_facts(self) -> dict[str, Any]:
        """What tells its kernel from others: nothing where there is none."""
        return {}

    @property
    def is_bounded(self) -> bool:
        """Whether alpha_i <= C_i."""
        return self.pointwise.is_bounded

    @property
    def kappa(self) -> float:
        """Mean C times mean |z|^2 of the rows z of A: how far from v = 0 they pull.

        The mean of C |z|^2 where all weights are equal. By the moments of the rows,
        which a sweep finds once.
        """
        mean, std = self.rows.moments
        square = float(np.sum(mean * mean + std * std)) + (self.intercept != "none")
        return self.zero_objective / self.rows.shape[0] * square

    def primal(self, w: ArrayLike, b: float = 0.0) -> float:
        """Primal objective P(w, b). One sweep."""
        v = self.stack(w, b)
        losses = self.A.sweep(_losses, self._state, v, self.pointwise)
        return self._ridge(v) + float(losses)

    def dual(self, alpha: ArrayLike) -> float:
        """Dual objective D of the repaired ``alpha`` (m,): at most P. One sweep."""
        state = self.dual_state(alpha)
        self.repair(state)
        return self._dual_value(*self.A.sweep(_dual_sums, state))

    def certify(
        self, alpha: ArrayLike, w: ArrayLike, b: float = 0.0, *, tol: float = 0.0
    ) -> Certificate:
        """Certificate of an answer: bounds of the optimum that rounding cannot break.

        Parameters
        ----------
        alpha : ndarray (m,)
            Dual variables; a copy is made feasible first (`repair`).
        w : ndarray (n,)
        b : float, ignored without intercept
        tol : float >= 0, default=0.0
            Where float64 can tell neither that the relative gap is above this nor that
            it is not, all is computed again in twice the precision.

        Returns
        -------
        Certificate

        Notes
        -----
        One sweep, and mostly no second one, which takes about ten times as long.
        """
        state = self.dual_state(alpha)
        self.repair(state)
        v = self.stack(w, b)
        bounds = self.bounds(state, v)
        return self._twofold_bounds(state, v) if bounds.hides(tol) else bounds

    def bounds(self, state: RowState, v: Vector) -> Certificate:
        """Certificate of v and the feasible ``alpha`` of a row state. One sweep."""
        return self.evaluate(state, v)[0]

    def evaluate(self, state: RowState, v: Vector) -> tuple[Certificate, Vector]:
        """Certificate of v and the feasible ``alpha``, and A'alpha. One sweep."""
        losses, sums = self.A.sweep(_both_sums, state, v, self.pointwise)
        return self._bounds(v, losses, sums), sums[0]

    def _bounds(self, v: Vector, losses: float, sums: "DualSums") -> Certificate:
        """Bounds from float64 sums, by what these may be off."""
        g, linear, squares, depth = sums
        spread = gamma(len(v) + 2) * float(np.abs(v) @ self._sizes)
        over = self.pointwise.excess(self._weights, losses, spread)
        length = self._weights.length(linear, squares)
        error = gamma(depth.additions + 3) * length * self._sizes
        return self._certificate(v, losses, over, sums, error)

    def _certificate(
        self,
        v: Vector,
        losses: float,
        over: float,
        sums: "DualSums",
        error: Vector,
        positive: Vector | None = None,
    ) -> Certificate:
        """Bounds, with errors of the losses and of g = A'alpha beside those of sums.

        ``positive`` is the part of g that the rows of the class +1 make, in float64.
        """
        g, linear, squares, depth = sums
        off = gamma(depth.additions + 5) * rounding.SLACK
        ridge, squares = self._ridge(v), squares * self.pointwise.dual_share
        over += off * losses + gamma(len(v) + 2) * ridge
        under = rounding.dual_error(g, error, self.penalty) + off * (linear + squares)
        primal, dual = ridge + losses, self._dual_value(*sums)
        if self.intercept == "free":
            cost, more = self._cost_by_sums(sums, error, positive)
            dual, under = dual - cost, under + more
        return Certificate(primal + over, dual - under, rounding=over + under)

    def _cost_by_sums(
        self, sums: "DualSums", error: Vector, positive: Vector | None
    ) -> tuple[float, float]:
        """What exact feasibility costs, and how far off that may be."""
        g, linear, squares, depth = sums
        length = self._weights.length(linear, squares)
        sizes, w = self._sizes[:-1], np.abs(g[:-1]) + error[:-1]
        slope = linear + length * float(w @ sizes)
        whole = linear, slope, length**2 * float(sizes @ sizes)
        residual, off = abs(float(g[-1])), float(error[-1])
        if positive is None:
            return 0.0, rounding.repair_error(residual + off, *whole)
        part = positive if g[-1] > 0.0 else g - positive
        mass, share = abs(float(part[-1])), gamma(depth.additions + len(g) + 8)
        rounded = 2.0 * share * slope + length * float(error[:-1] @ sizes)
        heavy = Heavy(mass, share, mass - float(g[:-1] @ part[:-1]), rounded)
        return rounding.repair_cost(residual, off, heavy, whole)

    def _twofold_bounds(self, state: RowState, v: Vector) -> Certificate:
        """Bounds from sums in twice the precision. One sweep."""
        state = state.join(self.A.state())
        losses, g, positive, (linear, squares, depth) = self.A.sweep(
            _twofold_sums, state, v, self.pointwise
        )
        sums = g.hi, linear, squares, depth
        error = g.error(depth.additions + len(v))
        return self._certificate(v, losses, 0.0, sums, error, positive)

    @functools.cached_property
    def _sizes(self) -> Vector:
        """Lengths of the columns of A."""
        has = self.intercept != "none"
        return rounding.column_sizes(*self.rows.moments, self.rows.shape[0], has)

    @functools.cached_property
    def _weights(self) -> rounding.Weights:
        return rounding.Weights(float(self.C.max()), self.zero_objective)

    def answer(
        self, alpha: Vector, v: Vector, tol: float
    ) -> tuple[Vector, Vector, float, Certificate]:
        """The best answer (alpha, w, b) near a point, with its certificate."""
        state = self.dual_state(alpha)
        v, bounds = self.finish(state, v, tol)
        alpha = self.gather(state)
        w, b = self.split(v)
        if self.intercept == "free":  # `repair` is not idempotent, by rounding
            bounds = self.certify(alpha, w, b, tol=tol)
        elif bounds.hides(tol):
            bounds = self._twofold_bounds(state, v)
        return alpha, w, b, bounds

    def finish(
        self, state: RowState, v: Vector, tol: float
    ) -> tuple[Vector, Certificate]:
        """Best answer near (v, alpha): ``alpha`` feasible, in place; best intercept.

        With its certificate, by the sums that were made of just these v and alpha.

        Rows that do not matter are no support vectors: preferred are the dual variables
        rounded to the bounds that the margins suggest, then those cleared of what is
        tiny, where their gap is within ``tol``, or no larger than that of ``alpha``.
        Where ``tol`` is missed, w = X'Y alpha is tried too. Two sweeps to four.
        """
        state = state.join(self.A.state(score=0.0, sparser=0.0))
        self.repair(state)
        sums = self.A.sweep(_scores_and_sums, state, self._without_intercept(v))
        v = self._with_best_intercept(state, v)
        losses = self._scored_losses(state, v)
        bounds = self._bounds(v, losses, sums)
        enough = min(bounds.dual, bounds.primal - tol * abs(bounds.primal))
        for rule in (_round_to_margins, _clear):
            state.sweep(rule, self.split(v)[1], self.pointwise)
            self.repair(state, "sparser")
            other = self.A.sweep(_sums_of, state, "sparser")
            found = self._bounds(v, losses, other)
            if found.dual >= enough:
                state.sweep(_copy, "sparser", "alpha")
                sums, bounds = other, found
                break
        if not bounds.relative_gap <= tol:
            dual = np.where(self.penalty > 0, sums[0], v)
            self.A.sweep(_scores, state, self._without_intercept(dual))
            dual = self._with_best_intercept(state, dual)
            other = self._bounds(dual, self._scored_losses(state, dual), sums)
            if other.primal < bounds.primal:
                v, bounds = dual, other
        return v, bounds

    def _ridge(self, v: Vector) -> float:
        """1/2 v'Rv."""
        return 0.5 * float(self.penalty @ (v * v))

    def _dual_value(
        self, g: Vector, linear: float, squares: float, _: Depth | None = None
    ) -> float:
        """Dual objective from g = A'alpha, sum alpha and sum alpha^2 / (4 C)."""
        quadratic = 0.5 * float(self.penalty @ (g * g))  # R^-1 = R: entries are 0 or 1
        return float(linear) - quadratic - self.pointwise.dual_share * float(squares)

    def repair(self, state: RowState, name: str = "alpha") -> None:
        """Make dual variables feasible, in place. No read of the data.

        Clips to the bounds and, for a free intercept, scales the heavier class down to
        y'alpha = 0: those of its variables that are free, if they suffice, else all.
        """
        state.sweep(_clip, name, self.pointwise)
        if self.intercept != "free":
            return
        sums, free = state.sweep(_class_sums, name)
        heavy = int(sums[1] > sums[0])
        excess = sums[heavy] - sums[1 - heavy]
        only_free = bool(free[heavy] > excess)
        mass = free[heavy] if only_free else sums[heavy]
        if excess > 0:
            state.sweep(_scale_class, name, heavy, 1.0 - excess / mass, only_free)

    def best_intercept(self, w: ArrayLike, b: float = 0.0) -> float:
        """The free intercept that minimises P for w, nearest to b; b if it is not free.

        For the hinge the slope of P in b rises by C_i at b = y_i - x_i'w, from minus
        the C of the positive class: an exact weighted selection. For the squared hinge
        the slope is piecewise linear, and Newton's method ends after finitely many
        steps.
        One sweep.
        """
        v, state = self.stack(w, b), self.state(score=0.0)
        self.A.sweep(_scores, state, self._without_intercept(v))
        return self.split(self._with_best_intercept(state, v))[1]

    def _without_intercept(self, v: Vector) -> Vector:
        """V with b = 0, whose product with A is ``score`` by the labels."""
        return v if self.intercept == "none" else np.append(v[:-1], 0.0)

    def _with_best_intercept(self, state: RowState, v: Vector) -> Vector:
        """V with the best intercept for the ``score`` x'w."""
        if self.intercept != "free":
            return v
        return np.append(v[:-1], best_intercept(state, float(v[-1]), self.pointwise))

    def _scored_losses(self, state: RowState, v: Vector) -> float:
        """Sum C L from the ``score`` x'w."""
        return float(state.sweep(_scored_losses, self.split(v)[1], self.pointwise))


# -- functions of one block ------------------------------------------------------------


def _losses(block: Any, part: RowState, v: Vector, loss: PointwiseLoss) -> float:
    return loss.total(part.C, 1.0 - block @ v)


def _scored_losses(part: RowState, b: float, loss: PointwiseLoss) -> float:
    """Sum C L of rows, from their ``score`` without the intercept b."""
    return loss.total(part.C, 1.0 - part.labels * (part.score + b))


# A'alpha, sum alpha, sum alpha^2 / (4 C), and how they were added up.
DualSums = tuple[Vector, float, float, Depth]


def _dual_sums(block: Any, part: RowState) -> DualSums:
    return _sums_of(block, part, "alpha")


def _sums_of(block: Any, part: RowState, name: str) -> DualSums:
    return np.asarray(block.T @ getattr(part, name)), *_scalar_sums(part, name)


def _scalar_sums(part: RowState, name: str) -> tuple[float, float, Depth]:
    alpha = getattr(part, name)
    squares = 0.25 * float(alpha @ (alpha / part.C))
    return float(alpha.sum()), squares, Depth(len(alpha))


def _both_sums(
    block: Any, part: RowState, v: Vector, loss: PointwiseLoss
) -> tuple[float, DualSums]:
    return _losses(block, part, v, loss), _dual_sums(block, part)


def _twofold_sums(
    block: Any, part: RowState, v: Vector, loss: PointwiseLoss
) -> tuple[float, Twofold, Vector, tuple[float, float, Depth]]:
    """The same in twice the precision, and losses that no error makes too small.

    And the part of A'alpha that the class +1 makes, in float64.
    """
    hi, lo, size = twofold.matvec(block, v)
    t = twofold.slacks(hi, lo, twofold.bound(size, len(v) + 1))[1]
    g = Twofold(*np.zeros((3, len(v))))
    twofold.rmatvec(block, part.alpha, g.hi, g.lo, g.size)
    positive = np.asarray(block.T @ (part.alpha * (part.labels > 0)))
    sums = _scalar_sums(part, "alpha")
    return loss.total(part.C, t), g, positive, sums


def _slopes(
    block: Any, part: RowState, v: Vector, loss: PointwiseLoss
) -> tuple[float, DualSums]:
    t = 1.0 - block @ v
    part.alpha = part.C * loss.slope(t)
    return loss.total(part.C, t), _dual_sums(block, part)


def _scores(block: Any, part: RowState, w: Vector) -> None:
    part.score = part.labels * (block @ w)


def _scores_and_sums(block: Any, part: RowState, w: Vector) -> DualSums:
    _scores(block, part, w)
    return _dual_sums(block, part)


def _clip(part: RowState, name: str, loss: PointwiseLoss) -> None:
    setattr(part, name, loss.clipped(getattr(part, name), part.C))


def _class_sums(part: RowState, name: str) -> tuple[Vector, Vector]:
    """Sums over the classes -1 and +1, of all dual variables and of the free ones."""
    alpha, label = getattr(part, name), (part.labels > 0).astype(np.intp)
    sums = (np.bincount(label, a, 2) for a in (alpha, alpha * (alpha < part.C)))
    all_rows, free_rows = (a.astype(np.float64) for a in sums)
    return all_rows, free_rows


def _scale_class(
    part: RowState, name: str, heavy: int, factor: float, only_free: bool
) -> None:
    alpha = getattr(part, name)
    chosen = (part.labels > 0) == bool(heavy)
    if only_free:
        chosen &= alpha < part.C
    alpha[chosen] *= factor


def _round_to_margins(part: RowState, b: float, loss: PointwiseLoss) -> None:
    """Alpha_i = 0 where s_i > alpha_i / C_i, and C_i where xi_i > 1 - alpha_i / C_i."""
    slack, share = _slack_and_share(part, b, loss)
    rounded = np.where(slack > share, 0.0, part.alpha)
    part.sparser = (
        np.where(-slack > 1.0 - share, part.C, rounded) if loss.is_bounded else rounded
    )


def _clear(part: RowState, b: float, loss: PointwiseLoss) -> None:
    """Zero only where s_i > 100 alpha_i / C_i (hinge).

    In between it is open on which side the row ends, and rounding many such rows can
    cost the gap.
    """
    slack, share = _slack_and_share(part, b, loss)
    part.sparser = np.where(slack > 100.0 * share, 0.0, part.alpha)


def _slack_and_share(
    part: RowState, b: float, loss: PointwiseLoss
) -> tuple[Vector, Vector]:
    """Y (x'w + b) - 1, and alpha / C, or half of it for the squared hinge."""
    slack = part.labels * (part.score + b) - 1.0
    return slack, loss.share(part.alpha, part.C)


def _copy(part: RowState, source: str, target: str) -> None:
    setattr(part, target, getattr(part, source))
