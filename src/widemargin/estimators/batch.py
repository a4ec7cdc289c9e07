"""The binary problems of a fit that are small enough to be solved all at once."""

import itertools
from typing import Any

import numpy as np

from widemargin.estimators.training import Training
from widemargin.kernels.grouped import GroupedSamples
from widemargin.kernels.packed import STRIP
from widemargin.kernels.table import KERNELS
from widemargin.losses.pointwise import LOSSES
from widemargin.problems.base import intercept_for_loss
from widemargin.problems.many import ManyProblems
from widemargin.solution import Solution
from widemargin.solvers.kernel.batch import LEAST_GAP, MOST_ROWS, solve_many
from widemargin.system.memory import free_bytes
from widemargin.system.threads import n_threads

# Bytes of kernel values that are always free: to look takes 0.1 ms.
FEW_BYTES = 64 << 20


def solve_batch(training: Training) -> dict[int, Solution]:
    """Solutions of small problems, by their numbers; stalled ones need another solver.

    None where the user asked for what this solver does not do.
    """
    chosen, kernel = batched(training), training.recipe.kernel
    if not chosen or kernel is None:
        return {}
    samples = GroupedSamples(training.rows.in_memory(), training.index, kernel)
    if not samples.is_fit:
        return {}
    solutions = solve_many(
        _problems(training, samples, chosen),
        training.limits,
        memory_for(training, chosen),
        n_threads(training.rows.options.get("n_jobs")),
    )
    return dict(zip(chosen, solutions, strict=True))


def batched(training: Training) -> list[int]:
    """The problems that are solved at once.

    None where something is said about single iterations, where there is another start
    than zero, or where the kernel may not be positive semidefinite.
    """
    recipe, limits, kernel = training.recipe, training.limits, training.recipe.kernel
    suits = (
        recipe.form is not None
        and recipe.solver == "auto"
        and kernel is not None
        and kernel.is_named
        and kernel.coef0 >= KERNELS[str(kernel.name)].psd_from
        and training.rows.is_in_memory
        and training.starts is training.known is None
        and limits.checkpoint is None
        and limits.max_iter is None
        and limits.tol >= LEAST_GAP
        and training.callbacks.is_silent
        and not limits.is_late
    )
    if not suits:
        return []
    return [int(k) for k in np.flatnonzero(training.sizes() <= MOST_ROWS)]


def memory_for(training: Training, chosen: list[int]) -> int:
    """Bytes that kernel values may take. What is free is asked where many could be."""
    if training.memory_limit is not None:
        return training.memory_limit
    most = sum(4 * (int(size) + STRIP) ** 2 for size in training.sizes()[chosen])
    return FEW_BYTES if most <= FEW_BYTES else free_bytes()


def _problems(
    training: Training, samples: GroupedSamples, chosen: list[int]
) -> ManyProblems:
    """The problems over the samples."""
    all_classes = tuple(range(len(samples.count)))
    tasks = [training.tasks[k] for k in chosen]
    groups = [
        all_classes if task.negative is None else (task.positive, task.negative)
        for task in tasks
    ]
    sizes = np.array([len(group) for group in groups])
    flat = np.fromiter(itertools.chain.from_iterable(groups), np.int64)
    positive = [task.positive for task in tasks]
    ends, count = np.cumsum(sizes), samples.count[flat]
    C: Any = training.C
    C = C[samples.rows_of(flat)] if np.ndim(C) else np.full(int(count.sum()), float(C))
    signs = np.where(flat == np.repeat(positive, sizes), 1.0, -1.0)
    loss, intercept = training.recipe.form or ("", "")
    return ManyProblems(
        samples,
        flat,
        ends,
        np.cumsum(count)[ends - 1],
        np.repeat(signs, count),
        C,
        LOSSES[loss],
        intercept_for_loss(intercept, loss),
        np.full(len(tasks), -1),
    )
