"""Many problems of few rows: what they share, and what one leaves for the next."""

import dataclasses

import numpy as np
import pytest
from scipy import sparse

from tests.cases.kernels import NAMED
from tests.cases.many import alone, many
from tests.cases.pairwise import product
from widemargin import SVC, Kernel, solve
from widemargin.kernels.grouped import GroupedSamples
from widemargin.problems import many as many_problems
from widemargin.solvers.driver.limits import Limits
from widemargin.solvers.kernel.batch import solve_many

MEMORY = 1 << 28
PAIRS = [(i, j) for i in range(12) for j in range(i)]


def uneven(seed=0, n=4, most=31):
    """Rows of twelve classes of 1 to 31 rows, that overlap, in any order."""
    rng = np.random.default_rng(seed)
    sizes = rng.permutation(12) * 3 % most + 1
    group = rng.permutation(np.repeat(np.arange(12), sizes))
    return rng.normal(size=(len(group), n)) + 0.7 * group[:, None], group


def answers(problems, memory=MEMORY, threads=1):
    return solve_many(problems, Limits(tol=1e-6), memory, threads)


@product(
    name=["linear", "rbf", "poly"],
    C=[0.1, 1e3, 1e7],
    setting=[("hinge", "free"), ("squared_hinge", "none"), ("hinge", "penalized")],
)
def test_each_has_the_answer_that_it_has_alone(name, C, setting):
    """Also where float64 does not solve it soon, and strips have pads of others."""
    X, group = uneven()
    kernel = dataclasses.replace(NAMED[name], gamma=0.1)
    problems = many(X, group, kernel, np.full(len(X), C), *setting, PAIRS)
    for found, (one, _) in zip(
        answers(problems), alone(problems, X, kernel), strict=True
    ):
        own = found.certificate
        may_stall = C == 1e7 or (C == 1e3 and setting[0] == "squared_hinge")
        assert own.relative_gap <= 1e-6 or (may_stall and found.status == "stalled")
        best = solve(one, "irwls", tol=1e-6).certificate
        assert own.primal >= best.dual - 1e-9 * abs(best.dual)
        assert own.dual <= best.primal + 1e-9 * abs(best.primal)


@pytest.mark.parametrize("setting", [("hinge", "free"), ("squared_hinge", "free")])
def test_the_one_before_changes_no_bit(setting):
    X, group = uneven(seed=1)
    kernel, C = Kernel("rbf", gamma=0.3), np.full(len(X), 1e3)
    together = answers(many(X, group, kernel, C, *setting, PAIRS), memory=1)
    for found, pair in zip(together, PAIRS, strict=True):
        (one,) = answers(many(X, group, kernel, C, *setting, [pair]), memory=1)
        assert one.alpha.tobytes() == found.alpha.tobytes()
        assert one.b == found.b


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("name", ["linear", "rbf", "poly", "laplacian"])
def test_values_that_all_share_are_those_of_each(name, is_sparse, monkeypatch):
    """Memory for one problem has none for all values."""
    X, group = uneven(seed=2, most=8)
    if is_sparse:
        X = sparse.csr_array(np.where(np.abs(X) < 1, 0.0, X))
    kernel = dataclasses.replace(NAMED[name], gamma=0.1)
    asked = []
    whole = GroupedSamples._ask

    def ask(self, problems):
        asked.append(whole(self, problems))
        return asked[-1]

    monkeypatch.setattr(GroupedSamples, "_ask", ask)
    problems = many(X, group, kernel, np.full(len(group), 10.0), groups=PAIRS)
    shared, apart = (answers(problems, memory) for memory in (MEMORY, 50_000))
    (of_all, _), (of_none, _) = asked[0], asked[-1]
    assert of_all > of_none  # values that were made: in float64 each is not counted
    for a, b in zip(shared, apart, strict=True):
        assert a.status == b.status == "solved"
        assert a.certificate.primal == pytest.approx(b.certificate.primal, rel=1e-9)
        np.testing.assert_allclose(a.w.sum(), b.w.sum(), atol=1e-9)


@pytest.mark.parametrize("name", ["linear", "rbf"])
def test_scores_of_values_that_all_share_are_sums_of_kernel_values(name):
    X, group = uneven(seed=3, most=8)
    kernel = dataclasses.replace(NAMED[name], gamma=0.2)
    samples = GroupedSamples(X, group, kernel)
    rng = np.random.default_rng(0)
    parts = [np.flatnonzero((group == i) | (group == j)) for i, j in PAIRS]
    support = [part[rng.random(len(part)) < 0.5] for part in parts]
    c = rng.normal(size=sum(map(len, support)))
    ends = np.cumsum([len(some) for some in support])
    row_ends = np.cumsum([len(part) for part in parts])
    given = np.concatenate(support), c, ends
    found = samples.exact(given, (np.concatenate(parts), row_ends), 2, lambda: False)
    K, begin = kernel(X, X), 0
    for part, some, end, last in zip(parts, support, ends, row_ends, strict=True):
        expected = K[np.ix_(part, some)] @ c[end - len(some) : end]
        np.testing.assert_allclose(found[begin:last], expected, atol=1e-12)
        begin = last


def test_threads_change_no_bit_of_many_classes():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(60), 3)
    X = rng.normal(size=(len(y), 5)) + y[:, None]
    one, two = (SVC(n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2))
    assert one.dual_coef_.tobytes() == two.dual_coef_.tobytes()
    assert one.intercept_.tobytes() == two.intercept_.tobytes()


def test_bounds_by_products_of_each_place_are_those_of_groups(monkeypatch):
    X, group = uneven(seed=4)
    kernel, C = Kernel("linear", gamma=1.0), np.full(len(X), 0.1)
    problems = many(X, group, kernel, C, "hinge", "none", PAIRS)
    c = problems.y * np.random.default_rng(0).uniform(0.0, 0.1, len(problems.y))
    nothing, found = np.zeros(len(PAIRS)), []
    for most in (many_problems.FEW_NUMBERS, 0):
        monkeypatch.setattr(many_problems, "FEW_NUMBERS", most)
        one = dataclasses.replace(problems, X=X)
        proofs = one.bounds(c, np.zeros(len(c)), nothing, 1, lambda: False)
        found.append((proofs, one.weights(c)))
    for few, groups in zip(*found, strict=True):
        np.testing.assert_allclose(few, groups, rtol=1e-12, atol=1e-13)
    proofs, W = found[0]
    for k, w in enumerate(W):
        own = slice(problems.starts[k], problems.ends[k])
        margins = problems.y[own] * (X[problems.rows[own]] @ w)
        primal = 0.5 * w @ w + 0.1 * np.maximum(0.0, 1.0 - margins).sum()
        assert proofs[k, 0] == pytest.approx(primal, rel=1e-9)


def test_weights_that_are_kept_are_those_of_the_same_numbers():
    X, group = uneven(seed=4)
    problems = many(X, group, Kernel("linear", gamma=1.0), groups=PAIRS)
    problems = dataclasses.replace(problems, X=X)
    c = np.random.default_rng(0).normal(size=len(problems.y))
    before = problems.weights(c)
    assert problems.weights(c.copy()) is before
    c[problems.starts[1]] += 1.0
    moved = problems.weights(c) - before
    expected = np.zeros_like(moved)
    expected[1] = X[problems.rows[problems.starts[1]]]
    np.testing.assert_allclose(moved, expected, atol=1e-12)
