"""Which engine takes problems that are linear in their columns, and with what limits.

Few columns are for Newton's method, few rows for their products, sparse rows for
descent or for conjugate gradients.
"""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from widemargin import _core
from widemargin.data.storage import FULL_MANY, NARROW, is_full, well_stored
from widemargin.estimators.batch_problems import form
from widemargin.estimators.training import Training
from widemargin.solvers.kernel.batch import MOST_EXACTLY, NAME, Brief
from widemargin.solvers.linear import rules

# Columns up to which Newton's method on the columns takes all problems at once, and
# entries, zeros included: of more than FEW_TASKS problems, of fewer, and where few
# entries are not zero and the hinge has a small C, or the squared one is alone: there
# others on CSR rows take half of the time (`benchmarks/core/newton_batch.py`). Beyond,
# rows up to which products of rows are faster than single solvers.
MOST_COLUMNS, FEW_TASKS = 256, 2
MOST_ENTRIES, MOST_ENTRIES_ALONE, MOST_SPARSE = 2_000_000, 1_000_000, 200_000
MOST_LINEAR = 600
# Share of entries that are not zero from which products of more than MOST_LINEAR rows
# may be faster than what reads these entries. (LinearSVC, hinge, C = 10, 5,000 rows of
# mnist, a share of 0.19: 0.5 s, not 7.)
SHARED_SHARE = 0.1
# Visits of all sparse rows that their products cost, over the rows: where products
# come next descent has no more. (380 problems of 80 to 600 rows x 260 to 4,000 columns,
# hinge, C from 0.1 to 3,000: 0.86 of the time in sum, 0.3 to 2.3; with 1/4 and 1/8 in
# its place 0.84 and 0.92, up to 6 and 10.)
PRODUCT_VISITS = 0.5
# The same of full rows with at least one column for two rows, where mean C times mean
# |x|^2 is above the third number (`benchmarks/core/wide.py`).
# Classifiers of 1,000 rows x 3,000 columns with C = 1 and 100 take 0.08 s, not 0.7 to
# 13; 2,000 x 5,000 0.5, not 3 to 20; 2,000 x 1,000 0.2, not 0.9 to 3; with 1,000 x 400
# some would take twice as long, 1,500 x 300 0.6, not 0.01. Regressions of 1,500 x 1,000
# take 0.1 to 0.8 s, not 1.5 to 4, and 3,000 x 1,500 0.4 to 4.4, not 4 to 13.
MOST_WIDE, WIDE_SHARE, WIDE_KAPPA = 3_000, 0.5, 10.0
# The same number with the hinge, up to rules.MANY columns: classes share
# the products, so that they pay before descent of one class is slow. (Both were borders
# of "auto" when products of many rows were measured.)
LEAST_KAPPA = 1.0
# Products of more full rows, which all classes share, come before other solvers up to
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
# The least gap for that: 1,981 rows x 52 of seven classes apart to 1e-8 would take 0.2
# to 0.6 s, not 0.015.
LEAST_BRIEF = 1e-6
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


def suits_newton(training: Training, m: int) -> bool:
    """Whether Newton's method on the columns takes problems of m rows, all at once."""
    n, entries = training.rows.shape[1], m * (training.rows.shape[1] + 1)
    if n > min(m, MOST_COLUMNS):
        return False
    return entries <= MOST_SPARSE or entries <= _most_entries(training)  # the least


def stored_well(training: Training) -> Training:
    """The same with rows in the form, dense or CSR, that suits what solves them.

    Newton's method on the columns, and products of rows, like dense ones.
    """
    rows, m = training.rows, training.rows.shape[0]
    dense = is_full(rows)
    if not dense and suits_newton(training, int(training.sizes.max())):
        if training.tasks.are_pairs:  # whose rows are copied, and dense then
            return training
        dense = True
    elif not dense and rows.share > SHARED_SHARE and form(training)[0].is_bounded:
        wide = suits_products(training, m)
        dense = wide or steps_before_others(training).steps > 0
    stored = well_stored(rows, dense)
    if stored is rows:
        return training
    return dataclasses.replace(training, rows=stored)


class Before(NamedTuple):
    """What products of rows have before other solvers; they follow where it ends.

    Attributes
    ----------
    steps : int, pair steps of a problem; 0: the others begin
    work, moved : float, see `Brief`
    newton : int, Newton's steps on the columns that come before them
    """

    steps: int
    work: float = np.inf
    moved: float = 1.0
    newton: int = 0

    @property
    def brief(self) -> Brief:
        """What the solver takes of it."""
        return Brief(self.steps, self.work, self.moved)


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
    """Whether classifiers of m rows have so many that products may be faster."""
    n = training.rows.shape[1]
    if training.recipe.q is not None:
        return False
    fits = max(FACED_COLUMNS, share * m) <= n < _core.MOST_BASIS
    return fits and m <= MOST_EXACTLY and _has_products(training, m)


def _has_products(training: Training, m: int, least: float = SHARED_SHARE) -> bool:
    """Whether products of m rows may be faster than what reads their entries.

    Of more than MOST_LINEAR rows where a larger share than ``least`` is not zero.
    """
    rows = training.rows
    if rows.in_memory() is None:
        return False
    return m <= MOST_LINEAR or rows.share > least


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
    few = n >= FACED_SHARE * m or m <= FEW_PAIRED
    if few or training.limits.tol < LEAST_BRIEF:
        return None
    return Before(steps_as_newton(n) + STEPS_ALONE // (m + AS_ROWS))


def steps_as_newton(n: int) -> int:
    """Pair steps on products that take as long as Newton's method on n columns."""
    return (n + AS_COLUMNS) ** 2 // AS_NEWTON


def suits_descent(training: Training) -> float:
    """Visits of coordinate descent for problems of sparse rows; 0 where others suit."""
    facts = _facts_of_sparse(training)
    if facts is None or not facts.descends:
        return 0.0
    # Conjugate gradients, which come next, cost no factor.
    visits = facts.least_visits if suits_gradients(training) else facts.visits
    m = facts.samples
    return min(visits, m * PRODUCT_VISITS) if suits_products(training, m) else visits


def suits_gradients(training: Training) -> bool:
    """Whether Newton's method takes sparse rows by conjugate gradients, all at once."""
    facts = _facts_of_sparse(training)
    if facts is None or facts.is_bounded or not facts.is_sparse or facts.n > rules.WIDE:
        return False
    stored = facts.density * facts.samples * facts.n
    few = len(training.tasks) * stored <= MOST_STORED_ALONE
    return few and facts.n**3 >= FACTOR_COST * stored


def _facts_of_sparse(training: Training) -> rules.Facts | None:
    """What the rules of "auto" need of few entries of sparse rows; None of others."""
    if training.tasks.are_pairs:  # pairs have rows of their own
        return None
    X: Any = training.rows.in_memory()
    t = len(training.tasks)
    if not sparse.issparse(X) or (t == 1 and X.nnz > MOST_STORED_ALONE):
        return None
    vectors = vectors_of(training)
    limit = np.inf if training.memory_limit is None else training.memory_limit
    if t * X.nnz + vectors > MOST_STORED or 8 * vectors > limit:
        return None
    return _facts(training)


def _facts(training: Training) -> rules.Facts:
    """What the rules of "auto" need of problems of all rows, which are in memory."""
    rows, (m, n) = training.rows, training.rows.shape
    is_class, (loss, intercept) = training.recipe.q is None, form(training)
    square = _mean_square(training) + (intercept != "none")
    kappa = float(np.mean(training.C)) * square
    places, forms = m if is_class else 2 * m, (loss.is_bounded, is_class, True)
    tol = training.limits.tol
    return rules.Facts(places, m, n, rows.density, kappa, *forms, tol)


def vectors_of(training: Training) -> int:
    """Numbers of the vectors of all problems of sparse rows."""
    (m, n), copies = training.rows.shape, 1 if training.recipe.q is None else 2
    return len(training.tasks) * (m * copies * LINEAR_PLACES + 4 * n)


def _mean_square(training: Training) -> float:
    """Mean ``|x|^2`` of the rows x."""
    mean, std = training.rows.moments
    return float(np.square(mean).sum() + np.square(std).sum())


def suits_products(training: Training, m: int) -> bool:
    """Whether products of rows take problems of m rows, all at once."""
    n = training.rows.shape[1]
    few_columns = m > FEW_SQUARES and n < SQUARES_SHARE * m
    squares = training.recipe.q is not None and not form(training)[0].is_bounded
    if squares and few_columns and training.recipe.solver != NAME:
        return False
    if m <= MOST_LINEAR:
        return True
    wide = n > MOST_COLUMNS and n >= WIDE_SHARE * m
    if m > MOST_WIDE or not (wide and _has_products(training, m)):
        return False
    if training.recipe.solver == NAME:
        return True
    kappa = float(np.mean(training.C)) * _mean_square(training)
    return kappa > (rules.DESCENT_WIDE if n > rules.WIDE else WIDE_KAPPA)


def steps_before_others(training: Training) -> Before:
    """Steps on products of many full rows, before other solvers.

    Of two classes, or of each against the rest: all problems share the products.
    """
    (m, n), t = training.rows.shape, len(training.tasks)
    if training.tasks.are_pairs or training.recipe.q is not None:
        return Before(0)
    is_bounded, faced = form(training)[0].is_bounded, suits_faces(training, m)
    share, steps = SHARED_BOUNDED if is_bounded else SHARED_SQUARED
    least = SHARED_SHARE if is_bounded else FULL_MANY
    full = _has_products(training, m, least)
    suits = full and n > MOST_COLUMNS and m <= min(MOST_SHARED, share * t * n)
    if not (suits or faced):
        return Before(0)
    facts = _facts(training)
    least = WIDE_KAPPA if n > rules.MANY else LEAST_KAPPA
    pays = is_bounded and n <= rules.WIDE and facts.kappa > least
    descends = facts.descends and not pays
    if descends and (is_bounded or SHARED_VISITS * t * facts.kappa <= m):
        return Before(0)
    return _faced(m, n) if faced else Before(steps * m)


def _most_entries(training: Training) -> int:
    """Entries up to which Newton's method on the columns takes all problems at once."""
    rows, t, pairs = training.rows, len(training.tasks), training.tasks.are_pairs
    few = rows.in_memory() is not None and not is_full(rows)
    if few and not pairs and rows.shape[1] > NARROW:
        is_bounded = form(training)[0].is_bounded
        if _facts(training).descends if is_bounded else t == 1:
            return MOST_SPARSE
    return MOST_ENTRIES if t > FEW_TASKS and not pairs else MOST_ENTRIES_ALONE


def has_room(training: Training, m: int, t: int) -> bool:
    """Whether ``memory_limit`` has room for t problems of m rows, by their columns."""
    n, copies = training.rows.shape[1], 1 if training.recipe.q is None else 2
    needed = 8 * m * (n + t * copies * LINEAR_PLACES)
    return training.memory_limit is None or needed <= training.memory_limit
