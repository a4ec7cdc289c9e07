"""Equivalent problems: equal rows merged, with a kernel or without, columns centered."""

import itertools
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from tests.cases.pairwise import product
from tests.certificates.exact import Exact, false_claims
from tests.conftest import INTERCEPTS, LOSSES
from widemargin import (
    SVC,
    SVR,
    Kernel,
    LinearSVC,
    LinearSVR,
    NuSVC,
    NuSVR,
    OneClassSVM,
    Problem,
    as_rows,
    solve,
)
from widemargin.estimators import equal_samples
from widemargin.losses.norms import L2Norm
from widemargin.numerics.rounding import gamma_n
from widemargin.problems import conditioning
from widemargin.problems.conditioning import MERGED_ROWS, conditioned
from widemargin.problems.nu import most_mass, nu_problem, nu_regression_problem
from widemargin.problems.regression import regression_problem


def exactly(problem):
    """The problem in rational numbers."""
    rows = problem.rows.take(np.arange(problem.rows.shape[0]))
    kept = slice(None) if problem.kept is None else problem.kept
    form = problem.loss, problem.intercept, getattr(problem, "kernel", None)
    y, C, q = problem.y[kept], problem.C[kept], problem.q[kept]
    return Exact(rows, y.astype(np.int64), np.array(C), *form, q=np.array(q))


def duplicated(kind=np.asarray, m=MERGED_ROWS, different=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (different, 20)).astype(float)
    y = np.where(X[:, :5].sum(axis=1) + rng.normal(size=different) > 2.5, 1.0, -1.0)
    index = rng.integers(0, different, m)
    return kind(X[index]), y[index]


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
def test_merged_rows_give_the_same_answer(kind, loss, intercept):
    X, y = duplicated(kind, m=2 * MERGED_ROWS)
    C = np.random.default_rng(1).uniform(0.0, 0.02, len(y))
    C[::7] = 0.0
    problem = Problem(X, y, C, loss, intercept)
    core, lift = conditioned(problem)
    assert core.rows.shape[0] <= 800
    assert core.C.sum() == pytest.approx(C.sum())
    inner = solve(core, tol=1e-9)
    alpha, v = lift.alpha_up(inner.alpha), lift.up(core.stack(inner.w, inner.b))
    whole = problem.certify(alpha, *problem.split(v))
    # The same numbers; bounds of what rounding may do grow with the number of rows.
    off = whole.rounding + 1e-12 * whole.primal
    assert abs(whole.primal - inner.certificate.primal) <= off
    assert abs(whole.dual - inner.certificate.dual) <= off
    assert off <= 1e-11 * whole.primal
    np.testing.assert_allclose(lift.alpha_down(alpha), inner.alpha, atol=1e-14)
    assert np.all(alpha[C == 0.0] == 0.0)


def test_a_solve_merges_and_answers_for_all_rows():
    X, y = duplicated()
    problem = Problem(X, y, 0.05)
    solution = solve(problem, tol=1e-8)
    assert solution.status == "solved"
    assert solution.alpha.shape == y.shape
    assert solution.trace[0].active <= 800  # rows of the merged problem
    assert solution.certificate == problem.certify(
        solution.alpha, solution.w, solution.b, tol=solution.tol
    )
    again = solve(problem, tol=1e-8, start=solution)
    assert again.trace[-1].iteration <= 1
    assert again.certificate.primal <= solution.certificate.primal * (1 + 1e-12)


def test_support_vectors_are_all_equal_rows():
    X, y = duplicated()
    clf = LinearSVC(C=0.05, tol=1e-8).fit(X, y)
    support = np.zeros(len(y), dtype=bool)
    support[clf.support_] = True
    _, group = np.unique(np.c_[X, y], axis=0, return_inverse=True)
    shares = np.bincount(group, support) / np.bincount(group)
    assert set(shares) <= {0.0, 1.0}


def test_rows_that_differ_are_left_alone():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(MERGED_ROWS, 3)), np.sign(rng.normal(size=MERGED_ROWS))
    problem = Problem(X, y)
    core, lift = conditioned(problem)
    assert core is problem
    v = rng.normal(size=4)
    assert lift.up(v) is v
    assert lift.alpha_up(y) is y


def test_few_rows_are_left_alone():
    X, y = duplicated(m=MERGED_ROWS - 1)
    problem = Problem(X, y)
    assert conditioned(problem)[0] is problem


def test_columns_far_from_zero_are_centered_and_rows_not_merged():
    X, y = duplicated()
    problem = Problem(X + 1e6, y)
    core, lift = conditioned(problem)
    assert core.rows.shape == problem.rows.shape
    v = np.random.default_rng(0).normal(size=21)
    np.testing.assert_allclose(lift.down(lift.up(v))[:-1], v[:-1])
    w, b = problem.split(lift.up(v))
    scores = X[:5] + 1e6
    inner = scores - lift.center
    np.testing.assert_allclose(scores @ w + b, inner @ v[:-1] + v[-1], atol=1e-7)


def repeated_samples(kind=np.asarray, m=MERGED_ROWS, different=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (different, 20)).astype(float)
    target = X[:, :5].sum(axis=1) + rng.standard_t(2, size=different) + 30.0
    index = rng.integers(0, different, m)
    return kind(X[index]), target[index]


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
def test_merged_samples_of_a_regression_give_the_same_answer(kind, loss, intercept):
    X, target = repeated_samples(kind, m=2 * MERGED_ROWS)
    C = np.random.default_rng(1).uniform(0.0, 0.02, len(target))
    C[::7] = 0.0
    problem = regression_problem(X, target, C, 0.3, loss, intercept)
    core, lift = conditioned(problem)
    assert core.rows.shape[0] <= 800
    inner = solve(core, tol=1e-9)
    alpha, v = lift.alpha_up(inner.alpha), lift.up(core.stack(inner.w, inner.b))
    whole = problem.certify(alpha, *problem.split(v))
    # Both are bounds, less than `rounding` apart from what is so. What is so differs by
    # what rounds on the way. Each q is q - y shift, rounded once (the unit is a power of
    # 2), b is unit b' + shift: slacks move by u (|q - y shift| + |b|), and losses by C L'
    # times that. Weights are added up and alpha is shared: (number of equal ones + 2) u.
    bounds, kept, unit = inner.certificate, problem.kept, np.spacing(0.5)
    q, most = problem.q[kept], np.bincount(lift.group).max() + 2
    size = float((np.abs(q) * alpha[kept]).sum())  # |q|'alpha
    near = np.abs(q - problem.y[kept] * lift.shift)
    steep = 1.0 if loss == "hinge" else 2.0 * near.max()
    moved = float((problem.C[kept] * (near + abs(problem.split(v)[1]))).sum())
    off = whole.rounding + lift.value(bounds.rounding)
    off += unit * (steep * moved + most * (whole.primal + size))
    assert abs(whole.primal - lift.value(bounds.primal)) <= off
    assert abs(whole.dual - lift.value(bounds.dual)) <= off
    # Nearly all of that: float64 may miss q'alpha by a share of |q|'alpha, which is many
    # times P where targets are far from zero. In classification it is P at most.
    assert off <= 1e-11 * whole.primal + 1.1 * gamma_n(len(q)) * size
    np.testing.assert_allclose(lift.alpha_down(alpha), inner.alpha, atol=1e-13)
    assert np.all(alpha[np.tile(C == 0.0, 2)] == 0.0)


def test_samples_far_from_zero_are_merged_and_centered():
    X, target = repeated_samples()
    problem = regression_problem(X + 1e6, target, 0.05)
    core, lift = conditioned(problem)
    assert core.rows.shape[0] <= 800
    assert lift.center is not None
    solution = solve(problem, tol=1e-6)
    assert solution.status == "solved"
    again = solve(problem, tol=1e-6, start=solution)
    assert again.trace[-1].iteration <= 1
    near = solve(regression_problem(X, target, 0.05), tol=1e-6)
    assert solution.certificate.primal == pytest.approx(
        near.certificate.primal, rel=2e-6
    )


def test_a_regression_weighs_equal_samples_by_their_number():
    X, target = repeated_samples()
    found, first, counts = np.unique(
        np.c_[X, target], axis=0, return_index=True, return_counts=True
    )
    settings = {"C": 0.05, "epsilon": 0.2, "tol": 1e-9}
    whole = LinearSVR(**settings).fit(X, target)
    few = LinearSVR(**settings).fit(X[first], target[first], sample_weight=counts)
    assert len(found) <= 400
    assert whole.dual_gap_ <= 1e-9
    np.testing.assert_allclose(whole.predict(X[:9]), few.predict(X[:9]), atol=1e-5)


def test_equal_rows_with_other_targets_are_left_alone():
    X, target = repeated_samples()
    target = target + np.arange(len(target)) / len(target)
    core, lift = conditioned(regression_problem(X, target))
    assert core.rows.shape[0] == 2 * len(target)
    assert lift.group is None


def test_targets_that_are_rounded_alike_in_one_row_only_are_left_alone():
    X, _ = repeated_samples()
    more = np.arange(len(X)) % 2 == 1
    target = np.where(more, -np.nextafter(0.1, 1.0), -0.1)
    problem = regression_problem(X, target, epsilon=0.3)
    below, above = np.split(problem.q, 2)
    assert len(np.unique(below)) == 1
    assert len(np.unique(above)) == 2
    assert conditioned(problem)[0].rows.shape == problem.rows.shape


def test_margins_of_rows_that_are_no_samples_are_left_alone():
    X, target = repeated_samples()
    problem = Problem(X, np.sign(target - 32.0), q=target)
    assert conditioned(problem)[0].rows.shape == problem.rows.shape


# -- with a kernel ---------------------------------------------------------------------

RBF = Kernel("rbf", gamma=0.3)


def few_samples(m=40, different=13, seed=0):
    """Samples of which many are equal: rows, targets, and labels that overlap."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(different, 3))
    target = 2.0 * X[:, 0] + rng.normal(size=different)
    index = np.append(np.arange(different), rng.integers(0, different, m - different))
    return X[index], target[index], np.where(target > 0.3, 1.0, -1.0)[index]


def with_kernel(form, C, loss="hinge", intercept="free"):
    """A problem with a kernel, of samples of which many are equal."""
    X, target, y = few_samples(len(C))
    options = {"kernel": RBF}
    if form == "classes":
        return Problem(X, y, C, loss, intercept, **options)
    if form == "regression":
        return regression_problem(X, target, C, 0.2, loss, intercept, **options)
    if form == "nu regression":
        return nu_regression_problem(as_rows(X), target, C, 0.4, **options)
    labels = np.ones(len(C)) if form == "one class" else y
    return nu_problem(as_rows(X), labels, C, 0.35, **options)


def weights(kind, m=40):
    """Equal ones, one that rounds, numbers of samples, and any."""
    rng = np.random.default_rng(1)
    return {
        "one": np.ones(m),
        "rounds": np.full(m, 0.1),
        "counts": rng.integers(0, 4, m).astype(float),
        "any": rng.uniform(0.0, 3.0, m),
    }[kind]


FORMS = [
    *(("classes", loss, b) for loss in LOSSES for b in INTERCEPTS),
    *(("regression", loss, b) for loss in LOSSES for b in INTERCEPTS),
    *((form, "hinge", "") for form in ("one class", "nu", "nu regression")),
]


@product(form=FORMS, C=["one", "rounds", "counts", "any"], tol=[1e-4, 1e-8])
def test_merged_kernel_rows_have_true_certificates(form, C, tol, monkeypatch):
    problem = with_kernel(form[0], weights(C), *form[1:])
    whole = solve(problem, tol=tol)
    monkeypatch.setattr(conditioning, "KERNEL_ROWS", 10)
    core, lift = conditioned(problem)
    copies = 2 if "regression" in form[0] else 1
    assert core.rows.shape[0] <= 13 * copies
    assert core.C.sum() == pytest.approx(problem.C.sum())
    merged = solve(problem, tol=tol)
    assert merged.status == "solved"
    assert merged.trace[0].active <= 13 * copies
    bounds, before = merged.certificate, whole.certificate
    size = abs(before.primal)
    assert bounds.gap <= tol * abs(bounds.primal) * (1.0 + 1e-12)
    assert bounds.dual <= before.primal + 1e-12 * size
    assert before.dual <= bounds.primal + 1e-12 * size
    alpha = merged.alpha
    assert np.all(alpha >= 0.0)
    assert np.all(alpha[problem.C == 0.0] == 0.0)
    assert form[1] != "hinge" or np.all(alpha <= problem.C)
    np.testing.assert_array_equal(merged.w, problem.y * alpha)
    if problem.mass is None:
        kept = slice(None) if problem.kept is None else problem.kept
        exact = exactly(problem)
        P, D = exact.primal(merged.w[kept], merged.b), exact.dual(alpha[kept])
        assert not false_claims(bounds, P, D, tol=tol, status="solved")


@pytest.mark.parametrize("form", ["classes", "one class", "nu regression"])
def test_few_equal_rows_of_a_kernel_are_support_vectors(form, monkeypatch):
    monkeypatch.setattr(conditioning, "KERNEL_ROWS", 10)
    problem = with_kernel(form, np.ones(40))
    solution = solve(problem, tol=1e-8)
    _, lift = conditioned(problem)
    free = (solution.alpha > 0.0) & (solution.alpha < problem.C)
    assert np.bincount(lift.group, free).max() == 1
    again = solve(problem, tol=1e-8, start=solution)
    assert again.trace[-1].iteration <= 1


@pytest.mark.parametrize("count", [3, 8, 10])
def test_rows_of_a_merged_one_at_its_bound_are_at_theirs(count, monkeypatch):
    """Sums of 0.1 round down or up: 0.8 less a bit, 0.3 and a bit."""
    monkeypatch.setattr(conditioning, "KERNEL_ROWS", 10)
    X, _, y = (np.repeat(part[:13], count, axis=0) for part in few_samples())
    problem = Problem(X, y, 0.1, kernel=RBF)
    core, lift = conditioned(problem)
    assert core.rows.shape[0] == 13
    np.testing.assert_array_equal(lift.alpha_up(np.array(core.C)), problem.C)


@product(
    C=["number", "rounds", "counts", "any"],
    loss=LOSSES,
    intercept=["penalized", "none"],
    seed=[0, 1, 2],
)
def test_bounds_of_merged_rows_are_those_of_all(C, loss, intercept, seed, monkeypatch):
    """To the last digits: the weights of merged rows round, and allow for it."""
    monkeypatch.setattr(conditioning, "MERGED_ROWS", 10)
    monkeypatch.setattr(conditioning, "MERGE_SAMPLE", 40)
    X, _, y = few_samples(400, seed=seed)
    given = 0.1 if C == "number" else weights(C, 400)
    problem = Problem(X, y, given, loss, intercept)
    assert problem.has_equal_weights == (C == "number")
    core, lift = conditioned(problem)
    assert core.rows.shape[0] == 13
    near = solve(problem, tol=1e-6)
    v = problem.stack(near.w, near.b)
    alpha, bounds = lift.slopes(core, v)
    own, others = problem.slopes(v)
    np.testing.assert_allclose(alpha, problem.gather(own), rtol=1e-12, atol=1e-15)
    kept = slice(None) if problem.kept is None else problem.kept
    exact = exactly(problem)
    P, D = exact.primal(near.w, near.b), exact.dual(alpha[kept])
    assert not false_claims(bounds, P, D)
    assert bounds.primal == pytest.approx(others.primal, rel=1e-8)
    assert bounds.dual == pytest.approx(others.dual, rel=1e-8, abs=1e-8 * float(P))
    # Weights that differ have as many roundings as there are equal rows.
    most = 1 + (0 if C == "number" else int(np.bincount(lift.group).max()))
    rounding = (1 + 2 * most) * core.slopes(v)[1].rounding
    assert bounds.rounding == pytest.approx(rounding)


def test_what_sharing_rounds_is_in_the_errors_of_scores(monkeypatch):
    monkeypatch.setattr(conditioning, "KERNEL_ROWS", 10)
    problem = with_kernel("classes", weights("any"))
    core, lift = conditioned(problem)
    c = core.y * core.C * np.random.default_rng(0).uniform(0.0, 1.0, len(core.y))
    lent = []
    lift.lend_scores(SimpleNamespace(c=c, of_equals=lambda *given: lent.append(given)))
    ((_, group, shares, off),) = lent
    exact = [-Fraction(one) for one in c]
    for j, share in zip(group, shares, strict=True):
        exact[j] += Fraction(share)
    lost = sum(abs(one) for one in exact)  # of values that are 1 at most
    assert lost > 0
    assert all(lost <= Fraction(one) for one in off)


@pytest.mark.parametrize("two", [False, True])
def test_a_sum_of_alpha_is_no_more_than_merged_weights_have(two, monkeypatch):
    """The sum of 40 weights may round to more than those of sums of some."""
    monkeypatch.setattr(conditioning, "KERNEL_ROWS", 10)
    X, _, y = few_samples()
    for C in np.random.default_rng(0).uniform(0.1, 1.0, 40):
        own = np.full(40, C)
        labels = y if two else np.ones(40)
        most = most_mass(labels, own)
        problem = nu_problem(as_rows(X), labels, own, most / own.sum(), kernel=RBF)
        core, _ = conditioned(problem)
        assert core.mass <= most_mass(core.y, core.C)
        assert core.mass == pytest.approx(problem.mass, rel=1e-14)


def test_kernel_rows_that_differ_are_left_alone(monkeypatch):
    monkeypatch.setattr(conditioning, "KERNEL_ROWS", 10)
    X, target, y = few_samples()
    more = target + np.arange(40.0)
    for problem in (
        Problem(X + np.arange(40.0)[:, None], y, kernel=RBF),
        Problem(np.eye(40), y, kernel=Kernel("precomputed")),
        Problem(X, y, kernel=RBF, norm=L2Norm()),
        regression_problem(X, more, kernel=RBF),
        Problem(X, y, q=more, kernel=RBF),
    ):
        assert conditioned(problem)[0] is problem


def test_a_limit_ends_a_merged_kernel_problem(monkeypatch):
    monkeypatch.setattr(conditioning, "KERNEL_ROWS", 10)
    problem = with_kernel("classes", np.ones(40))
    solution = solve(problem, tol=1e-8, max_iter=1, time_limit=60.0)
    assert len(solution.alpha) == 40
    seen = []
    solve(problem, tol=1e-8, callback=lambda step: seen.append(step.point()))
    assert all(len(w) == 40 for w, _ in seen)
    assert problem.primal(*seen[-1]) == pytest.approx(solve(problem).certificate.primal)


def test_samples_that_differ_are_not_all_looked_at_for_small_fits(monkeypatch):
    monkeypatch.setattr(equal_samples, "KERNEL_ROWS", 10)
    find, looked = equal_samples.equal_rows, []

    def counted(*given):
        found = find(*given)
        looked.append(len(found[0]))
        return found

    monkeypatch.setattr(equal_samples, "equal_rows", counted)
    monkeypatch.setattr("widemargin.estimators.engine_choice.MOST_ROWS", 50)
    X = np.random.default_rng(0).normal(size=(300, 20))
    SVC(gamma=0.1).fit(X, np.where(X[:, 0] > 0, 1, -1))
    assert looked == [51]


@product(
    name=["SVC", "ovo", "SVR", "NuSVC", "NuSVR", "OneClassSVM"],
    weight=[None, "counts", "even"],
    C=[1.0, 0.25, 0.1],
)
def test_equal_samples_of_small_fits_are_solved_once(name, weight, C, monkeypatch):
    X, target, y = few_samples(90)
    kinds = np.digitize(target, [-1.0, 1.0])
    counts = {None: None, "counts": weights("counts", 90), "even": np.full(90, 2.0)}
    labels = {"ovo": kinds, "SVR": target, "NuSVR": target, "OneClassSVM": None}.get(
        name, y
    )
    machine = {
        "SVC": SVC(C=C, gamma=0.3),
        "ovo": SVC(C=C, gamma=0.3),
        "SVR": SVR(C=C, gamma=0.3),
        "NuSVC": NuSVC(nu=0.3, gamma=0.3),
        "NuSVR": NuSVR(C=C, nu=0.4, gamma=0.3),
        "OneClassSVM": OneClassSVM(nu=0.3, gamma=0.3),
    }[name]
    found = []
    for least in (10**9, 10):
        monkeypatch.setattr(equal_samples, "KERNEL_ROWS", least)
        fit = clone(machine).fit(X, labels, sample_weight=counts[weight])
        assert fit.status_ == "solved"
        found.append(fit.solutions_)
    rounds = C == 0.1 and name in ("SVC", "ovo", "SVR", "NuSVR")
    merges = weight != "counts" and not rounds
    for one, other in zip(*found, strict=True):
        before, bounds = one.certificate, other.certificate
        assert before.dual <= bounds.primal
        assert bounds.dual <= before.primal
        assert merges or bounds == before
        np.testing.assert_array_equal(other.alpha > 0.0, other.w != 0.0)
        assert other.at_bound <= np.count_nonzero(other.alpha)
        assert len(one.alpha) == len(other.alpha)
    if merges:
        fewer = other.trace[0].active
        assert fewer <= len(other.alpha) / 2


def test_bounds_of_few_samples_are_those_of_all(monkeypatch):
    X, _, y = few_samples(90)
    monkeypatch.setattr(equal_samples, "KERNEL_ROWS", 10)
    solution = SVC(C=3.0, gamma=0.3).fit(X, y).solution_
    exact = exactly(Problem(X, y, 3.0, kernel=RBF))
    P, D = exact.primal(solution.w, solution.b), exact.dual(solution.alpha)
    assert not false_claims(solution.certificate, P, D, tol=1e-4, status="solved")
    _, group = np.unique(np.c_[X, y], axis=0, return_inverse=True)
    free = (solution.alpha > 0.0) & (solution.alpha < 3.0)
    assert np.bincount(group, free).max() == 1


def test_few_samples_of_pairs_of_classes_have_dual_variables_of_their_own(monkeypatch):
    monkeypatch.setattr(equal_samples, "KERNEL_ROWS", 10)
    X, target, _ = few_samples(90)
    kinds = np.digitize(target, [-1.0, 1.0])
    machine = SVC(C=3.0, gamma=0.3, tol=1e-6).fit(X, kinds)
    pairs = itertools.combinations(range(3), 2)
    for pair, solution in zip(pairs, machine.solutions_, strict=True):
        own = np.isin(kinds, pair)
        y = np.where(kinds[own] == pair[0], 1.0, -1.0)
        y = y if np.array_equal(solution.w, y * solution.alpha) else -y
        problem = Problem(X[own], y, 3.0, kernel=RBF)
        found = problem.certify(solution.alpha, solution.w, solution.b)
        assert found.relative_gap <= 1e-6
        assert found.dual == pytest.approx(solution.certificate.dual)
