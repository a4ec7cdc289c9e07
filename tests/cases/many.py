"""Many problems over the same samples, and each of them alone."""

import itertools

import numpy as np

from widemargin import Problem
from widemargin.kernels.grouped import GroupedSamples
from widemargin.losses.pointwise import LOSSES
from widemargin.problems.many import ManyProblems


def classes(m=45, n=4, kinds=3, seed=0):
    """Overlapping classes: rows, the class of each, and weights, some of them zero."""
    rng = np.random.default_rng(seed)
    group = np.arange(m) % kinds
    X = rng.normal(size=(m, n))
    X[:, 0] += 1.2 * group
    weights = rng.uniform(0.2, 3.0, m)
    weights[kinds::7] = 0.0
    order = rng.permutation(m)
    return X[order], group[order], weights[order]


def many(X, group, kernel, C=1.0, loss="hinge", intercept="free", groups=None):
    """The problems of pairs of classes; or of tuples of classes, the first against all.

    A tuple (classes, after, factor) starts at the answer of another one, its C times a
    factor.
    """
    samples = GroupedSamples(X, group, kernel)
    chosen = groups or list(itertools.combinations(range(len(samples.count)), 2))
    chosen = [one if isinstance(one[0], tuple) else (one, -1, 1.0) for one in chosen]
    flat = np.array([k for one, _, _ in chosen for k in one])
    ends = np.cumsum([len(one) for one, _, _ in chosen])
    sizes = [int(samples.count[list(one)].sum()) for one, _, _ in chosen]
    rows = samples.rows_of(flat)
    first = np.repeat([one[0] for one, _, _ in chosen], sizes)
    factor = np.repeat([factor for _, _, factor in chosen], sizes)
    return ManyProblems(
        samples,
        flat,
        ends,
        np.cumsum(sizes),
        np.where(group[rows] == first, 1.0, -1.0),
        factor * np.broadcast_to(C, X.shape[0])[rows],
        LOSSES[loss],
        intercept,
        np.array([after for _, after, _ in chosen]),
    )


def alone(problems, X, kernel):
    """Each problem alone, with the slice of its places; its rows are in their order."""
    begin = 0
    for end in problems.ends.tolist():
        own = slice(begin, end)
        yield (
            Problem(
                X[problems.rows[own]],
                problems.y[own],
                problems.C[own],
                problems.loss.name,
                problems.intercept,
                kernel=kernel,
            ),
            own,
        )
        begin = end


def never():
    """No reason to stop."""
    return False
