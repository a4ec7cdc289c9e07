"""Hard caps on the size of a kernel model: few support vectors, and the best of them.

For a solved problem with f = sum_j c_j phi(x_j) and a budget B, rows J are chosen and

    minimize over beta, b   1/2 beta'K_JJ beta [+ 1/2 b^2]
                            + sum_i C_i L(1 - y_i (K_iJ beta + b))

is solved to a certified gap: the problem restricted to the span of |J| <= B kernel
functions (`widemargin.reduction.restricted`).

The rows come from matching pursuit on f (`widemargin.reduction.pursuit`). The
candidates are rows drawn from all rows, not the support vectors alone: support vectors
lie where the classes meet, and good centers lie elsewhere too.

`prune_path` keeps the largest coefficients instead, without a refit.
"""

import contextlib
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from widemargin.arrays import Index, Vector
from widemargin.parameters import Checker
from widemargin.problems.kernel import KernelProblem
from widemargin.problems.scores import Scores
from widemargin.reduction.pursuit import pursue
from widemargin.reduction.restricted import (
    Features,
    Refits,
    ScoredPoint,
    SolvedProblem,
    independent,
    refit,
)
from widemargin.solution import Certificate, Solution, Status
from widemargin.solvers.driver.limits import Limits
from widemargin.system.deadline import OutOfTime, until
from widemargin.system.memory import free_bytes

# Rows that are candidates. At a budget of 500 all rows of ijcnn1 and mnist gave
# objectives within 1.5 % of these, in 3 and 8 times the time; 2048 gave them 8 and 25 %
# higher, the support vectors of ijcnn1 alone 74 %.
CANDIDATES = 8192
# Gap of a refit as a share of what the cut costs. Budgets of 50 to 500 then took half
# of the time on ijcnn1, with objectives at most 1.5 % higher and accuracies within 0.06
# points.
SHARE = 0.15
# What rounding may do to an objective, beyond which two are compared in float64.
ROUNDING = 1e-3


@dataclass(frozen=True)
class Reduced:
    """A model of few support vectors.

    Attributes
    ----------
    rows : int ndarray (k,), the support vectors, as indices into all rows, rising
    coefficients : ndarray (k,), what each kernel function is multiplied by
    b : float, intercept: the score of x is sum_j coefficients_j k(x, x_j) + b
    certificate : Certificate
        The objective of this model, and a lower bound of what any model of these rows
        has: its gap is what a longer refit could still gain.
    before : Certificate, of the solution that it was made from
    status : Status, of the refit
    """

    rows: Index
    coefficients: Vector
    b: float
    certificate: Certificate
    before: Certificate
    status: Status

    @property
    def increase(self) -> float:
        """Objective of this model over the objective of the solution, less one.

        NaN where there was no time to certify the solution.
        """
        before = self.before.primal
        return self.certificate.primal / before - 1.0 if before < np.inf else np.nan


def reduce(
    problem: KernelProblem, solution: Solution, budget: int, **options: Any
) -> Reduced:
    """The best model found with at most ``budget`` support vectors.

    Parameters
    ----------
    problem : KernelProblem
    solution : Solution, of this problem
    budget : int >= 1
        A solution that has no more support vectors is returned unchanged.
    **options
        As of `reduce_path`.

    Returns
    -------
    Reduced

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import Kernel, Problem, solve
    >>> from widemargin.reduction.reduce import reduce
    >>> x = np.linspace(-3.0, 3.0, 200)[:, np.newaxis]
    >>> y = np.where(np.abs(x[:, 0] - 0.3) < 1.5, 1.0, -1.0)
    >>> problem = Problem(x, y, C=10.0, kernel=Kernel("rbf", gamma=1.0))
    >>> solution = solve(problem)
    >>> reduced = reduce(problem, solution, 5)
    >>> len(reduced.rows), reduced.increase < 0.1
    (5, True)
    """
    return reduce_path(problem, solution, [budget], **options)[0]


def reduce_path(  # noqa: PLR0913  (options, by keyword)
    problem: KernelProblem,
    solution: Solution,
    budgets: Sequence[int],
    *,
    tol: float = 1e-3,
    share: float = SHARE,
    candidates: int = CANDIDATES,
    time_limit: float | None = None,
    memory_limit: int | None = None,
    random_state: int = 0,
) -> list[Reduced]:
    """Models of several sizes, each begun at the model before.

    Parameters
    ----------
    problem : KernelProblem
    solution : Solution, of this problem
    budgets : sequence of int >= 1, in rising order
    tol : float in (0, 1], default=1e-3
        Relative gap of each refit.
    share : float in (0, 1], default=0.15
        A refit ends, too, where its gap is at most this share of what the cut costs:
        of its objective less the dual value of the solution.
    candidates : int >= 1, default=8192
        Rows to choose from, drawn from all; at least four times the largest budget.
    time_limit : float > 0 in seconds, or None
        Rows are chosen for half of it at most. A refit that it ends has the status
        "time_limit", and its best model so far or the model of the budget before. With
        no time at all the first model has no support vectors.
    memory_limit : int or None, in bytes
        For the features of the rows near the margin; None: half of the free memory.
    random_state : int, default=0
        Seed of the draw.

    Returns
    -------
    list of Reduced
        One for each budget. Where Ctrl-C ends a refit its model, the best so far, is
        the last; before the first refit Ctrl-C raises.

    Raises
    ------
    ValueError or TypeError
        A parameter out of range or of a wrong type; a memory limit without room.

    Notes
    -----
    For one draw of candidates the rows of all budgets begin one order: they are nested,
    and `reduce` takes the same rows. Where the largest coefficients of the solution,
    with the best b, are better, a refit begins with their rows instead: no model is
    worse than the solution cut to its largest coefficients.

    Fewer rows than the budget are taken where no candidate has more than 1e-4 of its
    k(x, x) outside of their span (duplicates, kernels of low rank), or where f lies in
    it.

    With n candidates, m rows and m' near the margin: (n + m) B kernel values, (n + m')
    B^2 multiplications in float32, and a refit; 4 (n + 2 m') B bytes.

    The restricted problem is from [keerthi2006]_, the choice of rows from [pati1993]_.
    """
    check = Checker("reduce")
    _check(check, problem, solution, budgets)
    check.positive("tol", tol, most=1.0)
    check.positive("share", share, most=1.0)
    check.positive("time_limit", time_limit, optional=True)
    check.count("candidates", candidates)
    check.memory_limit(memory_limit)
    memory = free_bytes() if memory_limit is None else memory_limit
    limits = Limits(tol, time_limit=time_limit)
    whole = SolvedProblem(problem, solution, Refits(limits, share, memory))
    smaller = [budget for budget in budgets if budget < whole.support.size]
    models: list[Reduced] = []
    if smaller:
        rng = np.random.default_rng(random_state)
        m, n = whole.c.size, max(candidates, 4 * smaller[-1])
        chosen = np.sort(rng.permutation(m)[:n])
        with until(limits.grace):
            models = _path(whole, smaller, functools.partial(_refit_all, whole, chosen))
    if not models or models[-1].status is not Status.INTERRUPTED:
        models += [_unchanged(whole)] * (len(budgets) - len(smaller))
    return models


def prune_path(
    problem: KernelProblem,
    solution: Solution,
    budgets: Sequence[int],
    *,
    time_limit: float | None = None,
) -> list[Reduced]:
    """Models of the largest coefficients, as they are, with the best b.

    Parameters
    ----------
    problem : KernelProblem, which may have a norm
    solution : Solution, of this problem
    budgets : sequence of int >= 1, in rising order
    time_limit : float > 0 in seconds, or None
        For all of them. What is late is the model of the budget before.

    Returns
    -------
    list of Reduced
        One for each budget. The lower bound of their certificates is that of the
        solution.

    Raises
    ------
    ValueError or TypeError
        A parameter out of range or of a wrong type.

    Notes
    -----
    m B kernel values. The pruning of [dekel2006]_, section 5, where the problem has
    their norm; the paper does not say which b.
    """
    check = Checker("prune_path")
    _check(check, problem, solution, budgets, normed=True)
    check.positive("time_limit", time_limit, optional=True)
    limits = Limits(1.0, time_limit=time_limit)
    whole = SolvedProblem(problem, solution, Refits(limits, 1.0, 0))
    smaller = [budget for budget in budgets if budget < whole.support.size]
    with until(limits.grace):
        models = _path(whole, smaller, functools.partial(_prune_all, whole))
    return models + [_unchanged(whole)] * (len(budgets) - len(smaller))


def _check(
    check: Checker, problem: Any, solution: Any, budgets: Any, normed: bool = False
) -> None:
    if not isinstance(problem, KernelProblem):
        check.refuse("problem", "a Problem with a kernel", problem)
    if problem.norm is not None and not normed:
        check.refuse("problem", "a Problem with a kernel and without a norm", problem)
    if not isinstance(solution, Solution):
        check.refuse("solution", "a Solution of the problem", solution)
    if len(solution.alpha) != problem.shape[0]:
        rows = f"{len(solution.alpha):,} and {problem.shape[0]:,} rows"
        check.refuse_part("solution", "belong to the problem", rows)
    for budget in budgets:
        check.count("budget", budget)
    if not len(budgets) or list(budgets) != sorted(budgets):
        check.refuse_part("budgets", "be one or more, in rising order", repr(budgets))


def _path(
    whole: SolvedProblem,
    budgets: Sequence[int],
    append_all: Callable[[Sequence[int], list[Reduced]], None],
) -> list[Reduced]:
    """The models that are appended in time.

    One that has not ended in a grace after the deadline is left out: the last
    model, or a model without support vectors, stands for the others.
    """
    models: list[Reduced] = []
    try:
        append_all(budgets, models)
    except OutOfTime:
        last = models[-1] if models else _empty(whole)
        last = replace(last, status=Status.TIME_LIMIT)
        models += [last] * (len(budgets) - len(models))
    return models


def _refit_all(
    whole: SolvedProblem,
    candidates: Index,
    budgets: Sequence[int],
    models: list[Reduced],
) -> None:
    """Refits for the first rows of an order, and of the pruned rows if need be."""
    begin = functools.partial(_begin, whole, candidates, budgets[-1], budgets[0])
    features, start = _in_time(whole.refits, begin) or begin()
    pruned = whole.scores(candidates[:0], whole.c[:0])
    for budget in budgets:
        k = min(budget, len(features.J))
        start, status = _refit(features, k, start)
        model = _model(features, start, status)
        found = model.certificate
        missed = found.gap > whole.enough(found.primal)
        in_time = status in (Status.SOLVED, Status.STALLED)
        if missed and in_time and features.refine():
            start, status = _refit(features, len(start.w), start)
            model = _model(features, start, status)
        if status is not Status.INTERRUPTED:
            with contextlib.suppress(OutOfTime):
                model = _unless_pruned(whole, budget, model, pruned)
        models.append(model)
        if model.status is Status.INTERRUPTED:
            break


def _prune_all(
    whole: SolvedProblem, budgets: Sequence[int], models: list[Reduced]
) -> None:
    """Models of the largest coefficients."""
    scores = whole.scores(whole.support[:0], whole.c[:0])
    for budget in budgets:
        rows = _largest(whole, budget, scores)
        b = whole.best_intercept(scores, whole.b)
        models.append(_pruned(whole, rows, scores, b))


def _in_time(refits: Refits, work: Callable[[], Any]) -> Any:
    """What some work returns; None where it does not end before the deadline."""
    try:
        with until(refits.deadline):
            return work()
    except OutOfTime:
        return None


def _refit(
    features: Features, k: int, start: ScoredPoint
) -> tuple[ScoredPoint, Status]:
    """A refit; its first step where it is late; its start where that takes too long."""
    work, refits = functools.partial(refit, features, k, start), features.whole.refits
    if refits.limits.is_late:
        return work()
    found: tuple[ScoredPoint, Status] | None = _in_time(refits, work)
    return found or (start, Status.TIME_LIMIT)


def _begin(
    whole: SolvedProblem, candidates: Index, most: int, first: int
) -> tuple[Features, ScoredPoint]:
    """The features of chosen rows, and the solution projected on the first of them."""
    f = whole.f(candidates)
    order = pursue(whole.columns, candidates, f, most)
    order = order[independent(whole.columns, candidates[order])]
    features, first = Features(whole, candidates[order]), min(first, len(order))
    L, known = features.L[:first, :first], f[order[:first]]
    w = np.asarray(solve_triangular(L, known, lower=True))
    return features, ScoredPoint(whole.alpha, w, whole.b, features.scores(w))


def _unless_pruned(
    whole: SolvedProblem, budget: int, model: Reduced, scores: Scores
) -> Reduced:
    """The model, or a model of the rows of the largest coefficients where these win.

    The scores begin with fewer of these rows; the others are added.
    """
    rows = _largest(whole, budget, scores)
    b = whole.best_intercept(scores, whole.b)
    values = whole.problem.values(scores.c, scores.values, b)
    if values.primal >= (1.0 + ROUNDING) * model.certificate.primal:
        return model
    pruned = _pruned(whole, rows, scores, b)
    features, start = _begin(whole, rows, budget, budget)
    point, status = refit(features, len(features.J), start)
    models = model, _model(features, point, status), pruned
    best = min(models, key=lambda found: found.certificate.primal)
    return replace(best, status=status) if status is Status.INTERRUPTED else best


def _largest(whole: SolvedProblem, budget: int, scores: Scores) -> Index:
    """The rows of the largest coefficients, whose other scores are added."""
    size = np.abs(whole.c[whole.support])
    rows = np.sort(whole.support[np.argsort(-size, kind="stable")[:budget]])
    new = rows[scores.c[rows] == 0.0]
    scores.add(new, whole.c[new])
    return rows


def _pruned(whole: SolvedProblem, rows: Index, scores: Scores, b: float) -> Reduced:
    """The coefficients of these rows as they are, and the best b, which is near b."""
    primal, b = whole.primal(scores, b)
    before = whole.before
    certificate = Certificate(primal, before.dual, before.scale)
    numbers, c = whole.numbers[rows], whole.c[rows]
    return Reduced(numbers, c, b, certificate, before, Status.SOLVED)


def _model(features: Features, point: ScoredPoint, status: Status) -> Reduced:
    """The model of a point."""
    whole, J = features.whole, features.J[: len(point.w)]
    beta, b, certificate = features.certify(point)
    order = np.argsort(J)
    rows = whole.numbers[J[order]]
    proved = certificate.gap <= whole.enough(certificate.primal)
    if status is Status.STALLED and proved:
        status = Status.SOLVED
    return Reduced(rows, beta[order], b, certificate, whole.before, status)


def _empty(whole: SolvedProblem) -> Reduced:
    """The model zero."""
    before = whole.before
    primal = whole.problem.zero_certificate.primal  # with what rounding may hide
    certificate = Certificate(primal, min(before.dual, primal), before.scale)
    none = np.empty(0, np.intp)
    status = Status.TIME_LIMIT
    return Reduced(none, np.empty(0), 0.0, certificate, before, status)


def _unchanged(whole: SolvedProblem) -> Reduced:
    """The solution itself."""
    rows, c = whole.numbers[whole.support], whole.c[whole.support]
    return Reduced(rows, c, whole.b, whole.before, whole.before, Status.SOLVED)
