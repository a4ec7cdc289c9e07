"""Which engine solves the binary problems of a fit: those that solve all at once.

Small problems with a kernel are solved by pair steps of the core, small ones that are
linear in their columns by Newton's method on the columns, or by the products of rows.
"""

import dataclasses
from typing import Any, NamedTuple, NoReturn

import numpy as np
from scipy import sparse

from widemargin import _core
from widemargin.data.memory import as_rows
from widemargin.estimators.batch_problems import (
    form,
    memory_for_products,
    numbered,
    solve_chosen,
)
from widemargin.estimators.training import Training
from widemargin.kernels.definite import sample
from widemargin.kernels.grouped import may_be_coded
from widemargin.kernels.table import KERNELS
from widemargin.kernels.wide_rows import may_suit
from widemargin.solution import Status
from widemargin.solvers import auto
from widemargin.solvers.kernel.batch import (
    FEW_VECTORS,
    LEAST_GAP,
    MOST_EXACTLY,
    MOST_ROWS,
    MOST_ROWS_ALONE,
    MOST_ROWS_TWICE,
    NAME,
    NARROW,
)
from widemargin.solvers.kernel.low_rank import rank_of
from widemargin.system.threads import n_threads

# Columns up to which Newton's method on the columns takes all problems at once, and
# entries: of more problems than threads, of fewer, and of sparse rows, zeros included
# (`benchmarks/core/newton_batch.py`). Beyond, rows up to which products of rows are
# faster than single solvers.
MOST_COLUMNS = 256
MOST_ENTRIES, MOST_ENTRIES_ALONE, MOST_SPARSE = 2_000_000, 1_000_000, 200_000
MOST_LINEAR = 600
# The same of dense rows with at least one column for two rows, where mean C times mean
# |x|^2 is above what "auto" takes coordinate descent for (`benchmarks/core/wide.py`).
# Classifiers of 1,000 rows x 3,000 columns with C = 1 and 100 take 0.08 s, not 0.7 to
# 13; 2,000 x 5,000 0.5, not 3 to 20; 2,000 x 1,000 0.2, not 0.9 to 3; with 1,000 x 400
# some would take twice as long, 1,500 x 300 0.6, not 0.01. Regressions of 1,500 x 1,000
# take 0.1 to 0.8 s, not 1.5 to 4, and 3,000 x 1,500 0.4 to 4.4, not 4 to 13.
MOST_WIDE, WIDE_SHARE = 3_000, 0.5
# Products of more dense rows, which all classes share, come before other solvers up to
# so many rows; and up to so many times the columns of all problems, for so many steps a
# row: the hinge, and the squared one, for which Newton's method takes less time where
# classes overlap. (benchmarks/core/shared_products.py: 0.01 to 1.1 of the time where
# steps suffice, up to 1.46 where not; with 10 steps of the squared one up to 2.9.)
MOST_SHARED, SHARED_BOUNDED, SHARED_SQUARED = 10_000, (4.0, 10), (0.8, 4)
# Descent comes in their place with the squared loss where this many times the problems
# and their mean C |x|^2 is at most the rows: what its visits cost beside the products.
# (mnist and isolet, 1,000 to 6,000 rows, C from 0.001 to 1: up to 4 times as fast on
# either side, with 50; others: benchmarks/core/dense_linear.py.)
SHARED_VISITS = 50
# Regressions with the squared loss, of which most rows are active: from so many rows on
# with less than two columns a row Newton's method on the columns takes a few steps.
# (300 x 300 and 500 x 400, C = 1, 100 and 1e4: 6 to 12 ms, not 7 to 150; 1,500 x 1,000
# 40 to 80, not 650 to 990; 300 x 1,000 20 and 10.)
FEW_SQUARES, SQUARES_SHARE = 200, 2
# Entries of sparse rows, times the problems, and numbers of their vectors, up to which
# the core takes these all at once; and entries of one alone: with 1.8 million the
# solver by itself, whose certificates have all threads, takes 0.4 to 0.8 of the time.
# (20 classes of 20,000 documents, 28 million: 0.4 to 0.9; more were not measured.)
MOST_STORED, MOST_STORED_ALONE = 100_000_000, 500_000
# Cubes of the columns for each entry from which conjugate gradients take less time than
# factors. (Squared loss, real sets of 110 to 300 columns: a4a, w5a, mushrooms, 4 to 230
# of these, 0.9 to 5 times; w1a, 950, 0.3 to 0.8; ten ones a row, 600 and 1,000 columns,
# 3,000 and 30,000, 0.1 to 0.4.)
FACTOR_COST = 500
# Pair steps on products of rows come before Newton's method on the columns for tubes of
# few rows where the columns are at least so many, and so large a share of the rows; of
# which none deviates so many times as much as another; and half a width is so many
# deviations of the targets: without a width steps always fail. They are as many as its
# first multiplications, n^2 (m + 2n/3), over STEP_COST: a third of its time.
# (benchmarks/core/steps_or_newton.py: 0.03 to 0.3 of the time.)
STEP_COLUMNS, STEP_SHARE, STEP_COST = 200, 0.4, 1000
TUBE_SIZES, TUBE_WIDTH = 5.0, 0.05
# Classifiers with the hinge go on there to their end in float64, where so many columns
# are so large a share of the rows: 0.01 to 0.5 of the time on usps, isolet and mnist,
# of two and more classes, up to 1.9 where they fail (C = 1e4). Where classes overlap
# that are noise, or columns are of low rank, up to 3, and 8 of rank 10 (3,000 x 600:
# 0.13 and 0.95 s): nothing seen before tells these from images. They fail where
# Newton's steps have taken this share of the products of all rows and pairs of columns:
# most that end take 0.04 to 0.65 of it, others 5 to 20. (The same benchmark.)
FACED_COLUMNS, FACED_SHARE = 100, 0.2
FACED_WORK = 0.8
# Where columns are fewer, but so large a share of the rows, and of pairs of classes,
# products have so many pair steps a row, if no more than that share of the rows are
# support vectors soon. With a margin between the classes they take 0.01 to 0.8 of the
# time of Newton's method, where classes overlap 0.6 to 2.6: 0.72 in the mean (the same,
# --pairs).
FEWER_SHARE, FEWER_STEPS, FEWER_MOVED = 0.1, 3, 0.14
# Pairs of classes with more than FEW_PAIRED rows, and fewer columns than FACED_SHARE of
# these, have as many pair steps on products as Newton's method takes time for the
# columns: (n + AS_COLUMNS)^2 / AS_NEWTON, and STEPS_ALONE / (m + AS_ROWS) for what a
# problem alone takes beside. Ten classes of 250 rows x 20 columns that overlap, C =
# 100: 0.05 s, not 0.24 (`benchmarks/core/linear_folds.py --fits`).
FEW_PAIRED, AS_COLUMNS, AS_NEWTON = 100, 30, 4
STEPS_ALONE, AS_ROWS = 375_000, 250
# Classifiers with the squared hinge, so many columns and rows begin with Newton's
# steps. Most end soon. Those in which fewer rows than columns have a loss by then take
# 20 to 190 of them: they go on with so many pair steps a row on products, which take
# 0.06 to 0.5 of the time with a margin between the classes, up to 2 with hardly one:
# 0.65 in the mean (`benchmarks/core/steps_or_newton.py --squared`).
SQUARED_FIRST, SQUARED_STEPS, SQUARED_ROWS = 5, 30, 200
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


def batched(training: Training, copies: int = 1, may_curve: bool = False) -> list[int]:
    """The problems that are solved at once: with a kernel that keeps them convex.

    Any named kernel, if they may curve. ``copies`` says how many others there are of
    each.
    """
    if training.recipe.kernel is None or not is_allowed(training, may_curve=may_curve):
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


def suits_newton(training: Training, m: int) -> bool:
    """Whether Newton's method on the columns takes problems of m rows, all at once."""
    n = training.rows.shape[1]
    return n <= min(m, MOST_COLUMNS) and m * (n + 1) <= _most_entries(training)


class Before(NamedTuple):
    """What products of dense rows have before other solvers; they follow where it ends.

    Attributes
    ----------
    steps : int, pair steps of a problem; 0: the others begin
    work : float, of Newton's steps: see `solve_many`
    moved : float, the share of the rows that may be support vectors, when it is first
        looked
    newton : int, Newton's steps on the columns that come before them
    """

    steps: int
    work: float = np.inf
    moved: float = 1.0
    newton: int = 0


def steps_before_newton(training: Training, m: int) -> Before:
    """Steps on products of rows that come before Newton's method on the columns.

    Of problems of m rows: all, or those of two classes.
    """
    n, q = training.rows.shape[1], training.recipe.q
    if suits_faces(training, m) and not training.tasks.are_pairs:
        return _faced(m, n)
    if form(training)[0].is_bounded and _has_many_columns(training, m, FEWER_SHARE):
        return Before(FEWER_STEPS * m, moved=FEWER_MOVED)
    if m >= SQUARED_ROWS and _has_many_columns(training, m):
        return Before(SQUARED_STEPS * m, newton=SQUARED_FIRST)
    wide = n >= max(STEP_COLUMNS, STEP_SHARE * m) and m <= MOST_LINEAR
    if q is None or not wide or not form(training)[0].is_bounded:
        return Before(0)
    width, target = -0.5 * (q[:m] + q[m:]).mean(), 0.5 * (q[:m] - q[m:])
    sizes = training.rows.moments[1]
    is_even = sizes.max() <= TUBE_SIZES * sizes[sizes > 0.0].min(initial=np.inf)
    if width < TUBE_WIDTH * target.std() or not is_even:
        return Before(0)
    return Before(int(n * n * (m + n / 1.5) / STEP_COST))


def suits_faces(training: Training, m: int) -> bool:
    """Whether products of m rows come before others, to their end in float64."""
    return form(training)[0].is_bounded and _has_many_columns(training, m)


def _has_many_columns(training: Training, m: int, share: float = FACED_SHARE) -> bool:
    """Whether classifiers of m dense rows have so many that products may be faster."""
    n, X = training.rows.shape[1], training.rows.in_memory()
    if training.recipe.q is not None:
        return False
    fits = max(FACED_COLUMNS, share * m) <= n < _core.MOST_BASIS
    return fits and m <= MOST_EXACTLY and isinstance(X, np.ndarray)


def _faced(m: int, n: int) -> Before:
    """Twice the steps after which the core takes up Newton's (`is_for_float64`)."""
    return Before(2 * (30 * m + n**3 // (5 * m)), FACED_WORK)


def steps_of_pairs(training: Training) -> Before | None:
    """Steps on products of small pairs of classes before Newton's method, if any.

    None: as many as they take.
    """
    m, n = int(training.sizes.max()), training.rows.shape[1]
    if not (form(training)[0].is_bounded and suits_newton(training, m)):
        return None
    if n >= FACED_SHARE * m or m <= FEW_PAIRED:
        return None
    return Before(steps_as_newton(n) + STEPS_ALONE // (m + AS_ROWS))


def steps_as_newton(n: int) -> int:
    """Pair steps on products that take as long as Newton's method on n columns."""
    return (n + AS_COLUMNS) ** 2 // AS_NEWTON


def suits_descent(training: Training) -> float:
    """Visits of coordinate descent for problems of sparse rows; 0 where others suit."""
    facts = _facts_of_sparse(training)
    return facts.visits if facts is not None and facts.descends else 0.0


def suits_gradients(training: Training) -> bool:
    """Whether Newton's method takes sparse rows by conjugate gradients, all at once."""
    facts = _facts_of_sparse(training)
    if facts is None or facts.is_bounded or not facts.is_sparse or facts.n > auto.WIDE:
        return False
    stored = facts.density * facts.samples * facts.n
    few = len(training.tasks) * stored <= MOST_STORED_ALONE
    return few and facts.n**3 >= FACTOR_COST * stored


def _facts_of_sparse(training: Training) -> auto.Facts | None:
    """What the rules of "auto" need of few entries of sparse rows; None of others."""
    if training.tasks.are_pairs:  # pairs have rows of their own
        return None
    X: Any = training.rows.in_memory()
    t = len(training.tasks)
    if not sparse.issparse(X) or (t == 1 and X.nnz > MOST_STORED_ALONE):
        return None
    vectors = _vectors_of(training)
    limit = np.inf if training.memory_limit is None else training.memory_limit
    if t * X.nnz + vectors > MOST_STORED or 8 * vectors > limit:
        return None
    return _facts(training)


def _facts(training: Training) -> auto.Facts:
    """What the rules of "auto" need of problems of all rows, which are in memory."""
    rows, (m, n) = training.rows, training.rows.shape
    is_class, (loss, intercept) = training.recipe.q is None, form(training)
    square = _mean_square(training) + (intercept != "none")
    kappa = float(np.mean(training.C)) * square
    places, forms = m if is_class else 2 * m, (loss.is_bounded, is_class, True)
    tol = training.limits.tol
    return auto.Facts(places, m, n, rows.density, kappa, *forms, tol)


def _vectors_of(training: Training) -> int:
    """Numbers of the vectors of all problems of sparse rows."""
    (m, n), copies = training.rows.shape, 1 if training.recipe.q is None else 2
    return len(training.tasks) * (m * copies * LINEAR_PLACES + 4 * n)


def _mean_square(training: Training) -> float:
    """Mean ``|x|^2`` of the rows x."""
    mean, std = training.rows.moments
    return float(np.square(mean).sum() + np.square(std).sum())


def suits_products(training: Training, m: int) -> bool:
    """Whether products of rows take problems of m rows, all at once."""
    n, X = training.rows.shape[1], training.rows.in_memory()
    few_columns = m > FEW_SQUARES and n < SQUARES_SHARE * m
    squares = training.recipe.q is not None and not form(training)[0].is_bounded
    if squares and few_columns and training.recipe.solver != NAME:
        return False
    if m <= MOST_LINEAR:
        return True
    wide = n > MOST_COLUMNS and n >= WIDE_SHARE * m and isinstance(X, np.ndarray)
    if m > MOST_WIDE or not wide:
        return False
    if training.recipe.solver == NAME:
        return True
    kappa = float(np.mean(training.C)) * _mean_square(training)
    return kappa > (auto.DESCENT_WIDE if n > auto.WIDE else auto.DESCENT_MANY)


def steps_before_others(training: Training) -> Before:
    """Steps on products of many dense rows, before other solvers.

    Of two classes, or of each against the rest: all problems share the products.
    """
    (m, n), t = training.rows.shape, len(training.tasks)
    if training.tasks.are_pairs or training.recipe.q is not None:
        return Before(0)
    dense = isinstance(training.rows.in_memory(), np.ndarray)
    is_bounded, faced = form(training)[0].is_bounded, suits_faces(training, m)
    share, steps = SHARED_BOUNDED if is_bounded else SHARED_SQUARED
    suits = dense and n > MOST_COLUMNS and m <= min(MOST_SHARED, share * t * n)
    if not (suits or faced):
        return Before(0)
    facts = _facts(training)
    if facts.descends and (is_bounded or SHARED_VISITS * t * facts.kappa <= m):
        return Before(0)
    return _faced(m, n) if faced else Before(steps * m)


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
    if limit is not None and sparse.issparse(X) and 8 * _vectors_of(training) > limit:
        return ROUGH
    if suits_products(training, most):
        chosen = list(range(len(training.tasks)))
        return None if memory_for_products(training, chosen) > 0 else ROUGH
    return f"{m:,} rows x {n:,} features, linear in these"


def _most_entries(training: Training) -> int:
    """Entries up to which Newton's method on the columns takes all problems at once."""
    rows = training.rows
    if sparse.issparse(rows.in_memory()):
        # With the hinge and a small C descent on sparse rows takes half of the time.
        descends = form(training)[0].is_bounded and suits_descent(training) > 0.0
        few = rows.density <= auto.DENSE or descends
        return MOST_SPARSE if few else MOST_ENTRIES_ALONE
    if len(training.tasks) == 1 or training.tasks.are_pairs:
        return MOST_ENTRIES_ALONE
    threads = n_threads(rows.options.get("n_jobs"))
    return MOST_ENTRIES if len(training.tasks) > threads else MOST_ENTRIES_ALONE


def has_room(training: Training, m: int, t: int) -> bool:
    """Whether ``memory_limit`` has room for t problems of m rows, by their columns."""
    n, copies = training.rows.shape[1], 1 if training.recipe.q is None else 2
    needed = 8 * m * (n + t * copies * LINEAR_PLACES)
    return training.memory_limit is None or needed <= training.memory_limit


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
