"""ALM-Newton: Newton's method on an augmented Lagrangian, over the rows that matter.

The method of multipliers for the hinge: minimize the augmented Lagrangian L of
`widemargin.solvers.linear.newton` in v by Newton's method, take alpha as new
multipliers, adapt the penalty s, repeat. Each Newton step is one sweep, which also
gives P and D.

Near the answer few rows can still move: those near the margin. So once the gap is
small, the rows far from it are fixed at their bounds and the problem over the rest, the
*band*, is solved in memory; one sweep of all rows says what that is worth, and which
rows were fixed wrongly. Tall data begin with a sample of the rows instead.
"""

import itertools
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Mask, Vector
from widemargin.data.blocks import Least
from widemargin.data.kept import Kept
from widemargin.data.row_vector import RowVector
from widemargin.data.state import RowState, read_only
from widemargin.numerics import linalg
from widemargin.parameters import Checker
from widemargin.problems.base import Problem, margins
from widemargin.solution import Step
from widemargin.solvers.driver.contract import Solver, Start, at, in_one_blas_thread
from widemargin.solvers.linear.newton import Iterate, Piece, sampled, unseen

# benchmarks/core/augmented_lagrangian.py measures these constants where other values
# were tried; the rest is from the first version that solved all test problems.
# First penalty, cold and warm. Cold: at v = 0 alpha is half of C, so all rows may move.
# With dense rows of more columns than this their matrix costs much; there it is the
# last number over the root of kappa (mnist: C = 1 3 s instead of 4.5; C = 100, with
# 0.4, 3.3 s, with 1 4.4 s, with 4 5.6), but no more than the warm one (kappa 15 to 50:
# 0.71 to 1.02 of the time, mnist, isolet, and features of rank 500 and 1,000 of ijcnn1,
# covtype and a drawn set; a half of the last number instead: isolet with C = 100 1.5).
START_PENALTY, WARM_PENALTY = 0.5, 5.0
MANY_COLUMNS, MANY_PENALTY = 500, 40.0
# A point is minimal enough for new multipliers where 1/2 |r|^2 is the first share of
# the gap, and y'alpha != 0 costs the second; or after this number of Newton steps.
SETTLED, BALANCED, MOST_STEPS = 0.05, 0.1, 12
# Conjugate gradients go on to this share of that.
ENOUGH = 0.3
# The penalty after few, many and too many Newton steps. Raising it each time fails
# (a9a, C = 100): the next minimum is then too far.
FEW_STEPS, MANY_STEPS = 3, 6
RAISE, LOWER, LOWER_MUCH = 5.0, 1.5, 5.0
# Fewer rows than this are never reduced. A band is tried from this relative gap on; it
# has this share of the rows at first, and never more than the next.
BAND_ROWS, BAND_GAP, BAND_SHARE, BAND_MOST = 2000, 2e-2, 0.1, 0.6
# A band is solved to these shares of the gap asked for and of the gap of all rows, in
# this number of sweeps.
BAND_TOL, BAND_PROGRESS, BAND_SWEEPS = 0.3, 1e-2, 60
# After this number of bands in a row that were worth little, all rows move until the
# gap is a tenth of what it was when a band was first tried.
BAND_FAILURES = 2
# The next band reaches beyond the worst row that was fixed wrongly and is as wide as
# this share of the largest change of a score; where the gap was not halved, twice as
# wide as the last.
BEYOND, OF_CHANGE = 1.5, 0.3
# Widths below this are rounding; beside a sample, whose v is known to about three
# digits, the first width is at least the second. The penalty may not pass the third:
# beyond, rounding of a score moves alpha from 0 to C.
LEAST_WIDTH, SAMPLE_WIDTH, MOST_PENALTY = 1e-9, 1e-2, 1e12
# Scores read to find out how wide a band is.
BAND_KEYS = 4096
FEW_KEYS = 256  # the same where they are sent
# A sample has at least this number of rows, this number a column, and this share of
# all; it is taken where there are this many times more rows, and solved to this gap.
SAMPLE_ROWS, SAMPLE_PER_COLUMN, SAMPLE_SHARE = 4000, 400, 0.04
# A sample that ends at this many times the gap is no start.
SAMPLE_TIMES, SAMPLE_GAP, SAMPLE_FAILED = 3, 3e-3, 10.0


@dataclass(frozen=True, kw_only=True)
class AugmentedLagrangian(Solver):  # numpydoc ignore=PR02
    """Semismooth Newton method on the augmented Lagrangian, with band reduction.

    For multipliers lambda and a penalty s it minimizes in v = (w, b)

        1/2 v'Rv + sum_i max_{0 <= a <= C_i} a (1 - f_i) - (a - lambda_i)^2 / (2 s C_i)

    with f = A v, by Newton's method: the maxima alpha_i = clip(lambda_i + s C_i (1 -
    f_i), 0, C_i) give the gradient Rv - A'alpha and the matrix R + s A'D A, D_i = C_i
    where 0 < alpha_i < C_i. Then lambda = alpha, and s grows or shrinks.

    Parameters
    ----------
    reduction : {"band"} or None, default="band"
        Once the gap is small, solve for the rows near the margin in memory, with the
        others fixed at 0 or C, and check with one sweep of all rows; tall data begin
        with a sample. None: all rows in every sweep.

    Raises
    ------
    ValueError
        A parameter out of range.

    Notes
    -----
    Solves the hinge with all three intercepts. One sweep a Newton step, beyond 400
    columns another one over the rows that enter or leave; 25 to 150 steps with all rows
    without reduction, 4 to 40 with it. k n^2 flops for the k rows between their bounds
    (beyond 400 columns: that enter or leave), and n^3 / 3, up to 1500 columns; beyond,
    conjugate gradients, or a matrix of these rows where they are few or hard. Ten
    vectors of length m; the band is a copy of the rows near the margin, mostly a tenth
    of all, at most about 60 %. Rows far from zero (mean over deviation 1e6) lose digits
    where the intercept is not free and C is large: `InteriorPoint` loses fewer.

    ``active`` of a step counts rows between their bounds; its ``details``: ``penalty``
    (s), ``rows``, those at work (a sample, the band, or all), ``band_gap``, the
    relative gap of the problem of these rows, and ``unseen`` as of `ActiveSet`.

    The method of multipliers is [hestenes1969]_'s and [rockafellar1976]_'s; Newton's
    method on its minima for support vector machines is in [yan2020]_.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import Problem, solve
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> solution = solve(Problem(X, [-1, -1, 1, 1]), "augmented_lagrangian", tol=1e-8)
    >>> print(solution.status, solution.solver)
    solved augmented_lagrangian
    """

    name: ClassVar[str] = "augmented_lagrangian"
    default_max_iter: ClassVar[int] = 2000
    patience: ClassVar[int] = 300

    reduction: Literal["band"] | None = "band"

    def __post_init__(self) -> None:
        check = Checker("AugmentedLagrangian")
        check.choice("reduction", self.reduction, ("band", None))

    def supports(self, problem: Problem) -> str | None:
        """The hinge, with any intercept."""
        if problem.loss != "hinge":
            return (
                "AugmentedLagrangian solves the hinge loss only: use solver='auto' or "
                f"loss='hinge'. Got {problem.loss!r} instead."
            )
        return None

    @in_one_blas_thread
    def iterate(
        self, problem: Problem, start: Start | None, tol: float
    ) -> Generator[Step, None, None]:
        """The start, then sweeps of all rows and of bands: see `Solver.iterate`."""
        v = np.zeros(problem.A.shape[1])
        whole = _PieceRun(Piece(problem.A, problem.state(), problem.R))
        whole.point = unseen(problem, v)
        many_rows = problem.rows.shape[0] >= BAND_ROWS
        # Doubled rows on a cluster have no numbers to be put back by.
        there = isinstance(problem.y, RowVector) and not problem.has_unit_margins
        reduces = self.reduction and many_rows and not there
        band = _Band(problem, whole) if reduces else None
        numbers = itertools.count()
        sample = _sample(problem) if band and start is None else None
        if sample is not None:
            for _ in sample.until(0.0, SAMPLE_GAP):
                yield _step(next(numbers), whole, sample)
            if sample.is_start:  # in case there is no time for a sweep of all rows
                whole.point = unseen(problem, sample.point.v)
                step = _step(next(numbers), whole, sample)
                step.details["unseen"] = 1.0
                yield step
        if start is not None and start.vectors:
            whole.piece.state.multiplier = start.vectors["multiplier"]
            whole.begin(start.v.copy(), start.numbers["penalty"])
        elif start is not None:
            given = problem.dual_state(start.alpha)
            problem.repair(given)
            whole.piece.state.join(given.prefixed("given_")).update(_take_multipliers)
            del given
            whole.begin(start.v.copy(), WARM_PENALTY)
        elif band and sample and sample.is_start:
            band.begin_beside(sample)
        else:
            whole.begin(v, _first_penalty(problem))
        sample = None  # its rows are no longer needed
        while True:
            yield _step(next(numbers), whole)
            inner = band.choose() if band else None
            if band is None or inner is None:
                whole.advance()
                continue
            for _ in inner.until(band.goal(tol)):
                yield _step(next(numbers), whole, inner)
            band.judge(inner)
            del inner  # before the next one takes its memory


def _first_penalty(problem: Problem) -> float:
    """Penalty for a start at v = 0."""
    if problem.rows.density < 1.0 or problem.A.shape[1] <= MANY_COLUMNS:
        return START_PENALTY
    return min(MANY_PENALTY / float(np.sqrt(max(1.0, problem.kappa))), WARM_PENALTY)


def _step(number: int, whole: "_PieceRun", inner: "_PieceRun | None" = None) -> Step:
    """The point of all rows, and the numbers of the run that is at work."""
    run, point = inner or whole, whole.point
    details = {
        "penalty": run.s,
        "rows": run.piece.A.shape[0],
        "band_gap": run.point.gap / abs(run.point.primal),
    }
    residual = float(np.abs(run.point.residual).max())
    if not np.isfinite(residual + run.point.gap):
        raise FloatingPointError("the iterate is not finite")
    here = at(point.v, whole.piece.state)
    step = Step(
        number, point.primal, point.dual, residual, run.point.active, details, here
    )
    step.vectors = ("multiplier",)
    return step


class _PieceRun:
    """The method of multipliers on a piece: its point, penalty and Newton steps."""

    point: Iterate
    s: float

    def __init__(self, piece: Piece) -> None:
        self.piece, self.s, self.steps = piece, START_PENALTY, 0

    def begin(self, v: Vector, s: float, *, hessian: bool = True) -> None:
        """Go to v."""
        self.s = s
        self.point = self.piece.evaluate(v, s, hessian=hessian)
        self.piece.accept()

    @property
    def settled(self) -> bool:
        """Whether the point is minimal enough for new multipliers."""
        point, gap = self.point, self.point.gap
        return self.steps >= MOST_STEPS or (
            self.piece.half_norm(point.residual) <= SETTLED * gap
            and point.imbalance <= BALANCED * gap
        )

    @property
    def is_start(self) -> bool:
        """Whether the point of a sample is near enough to begin with."""
        return self.point.gap <= SAMPLE_FAILED * SAMPLE_GAP * self.point.primal

    def advance(self) -> None:
        """New multipliers where the point is settled, else a Newton step."""
        if self.settled:
            self.renew()
            self.point = self.piece.revisit(self.point.v, self.s)
        else:
            enough = ENOUGH * SETTLED * self.point.gap
            dv = self.piece.direction(self.point, self.s, enough)
            self.point = self.piece.newton_step(self.point, self.s, dv)
            self.steps += 1

    def renew(self) -> None:
        """Alpha as multipliers, and a penalty by how hard the last one was."""
        self.piece.renew_multipliers()
        if self.steps >= MOST_STEPS:
            self.s /= LOWER_MUCH
        elif self.steps > MANY_STEPS:
            self.s /= LOWER
        elif self.steps <= FEW_STEPS:
            self.s = min(RAISE * self.s, MOST_PENALTY)
        self.steps = 0

    def until(self, goal: float, relative: float = 0.0) -> Iterator[None]:
        """Advance until P - D is small; yields before each sweep."""
        for _ in range(BAND_SWEEPS):
            if self.point.gap <= max(goal, relative * self.point.primal):
                break
            yield
            self.advance()


class _Band:
    """Which rows may move, and what solving for them was worth."""

    def __init__(self, problem: Problem, whole: _PieceRun) -> None:
        self._problem, self._whole = problem, whole
        self._gap = BAND_GAP  # relative gap from which a band is tried
        self._width = 0.0  # |1 - f| of its rows, at most; 0: not known
        self._level = np.inf  # relative gap that v may have, if multipliers were good
        self._again = False  # try a band at once
        self._failures = 0  # bands in a row that were worth little
        m = problem.rows.shape[0]
        self._there = isinstance(problem.y, RowVector)  # bands stay beside the rows
        row = np.arange(m, dtype=np.min_scalar_type(m)) if not self._there else range(m)
        self._rows = problem.A.state(row=row)

    def goal(self, tol: float) -> float:
        """Gap to which the band is solved."""
        point = self._whole.point
        gap = min(point.gap, self._level * point.primal)
        return max(BAND_TOL * tol * point.primal, BAND_PROGRESS * gap)

    def begin_beside(self, sample: _PieceRun) -> None:
        """Go to the v of a sample, with multipliers by how far rows are from 1."""
        width = float(np.quantile(_keys(sample), BAND_SHARE))
        self._width = max(width, SAMPLE_WIDTH)
        self._whole.piece.state.update(_halfway)
        self._whole.begin(sample.point.v, 0.5 / self._width, hessian=False)
        self._level, self._again = SAMPLE_GAP, True

    def choose(self) -> _PieceRun | None:
        """A run on the rows that may move, where they are few; else None."""
        whole = self._whole
        relative = whole.point.gap / whole.point.primal
        if not (self._again or (whole.settled and relative <= self._gap)):
            return None
        keys = _keys(whole)
        width = self._width or float(np.quantile(keys, BAND_SHARE))
        self._width = max(width, LEAST_WIDTH)
        self._penalty = whole.s, whole.steps
        inner = None
        few = np.mean(keys <= width) <= BAND_MOST and (self._there or self._fits())
        if self._failures < BAND_FAILURES and few:
            if whole.settled:
                whole.renew()
            inner = self._gather()
        if inner is None:
            self._gap, self._again = 0.1 * min(relative, self._gap), False
            self._width, self._failures = 0.0, 0
        return inner

    def _fits(self) -> bool:
        """Whether the rows of a band may be copied. No read of X."""
        most = self._problem.rows.copy_rows
        if most >= self._problem.rows.shape[0]:
            return True
        return bool(self._whole.piece.state.sweep(_count_free, self._width) <= most)

    def _gather(self) -> _PieceRun | None:
        """The run on the rows at most ``width`` from 1; the others are fixed."""
        problem, whole = self._problem, self._whole
        state = whole.piece.state.join(self._rows)
        fixed, constant, found = problem.rows.sweep(
            _gather, state, self._width, problem.A.shape[1]
        )
        if isinstance(found, Kept):
            found = found.rows(problem.rows.options)
        if found is None:
            return None
        X, self._own = found
        y = self._own.labels
        A = X.signed(y if self._there else read_only(y), problem.intercept != "none")
        inner = _PieceRun(Piece(A, self._own, problem.R, fixed, constant))
        inner.piece.state.join(self._own.prefixed("given_")).update(_take_given)
        inner.begin(whole.point.v, whole.s)
        return inner

    def _write(self, multiplier: Any) -> None:
        """Multipliers of the rows of the band to where these come from."""
        state = self._whole.piece.state
        if self._there:
            state.multiplier.put(multiplier, self._own.row)
            return
        # In order: doubled rows are in two runs.
        order = np.argsort(self._own.row, kind="stable")
        index, multiplier = self._own.row[order], np.asarray(multiplier)[order]
        state.join(self._rows).sweep(_scatter, index, multiplier)

    def judge(self, inner: _PieceRun) -> None:
        """Take the answer of the inner run to all rows, if it is one for them."""
        whole, piece, old = self._whole, self._whole.piece, self._whole.point
        self._write(inner.piece.state.multiplier)
        point = piece.evaluate(inner.point.v, inner.s, hessian=False)
        movement, violation = (-least.key for least in piece.state.sweep(_changes))
        width = max(BEYOND * violation, OF_CHANGE * movement)
        self._again = True
        if point.primal > old.primal + max(inner.point.gap, 0.0):
            # Rows fixed wrongly cost more than all that was won.
            self._write(self._own.multiplier)
            whole.s, whole.steps = self._penalty
            whole.point = piece.revisit(old.v, whole.s)
            self._width, self._failures = 2.0 * self._width, self._failures + 1
            return
        worse = point.gap > 0.5 * min(old.gap, self._level * old.primal)
        self._failures = self._failures + 1 if worse else 0
        self._width = max(width, 2.0 * self._width) if worse else width
        whole.point, whole.s, whole.steps = point, inner.s, inner.steps
        piece.accept()
        self._level = np.inf


def _sample(problem: Problem) -> _PieceRun | None:
    """A run on a sample of the rows, begun at zero, where there are many; else None."""
    m, n = problem.rows.shape
    size = max(SAMPLE_ROWS, SAMPLE_PER_COLUMN * n, int(SAMPLE_SHARE * m))
    piece = sampled(problem, size) if m >= SAMPLE_TIMES * size else None
    if piece is None:
        return None
    sample = _PieceRun(piece)
    sample.begin(np.zeros(problem.A.shape[1]), START_PENALTY)
    return sample


def _keys(run: _PieceRun) -> Vector:
    """|1 - f| of some rows, from all blocks."""
    there = isinstance(run.piece.state.f, RowVector)
    step = max(1, run.piece.A.shape[0] // (FEW_KEYS if there else BAND_KEYS))
    return np.concatenate(run.piece.state.sweep(_some_keys, step))


# -- functions of one block ------------------------------------------------------------


def _some_keys(part: RowState, step: int) -> list[Vector]:
    return [np.abs(1.0 - part.f[::step])]


def _take_multipliers(part: RowState) -> None:
    part.multiplier = part.given_alpha


def _take_given(part: RowState) -> None:
    part.multiplier = part.given_multiplier


def _halfway(part: RowState) -> None:
    part.multiplier = 0.5 * part.C


def _free(part: RowState, width: float) -> Mask:
    """Which rows belong to a band."""
    near = np.abs(1.0 - part.f) <= width
    return np.asarray(near | ((part.alpha > 0.0) & (part.alpha < part.C)))


def _count_free(part: RowState, width: float) -> int:
    return int(np.count_nonzero(_free(part, width)))


def _gather(block: Any, part: RowState, width: float, k: int) -> Any:
    """Sums over the rows that are fixed at C, and what the others are."""
    free = _free(part, width)
    fixed = np.where(free, 0.0, part.alpha)
    signed = part.labels * fixed
    g = linalg.rmatvec(block, signed)
    if k > g.size:
        g = np.append(g, signed.sum())
    part.multiplier = np.where(free, part.multiplier, part.alpha)
    index = np.flatnonzero(free)
    q = margins(part)
    names = ["row", "labels", "C", "multiplier", *(["q"] if np.ndim(q) else [])]
    chosen = {name: [getattr(part, name)[index]] for name in names}
    return g, float((q * fixed).sum()), Kept([block[index]], chosen)


def _scatter(
    part: RowState, index: NDArray[np.integer[Any]], multiplier: Vector
) -> None:
    first, last = part.row[0], part.row[-1]
    low, high = np.searchsorted(index, [first, last + 1])
    part.multiplier[(index[low:high] - first).astype(np.intp)] = multiplier[low:high]


def _changes(part: RowState) -> tuple[Least, Least]:
    """Largest change of a score, and distance from 1 of a row fixed wrongly."""
    wrong = ((part.multiplier <= 0.0) & (part.new_f < 1.0)) | (
        (part.multiplier >= part.C) & (part.new_f > 1.0)
    )
    movement = np.abs(part.new_f - part.f).max()
    violation = np.abs(1.0 - part.new_f[wrong]).max(initial=0.0)
    return Least(-float(movement)), Least(-float(violation))
