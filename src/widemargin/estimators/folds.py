"""All binary problems of all folds and all C with one kernel, solved at once."""

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.estimators.batch import batched, form, memory_for, samples_for
from widemargin.estimators.multiclass import BinaryTask
from widemargin.estimators.solving import solve_task
from widemargin.estimators.training import Recipe, Training
from widemargin.kernels.given import GivenSamples
from widemargin.kernels.grouped import Grouped
from widemargin.kernels.packed import CoreSums
from widemargin.problems.many import ManyProblems
from widemargin.solution import Status
from widemargin.solvers.kernel.batch import Ends, solve_places
from widemargin.system.deadline import OutOfTime
from widemargin.system.threads import n_threads

Vector = NDArray[np.float64]
Index = NDArray[np.intp]

# Places of problems that are solved at once: some 120 bytes each, 60 MB.
PLACES = 500_000
# Support vectors whose values are made together: fewer have weights in fewer machines.
TOGETHER = 64
# Bytes of sums that are made at once for rows that a fold holds out.
SUMS_BYTES = 16 << 20


@dataclass(frozen=True)
class Folds:
    """The machines of all folds and all C with one kernel.

    Attributes
    ----------
    training : Training, of all rows
    samples : Grouped, the rows as the problems have them
    n_bytes : int, that these take beside kernel values
    recipes : list of Recipe, of the binary problems
        Those of regressions with several widths of the tube differ.
    weights : ndarray (folds, m), factors of C in each fold; 0 where it holds a row out
    Cs : ndarray (C,), rising
    coefficients : ndarray (folds, m, r, C)
        y alpha, in the layout of `Expansion`: r = c - 1 for pairs of c classes.
    b, gaps : ndarray (folds, problems, C), intercepts and certified relative gaps
    ended : bool ndarray (folds, problems, C), whether no limit ended a problem
    wins, losses : int ndarray (folds, m, C)
        How many problems of its class say a row that is held out belongs to it, and how
        many say that it does not, whatever the errors of values in float32 are.
    """

    training: Training
    samples: Grouped
    n_bytes: int
    recipes: list[Recipe]
    weights: Vector
    Cs: Vector
    coefficients: Vector
    b: Vector
    gaps: Vector
    ended: NDArray[np.bool_]
    wins: NDArray[np.int16]
    losses: NDArray[np.int16]

    @property
    def is_interrupted(self) -> bool:
        """Whether something ended it early."""
        return not bool(self.ended.all())

    @property
    def stopped(self) -> Status | None:
        """What ended it early."""
        if not self.is_interrupted:
            return None
        return Status.TIME_LIMIT if is_late(self.training) else Status.INTERRUPTED

    @property
    def is_doubled(self) -> bool:
        """Whether the problems are regressions, of two rows for each sample."""
        return self.recipes[0].q is not None

    @property
    def is_paired(self) -> bool:
        """Whether the problems are pairs of classes."""
        return self.training.tasks[0].negative is not None

    def known(self, fold: int, test: Index) -> tuple[NDArray[Any], NDArray[Any]]:
        """Which rows get their own label, and of which that is known: (rows, C) each.

        A class that wins against all others has the most votes, and a walk ends there.
        """
        n_problems = self.coefficients.shape[2] if self.is_paired else len(self.recipes)
        right = self.wins[fold, test] == n_problems
        if len(self.recipes) > 1:
            return right, right
        return right, right | (self.losses[fold, test] > 0)

    def decisions(self, fold: int, test: Index) -> Vector:
        """Decisions of the problems for some rows: (C, rows, problems)."""
        table, index = self.coefficients[fold], self.training.index
        support = np.flatnonzero(table.any(axis=(1, 2)))
        # By classes; the first C is small, and its machines have most support vectors,
        # many of which no machine of a larger C has.
        last = len(self.Cs) - np.argmax(table[support, :, ::-1].any(axis=1), axis=1)
        support = support[np.lexsort((last, index[support]))]
        out = np.empty((len(self.Cs), len(test), self.b.shape[1]))
        out[:] = self.b[fold].T[:, np.newaxis]
        if len(support) == 0:
            return out
        counts = np.bincount(index[support], minlength=table.shape[1] + self.is_paired)
        sizes = counts.tolist() if self.is_paired else [len(support)]
        W = table[support].transpose(0, 2, 1).reshape(len(support), -1)
        sums, step = self._sums(support, W, sizes, test), _rows_at_once(W, sizes)
        for start in range(0, len(test), step):
            some = np.arange(start, min(start + step, len(test)))
            shape = len(sizes), len(self.Cs), table.shape[1], len(some)
            out[:, some] += self._joined(sums(some).reshape(shape))
        return out

    def _sums(
        self, support: Index, W: Vector, sizes: list[int], test: Index
    ) -> Callable[[Index], Vector]:
        """What makes the sums of groups of support vectors at some of the test rows."""
        if isinstance(self.samples, GivenSamples):
            values = self.samples.values
            ends = np.cumsum([0, *sizes]).tolist()
            parts = [slice(a, b) for a, b in itertools.pairwise(ends)]

            def given(some: Index) -> Vector:
                """By values that are given."""
                K = values[np.ix_(test[some], support)]
                return np.concatenate([(K[:, own] @ W[own]).T for own in parts])

            return given
        rows, kernel = self.training.rows, self.training.recipe.kernel
        options: Any = {"keep": True, "at_once": TOGETHER}
        made = CoreSums(kernel.form, rows.take(support), W, sizes, **options)  # type: ignore[union-attr]
        block, n_jobs = rows.take(test), rows.options.get("n_jobs")
        return lambda some: made.by_group(block, some, n_jobs)

    def _joined(self, sums: Vector) -> Vector:
        """Sums (groups, C, r, rows) as decisions (C, rows, problems)."""
        if self.is_paired:
            i, j = np.triu_indices(sums.shape[0], 1)
            return np.asarray((sums[i, :, j - 1] + sums[j, :, i]).transpose(1, 2, 0))
        return np.asarray(sums[0].transpose(0, 2, 1))


def is_late(training: Training) -> bool:
    """Whether the time of the folds is over."""
    return training.limits.is_late


def _rows_at_once(W: Vector, sizes: list[int]) -> int:
    n_sums = len(sizes) * int(W.shape[1])
    return max(64, SUMS_BYTES // (8 * n_sums) // 64 * 64)


def solve_folds(
    training: Training,
    weights: Vector,
    Cs: Vector,
    recipes: list[Recipe] | None = None,
) -> Folds | None:
    """Solve the problems of all folds and C; None where they are too large for that.

    Parameters
    ----------
    training : Training, of all rows, whose kernel counts and whose C does not
    weights : ndarray (folds, m), factors of C in each fold; 0 where it holds a row out
    Cs : ndarray, rising
    recipes : list of Recipe or None, of the binary problems; None: as of the training
    """
    tasks = training.tasks
    chosen = batched(training, len(weights))
    if len(chosen) < len(tasks):
        return None
    n_sums = len(tasks)
    if tasks[0].negative is not None:
        n_sums = max(int(task.negative or 0) for task in tasks)
    shape = (len(weights), len(training.index), n_sums, len(Cs))
    if 8 * np.prod(shape, dtype=float) > memory_for(training, chosen):
        return None
    try:
        samples, others = samples_for(training, chosen)
    except OutOfTime:
        return None
    if samples is None:
        return None
    few = (len(weights), len(tasks), len(Cs))
    found = Folds(
        training,
        samples,
        others,
        recipes or [training.recipe] * len(tasks),
        weights,
        Cs,
        np.zeros(shape),
        np.zeros(few),
        np.full(few, np.inf),
        np.zeros(few, bool),
        *np.zeros((2, len(weights), shape[1], len(Cs)), np.int16),
    )
    for some in _parts(found):
        if not _solve_part(found, some):
            break
    return found


def _parts(found: Folds) -> Iterator[range]:
    """Problems that are solved at once."""
    n_points = len(found.weights) * len(found.Cs)
    ends = np.cumsum(_sizes(found, range(len(found.recipes))) * n_points)
    start, t = 0, len(ends)
    while start < t:
        before = ends[start - 1] if start else 0
        end = int(np.searchsorted(ends, before + PLACES, "right"))
        end = max(start + 1, end)
        yield range(start, end)
        start = end


def _solve_part(found: Folds, some: range) -> bool:
    """Solve some of the binary problems; whether to go on."""
    training, limits = found.training, found.training.limits
    problems = _problems(found, some)
    memory = memory_for(training, list(some), found.n_bytes)
    threads = n_threads(training.rows.options.get("n_jobs"))
    ends = solve_places(problems, limits, memory, threads)
    shape = (len(some), len(found.weights), len(found.Cs))
    solved, within = (
        ends.solved(limits.tol).reshape(shape),
        slice(some[0], some[-1] + 1),
    )
    found.gaps[:, within] = ends.gaps.reshape(shape).transpose(1, 0, 2)
    found.b[:, within] = ends.b.reshape(shape).transpose(1, 0, 2)
    found.ended[:, within] = solved.transpose(1, 0, 2)
    if ends.status is Status.STALLED:
        for t in np.flatnonzero(~solved):
            if not _go_on(found, problems, ends, some, int(t)):
                break
    _keep(found, problems, ends, some)
    if not found.is_doubled:
        _count(found, problems, ends, some)
    return bool(found.ended[:, within].all())


def _go_on(
    found: Folds, problems: ManyProblems, ends: Ends, some: range, t: int
) -> bool:
    """Let another solver finish problem t; whether no limit ended it."""
    folds, n_C = len(found.weights), len(found.Cs)
    task, fold, place = np.unravel_index(t, (len(some), folds, n_C))
    k, part = some[int(task)], slice(problems.starts[t], problems.ends[t])
    order = problems.order[part]
    starts: list[Any] = [None] * len(found.training.tasks)
    starts[k] = np.abs(ends.c[order]), ends.c[order], float(ends.b[t])
    C = found.weights[fold] * found.Cs[place]
    training = dataclasses.replace(
        found.training, C=C, starts=starts, recipe=found.recipes[k]
    )
    _, solution = solve_task(training, k, None)
    at = (fold, k, place)
    found.gaps[at] = solution.certificate.relative_gap
    found.b[at], ends.c[order] = solution.b, solution.w
    ends.scores[part] = np.nan
    limited = solution.status in (Status.TIME_LIMIT, Status.INTERRUPTED)
    found.ended[at] = not limited
    return not limited


def _problems(found: Folds, some: range) -> ManyProblems:
    """Some binary problems: for each the folds, and for each of these the C."""
    training, samples = found.training, found.samples
    points = len(found.weights), len(found.Cs)
    sizes = np.repeat(_sizes(found, some), points[0] * points[1])
    ends = np.cumsum(sizes)
    is_doubled, groups, end = found.is_doubled, [], 0
    y, C, q = (np.empty(ends[-1] if used else 0) for used in (True, True, is_doubled))
    for k in some:
        own = _groups(found, k, len(samples.count))
        rows = samples.rows_of(own)
        groups.append(np.tile(own, points[0] * points[1]))
        begin, end = end, end + points[0] * points[1] * len(rows)
        places = [values[begin:end].reshape(*points, -1) for values in (y, C)]
        places[0][:] = _signs(found, k, rows)
        weights = found.weights[:, np.newaxis, rows]
        np.multiply(weights, found.Cs[:, np.newaxis], out=places[1])
        if is_doubled:
            q[begin:end].reshape(*points, -1)[:] = found.recipes[k].q
    n_groups = len(groups[0]) // (points[0] * points[1])
    after = np.arange(len(sizes)) - 1
    after[:: len(found.Cs)] = -1
    loss, intercept = form(training)
    return ManyProblems(
        samples,
        np.concatenate(groups),
        np.arange(1, len(sizes) + 1) * n_groups,
        ends,
        y,
        C,
        loss,
        intercept,
        after,
        q if is_doubled else 1.0,
    )


def _sizes(found: Folds, some: range) -> Index:
    """Places of the binary problems."""
    return found.training.sizes[list(some)] * (2 if found.is_doubled else 1)


def _signs(found: Folds, k: int, rows: Index) -> Vector:
    """Labels of the places of a binary problem, which are some rows."""
    if found.is_doubled:
        return np.repeat([1.0, -1.0], len(rows) // 2)
    training = found.training
    positive = training.tasks[k].positive
    return np.where(training.index[rows] == positive, 1.0, -1.0)


def _groups(found: Folds, k: int, n_classes: int) -> Index:
    """Groups of the rows of a binary problem."""
    task = found.training.tasks[k]
    if found.is_doubled:
        return np.zeros(2, np.int64)
    if task.negative is None:
        return np.arange(n_classes)
    return np.array([task.positive, task.negative])


def _keep(found: Folds, problems: ManyProblems, ends: Ends, some: range) -> None:
    """Put the coefficients of some problems where they belong."""
    folds, m, n_sums, n_C = found.coefficients.shape
    tasks, table = found.training.tasks, found.coefficients.reshape(-1)
    point = m * n_sums * n_C * np.arange(folds)[:, np.newaxis] + np.arange(n_C)
    for sign in (1, -1):
        places = np.flatnonzero(sign * ends.c > 0.0)
        count = np.diff(np.searchsorted(places, problems.ends), prepend=0)
        sums = n_C * np.array([_sum_of(tasks[k], k, sign) for k in some])
        at = (sums[:, np.newaxis, np.newaxis] + point).ravel().repeat(count)
        at += n_sums * n_C * problems.rows[places]
        table[at] += ends.c[places]


def _sum_of(task: BinaryTask, k: int, sign: int) -> int:
    """Which sum of its rows problem k has, for a class: see `Folds.coefficients`."""
    if task.negative is None:
        return k
    return task.negative - 1 if sign > 0 else task.positive


def _count(found: Folds, problems: ManyProblems, ends: Ends, some: range) -> None:
    """Count what some problems are sure to say of rows that are held out."""
    threads = n_threads(found.training.rows.options.get("n_jobs"))
    sides = problems.sides(ends.c, ends.scores, ends.b, threads)
    points, end = (len(found.weights), len(found.Cs)), 0
    for size in _sizes(found, some).tolist():
        rows = problems.rows[end : end + size]
        begin, end = end, end + points[0] * points[1] * size
        fold, held = np.nonzero(found.weights[:, rows] == 0.0)
        said = sides[begin:end].reshape(*points, size).transpose(0, 2, 1)[fold, held]
        found.wins[fold, rows[held]] += said > 0
        found.losses[fold, rows[held]] += said < 0
