"""Equal samples of a fit, solved as one that has their weights, where nothing rounds.

Samples that are equal in class, or in what they have to reach, have one sum of dual
variables between them, of which each gets as much as it can have, one after the other.
The weights are multiples of one power of 2, and equal where samples are: so neither
their sums nor what is left of a dual variable rounds, and the bounds of the optimum
that are proved for few samples are those for all, to the last bit.
"""

import dataclasses
from dataclasses import dataclass

import numpy as np

from widemargin.arrays import Index64, Vector
from widemargin.data.equal_rows import equal_rows, may_be_equal, places
from widemargin.data.memory import as_rows
from widemargin.estimators.training import Training
from widemargin.losses.pointwise import LOSSES
from widemargin.problems.conditioning import KERNEL_ROWS, KERNEL_SHARE
from widemargin.solution import Solution

# Weights are multiples of 1 / PARTS, and their sum has no more than 52 bits of these.
PARTS, MOST_PARTS = 1024.0, 2.0**52


@dataclass(frozen=True)
class Fewer:
    """A fit without equal samples.

    Attributes
    ----------
    training : Training, of the samples that differ
    whole : Training, of all
    group : int ndarray (m,), which of them each sample is
    """

    training: Training
    whole: Training
    group: Index64

    def for_all(self, k: int, solution: Solution) -> Solution:
        """The solution of binary problem k, for all samples."""
        all_rows, own, some = slice(None), self.whole.chosen(k), self.training.chosen(k)
        group = self.group[all_rows if own is None else own]
        at = group if some is None else np.searchsorted(some, group)
        C = np.broadcast_to(self.whole.weights(k), len(group))
        copies = 1 if self.whole.recipe.q is None else 2
        room = places(group) * C
        halves = np.split(solution.alpha, copies)
        alpha = np.concatenate([np.clip(half[at] - room, 0.0, C) for half in halves])
        y = self.whole.signs(k) if copies == 1 else np.repeat([1.0, -1.0], len(C))
        most = np.tile(C, copies)
        at_bound = int(np.count_nonzero((alpha > 0.0) & (alpha >= most)))
        found = {"alpha": alpha, "w": y * alpha, "at_bound": at_bound}
        return dataclasses.replace(solution, **found)


def without_equals(training: Training, most: int) -> Fewer | None:
    """The fit without equal samples, where up to ``most`` differ.

    None where few are equal, or sums would round.
    """
    recipe, m = training.recipe, training.rows.shape[0]
    if recipe.kernel is None or recipe.is_pairwise or m < KERNEL_ROWS:
        return None
    X = training.rows.in_memory()
    if X is None or recipe.form is None or not LOSSES[recipe.form[0]].is_bounded:
        return None
    parts = np.broadcast_to(np.asarray(training.C, np.float64), m) * PARTS
    factors = training.tasks.factors  # the rest has 1; products do not round, either
    times = np.ones(1) if factors is None else PARTS * np.append(factors, 1.0)
    total = parts.sum() * times.max()
    if not (_are_whole(parts) and _are_whole(times) and total < MOST_PARTS):
        return None
    q = recipe.q
    alike = training.index if q is None else q[:m]
    most = min(most, int((1.0 - KERNEL_SHARE) * m))
    if not may_be_equal(X, alike, most):
        return None
    first, group = equal_rows(X, alike, most)
    if len(first) > most or (parts[first][group] != parts).any():
        return None
    if q is not None:
        both = np.concatenate([first, first + m])
        if not np.array_equal(q[both][np.concatenate([group, group + len(first)])], q):
            return None  # rounded alike in one of two rows only
        recipe = dataclasses.replace(recipe, q=q[both])
    fewer = dataclasses.replace(
        training,
        rows=as_rows(X[first], **training.rows.options),
        index=training.index[first],
        C=np.bincount(group, parts / PARTS),
        recipe=recipe,
    )
    return Fewer(fewer, training, group)


def _are_whole(parts: Vector) -> bool:
    """Whether all are whole numbers."""
    return np.array_equal(parts, np.floor(parts))
