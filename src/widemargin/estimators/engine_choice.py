"""Which binary problems of a fit are solved all at once, by pair steps of the core.

Small problems with a kernel. Those that are linear in their columns have more engines:
see `linear_choice`.
"""

import dataclasses
from typing import NoReturn

import numpy as np
from scipy import sparse

from widemargin.data.memory import as_rows
from widemargin.estimators.batch_problems import (
    form,
    memory_for_products,
    numbered,
    solve_chosen,
)
from widemargin.estimators.linear_choice import (
    LEAST_LINEAR_GAP,
    has_room,
    suits_descent,
    suits_gradients,
    suits_newton,
    suits_products,
    vectors_of,
)
from widemargin.estimators.training import Training
from widemargin.kernels.definite import sample
from widemargin.kernels.grouped import may_be_coded
from widemargin.kernels.table import KERNELS
from widemargin.kernels.wide_rows import may_suit
from widemargin.solution import Status
from widemargin.solvers.kernel.batch import (
    FEW_VECTORS,
    LEAST_GAP,
    MOST_ROWS,
    MOST_ROWS_ALONE,
    MOST_ROWS_TWICE,
    NAME,
    NARROW,
)
from widemargin.solvers.kernel.low_rank import rank_of
from widemargin.system.threads import n_threads

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
SHOWN, FIRST, ROUGHLY = 512, 128, 0.1
MOST_ROWS_OF_FEW, MOST_PLACES, BESIDE = 64_000, 100_000, 8
MOST_PACKED = 4_000_000
# Rows up to which one problem of dense rows is solved here in any case, and entries: of
# mnist 2,000 and 4,000 rows take 1.2 and 1.6 times as long as by working sets, of 200
# columns without zeros 0.7 and 0.9 times (`benchmarks/core/batch_limit.py`, two
# threads).
LEAST_ALONE, MOST_DENSE = 1_000, 1_500_000
# One problem of rows of ones whose kernel values are bytes: 5,000 rows of a9a take 0.66
# to 0.85 of the time of working sets with C of 0.1 to 100, 6,500 0.73 to 0.98, 8,000
# 0.91 to 1.24 (`benchmarks/core/batch_limit.py`).
MOST_CODED = 6_000


def batched(training: Training, copies: int = 1) -> list[int]:
    """The problems that are solved at once: with a kernel that keeps them convex.

    ``copies`` says how many others there are of each.
    """
    if training.recipe.kernel is None or not is_allowed(training):
        return []
    return small_enough(training, copies)


def small_enough(training: Training, copies: int = 1) -> list[int]:
    """The problems that are small enough."""
    is_asked, largest = training.recipe.solver == NAME, largest_of(training, copies)
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


def is_allowed(
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


def _keeps_convex(training: Training) -> bool:
    """Whether a kernel keeps problems convex, or is not known not to."""
    kernel = training.recipe.kernel
    if kernel is None or not kernel.is_named:
        return True
    return kernel.coef0 >= KERNELS[str(kernel.name)].psd_from


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
    if suits_newton(training, most):
        is_paired = training.tasks.are_pairs
        t = 1 if is_paired else len(training.tasks)
        return None if has_room(training, most, t) else ROUGH
    if suits_descent(training) or suits_gradients(training):
        return None
    limit, X = training.memory_limit, training.rows.in_memory()
    if limit is not None and sparse.issparse(X) and 8 * vectors_of(training) > limit:
        return ROUGH
    if suits_products(training, most):
        chosen = list(range(len(training.tasks)))
        return None if memory_for_products(training, chosen) > 0 else ROUGH
    return f"{m:,} rows x {n:,} features, linear in these"


def _most_alone(training: Training) -> int:
    """Rows up to which one problem may be solved here: fewer of wide dense rows.

    Not where these are so few that all their values are made at once.
    More where the values are given: of 6,000 rows working sets take 3.3 to 4.4 times as
    long (`benchmarks/kernel/given.py`), of 12,000 1.4 to 2.9, of 15,000 1.0 to 3.1.
    """
    recipe, X = training.recipe, training.rows.in_memory()
    kernel = recipe.kernel
    if kernel is not None and kernel.is_precomputed:
        return MOST_ROWS
    named = kernel is not None and kernel.is_named
    other = recipe.q is not None or recipe.nu is not None or not named
    few = training.rows.shape[0] <= MOST_CODED and form(training)[1] == "free"
    if few and not other and may_be_coded(X, kernel):  # type: ignore[arg-type]
        return MOST_CODED
    if other or not isinstance(X, np.ndarray) or may_suit(X, kernel):  # type: ignore[arg-type]
        return MOST_ROWS_ALONE
    return min(MOST_ROWS_ALONE, max(LEAST_ALONE, MOST_DENSE // int(X.shape[1])))


def largest_of(training: Training, copies: int = 1) -> int:
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
    and working sets take longer to begin. A quarter of these rows comes first: they
    have hardly more support vectors than all of them.
    """
    (m, n), recipe = training.rows.shape, training.recipe
    kernel, other = recipe.kernel, recipe.q is not None or recipe.nu is not None
    if len(training.tasks) > 1 or other or kernel is None or not kernel.is_named:
        return False
    if m * n > MOST_PACKED:
        return False
    most = SHOWN * min(FEW_VECTORS, MOST_PLACES / (m * (n + BESIDE)))
    return m > SHOWN and all(
        _vectors_of_some(training, rows) <= most for rows in (FIRST, SHOWN)
    )


def _vectors_of_some(training: Training, rows: int) -> float:
    """Support vectors of some rows alone, about; infinite where that is not known.

    None of the first rows, where a class is not among them: more may have both.
    """
    J = sample(training.rows.shape[0], rows)
    index = training.index[J]
    if not 0 < index.sum() < rows:
        return 0.0 if rows == FIRST else np.inf
    some = dataclasses.replace(
        training.limited(tol=max(training.limits.tol, ROUGHLY)),
        rows=as_rows(training.rows.take(J), **training.rows.options),
        index=index,
        C=training.C[J] if np.ndim(training.C) else training.C,
    )
    try:
        found = numbered(solve_chosen(some, [0]) or {}).values()
    except ValueError:  # of a row without a finite value: all rows show its number
        return np.inf
    if any(one.status is Status.INTERRUPTED for one in found):
        training.callbacks.interrupt()
        return np.inf
    vectors = [one.extras["support_vectors"] for one in found]
    return min(vectors, default=np.inf)
