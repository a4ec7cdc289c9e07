"""The one problem that every solver solves: data, targets, loss, intercept.

    minimize over v = (w, b)   P(v) = 1/2 (w'w + p b^2) + sum_i C_i L(q_i - (A v)_i),

A = Y [X 1], L a loss of `widemargin.losses.pointwise`; p = 0 for a free intercept, p =
1 for a penalized one, and no column of ones without. With g = A'alpha and R = diag(1,
.., 1, p) its dual is

    maximize   D(alpha) = q'alpha - 1/2 g'R^-1 g [- sum alpha_i^2 / (4 C_i)]

over alpha >= 0, with alpha <= C for the hinge and y'alpha = 0 for a free intercept; the
term in brackets belongs to the squared hinge. D <= P always: a feasible pair proves how
far from optimal it can be.

Classification has q = 1. A regression has two rows for each sample, of the labels +1
and -1, with q = label * target - epsilon: see `widemargin.problems.regression`.

What holds for every kind of problem is here; how its objectives are computed and proved
is in a module of each kind, which enters it in `KINDS`.
"""

import copy
import functools
import zlib
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from widemargin.arrays import Mask, Vector
from widemargin.data.memory import as_rows
from widemargin.data.row_vector import RowVector
from widemargin.data.rows import Rows
from widemargin.data.state import RowState, finite, read_only
from widemargin.losses.pointwise import LOSSES, PointwiseLoss
from widemargin.numerics.rounding import at_zero
from widemargin.parameters import Checker, in_one_line
from widemargin.problems.targets import (
    as_margins,
    as_targets,
    has_infinity,
    unrepeated,
)
from widemargin.solution import Certificate
from widemargin.system.threads import ONE_BLAS_THREAD

INTERCEPTS = ("free", "penalized", "none", "auto")

# Where q is not 1, |P| counts as at least this share of the objective of v = 0, and as
# no less than the second number: sums of float64 leave 1e-16 of that objective for each
# of up to a million rows, and quotients by the second number are finite.
FLOOR, LEAST_FLOOR = 1e-10, 1e-200
# What is found once, and by the margins and C.
CACHED = ("zero_objective", "_weights")
# What a problem is: "hard" where C is infinite, and by "norm", "kernel" and "mass".
KINDS: dict[str, type["Problem"]] = {}


class Problem:
    """A support vector problem: data, labels, weights, loss and intercept.

    Minimizes 1/2 (w'w + p b^2) + sum_i C_i L(q_i - y_i (x_i'w + b)), with L(t) =
    max(0, t) or max(0, t)^2; p = 0 (free intercept), 1 (penalized), or b = 0 (none).

    Parameters
    ----------
    features : Rows, or array or sparse matrix (m, n)
        The data, finite numbers. Without a kernel an array of many zeros is copied to
        CSR rows, and a sparse matrix of few zeros to an array, where memory has room:
        sweeps take less time. Rows are used as they are.
    y : array (m,) of +1 and -1
        The labels; both must occur with positive C.
    C : float or array (m,), default=1.0
        Weight of the loss, for all rows or per row; >= 0. A row with C = 0 is left
        out. With inf no loss is allowed; all others have to be inf or 0 then. The
        problem is then a `widemargin.problems.hard.HardProblem`.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        The squared hinge has no factor 1/2, as in LIBLINEAR and scikit-learn.
    intercept : {"free", "penalized", "none", "auto"}, default="auto"
        "auto" is free for the hinge (LIBSVM's problem) and penalized for the squared
        hinge (LIBLINEAR's).
    q : float or array (m,), default=1.0
        What y_i (x_i'w + b) has to reach for a row to have no loss: 1 in
        classification. Finite.
    kernel : Kernel or None, default=None
        With a kernel w is a sum of features, w = sum_j w_j phi(x_j), and x'w stands for
        sum_j w_j k(x, x_j). The problem is then a
        `widemargin.problems.kernel.KernelProblem`.
    memory_limit : int or None, in bytes
        For kernel values that are kept; None: half of the free memory.
    norm : LossNorm or None, default=None
        With a kernel: a norm of the losses instead of their sum. C is its factor then,
        and ``sample_weight`` another keyword. The problem is then a
        `widemargin.problems.norm.NormProblem`.
    mass : float or None, default=None
        With a kernel: what the sum of the dual variables has to be. The problem is then
        a `widemargin.problems.mass.MassProblem`.

    Attributes
    ----------
    rows : Rows
        The rows with C > 0.
    A : Rows
        View Y [X 1] of these rows (Y X without intercept).
    R : ndarray (k,)
        The diagonal of R: ones, and p for the intercept.
    shape : tuple (m, n) of all rows
    has_equal_weights : bool, whether C was given as one number for all rows
    scale : float
        Floor of ``|P|`` in relative gaps: 1e-10 of the objective of v = 0, where q is
        not 1 and the optimum may be zero; with a mass and q = 0, 1e-10 of the largest
        mass^2 k(x, x); else 0.
    q_rounding : float, default=0.0
        How far off q may be, as a share of itself: regressions round y - epsilon.

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
    mass: Any = None  # what the sum of alpha has to be
    proved_rho = 0.0  # the rho that the last upper bound is of, where there is a mass
    needed_labels: tuple[int, ...] = (1, -1)
    _column_sizes: Vector | None = None  # of A, once they are asked for
    q_rounding: float = 0.0

    def __new__(  # noqa: D102
        cls,
        *given: Any,
        C: Any = 1.0,
        kernel: Any = None,
        norm: Any = None,
        mass: Any = None,
        **__: Any,
    ) -> "Problem":
        kind = "linear" if kernel is None else "kernel"
        if has_infinity(given[2] if len(given) > 2 else C):
            kind = "hard"
        kind = kind if norm is None else "norm"
        kind = kind if mass is None else "mass"
        return super().__new__(KINDS[kind] if cls is Problem else cls)

    def __init__(  # noqa: PLR0913  (options, by keyword)
        self,
        features: Rows | ArrayLike,
        y: ArrayLike,
        C: ArrayLike = 1.0,
        loss: str = "hinge",
        intercept: str = "auto",
        *,
        q: ArrayLike = 1.0,
        kernel: Any = None,
        memory_limit: int | None = None,
        norm: Any = None,
        mass: Any = None,
    ) -> None:
        check = Checker("Problem")
        if memory_limit is not None:
            check.refuse("memory_limit", "None without a kernel", memory_limit)
        check.choice("loss", loss, tuple(LOSSES))
        check.choice("intercept", intercept, INTERCEPTS)
        intercept = LOSSES[loss].intercept if intercept == "auto" else intercept
        rows = features if isinstance(features, Rows) else self._rows_of(features)
        self.shape = rows.shape
        self.loss, self.pointwise = loss, LOSSES[loss]
        self.intercept = intercept
        labels, weights = as_targets(y, C, rows.shape[0], self.needed_labels)
        there = isinstance(labels, RowVector)  # beside the rows
        self.kept: Mask | None = None
        if not (there or np.all(unrepeated(weights) > 0)):
            self.kept = weights > 0
        # There may be very many.
        self.y: Any = labels if there else np.array(labels, dtype=np.int8)
        self.C: Vector = weights if weights.strides == (0,) else weights.copy()
        self.has_equal_weights = len(unrepeated(self.C)) == 1
        self._total = float(self.C.sum())
        self.q: Vector = as_margins(q, self.C, self.pointwise)
        more = 8 * (len(unrepeated(self.C)) > 1) + 32 * (self.kept is not None)
        more += 0 if self.has_unit_margins else 16
        if more > 0:
            rows.reserve(more * rows.shape[0], "weights of the rows", self)
        self.view(rows if self.kept is None else rows.select(self.kept))
        self.rows.check_finite()

    def _rows_of(self, features: ArrayLike) -> Rows:
        """The rows of data in memory."""
        return as_rows(features)

    def view(self, rows: Rows) -> None:
        """Make these the kept rows, and fold labels and intercept into them."""
        kept = slice(None) if self.kept is None else self.kept
        self.rows, self._column_sizes = rows, None
        y = self.y if isinstance(self.y, RowVector) else read_only(self.y)[kept]
        self.A = rows.signed(y, self.intercept != "none")
        vectors = {"C": self.C[kept]}
        if not self.has_unit_margins:
            vectors["q"] = self.q[kept]
        self._state = self.A.labels.join(self.A.state(**vectors))
        if self.kept is None and rows.is_in_memory:  # the same vectors, by reference
            self.y, self.C = read_only(self._state.labels), read_only(self._state.C)
        self.R = np.ones(self.A.shape[1])
        if self.intercept == "free":
            self.R[-1] = 0.0

    def with_margins(self, q: Vector, unit: float) -> Self:
        """The problem with margins ``q`` and, where alpha is bounded, C / unit.

        It has no rows until it is given some by `view`.
        """
        other = copy.copy(self)
        for name in CACHED:
            vars(other).pop(name, None)
        other.q = q
        if self.is_bounded:
            C: Any = unrepeated(self.C) / unit
            there = isinstance(C, RowVector)
            other.C = C if there else np.broadcast_to(C, self.C.shape)
            other._total = self._total / unit
        return other

    def state(self, **vectors: Any) -> RowState:
        """Row vectors of the kept rows, beside their ``C`` and ``labels``."""
        return self._state.join(self.A.state(**vectors))

    def dual_state(self, alpha: ArrayLike) -> RowState:
        """Row state with ``alpha``, from a vector over all rows (m,) or a number."""
        if np.ndim(alpha) == 0:
            return self.state(alpha=alpha)
        if isinstance(alpha, RowVector):
            return self.state(alpha=alpha)
        alpha = finite("alpha", alpha, self.shape[0])
        return self.state(alpha=alpha if self.kept is None else alpha[self.kept])

    def gather(self, state: RowState) -> Any:
        """The ``alpha`` of a row state, over all rows: (m,), by reference if it can.

        A `RowVector` where the rows are elsewhere.
        """
        alpha: Any = state.alpha
        if isinstance(alpha, RowVector):
            return alpha
        if not alpha.flags.writeable:  # a copy already, except from a view
            alpha = alpha if alpha.base is None else alpha.copy()
            alpha.flags.writeable = True
        return self.spread(alpha)

    def zeros(self) -> Any:
        """The dual variables zero."""
        if isinstance(self.y, RowVector):
            return self.gather(self.state(alpha=0.0))
        return np.zeros(self.shape[0])

    def count_at_bound(self, alpha: Any) -> int:
        """How many dual variables are at C."""
        if isinstance(alpha, RowVector):
            return int(self.dual_state(alpha).sweep(_count_at_bound))
        return int(np.count_nonzero((alpha > 0) & (alpha >= self.C)))

    def spread(self, alpha: Vector) -> Vector:
        """Dual variables of the kept rows over all rows, (m,): zero where C is."""
        if self.kept is None:
            return alpha
        whole = np.zeros(self.shape[0])
        whole[self.kept] = alpha
        return whole

    # -- what a problem is asked -------------------------------------------------------

    @property
    def order(self) -> int:
        """Length of v."""
        raise NotImplementedError

    def split(self, v: Vector) -> tuple[Vector, float]:
        """The pair (w, b) of v."""
        raise NotImplementedError

    def stack(self, w: ArrayLike, b: float = 0.0) -> Vector:
        """The vector v of (w, b)."""
        raise NotImplementedError

    @property
    def has_unit_margins(self) -> bool:
        """Whether q = 1, as in classification."""
        return self.q.strides == (0,) and bool(self.q[0] == 1.0)

    @property
    def total_weight(self) -> float:
        """The sum of C."""
        return self._total

    @functools.cached_property
    def zero_objective(self) -> float:
        """Objective of v = 0, which is sum C where q = 1."""
        if self.has_unit_margins:
            return self._total
        if isinstance(self.q, RowVector):
            return float(self._state.sweep(_zero_losses, self.pointwise))
        return float((self.C * self.pointwise.value(self.q)).sum())

    @property
    def zero_dual(self) -> float:
        """Dual objective of alpha = 0."""
        return 0.0

    @property
    def zero_certificate(self) -> Certificate:
        """The bounds that v = 0 and alpha = 0 prove, which take no look at the data."""
        primal = at_zero(self.zero_objective, self.shape[0])
        return Certificate(primal, self.zero_dual, self.scale)

    @property
    def scale(self) -> float:
        """Floor of ``|P|`` in relative gaps, where the optimum may be zero."""
        if self.has_unit_margins:
            return 0.0
        return max(FLOOR * self.zero_objective, LEAST_FLOOR)

    def __repr__(self) -> str:
        facts = {"shape": self.shape, "loss": self.loss, "intercept": self.intercept}
        return in_one_line(self, **facts)

    @property
    def facts(self) -> dict[str, Any]:
        """What tells it from other problems, without another read of the data."""
        mean, std = self.rows.moments
        m, n = self.rows.shape
        facts = {
            "rows": m,
            "columns": n,
            "loss": self.loss,
            "intercept": self.intercept,
            "total C": self.total_weight,
            "positive rows": int(m + self.y.sum(dtype=np.int64)) // 2,
            "checksum of the labels": _checksum(self.y),
            "checksum of C": _checksum(unrepeated(self.C)),
            "size of the columns": float(np.sqrt(np.sum(mean * mean + std * std))),
        }
        if not self.has_unit_margins:
            facts["checksum of the margins"] = _checksum(unrepeated(self.q))
        return facts | self.kernel_facts

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
        """Mean C times mean ``|z|^2`` of the rows z of A: how far from v = 0 they pull.

        The mean of ``C |z|^2`` where all weights are equal. By the moments of the rows,
        which a sweep finds once.
        """
        square = self.mean_square + (self.intercept != "none")
        return self.total_weight / self.rows.shape[0] * square

    @property
    def mean_square(self) -> float:
        """Mean ``|x|^2`` of the rows x, by their moments."""
        mean, std = self.rows.moments
        # Not by BLAS: of many columns it wakes its threads, which then keep a core busy
        # for 0.1 s while they wait for more.
        return float(np.square(mean).sum() + np.square(std).sum())

    def primal(self, w: ArrayLike, b: float = 0.0) -> float:
        """Primal objective P(w, b)."""
        raise NotImplementedError

    def dual(self, alpha: ArrayLike) -> float:
        """Dual objective D of the repaired ``alpha`` (m,): at most P."""
        raise NotImplementedError

    def ends_at_zero(self, certificate: Certificate) -> bool:
        """Whether a small gap proves that no function is better than none."""
        return False

    @ONE_BLAS_THREAD
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
        return self.twofold_bounds(state, v) if bounds.hides(tol) else bounds

    def bounds(self, state: RowState, v: Vector) -> Certificate:
        """Certificate of v and the feasible ``alpha`` of a row state. One sweep."""
        return self.evaluate(state, v)[0]

    def evaluate(self, state: RowState, v: Vector) -> tuple[Certificate, Vector]:
        """Certificate of v and the feasible ``alpha`` of a row state, and A'alpha."""
        raise NotImplementedError

    def twofold_bounds(self, state: RowState, v: Vector) -> Certificate:
        """The certificate of an answer from sums in twice the precision."""
        raise NotImplementedError

    def slopes(self, v: Vector) -> tuple[RowState, Certificate]:
        """Row state with alpha_i = C_i L'(q_i - (A v)_i), and its `bounds` with v.

        For the squared hinge: (9) in [mangasarian2001]_.
        """
        raise NotImplementedError

    def answer(
        self, alpha: Vector, v: Vector, tol: float
    ) -> tuple[Vector, Vector, float, Certificate]:
        """The best answer (alpha, w, b) near a point, with its certificate."""
        raise NotImplementedError

    def best_intercept(self, w: ArrayLike, b: float = 0.0) -> float:
        """The free intercept that minimizes P for w, nearest to b; b if it is not free.

        For the hinge the slope of P in b rises by C_i at b = y_i q_i - x_i'w, from
        minus the C of the positive class: an exact weighted selection. For the squared
        hinge the slope is piecewise linear, and Newton's method ends after finitely
        many steps.
        """
        raise NotImplementedError

    def repair(self, state: RowState, name: str = "alpha") -> None:
        """Make dual variables feasible, in place. No read of the data.

        Clips to the bounds and, for a free intercept, scales the heavier class down to
        y'alpha = 0: its free variables, if they suffice, else all.
        """
        state.update(_clip, name, self.pointwise)
        if self.intercept != "free":
            return
        sums, free = state.sweep(_class_sums, name)
        heavy = int(sums[1] > sums[0])
        excess = sums[heavy] - sums[1 - heavy]
        only_free = bool(free[heavy] > excess)
        mass = free[heavy] if only_free else sums[heavy]
        if excess > 0:
            state.update(_scale_class, name, heavy, 1.0 - excess / mass, only_free)


# -- functions of one block ------------------------------------------------------------


def margins(part: RowState) -> Any:
    """The q of some rows: the number 1, or a vector (k,)."""
    return getattr(part, "q", 1.0)


def _clip(part: RowState, name: str, loss: PointwiseLoss) -> None:
    setattr(part, name, loss.clipped(getattr(part, name), part.C))


def _zero_losses(part: RowState, loss: PointwiseLoss) -> float:
    return loss.total(part.C, margins(part))


def _count_at_bound(part: RowState) -> int:
    return int(np.count_nonzero((part.alpha > 0) & (part.alpha >= part.C)))


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


def _checksum(values: Any) -> int:
    """A number that other values hardly have."""
    if isinstance(values, RowVector):
        return values.checksum()
    return zlib.crc32(np.ascontiguousarray(values).data)
