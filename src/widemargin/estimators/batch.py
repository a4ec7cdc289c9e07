"""The binary problems of a fit that are small enough to be solved all at once."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from widemargin.estimators.training import Training
from widemargin.kernels.grouped import GroupedSamples
from widemargin.losses.pointwise import LOSSES
from widemargin.problems.base import intercept_for_loss
from widemargin.problems.many import ManyProblems
from widemargin.solution import Solution, Status, Step, Trace
from widemargin.solvers.kernel.batch import (
    LEAST_GAP,
    MOST_ROWS,
    NAME,
    Batch,
    solve_many,
)
from widemargin.system.memory import free_bytes
from widemargin.system.threads import n_threads

Vector = NDArray[np.float64]


def solve_batch(training: Training) -> tuple[dict[int, Solution], dict[int, Solution]]:
    """Solutions of the small problems: of those that are solved, and of others.

    Others have a gap above tol, and are good to start from.
    """
    chosen = _chosen(training)
    if not chosen:
        return {}, {}
    kernel, X = training.recipe.kernel, training.rows.in_memory()
    samples = GroupedSamples(X, training.index, kernel)  # type: ignore[arg-type]
    if not samples.is_fit:
        return {}, {}
    problems = _problems(training, samples, chosen)
    limit = training.memory_limit
    batch = solve_many(
        problems,
        training.limits.tol,
        memory=free_bytes() if limit is None else limit,
        threads=n_threads(training.rows.options.get("n_jobs")),
        stops=_stops(training),
    )
    return _sorted(training, problems, batch, chosen)


def _chosen(training: Training) -> list[int]:
    """The problems that are solved together: none where their steps are asked for."""
    recipe, limits = training.recipe, training.limits
    kernel = recipe.kernel
    suits = (
        kernel is not None
        and kernel.is_named
        and recipe.form is not None
        and recipe.solver == "auto"
        and training.rows.in_memory() is not None
        and training.starts is None
        and training.known is None
        and limits.checkpoint is None
        and limits.max_iter is None
        and limits.tol >= LEAST_GAP
        and training.callbacks.is_silent
        and not limits.is_late
    )
    if not suits:
        return []
    sizes = training.sizes()
    return [int(k) for k in np.flatnonzero(sizes <= MOST_ROWS)]


def _problems(
    training: Training, samples: GroupedSamples, chosen: list[int]
) -> ManyProblems:
    """The problems over the samples."""
    n_classes, tasks = len(samples.count), training.tasks
    pairs = [
        range(n_classes) if tasks[k].negative is None else tasks[k] for k in chosen
    ]
    groups = np.array([g for pair in pairs for g in pair], np.int64)
    group_ends = np.cumsum([len(pair) for pair in pairs])
    positive = np.repeat([tasks[k].positive for k in chosen], [len(p) for p in pairs])
    count = samples.count[groups]
    y = np.repeat(np.where(groups == positive, 1.0, -1.0), count)
    loss, intercept = training.recipe.form or ("", "")
    many = ManyProblems(
        samples,
        groups,
        group_ends,
        np.cumsum(count)[group_ends - 1],
        y,
        np.full(len(y), training.C, dtype=np.float64) if np.ndim(training.C) == 0 else y,
        LOSSES[loss],
        intercept_for_loss(intercept, loss),
    )
    if np.ndim(training.C):
        vars(many)["C"] = np.asarray(training.C, np.float64)[many.rows]
    return many


def _stops(training: Training) -> tuple[Callable[[], bool], Callable[[], bool]]:
    """What ends the steps, and the certificates."""

    def over(deadline: object) -> Callable[[], bool]:
        return lambda: deadline is not None and deadline.left <= 0.0  # type: ignore[attr-defined]

    return over(training.limits.deadline), over(training.limits.grace)


def _sorted(
    training: Training, problems: ManyProblems, batch: Batch, chosen: list[int]
) -> tuple[dict[int, Solution], dict[int, Solution]]:
    """The solutions of solved problems, and of others, by the problem's number."""
    tol, seconds = training.limits.tol, training.clock.seconds()
    ended = _ended(training, batch)
    alpha = np.abs(batch.c)
    found: tuple[dict[int, Solution], dict[int, Solution]] = {}, {}
    bounded = problems.loss.is_bounded
    reason = _reason(problems)
    starts, ends = problems.starts.tolist(), problems.ends.tolist()
    for i, k in enumerate(chosen):
        part = slice(starts[i], ends[i])
        bounds, rows = batch.certificates[i], problems.rows[part]
        c, a, C = batch.c[part], alpha[part], problems.C[part]
        if (rows[1:] < rows[:-1]).any():
            order = np.argsort(rows, kind="stable")
            c, a, C = c[order], a[order], C[order]
        solved = bool(bounds.relative_gap <= tol and batch.is_convex[i])
        status = Status.SOLVED if solved else ended
        details = {
            "support_vectors": float(np.count_nonzero(a)),
            "steps": float(batch.steps[i]),
        }
        step = Step(0, bounds.primal, bounds.dual, 0.0, len(a), details)
        step.best_primal, step.best_dual = bounds.primal, bounds.dual
        step.seconds = seconds
        one = Solution(
            alpha=a,
            w=c,
            b=float(batch.b[i]),
            status=status or Status.STALLED,
            certificate=bounds,
            trace=Trace([step]),
            solver=NAME,
            reason=reason,
            seconds=seconds,
            tol=tol,
            message=Status.SOLVED.advice if solved else _message(training, bounds),
            extras=dict(details),
            at_bound=int(np.count_nonzero((a > 0) & (a >= C))) if bounded else None,
        )
        found[0 if solved or ended else 1][k] = one
    return found


def _ended(training: Training, batch: Batch) -> Status | None:
    """What ended all problems, if anything did."""
    if batch.interrupted:
        return Status.INTERRUPTED
    return Status.TIME_LIMIT if training.limits.is_late else None


def _message(training: Training, bounds: object) -> str:
    return ""


def _reason(problems: ManyProblems) -> str:
    t, most = len(problems.ends), int(problems.sizes.max())
    if t == 1:
        return f"because the problem is small ({most:,} rows)"
    return f"because the {t:,} problems are small (at most {most:,} rows)"
