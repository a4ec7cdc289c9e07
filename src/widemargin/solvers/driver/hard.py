"""Hard margins by problems of the hinge, with larger and larger finite weights C.

From some C on the optimum has no loss: then it is that of C = inf. C rises tenfold, or
to four times the sum of alpha, from which on losses within the tolerance move the
objective by less than that. The answer for one C is the start for the next.

Where losses stay, alpha comes near a direction in which the dual is not bounded. It is
moved to the nearest one that has A'alpha = 0, and the problem says what that proves.
"""

import copy
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from widemargin.arrays import Vector
from widemargin.losses.pointwise import LOSSES
from widemargin.parameters import Checker
from widemargin.problems.base import Problem
from widemargin.problems.hard import HardProblem
from widemargin.solution import Certificate, Solution, Status, Trace
from widemargin.solvers.driver.advice import ROUGH, Ending, message
from widemargin.solvers.driver.contract import ChosenSolver, Solver
from widemargin.solvers.driver.driver import refusal, run
from widemargin.solvers.driver.limits import Limits

# Of the tolerance: what problems with a finite C get, and what larger margins may cost.
INNER, SHIFT = 0.25, 0.25
# What C is multiplied by, at least; how often; and solves after which a hull is looked
# for, unless C is large enough for the sums of alpha. By tenfolds 30 solves lead from
# any C to 1e30 times that.
FACTOR, MOST, LOOK = 10.0, 30, 1
# Rows, two of each sample, up to which a regression is solved to more digits than is
# asked, if it has them: the answer of a finite C that never binds has them, too.
FEW, FINE = 1000, 1e-10
# The largest C, of which sums are finite.
LARGEST = 1e290
# Solves in a row that may miss their tolerance: each takes a C ten times as large, so
# after three in a row rounding rules.
FAILURES = 2
# Rounds of corrections of alpha; orders up to which matrices are factorized.
ROUNDS, ORDER = 8, 2000
# Eigenvalues below the first share of the largest eigenvalue are rounding; negative
# ones beyond the second share are not.
ZERO, NEGATIVE = 1e-13, 1e-10
# What ends a run from outside, or by its own limit.
_ENDS = {
    Status.TIME_LIMIT,
    Status.INTERRUPTED,
    Status.STOPPED_BY_CALLBACK,
    Status.OUT_OF_MEMORY,
    Status.MAX_ITER,
}


def solve_hard(
    problem: HardProblem,
    choose: Callable[[Problem], ChosenSolver],
    limits: Limits,
    *,
    start: Any = None,
    names: Sequence[str] | None = None,
) -> Solution:
    """Solve a problem with C = inf: see `widemargin.solve`."""
    if limits.checkpoint is not None:
        Checker("solve").refuse("checkpoint", "None where C is infinite", "a file")
    _refuse_solver(choose(problem.soft).solver, problem.soft)
    return _Hard(problem, choose, limits, names).solve(start)


def _refuse_solver(solver: Solver, soft: Problem) -> None:
    """Refuse a solver of the squared hinge alone: its own words are of a finite C."""
    other = copy.copy(soft)
    other.pointwise = next(loss for loss in LOSSES.values() if not loss.is_bounded)
    other.loss = other.pointwise.name
    said = refusal(solver, soft)
    if said is not None and said != refusal(solver, other):
        name = type(solver).__name__
        raise ValueError(
            "With C=inf problems of the hinge with larger and larger C are solved, "
            f"which {name} does not take: use solver='auto'."
        )


class _Hard:
    """The solves of one problem, and the best answer of them."""

    def __init__(
        self,
        problem: HardProblem,
        choose: Callable[[Problem], ChosenSolver],
        limits: Limits,
        names: Sequence[str] | None,
    ) -> None:
        self.problem, self.choose = problem, choose
        self.limits, self.names = limits, names
        self.begin = limits.clock.seconds()
        self.trace = Trace()
        length = problem.length
        self.C = min(LARGEST, FACTOR * problem.reach / length / length)
        self.shift = 0.0
        is_few = len(problem.y) <= FEW and not problem.has_unit_margins
        self.tol = min(limits.tol, FINE) if is_few else limits.tol
        self.best: Solution | None = None
        self.solves = 0

    def solve(self, start: Any) -> Solution:
        """Solve with larger and larger C until something is proved."""
        failures = 0
        for count in range(MOST):
            found = self._run(start)
            answer = self._keep(found)
            if answer.certificate.relative_gap <= self.tol:
                return self._ended(Status.SOLVED)
            if found.status in _ENDS:
                return self._ended(found.status)
            failures = 0 if found.status is Status.SOLVED else failures + 1
            if failures and self._is_enough:
                return self._ended(Status.SOLVED)
            total = float(found.alpha.sum())
            if count >= LOOK or failures or total < self.C:
                hull = self._hull(found, answer)
                if hull is not None:
                    return hull
            if failures > FAILURES or self._no_iteration_left:
                break
            self._raise(total, answer.certificate)
            start = found
        ended = Status.MAX_ITER if self._no_iteration_left else Status.STALLED
        return self._ended(ended)

    @property
    def _is_enough(self) -> bool:
        """Whether the best answer is as good as asked."""
        best = self.best
        return best is not None and best.certificate.relative_gap <= self.limits.tol

    @property
    def _no_iteration_left(self) -> bool:
        most = self.limits.max_iter
        return most is not None and len(self.trace) >= most

    def _run(self, start: Any) -> Solution:
        """The solution for the C of now."""
        most, done = self.limits.max_iter, len(self.trace)
        limits = dataclasses.replace(
            self.limits,
            tol=INNER * self.tol,
            max_iter=None if most is None else max(1, most - done),
        )
        soft = self.problem.at(self.C, self.shift)
        found = run(soft, self.choose(soft), limits, start=start, names=self.names)
        before = self.trace[-1].iteration + 1 if self.trace else 0
        for step in found.trace:
            step.iteration += before
        self.trace.extend(found.trace)
        self.solves += 1
        return found

    def _keep(self, found: Solution) -> Solution:
        """The answer that a solution for a finite C gives, kept where it is better."""
        problem, tol = self.problem, self.tol
        alpha, w, b = problem.feasible(found.alpha, found.w, found.b)
        bounds = problem.certify(alpha, w, b, tol=tol)
        answer = dataclasses.replace(found, alpha=alpha, w=w, b=b, certificate=bounds)
        best = self.best
        if best is None or not (
            best.certificate.relative_gap < bounds.relative_gap < np.inf
        ):
            self.best = answer
        return answer

    def _raise(self, total: float, bounds: Certificate) -> None:
        """Take a larger C, and margins that are larger by what that may cost."""
        self.C = min(LARGEST, max(FACTOR * self.C, 4.0 * total))
        if not self.problem.has_unit_margins and total > 0.0:
            size = max(abs(bounds.dual), self.problem.scale)
            self.shift = SHIFT * self.tol * size / total

    def _hull(self, found: Solution, answer: Solution) -> Solution | None:
        """The solution that nothing is feasible, where alpha leads to a proof."""
        if answer.certificate.primal < np.inf:
            return None
        alpha = _nearest_null(self.problem, found.alpha)
        bounds = self.problem.disproof(alpha)
        if not bounds.dual >= self.problem.most:
            return None
        y = self.problem.y
        sums = float(alpha[y > 0].sum()), float(alpha[y < 0].sum())
        best = self.best or answer
        self.best = dataclasses.replace(best, certificate=bounds)
        solution = self._ended(Status.INFEASIBLE)
        solution.extras["hull"] = alpha / max(sums)
        return solution

    def _ended(self, status: Status) -> Solution:
        """The best answer, with the word and the sentence for how it ended."""
        best, limits, trace = self.best, self.limits, self.trace
        assert best is not None  # there was a solve
        bounds, gap = best.certificate, best.certificate.relative_gap
        if gap <= limits.tol and status is not Status.INTERRUPTED:
            status = Status.SOLVED
        elif status is Status.STALLED and gap <= min(100.0 * limits.tol, ROUGH):
            status = Status.ALMOST_SOLVED
        most = limits.max_iter or len(trace)
        end = Ending(
            self.problem.soft, status, trace[-1], gap, most, limits, self.names, bounds
        )
        told = message(end)
        if status is Status.INFEASIBLE:
            least = best.certificate.dual
            told = (
                f"{status.advice} Proof: 1/2 w'w would be more than {least:.1e}; the "
                "certificate is in extras['hull'] of the solution."
            )
        return dataclasses.replace(
            best,
            status=status,
            trace=trace,
            reason=f"{best.reason}; C=inf by C={self.C:.3g}",
            seconds=limits.clock.seconds() - self.begin,
            tol=limits.tol,
            message=told,
            extras={**best.extras, "C": self.C, "solves": float(self.solves)},
            at_bound=None,
        )


def _nearest_null(problem: HardProblem, alpha: Vector) -> Vector:
    """Dual variables near ``alpha``, >= 0, with A'alpha as near to 0 as rounding lets.

    Changes are small beside each entry: rows with alpha = 0 keep it. Where matrices are
    too large it is alpha itself.
    """
    total = float(alpha.sum())
    if not total > 0.0:
        return alpha
    alpha = alpha / total
    move = _null_of_kernel if problem.couples else _null_of_columns
    return move(problem, alpha)


def _null_of_columns(problem: HardProblem, alpha: Vector) -> Vector:
    """By columns: corrections alpha * (A t), from A' diag(alpha) A t = -A'alpha."""
    A, kept = problem.A, problem.kept
    if A.shape[1] > ORDER:
        return alpha
    a = alpha if kept is None else alpha[kept]
    least, best = np.inf, a
    for _ in range(ROUNDS):
        g = A.rmatvec(a)
        size = float(np.linalg.norm(g)) / float(a.sum())
        if size < least:
            least, best = size, a
        t = np.linalg.lstsq(A.gram(a), g, rcond=ZERO)[0]
        a = np.maximum(a - a * A.matvec(t), 0.0)
        if not (a.any() and np.isfinite(a).all()):
            break
    return problem.soft.spread(best)


def _null_of_kernel(problem: HardProblem, alpha: Vector) -> Vector:
    """By kernel values: the part of alpha that they map to zero."""
    soft: Any = problem.soft
    a = alpha if problem.kept is None else alpha[problem.kept]
    J = np.flatnonzero(a)
    if len(J) > ORDER:
        return alpha
    y = soft.signs[J]
    K = soft.columns.values(J, J) + float(problem.intercept != "none")
    K *= y[:, np.newaxis] * y
    found = a[J]
    for _ in range(ROUNDS):
        root = np.sqrt(found)
        values, vectors = np.linalg.eigh(K * (root[:, np.newaxis] * root))
        if values[0] < -NEGATIVE * values[-1]:  # a kernel that proves nothing
            return np.zeros_like(alpha)
        vectors = vectors[:, values <= ZERO * len(J) * values[-1]]
        moved = root * (vectors @ (vectors.T @ root))
        done = bool(moved.min(initial=0.0) >= 0.0)
        moved = np.maximum(moved, 0.0)
        if not moved.any():
            break
        found = moved
        if done:
            break
    whole = np.zeros(len(a))
    whole[J] = found
    return np.asarray(soft.spread(whole))
