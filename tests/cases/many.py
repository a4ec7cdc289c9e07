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


def one_problem(X, y, kernel, q, C=1.0, loss="hinge", intercept="free", mass=None):
    """One problem over all rows, with a linear term and perhaps the sum of alpha.

    Twice as many ``y`` as rows are the rows twice.
    """
    twice = len(y) == 2 * X.shape[0]
    group = np.zeros(X.shape[0], np.int64) if twice else (y < 0).astype(np.int64)
    samples = GroupedSamples(X, group, kernel)
    groups = np.array([0, 0]) if twice else np.arange(len(samples.count))
    place = np.arange(len(y)) if twice else samples.rows_of(groups)
    return ManyProblems(
        samples,
        groups,
        np.array([len(groups)]),
        np.array([len(y)]),
        np.asarray(y, float)[place],
        np.broadcast_to(np.asarray(C, float), len(y))[place].copy(),
        LOSSES[loss],
        intercept,
        np.array([-1]),
        np.asarray(q, float)[place],
        None if mass is None else np.array([float(mass)]),
    )


def regression(X, t, kernel, epsilon=0.1, C=1.0, **form):
    """Each row twice: q is t - epsilon and -t - epsilon."""
    y, q = np.repeat([1.0, -1.0], len(t)), np.append(t - epsilon, -t - epsilon)
    return one_problem(X, y, kernel, q, np.tile(np.broadcast_to(C, len(t)), 2), **form)


def one_class(X, kernel, nu=0.3, C=1.0):
    """One class alone: sum alpha is nu times the sum of C."""
    m, C = X.shape[0], np.broadcast_to(C, X.shape[0])
    q, mass = np.zeros(m), nu * C.sum()
    return one_problem(X, np.ones(m), kernel, q, C, intercept="none", mass=mass)


def nu_classes(X, y, kernel, nu=0.3, C=1.0):
    """Two classes, of which each has half of the sum of alpha."""
    C = np.broadcast_to(C, X.shape[0])
    return one_problem(X, y, kernel, np.zeros(len(y)), C, mass=nu * C.sum())


def nu_regression(X, t, kernel, nu=0.3, C=1.0):
    """Each row twice, with the sum of alpha in place of an epsilon."""
    C = np.broadcast_to(C, len(t))
    return regression(X, t, kernel, 0.0, C, mass=nu * C.sum())
