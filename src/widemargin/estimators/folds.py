"""All binary problems of all folds and all C with one kernel, solved at once."""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin import _core
from widemargin.arrays import Index, Index64, Mask, Vector
from widemargin.estimators.batch_problems import form, memory_for, samples_for
from widemargin.estimators.engine_choice import batched
from widemargin.estimators.multiclass import BinaryTask
from widemargin.estimators.solving import solve_task
from widemargin.estimators.training import Recipe, Training
from widemargin.kernels.grouped import Grouped
from widemargin.kernels.packed import aligned
from widemargin.kernels.wide_rows import SHARED
from widemargin.problems.many import ManyProblems
from widemargin.solution import Status
from widemargin.solvers.kernel.batch import Brief, Ends, solve_all, solve_places
from widemargin.system.deadline import OutOfTime, until
from widemargin.system.threads import n_threads

# Places of problems that are solved at once: some 120 bytes each, 90 MB. At the end of
# each part a thread waits for the other: with 500,000, 45 pairs of classes take 1.05
# times as long (benchmarks.kernel.cross_validation, pendigits).
PLACES = 750_000
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
    factors : ndarray (folds, problems), of C for the rows of label +1 of each
    Cs : ndarray (C,), rising
    coefficients : ndarray (folds, m, r, C)
        y alpha, in the layout of `Expansion`: r = c - 1 for pairs of c classes.
    b, gaps : ndarray (folds, problems, C), intercepts and certified relative gaps: by
        kernel values in float32, where these prove one that is small enough
    ended : bool ndarray (folds, problems, C), whether no limit ended a problem
    wins, losses : int ndarray (folds, m, C)
        How many problems of its class say a row that is held out belongs to it, and how
        many say that it does not, whatever the errors of values in float32 are.
    stopped : Status or None, what ended it early
    """

    training: Training
    samples: Grouped
    n_bytes: int
    recipes: list[Recipe]
    weights: Vector
    factors: Vector
    Cs: Vector
    coefficients: Vector
    b: Vector
    gaps: Vector
    ended: Mask
    wins: NDArray[np.int16]
    losses: NDArray[np.int16]
    stopped: Status | None = None

    @property
    def is_doubled(self) -> bool:
        """Whether the problems are regressions, of two rows for each sample."""
        return self.recipes[0].q is not None

    @property
    def is_paired(self) -> bool:
        """Whether the problems are pairs of classes."""
        return self.training.tasks.are_pairs

    def known(self, fold: int, test: Index) -> tuple[NDArray[Any], NDArray[Any]]:
        """Which rows get their own label, and of which that is known: (rows, C) each.

        A class that wins against all others has the most votes, and a walk ends there.
        """
        n_problems = self.coefficients.shape[2] if self.is_paired else len(self.recipes)
        right = self.wins[fold, test] == n_problems
        if len(self.recipes) > 1:
            return right, right
        return right, right | (self.losses[fold, test] > 0)

    def decisions(
        self, fold: int, test: Index, wanted: Index64 | None = None
    ) -> Vector:
        """Decisions of the problems for some rows: (C, rows, problems).

        Of each row for the first C, as many as are wanted; None: for all.
        """
        table, samples = self.coefficients[fold], self.samples
        n_C, m = len(self.Cs), len(table)
        order, ends = np.arange(m), np.array([m])
        if self.is_paired:
            order, ends = samples.order, samples.count.cumsum()
        wanted = np.full(len(test), n_C) if wanted is None else wanted
        threads = n_threads(self.training.rows.options.get("n_jobs"))
        out = np.empty((n_C, len(test), self.b.shape[1]))
        step = max(64, SUMS_BYTES // (8 * len(ends) * table[0].size) // 64 * 64)
        for start in range(0, len(test), step):
            part = slice(start, start + step)
            rows = test[part], wanted[part]
            sums = samples.by_group(table, (order, ends), rows, threads)
            out[:, part] = self._joined(sums)
        out += self.b[fold].T[:, np.newaxis]
        return out

    def _joined(self, sums: Vector) -> Vector:
        """Sums (groups, r, C, rows) as decisions (C, rows, problems)."""
        if not self.is_paired:
            return np.asarray(sums[0].transpose(1, 2, 0))
        i, j = np.triu_indices(len(sums), 1)
        return np.asarray((sums[i, j - 1] + sums[j, i]).transpose(1, 2, 0))


def solve_folds(
    training: Training,
    weights: Vector,
    Cs: Vector,
    recipes: list[Recipe] | None = None,
    copies: int | None = None,
    factors: Vector | None = None,
    *,
    most: int | None = None,
    is_last: bool = True,
) -> Folds | None:
    """Solve the problems of all folds and C; None where they are too large for that.

    Parameters
    ----------
    training : Training, of all rows, whose kernel counts and whose C does not
    weights : ndarray (folds, m), factors of C in each fold; 0 where it holds a row out
    Cs : ndarray, rising
    recipes : list of Recipe or None, of the binary problems; None: as of the training
    copies : int or None
        How many folds there are, by which problems are too large; None: so many.
    factors : ndarray (folds, problems) or None
        Of C in each fold for the rows of label +1 of each problem; None: 1.
    most : int or None
        Pair steps of each problem; None: as many as are worth it.
    is_last : bool
        Whether another solver finishes the problems that are left. Else these have not
        ended, and are zero.
    """
    tasks = training.tasks
    chosen = batched(training, copies or len(weights))
    if len(chosen) < len(tasks):
        return None
    n_sums = len(tasks)
    if tasks.negative is not None:
        n_sums = int(tasks.negative.max())
    shape = (len(weights), len(training.index), n_sums, len(Cs))
    if 8 * np.prod(shape, dtype=float) > memory_for(training, chosen):
        return None
    try:
        samples, others = samples_for(training, chosen, SHARED)
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
        np.ones(few[:2]) if factors is None else factors,
        Cs,
        np.zeros(shape),
        np.zeros(few),
        np.full(few, np.inf),
        np.zeros(few, bool),
        *np.zeros((2, len(weights), shape[1], len(Cs)), np.int16),
    )
    parts = list(_parts(found))
    samples.filled(1.0, max(_places(found, some) for some in parts))  # once for all
    memory = memory_for(training, chosen, found.n_bytes)
    for some in parts:
        stopped = _solve_part(found, some, memory, most, is_last)
        if stopped is not None:
            return dataclasses.replace(found, stopped=stopped)
    return found


def _parts(found: Folds) -> Iterator[range]:
    """Problems that are solved at once."""
    each = range(len(found.recipes))
    ends = np.cumsum(_sizes(found, each)) * len(found.weights) * len(found.Cs)
    start, t = 0, len(ends)
    while start < t:
        before = ends[start - 1] if start else 0
        end = int(np.searchsorted(ends, before + PLACES, "right"))
        end = max(start + 1, end)
        yield range(start, end)
        start = end


def _solve_part(
    found: Folds, some: range, memory: int, most: int | None, is_last: bool
) -> Status | None:
    """Solve some of the binary problems, in so many bytes; what ended them early."""
    training, limits = found.training, found.training.limits
    problems = _problems(found, some)
    threads = n_threads(training.rows.options.get("n_jobs"))
    try:
        with until(limits.deadline):
            found.samples.pack()
    except OutOfTime:
        return Status.TIME_LIMIT
    if most is None:
        ends = solve_all(problems, limits, memory, threads)
    else:
        ends = solve_places(problems, limits, memory, threads, brief=Brief(most))
    shape = (len(some), len(found.weights), len(found.Cs))
    solved = _are_finished(ends, limits.tol).reshape(shape)
    within = slice(some[0], some[-1] + 1)
    found.gaps[:, within] = ends.gaps.reshape(shape).transpose(1, 0, 2)
    found.b[:, within] = ends.b.reshape(shape).transpose(1, 0, 2)
    found.ended[:, within] = solved.transpose(1, 0, 2)
    stopped = None if solved.all() else ends.status
    if stopped is Status.STALLED and not is_last:
        stopped = None
        _drop(found, problems, ends, within, solved)
    elif stopped is Status.STALLED:
        stopped = _go_on_all(found, problems, ends, some, np.flatnonzero(~solved))
    _keep(found, problems, ends, some)
    return stopped


def _drop(
    found: Folds,
    problems: ManyProblems,
    ends: Ends,
    within: slice,
    solved: Mask,
) -> None:
    """Make problems zero that are not solved; of them no label is known."""
    found.b[:, within][~found.ended[:, within]] = 0.0
    for t in np.flatnonzero(~solved).tolist():
        part = slice(problems.starts[t], problems.ends[t])
        ends.c[part], ends.scores[part] = 0.0, np.nan


def _are_finished(ends: Ends, tol: float) -> Mask:
    """Which problems have a gap that is small enough, also of those before Ctrl-C.

    Then the last one has not: else the press would be lost.
    """
    if ends.status is not Status.INTERRUPTED:
        return ends.solved(tol)
    finished = ends._replace(status=Status.STALLED).solved(tol)
    finished[-1] = False
    return finished


def _go_on_all(
    found: Folds, problems: ManyProblems, ends: Ends, some: range, left: Index
) -> Status | None:
    """Let another solver finish the problems that are left; what ended it early."""
    for t in left.tolist():
        status = _go_on(found, problems, ends, some, t)
        if status is not None and status.ends_fit:
            return status
    return None


def _go_on(
    found: Folds, problems: ManyProblems, ends: Ends, some: range, t: int
) -> Status:
    """Let another solver finish problem t; how that ended."""
    folds, n_C = len(found.weights), len(found.Cs)
    task, fold, place = np.unravel_index(t, (len(some), folds, n_C))
    k, part = some[int(task)], slice(problems.starts[t], problems.ends[t])
    order = problems.order[part]
    starts: list[Any] = [None] * len(found.training.tasks)
    starts[k] = np.abs(ends.c[order]), ends.c[order], float(ends.b[t])
    whole = found.training
    training = dataclasses.replace(
        whole,
        C=found.weights[fold] * found.Cs[place],
        tasks=whole.tasks.weighed(found.factors[fold]),
        starts=starts,
        recipe=found.recipes[k],
    )
    _, solution = solve_task(training, k, None)
    at = (fold, k, place)
    found.gaps[at] = solution.certificate.relative_gap
    found.b[at], ends.c[order] = solution.b, solution.w
    ends.scores[part] = np.nan
    found.ended[at] = not solution.status.ends_fit
    return solution.status


def _problems(found: Folds, some: range) -> ManyProblems:
    """Some binary problems: for each the folds, and for each of these the C."""
    training, samples = found.training, found.samples
    groups = [_groups(found, k, len(samples.count)) for k in some]
    rows = [samples.rows_of(own) for own in groups]
    signs = [_signs(found, k, own) for k, own in zip(some, rows, strict=True)]
    sizes, count = _sizes(found, some), len(found.weights) * len(found.Cs)
    q: Any = 1.0
    if found.is_doubled:
        widths: list[Any] = [found.recipes[k].q for k in some]
        q = np.concatenate([np.tile(own, count) for own in widths])
    places = _places(found, some)
    all_rows, (y, C, c) = aligned((places,), np.int64), aligned((3, places), float)
    _core.lay_out(
        np.cumsum(sizes),
        np.concatenate(rows),
        np.concatenate(signs),
        found.weights,
        np.ascontiguousarray(found.factors[:, some[0] : some[-1] + 1]),
        found.Cs,
        all_rows,
        y,
        C,
        c,
        n_threads(training.rows.options.get("n_jobs")),
    )
    ends = np.cumsum(np.repeat(sizes, count))
    after = np.arange(len(ends)) - 1
    after[:: len(found.Cs)] = -1
    loss, intercept = form(training)
    return ManyProblems(
        samples,
        np.repeat(groups, count, axis=0).ravel(),
        np.arange(1, len(ends) + 1) * len(groups[0]),
        ends,
        y,
        C,
        loss,
        intercept,
        after,
        q,
        begin_at=c,
        known_rows=all_rows,
        enough=training.limits.tol,
    )


def _sizes(found: Folds, some: range) -> Index:
    """Places of the binary problems."""
    return found.training.sizes[list(some)] * (2 if found.is_doubled else 1)


def _places(found: Folds, some: range) -> int:
    """Places of the problems of all folds and C of some binary ones."""
    return int(_sizes(found, some).sum()) * len(found.weights) * len(found.Cs)


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
    """Put the answers of some problems where they belong."""
    tasks = found.training.tasks
    sums = [[_sum_of(tasks[k], k, sign) for sign in (1, -1)] for k in some]
    problems.keep_answers(
        (ends.c, ends.scores, ends.b),
        n_threads(found.training.rows.options.get("n_jobs")),
        found.weights,
        np.array(sums, np.int64),
        found.coefficients,
        () if found.is_doubled else (found.wins, found.losses),
    )


def _sum_of(task: BinaryTask, k: int, sign: int) -> int:
    """Which sum of its rows problem k has, for a class: see `Folds.coefficients`."""
    if task.negative is None:
        return k
    return task.negative - 1 if sign > 0 else task.positive
