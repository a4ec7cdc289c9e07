"""The binary problems of a fit that are small enough to be solved all at once."""

import dataclasses
import itertools
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from widemargin.data.memory import as_rows
from widemargin.estimators.equal_samples import without_equals
from widemargin.estimators.training import Training
from widemargin.kernels.definite import sample
from widemargin.kernels.given import GivenSamples, given_bytes, given_values
from widemargin.kernels.grouped import Grouped, GroupedSamples
from widemargin.kernels.kernel import Kernel
from widemargin.kernels.packed import STRIP
from widemargin.kernels.table import KERNELS
from widemargin.losses.pointwise import LOSSES, PointwiseLoss
from widemargin.problems.many import ManyProblems
from widemargin.problems.many_linear import ManyLinearProblems
from widemargin.problems.nu import nu_mass
from widemargin.solution import Solution, Status
from widemargin.solvers.kernel.batch import (
    FEW_VECTORS,
    LEAST_GAP,
    MOST_EXACTLY,
    MOST_ROWS,
    MOST_ROWS_ALONE,
    MOST_ROWS_TWICE,
    NAME,
    NARROW,
    are_shared,
    solve_many,
)
from widemargin.solvers.kernel.low_rank import rank_of
from widemargin.solvers.linear.batch import solve_many_linear
from widemargin.system import deadline
from widemargin.system.deadline import OutOfTime
from widemargin.system.memory import free_bytes
from widemargin.system.threads import n_threads

Vector = NDArray[np.float64]

# Columns up to which Newton's method on the columns takes all problems at once, and
# entries: of more problems than threads, of fewer, and of sparse rows, zeros included
# (`benchmarks/core/newton_batch.py`). Beyond, rows up to which products of rows are
# faster than single solvers.
MOST_COLUMNS = 256
MOST_ENTRIES, MOST_ENTRIES_ALONE, MOST_SPARSE = 2_000_000, 1_000_000, 200_000
MOST_LINEAR = 600
# Rows up to which pair steps end at the optimum itself: examples to look at.
FEW_ROWS = 16
# The least gap of Newton's method: rounding decides below.
LEAST_LINEAR_GAP = 1e-8
# Numbers of each problem for each row: vectors of the core, and of its certificate.
LINEAR_PLACES = 16
# What float32, or the memory, has no room for, as a sentence says it.
ROUGH = (
    "values that float32 has too few digits for, that memory_limit has no room for, or "
    "that no positive semidefinite kernel has"
)
# Rows that show how many of all are support vectors, and the gap to which these are
# solved: 1 ms. A problem with few of them, which is no small one, is solved here up to
# a number of rows, and a number of all support vectors by that share times the columns
# and what a row costs beside. Clusters of 8,000 rows and 38 columns, 0.16 of 512, take
# 0.4 of the time of working sets, and 16,000 0.85; 64,000 rows of two columns 0.3 to
# 0.6 (`benchmarks/core/batch_limit.py`). Packed, an entry has 16 bytes.
SHOWN, ROUGHLY = 512, 0.1
MOST_ROWS_OF_FEW, MOST_PLACES, BESIDE = 64_000, 100_000, 8
MOST_PACKED = 4_000_000
# Rows up to which one problem of dense rows is solved here in any case, and entries: of
# mnist 2,000 and 4,000 rows take 1.8 and 2.2 times as long as by working sets
# (`benchmarks/core/batch_limit.py`, two threads).
LEAST_ALONE, MOST_DENSE = 1_000, 1_500_000
# Bytes of kernel values that are always free: to look takes 0.1 ms.
FEW_BYTES = 64 << 20
# Bytes of the vectors of all problems, for each row of each.
PLACE_BYTES = 200


def solve_batch(training: Training) -> dict[int, Solution]:
    """Solutions of small problems, by their numbers; stalled ones need another solver.

    There are none where the user asked for what this solver does not do.
    """
    if training.recipe.kernel is None or not _suits(training, may_curve=True):
        return {}
    fewer = without_equals(training, _largest(training))
    if fewer is None:
        return _kernel_batch(training)
    found = _kernel_batch(fewer.training)
    return {k: fewer.for_all(k, solution) for k, solution in found.items()}


def _kernel_batch(training: Training) -> dict[int, Solution]:
    """The same, with equal samples as they are."""
    chosen = _small(training)
    if not chosen:
        return {}
    try:
        samples, others = samples_for(training, chosen)
        memory = memory_for(training, chosen, others + _other_bytes(training, chosen))
        if samples is None or memory <= 0:
            if training.recipe.solver == NAME:
                refuse_named(ROUGH)
            return {}
        with deadline.until(training.limits.deadline):
            samples.pack()
        problems, threads = _problems(training, samples, chosen), 1
        if are_shared(problems):  # BLAS is asked for its threads
            threads = n_threads(training.rows.options.get("n_jobs"))
        solutions = solve_many(problems, training.limits, memory, threads)
    except (MemoryError, OutOfTime):  # in turn they take less
        return {}
    except KeyboardInterrupt:  # of a callable: in turn they end at their first step
        training.callbacks.interrupt()
        return {}
    return dict(zip(chosen, solutions, strict=True))


def solve_linear_batch(training: Training) -> list[Solution] | None:
    """Solutions of small problems that are linear in their columns.

    None where other solvers suit better.
    """
    try:
        return _linear_batch(training)
    except KeyboardInterrupt:  # they end at their first step, with what there is
        training.callbacks.interrupt()
        return None


def _linear_batch(training: Training) -> list[Solution] | None:
    """The same, but that Ctrl-C outside of the core ends it."""
    # Along a path, too: from zero it is faster than others are from the last answer.
    cold = dataclasses.replace(training, starts=None)
    if not _suits(cold, LEAST_LINEAR_GAP):
        return None
    m, n = training.rows.shape
    suits, is_classifier = _suits(training), training.recipe.q is None
    if suits and is_classifier and m <= FEW_ROWS and form(training)[0].is_bounded:
        found = _all_by_products(training)
        if found is not None:
            return found
    if n <= min(m, MOST_COLUMNS) and m * (n + 1) <= _most_entries(training):
        return _by_newton(training)
    return _all_by_products(training) if suits and m <= MOST_LINEAR else None


def _all_by_products(training: Training) -> list[Solution] | None:
    """The same of few rows, by the products of rows; None where one is stalled."""
    found = _by_products(training, list(range(len(training.tasks))))
    return list(found.values()) if len(found) == len(training.tasks) else None


def _most_entries(training: Training) -> int:
    """Entries up to which Newton's method on the columns takes all problems at once."""
    if sparse.issparse(training.rows.in_memory()):
        return MOST_SPARSE
    if len(training.tasks) == 1 or training.tasks[0].negative is not None:
        return MOST_ENTRIES_ALONE
    threads = n_threads(training.rows.options.get("n_jobs"))
    return MOST_ENTRIES if len(training.tasks) > threads else MOST_ENTRIES_ALONE


def solve_linear_pairs(training: Training) -> dict[int, Solution]:
    """The same of problems of pairs of classes, by their numbers: those that suit."""
    found: dict[int, Solution] = {}
    if not _suits(training, LEAST_LINEAR_GAP):
        return found
    training.rows.moments  # noqa: B018  (refuses NaN and infinity)
    few = np.flatnonzero(training.sizes <= MOST_LINEAR).tolist()
    try:
        if few and _suits(training):
            found = _by_products(training, few)
        if any(one.status is Status.INTERRUPTED for one in found.values()):
            return found
        for k in range(len(training.tasks)):
            if k in found:
                continue
            solution = _solve_pair(training, k)
            if solution is not None:
                found[k] = solution
                if solution.status is Status.INTERRUPTED:
                    break
    except KeyboardInterrupt:  # in turn the others end at their first step
        training.callbacks.interrupt()
    return found


def _solve_pair(training: Training, k: int) -> Solution | None:
    """The solution of one pair; None where another solver suits better."""
    C, n, m = training.C, training.rows.shape[1], int(training.sizes[k])
    if n > min(m, MOST_COLUMNS) or m * (n + 1) > _most_entries(training):
        return None
    if training.limits.is_late or not _has_room(training, m, 1):
        return None
    own: Any = training.chosen(k)
    weights = C[own] if np.ndim(C) else np.full(m, float(C))
    y = training.signs(k)[np.newaxis].astype(np.float64)
    solutions = _newton(training, training.rows.take(own), y, weights)
    return None if solutions is None else solutions[0]


def _by_newton(training: Training) -> list[Solution] | None:
    """The same by Newton's method on the columns."""
    rows, t, m = training.rows, len(training.tasks), training.rows.shape[0]
    if not _has_room(training, m, t):
        return None
    rows.moments  # noqa: B018  (refuses NaN and infinity)
    C = np.broadcast_to(np.asarray(training.C, np.float64), m)
    y = np.stack([training.signs(k) for k in range(t)]).astype(np.float64)
    return _newton(training, rows.in_memory(), y, C)


def _has_room(training: Training, m: int, t: int) -> bool:
    """Whether ``memory_limit`` has room for t problems of m rows, by their columns."""
    n, copies = training.rows.shape[1], 1 if training.recipe.q is None else 2
    needed = 8 * m * (n + t * copies * LINEAR_PLACES)
    return training.memory_limit is None or needed <= training.memory_limit


def _newton(training: Training, X: Any, y: Vector, C: Vector) -> list[Solution] | None:
    """The same of labels y (t, m) of rows X; None where one is stalled."""
    q = training.recipe.q
    X = np.ascontiguousarray(X.toarray() if sparse.issparse(X) else X, np.float64)
    kept = C > 0.0
    if not kept.all():
        X, y, C = X[kept], np.ascontiguousarray(y[:, kept]), C[kept]
        q = q if q is None else q[np.tile(kept, 2)]
    q = q if q is None else np.tile(q, (len(y), 1))
    problems = ManyLinearProblems(X, y, np.ascontiguousarray(C), *form(training), q)
    threads = n_threads(training.rows.options.get("n_jobs"))
    to_digits = training.recipe.to_digits
    found = solve_many_linear(problems, training.limits, threads, to_digits)
    if any(solution.status is Status.STALLED for solution in found):
        return None
    return found if kept.all() else [_with_zeros(one, kept) for one in found]


def _with_zeros(solution: Solution, kept: NDArray[np.bool_]) -> Solution:
    """The same where rows without weight have their alpha, too."""
    copies = len(solution.alpha) // np.count_nonzero(kept)
    alpha = np.zeros((copies, len(kept)))
    alpha[:, kept] = solution.alpha.reshape(copies, -1)
    return dataclasses.replace(solution, alpha=alpha.ravel())


def _by_products(training: Training, chosen: list[int]) -> dict[int, Solution]:
    """The same of few rows, by the products of rows; not those that are stalled."""
    rows = training.rows
    rows.moments  # noqa: B018  (refuses NaN and infinity)
    memory = _memory_for_products(training, chosen)
    if memory <= 0:
        return {}
    samples = GroupedSamples(rows.in_memory(), training.index, Kernel("linear", 1.0))
    if not _is_fit(samples, training) or samples.is_wide:
        return {}
    problems = _problems(training, samples, chosen)
    problems = dataclasses.replace(problems, X=rows.in_memory())
    threads = n_threads(rows.options.get("n_jobs"))
    found = solve_many(problems, training.limits, memory, threads)
    solved = zip(chosen, found, strict=True)
    return {k: one for k, one in solved if one.status is not Status.STALLED}


def _suits(
    training: Training, least: float = LEAST_GAP, may_curve: bool = False
) -> bool:
    """Whether all problems may be solved at once, by what the user asked for."""
    asked = training.recipe.solver in ("auto", NAME)
    free = asked and training.recipe.form is not None and not training.limits.is_late
    return free and _hindrance(training, least, may_curve) is None


def _hindrance(training: Training, least: float, may_curve: bool = False) -> str | None:
    """What keeps problems from being solved at once; or None.

    Something is said about single iterations, there is another start than zero, the gap
    is below the ``least`` that the digits allow, C is infinite, or rows are in files.
    """
    limits = training.limits
    if not training.rows.is_in_memory:
        return "rows that are not in memory"
    if training.is_hard:
        return "C=inf"
    if training.starts or training.known:
        return "a start other than zero"
    if limits.checkpoint is not None:
        return "a checkpoint"
    if limits.max_iter is not None:
        return "max_iter"
    if limits.tol < least:
        return f"tol below {least:g}"
    if not training.callbacks.is_silent:
        return "a callback or verbose"
    if not (may_curve or _keeps_convex(training)):
        return "kernels that are not positive semidefinite"
    return None


def refuse_batch(training: Training) -> None:
    """Refuse ``solver="batch"`` where problems cannot be solved at once."""
    if training.recipe.solver != NAME:
        return
    least = LEAST_GAP
    if training.recipe.kernel is None:
        training, least = dataclasses.replace(training, starts=None), LEAST_LINEAR_GAP
    found = _hindrance(training, least, may_curve=True) or _size_hindrance(training)
    if found is not None:
        refuse_named(found)


def refuse_named(what: str) -> NoReturn:
    """Refuse ``solver="batch"`` for what it is not for."""
    raise ValueError(
        f"The solver 'batch' is for small problems, solved at once: not for {what}. "
        "The solver 'auto' takes others, too."
    )


def _size_hindrance(training: Training) -> str | None:
    """What is too large of problems that are to be solved at once; or None."""
    most, (m, n) = int(training.sizes.max()), training.rows.shape
    if training.recipe.kernel is not None:
        found = f"more than {MOST_ROWS:,} rows a problem, here {most:,}"
        return found if most > MOST_ROWS else None
    entries, is_paired = _most_entries(training), training.tasks[0].negative is not None
    if n <= min(most, MOST_COLUMNS) and most * (n + 1) <= entries:
        has_room = _has_room(training, most, 1 if is_paired else len(training.tasks))
        return None if has_room else ROUGH
    if most <= MOST_LINEAR:
        chosen = list(range(len(training.tasks)))
        return None if _memory_for_products(training, chosen) > 0 else ROUGH
    return f"{m:,} rows x {n:,} features, linear in these"


def _keeps_convex(training: Training) -> bool:
    """Whether a kernel keeps problems convex, or is not known not to."""
    kernel = training.recipe.kernel
    if kernel is None or not kernel.is_named:
        return True
    return kernel.coef0 >= KERNELS[str(kernel.name)].psd_from


def samples_for(training: Training, chosen: list[int]) -> tuple[Grouped | None, int]:
    """The rows of a fit for problems that are solved at once, and bytes that they take.

    None where these do not fit into memory, or float32 is too rough for them.

    Raises
    ------
    OutOfTime
        The time is over before a callable has made its values.
    """
    X, kernel = training.rows.in_memory(), training.recipe.kernel
    samples: Grouped
    if kernel.is_named:  # type: ignore[union-attr]
        samples = GroupedSamples(X, training.index, kernel)  # type: ignore[arg-type]
        return samples if _is_fit(samples, training) else None, samples.packed_bytes
    n_bytes = given_bytes(X, kernel)  # type: ignore[arg-type]
    is_long = training.rows.shape[0] > MOST_ROWS and not training.recipe.is_pairwise
    if is_long or memory_for(training, chosen, n_bytes) <= 0:
        return None, n_bytes
    with deadline.until(training.limits.deadline):
        values = given_values(X, kernel)  # type: ignore[arg-type]
    samples = GivenSamples(values, training.index)
    return samples if _is_fit(samples, training) else None, n_bytes


def _is_fit(samples: Grouped, training: Training) -> bool:
    """Whether the core can solve the problems, in float64 where these are small."""
    few = int(training.sizes.max()) <= MOST_EXACTLY
    return samples.is_fit or (few and samples.is_fit_exactly)


def batched(training: Training, copies: int = 1, may_curve: bool = False) -> list[int]:
    """The problems that are solved at once: with a kernel that keeps them convex.

    Any named kernel, if they may curve. ``copies`` says how many others there are of
    each.
    """
    suits = _suits(training, may_curve=may_curve)
    return _small(training, copies) if training.recipe.kernel and suits else []


def _small(training: Training, copies: int = 1) -> list[int]:
    """The problems that are small enough."""
    is_asked, largest = training.recipe.solver == NAME, _largest(training, copies)
    alone = _most_alone(training)
    if training.sizes.max() <= (largest if is_asked else alone):
        return list(range(len(training.tasks)))
    threads = n_threads(training.rows.options.get("n_jobs"))
    many = copies * len(training.tasks) > threads
    narrow = _is_narrow(training)
    most = largest if many or (narrow and not _has_low_rank(training)) else 0
    if most < training.sizes.max() <= MOST_ROWS_OF_FEW and _has_few_vectors(training):
        most = MOST_ROWS_OF_FEW
    most = max(most, alone)
    return [int(k) for k in np.flatnonzero(training.sizes <= most)]


def _most_alone(training: Training) -> int:
    """Rows up to which one problem may be solved here: fewer of wide dense rows."""
    recipe, X = training.recipe, training.rows.in_memory()
    named = recipe.kernel is not None and recipe.kernel.is_named
    other = recipe.q is not None or recipe.nu is not None or not named
    if other or not isinstance(X, np.ndarray):
        return MOST_ROWS_ALONE
    return min(MOST_ROWS_ALONE, max(LEAST_ALONE, MOST_DENSE // int(X.shape[1])))


def _largest(training: Training, copies: int = 1) -> int:
    """Rows of the largest problem that may be solved with others at once."""
    is_regression = training.recipe.q is not None and training.recipe.nu is None
    twice = _is_narrow(training) and is_regression and copies == 1
    return MOST_ROWS_TWICE if twice else MOST_ROWS


def _is_narrow(training: Training) -> bool:
    """Whether kernel values take little time."""
    kernel = training.recipe.kernel
    named = kernel is not None and kernel.is_named
    return named and training.rows.shape[1] <= NARROW


def _has_low_rank(training: Training) -> bool:
    """Whether some rows show a kernel matrix of low rank, which working sets look for.

    Pair steps take long there: two Gaussians in the plane, 5,000 rows, 2 s with C =
    100, where working sets take 0.6; and as long as these, 0.1 s, with C = 1.
    """
    rows, kernel = training.rows, training.recipe.kernel
    if kernel is None or training.recipe.q is not None:
        return False
    X = rows.take(sample(rows.shape[0]))
    return rank_of(kernel, rows, kernel.resolved(rows)(X, X)) < np.inf


def _has_few_vectors(training: Training) -> bool:
    """Whether few rows are support vectors, as some rows show by theirs.

    The share of these is above that of all rows. Where it is small, pair steps are few,
    and working sets take longer to begin.
    """
    (m, n), recipe = training.rows.shape, training.recipe
    kernel, other = recipe.kernel, recipe.q is not None or recipe.nu is not None
    if len(training.tasks) > 1 or other or kernel is None or not kernel.is_named:
        return False
    if m * n > MOST_PACKED:
        return False
    J = sample(m, SHOWN)
    index = training.index[J]
    if m <= SHOWN or not 0 < index.sum() < SHOWN:
        return False
    some = dataclasses.replace(
        training.limited(tol=max(training.limits.tol, ROUGHLY)),
        rows=as_rows(training.rows.take(J), **training.rows.options),
        index=index,
        C=training.C[J] if np.ndim(training.C) else training.C,
    )
    try:
        found = _kernel_batch(some).values()
    except ValueError:  # of a row without a finite value: all rows show its number
        return False
    if any(one.status is Status.INTERRUPTED for one in found):
        training.callbacks.interrupt()
        return False
    vectors = [one.extras["support_vectors"] for one in found]
    share = min(vectors, default=SHOWN) / SHOWN
    return share <= FEW_VECTORS and share * m * (n + BESIDE) <= MOST_PLACES


def memory_for(training: Training, chosen: list[int], others: int = 0) -> int:
    """Bytes that kernel values may take, beside ``others``.

    What is free is asked where many could be.
    """
    if training.memory_limit is not None:
        return training.memory_limit - others
    most = sum(4 * (int(size) + STRIP) ** 2 for size in training.sizes[chosen])
    if most + others <= FEW_BYTES:
        return FEW_BYTES
    return free_bytes() - others


def _other_bytes(training: Training, chosen: list[int]) -> int:
    """Bytes beside kernel values: some numbers a place, and pointers to kept rows."""
    pointers = len(training.index) * (int(training.index.max()) + 1)
    return PLACE_BYTES * int(training.sizes[chosen].sum()) + 8 * pointers


def _memory_for_products(training: Training, chosen: list[int]) -> int:
    """Bytes that products of rows may take, beside what makes them."""
    others = _other_bytes(training, chosen) + _copied_bytes(training, len(chosen))
    return memory_for(training, chosen, others)


def _copied_bytes(training: Training, t: int) -> int:
    """Bytes that products of rows take at most: copies, and weights of t problems.

    Packed in float32, and twice in float64: for exact scores, and by groups.
    """
    m, n = training.rows.shape
    return 8 * n * (3 * m + 2 * t)


def _problems(training: Training, samples: Grouped, chosen: list[int]) -> ManyProblems:
    """The problems over the samples; a regression has all samples twice."""
    if training.recipe.q is not None:
        twice = np.repeat([1.0, -1.0], training.rows.shape[0])
        return _over_all(training, samples, twice, training.recipe.q)
    all_classes = tuple(range(len(samples.count)))
    tasks = [training.tasks[k] for k in chosen]
    groups = [
        all_classes if task.negative is None else (task.positive, task.negative)
        for task in tasks
    ]
    sizes = np.array([len(group) for group in groups])
    flat = np.fromiter(itertools.chain.from_iterable(groups), np.int64)
    positive = np.array([task.positive for task in tasks])
    ends, count = sizes.cumsum(), samples.count[flat]
    C: Any = training.C
    C = C[samples.rows_of(flat)] if np.ndim(C) else np.full(int(count.sum()), float(C))
    signs = np.where(flat == positive.repeat(sizes), 1.0, -1.0)
    loss, intercept = form(training)
    places, y = count.cumsum()[ends - 1], signs.repeat(count)
    return ManyProblems(
        samples,
        flat,
        ends,
        places,
        y,
        C,
        loss,
        intercept,
        np.full(len(tasks), -1),
        1.0 if training.recipe.nu is None else 0.0,
        _masses(training, y, C, places),
    )


def _masses(
    training: Training, y: Vector, C: Vector, ends: NDArray[np.int64]
) -> Vector | None:
    """The sum of alpha of each problem; None where none is given."""
    nu = training.recipe.nu
    if nu is None:
        return None
    copies = 1 if training.recipe.q is None else 2
    parts = itertools.starmap(slice, itertools.pairwise([0, *ends.tolist()]))
    return np.array([nu_mass(nu, y[part], C[part], copies) for part in parts])


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
