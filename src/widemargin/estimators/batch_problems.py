"""The binary problems of a fit over the samples that they share, solved at once."""

import dataclasses
from contextlib import nullcontext
from typing import Any

import numpy as np

from widemargin.arrays import Index64, Vector
from widemargin.estimators.training import Training
from widemargin.kernels import wide_rows
from widemargin.kernels.given import GivenSamples, given_bytes, given_values
from widemargin.kernels.grouped import Grouped, GroupedSamples
from widemargin.kernels.kernel import Kernel
from widemargin.kernels.packed import STRIP
from widemargin.losses.pointwise import LOSSES, PointwiseLoss
from widemargin.problems.many import ManyProblems
from widemargin.problems.nu import nu_masses
from widemargin.solution import Solution
from widemargin.solutions import Solutions
from widemargin.solvers.kernel.batch import (
    MOST_EXACTLY,
    MOST_ROWS,
    Brief,
    are_shared,
    solve_many,
)
from widemargin.system import deadline
from widemargin.system.deadline import OutOfTime
from widemargin.system.memory import free_bytes
from widemargin.system.threads import ONE_BLAS_THREAD, n_threads

# Rows with a named kernel.
NamedSamples = GroupedSamples | wide_rows.WideRows
# Solutions of some problems by their numbers, or those of all problems of a fit.
Found = dict[int, Solution] | Solutions

# Bytes of kernel values that are always free: to look takes 0.1 ms.
FEW_BYTES = 64 << 20
# How many times the bytes of values in float32 float64 takes, with a factor.
EXACTLY = 6
# Multiplications of two matrices up to which OpenBLAS takes one thread anyway (its
# interface/gemm.c). After more its other threads wait for work, busily, while those of
# the core are at work: 325 pairs of 115 rows and 617 columns take 0.73 of the time
# without them.
ALONE = 1 << 18
# Bytes of the vectors of all problems, for each row of each: some 190 of numbers and
# pointers, and 108 of moves (KeptMoves of cpp/kept_moves.hpp).
PLACE_BYTES = 300


def solve_chosen(training: Training, chosen: list[int]) -> Found | None:
    """Solutions of some problems with a kernel; none where time or memory end first.

    None where they do not fit into memory, or float32 is too rough for them.
    """
    try:
        samples, others = samples_for(training, chosen)
        memory = memory_for(training, chosen, others + other_bytes(training, chosen))
        if samples is None or memory <= 0:
            return None
        with deadline.until(training.limits.deadline):
            samples.pack()
        problems, threads = problems_of(training, samples, chosen), 1
        if are_shared(problems):  # BLAS is asked for its threads
            threads = n_threads(training.rows.options.get("n_jobs"))
        solutions = solve_many(problems, training.limits, memory, threads)
    except (MemoryError, OutOfTime):  # in turn they take less
        return {}
    except KeyboardInterrupt:  # of a callable: in turn they end at their first step
        training.callbacks.interrupt()
        return {}
    return _by_number(training, chosen, solutions)


def _by_number(training: Training, chosen: list[int], solutions: Solutions) -> Found:
    """Solutions by the numbers of their problems: as they are, if they are of all."""
    if len(chosen) == len(training.tasks):
        return solutions
    return dict(zip(chosen, solutions, strict=True))


def numbered(found: Found) -> dict[int, Solution]:
    """Solutions by the numbers of their problems, as a dict."""
    return found if isinstance(found, dict) else dict(enumerate(found))


def solve_by_products(
    training: Training,
    chosen: list[int],
    brief: Brief | None = None,
) -> Found:
    """Solutions by the products of few rows, some of which may be stalled.

    Where the solver is ``brief`` all are that it has not solved.
    """
    rows = training.rows
    rows.check_finite()
    memory = memory_for_products(training, chosen)
    if memory <= 0:
        return {}
    X = rows.in_memory()
    try:
        with deadline.until(training.limits.deadline):
            samples = _named_samples(training, X, Kernel("linear", 1.0), chosen)
            if not is_fit(samples, training) or samples.is_wide:
                return {}
            samples.pack()
    except deadline.OutOfTime:
        return {}
    problems = problems_of(training, samples, chosen)
    problems = dataclasses.replace(problems, X=X)
    threads = n_threads(rows.options.get("n_jobs"))
    many = len(chosen) * rows.shape[0] * rows.shape[1] > ALONE
    with ONE_BLAS_THREAD if many else nullcontext():
        found = solve_many(problems, training.limits, memory, threads, brief)
    return _by_number(training, chosen, found)


def samples_for(
    training: Training, chosen: list[int], few: tuple[int, int] | None = None
) -> tuple[Grouped | None, int]:
    """The rows of a fit for problems that are solved at once, and bytes that they take.

    ``few`` says which dense rows are few: see `may_suit`. None where these do not fit
    into memory, or float32 is too rough for them.

    Raises
    ------
    OutOfTime
        The time is over before all values are made, where all are.
    """
    X, kernel = training.rows.in_memory(), training.recipe.kernel
    samples: NamedSamples | GivenSamples
    if kernel.is_named:  # type: ignore[union-attr]
        with deadline.until(training.limits.deadline):
            samples = _named_samples(training, X, kernel, chosen, few)  # type: ignore[arg-type]
        return samples if is_fit(samples, training) else None, samples.packed_bytes
    n_bytes = given_bytes(X, kernel)  # type: ignore[arg-type]
    is_long = training.rows.shape[0] > MOST_ROWS and not training.recipe.is_pairwise
    if is_long or memory_for(training, chosen, n_bytes) <= 0:
        return None, n_bytes
    with deadline.until(training.limits.deadline):
        values = given_values(X, kernel)  # type: ignore[arg-type]
    samples = GivenSamples(values, training.index)
    return samples if is_fit(samples, training) else None, n_bytes


def _named_samples(
    training: Training,
    X: Any,
    kernel: Kernel,
    chosen: list[int],
    few: tuple[int, int] | None = None,
) -> NamedSamples:
    """The rows with a named kernel, as suits them and the memory."""
    layout = wide_rows.layout_of(X, kernel, few)
    if layout is None or memory_for(training, chosen, wide_rows.n_bytes(X)) <= 0:
        return GroupedSamples(X, training.index, kernel)
    n_jobs = training.rows.options.get("n_jobs")
    return wide_rows.WideRows(X, training.index, kernel, layout, n_jobs)


def is_fit(samples: Grouped, training: Training) -> bool:
    """Whether the core can solve the problems, in float64 where these are small."""
    few = int(training.sizes.max()) <= MOST_EXACTLY
    return samples.is_fit or (few and samples.is_fit_exactly)


def memory_for(training: Training, chosen: list[int], others: int = 0) -> int:
    """Bytes that kernel values may take, beside ``others``.

    What is free is asked where many could be. Steps do not depend on the memory, and so
    on what other threads have taken of it, while the values of one more problem have
    room, and a quarter of them for each thread, which it cuts out of those of its own.
    """
    if training.memory_limit is not None:
        return training.memory_limit - others
    sizes = training.sizes[_index(training, chosen)].astype(np.int64)
    if training.recipe.q is not None and training.recipe.nu is not None:
        sizes = 2 * sizes  # a nu form has two variables a row
    each = 4 * (sizes + STRIP) ** 2
    threads, most = n_threads(training.rows.options.get("n_jobs")), int(each.max())
    more = (4 + threads) * most // 4 + EXACTLY * threads * most
    if int(each.sum()) + more + others <= FEW_BYTES:
        return FEW_BYTES
    return free_bytes() - others


def other_bytes(training: Training, chosen: list[int]) -> int:
    """Bytes beside kernel values: some numbers a place, and pointers to kept rows."""
    pointers = len(training.index) * (int(training.index.max()) + 1)
    places = int(training.sizes[_index(training, chosen)].sum())
    return PLACE_BYTES * places + 8 * pointers


def _index(training: Training, chosen: list[int]) -> list[int] | slice:
    """What selects the problems: a slice of all, as lists of thousands are slow."""
    return slice(None) if len(chosen) == len(training.tasks) else chosen


def memory_for_products(training: Training, chosen: list[int]) -> int:
    """Bytes that products of rows may take, beside what makes them."""
    others = other_bytes(training, chosen) + _copied_bytes(training, len(chosen))
    return memory_for(training, chosen, others)


def _copied_bytes(training: Training, t: int) -> int:
    """Bytes that products of rows take at most: copies, and weights of t problems.

    Packed in float32, and twice in float64: for exact scores, and by groups.
    """
    m, n = training.rows.shape
    return 8 * n * (3 * m + 2 * t)


def problems_of(
    training: Training, samples: Grouped, chosen: list[int]
) -> ManyProblems:
    """The problems over the samples; a regression has all samples twice."""
    if training.recipe.q is not None:
        twice = np.repeat([1.0, -1.0], training.rows.shape[0])
        return _over_all(training, samples, twice, training.recipe.q)
    tasks, few = training.tasks, len(samples.count)
    own = _index(training, chosen)
    positive = tasks.positive[own]
    if tasks.negative is not None:
        each, flat = 2, np.stack([positive, tasks.negative[own]], axis=1).ravel()
    else:
        each, flat = few, np.tile(np.arange(few), len(chosen))
    ends, count = each * np.arange(1, len(chosen) + 1), samples.count[flat]
    C: Any = training.C
    C = C[samples.rows_of(flat)] if np.ndim(C) else np.full(int(count.sum()), float(C))
    signs = np.where(flat == positive.repeat(each), 1.0, -1.0)
    loss, intercept = form(training)
    places, y = count.cumsum()[ends - 1], signs.repeat(count)
    if tasks.factors is not None:
        factors = tasks.factors[own].repeat(each)
        C *= np.where(signs > 0.0, factors, 1.0).repeat(count)
    return ManyProblems(
        samples,
        flat,
        ends,
        places,
        y,
        C,
        loss,
        intercept,
        np.full(len(chosen), -1),
        1.0 if training.recipe.nu is None else 0.0,
        _masses(training, y, C, places),
    )


def _masses(training: Training, y: Vector, C: Vector, ends: Index64) -> Vector | None:
    """The sum of alpha of each problem; None where none is given."""
    nu = training.recipe.nu
    if nu is None:
        return None
    return nu_masses(nu, y, C, ends, 1 if training.recipe.q is None else 2)


def _over_all(
    training: Training, samples: Grouped, y: Vector, q: Vector | float = 1.0
) -> ManyProblems:
    """Problems of all rows, which are one group, that ``y`` has once or twice."""
    t, m = len(training.tasks), training.rows.shape[0]
    groups = len(y) // m
    each = groups // t * np.arange(1, t + 1)
    loss, intercept = form(training)
    C = np.tile(np.broadcast_to(np.asarray(training.C, np.float64), m), groups)
    return ManyProblems(
        samples,
        np.zeros(groups, np.int64),
        each,
        m * each,
        y,
        C,
        loss,
        intercept,
        np.full(t, -1),
        q,
        _masses(training, y, C, m * each),
    )


def form(training: Training) -> tuple[PointwiseLoss, str]:
    """The loss and the intercept of the problems."""
    name, intercept = training.recipe.form or ("", "")
    loss = LOSSES[name]
    return loss, loss.intercept if intercept == "auto" else intercept
