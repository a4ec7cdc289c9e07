"""A model with a kernel that ended early proves no less than what is known beside it."""

import contextlib
import dataclasses

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from widemargin import SVC, SVR, NuSVR, Problem, solve
from widemargin.estimators import solving
from widemargin.estimators.no_worse import or_before
from widemargin.losses.pointwise import LOSSES
from widemargin.problems.constant import ConstantRows
from widemargin.problems.intercept import better_intercept
from widemargin.solution import Certificate, Status
from widemargin.solvers.kernel import batch

# Values of degree 4, which differ by orders of magnitude: the first steps are too long.
POLY = {"kernel": "poly", "degree": 4, "gamma": 5.0, "C": 50.0, "time_limit": 1e5}
POWERS = {"epsilon_insensitive": 1, "squared_epsilon_insensitive": 2}


def data():
    """Rows and targets that are far from zero."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    return X, np.sin(X[:, 0]) + 0.3 * rng.normal(size=200) + 7.0


def zero_objective(f, C, epsilon, power, intercept):
    """Of the best constant: by trial."""
    b = np.linspace(0.0, 0.0 if intercept == "none" else f.max(), 20_001)
    beyond = np.maximum(0.0, abs(f - b[:, np.newaxis]) - epsilon)
    penalty = 0.5 * b**2 if intercept == "penalized" else 0.0
    return (C * (beyond**power).sum(axis=1) + penalty).min()


@pytest.fixture(params=[Status.TIME_LIMIT, Status.INTERRUPTED], ids=str)
def early(request, monkeypatch):
    """How a batch ends, after a number of steps, with no time for another solver."""
    solve_all, solve_batch, found = batch.solve_all, solving.solve_batch, []

    def ended(*args, **options):
        ends = solve_all(*args, **options | {"brief": batch.Brief(1_000)})
        return ends._replace(status=request.param)

    def late(training):
        found.append(solve_batch(training))
        training.clock._begin -= 1e6
        return found[-1]

    monkeypatch.setattr(batch, "solve_all", ended)
    monkeypatch.setattr(solving, "solve_batch", late)
    return request.param, found


def fitted(machine, *data, status):
    """The machine after a fit that ended early."""
    pressed = status is Status.INTERRUPTED
    ends = pytest.raises(KeyboardInterrupt) if pressed else contextlib.nullcontext()
    warns = contextlib.nullcontext() if pressed else pytest.warns(ConvergenceWarning)
    with warns, ends:
        machine.fit(*data)
    assert machine.status_ == status
    return machine


@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
@pytest.mark.parametrize("loss", POWERS)
def test_a_regression_is_a_constant(early, loss, intercept):
    status, found = early
    (X, f), least = data(), 0.05
    machine = SVR(loss=loss, epsilon=least, intercept=intercept, **POLY)
    fitted(machine, X, f, status=status)
    zero = zero_objective(f, machine.C, least, POWERS[loss], intercept)
    assert found[0][0].certificate.primal > 2.0 * zero
    assert machine.solution_.certificate.primal == pytest.approx(zero, rel=1e-5)
    assert machine.solution_.certificate.dual == 0.0
    assert np.ptp(machine.predict(X)) == 0.0
    assert (machine.predict(X)[0] > f.min()) == (intercept != "none")
    assert len(machine.support_) == 0
    assert "The model is a constant" in machine.solution_.message
    assert "of 1e-04" in machine.solution_.message
    assert "far from optimal" not in machine.solution_.message


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_each_pair_of_classes_is_zero_on_its_own(early, loss):
    status, found = early
    X, f = data()
    weights = np.where(np.arange(len(f)) % 9 == 0, 0.0, 1.0)
    machine = SVC(loss=loss, intercept="free", **POLY)
    y = np.digitize(f, [6.7, 7.3])
    fitted(machine, X, y, weights, status=status)
    replaced = [False, False]
    for k, (i, j) in enumerate([(0, 1), (0, 2), (1, 2)]):
        sums = [machine.C * weights[y == label].sum() for label in (i, j)]
        # For the hinge: all of one class. For its square: between the two.
        zero = 2.0 * min(sums)
        if loss == "squared_hinge":
            zero = 4.0 * sums[0] * sums[1] / (sums[0] + sums[1])
        before, after = found[0][k], machine.solutions_[k]
        worse = bool(before.certificate.gap > zero)
        replaced[worse] = True
        assert after.alpha.any() == (not worse)
        assert (after.certificate == before.certificate) == (not worse)
        if worse:
            assert after.certificate.primal == pytest.approx(zero, rel=1e-9)
            assert after.status == before.status
    assert replaced == [True, True]


def test_no_time_for_a_step_leaves_the_best_constant():
    X = np.random.default_rng(0).normal(size=(2000, 5))
    y = (np.arange(2000) % 10 == 0).astype(int)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        clf = SVC(solver="irwls", time_limit=1e-9).fit(X, y)
    assert clf.score(X, y) == 0.9
    assert clf.solution_.certificate.primal == pytest.approx(400.0)


@pytest.mark.parametrize("tol", [1e-15, 1e-16])
def test_what_is_best_but_for_rounding_keeps_its_proof(tol):
    """All rows are one point: a constant is as good, and proves nothing."""
    y = np.where(np.arange(100) < 30, 1, -1)
    with pytest.warns(ConvergenceWarning):
        machine = SVC(tol=tol, gamma=1.0).fit(np.ones((100, 3)), y)
    assert machine.status_ in ("almost_solved", "stalled")
    assert machine.dual_gap_ < 1e-12


def test_a_good_bound_is_worth_more_than_a_lower_objective():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(440, 4)), np.where(rng.random(440) < 0.08, 1, -1)
    machine = SVC(C=10.0, gamma=0.01, intercept="penalized", tol=1e-6, max_iter=3)
    with pytest.warns(ConvergenceWarning):
        machine.fit(X, y)
    assert machine.dual_gap_ < 1e-2
    assert machine.solution_.alpha.any()


@pytest.mark.parametrize("ridge", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(20))
def test_the_best_constant(seed, ridge):
    """Also where no target has a loss at first: all are within the tube."""
    rng = np.random.default_rng(seed)
    f = rng.normal(3.0, rng.choice([0.1, 1.0, 5.0]), size=rng.integers(1, 9))
    C, epsilon = rng.choice([0.0, 0.3, 1.0, 100.0], len(f)), rng.choice([0.1, 1.0])
    C[0] = 1.0
    labels, C = np.repeat([1.0, -1.0], len(f)), np.tile(C, 2)
    q, loss = np.concatenate([f - epsilon, -f - epsilon]), LOSSES["hinge"]
    rows = ConstantRows(labels, C, q)
    objective = rows.objective(loss, ridge)
    ends = np.concatenate([labels * q, [0.0]])
    trials = np.concatenate([np.linspace(ends.min(), ends.max(), 10_001), ends])
    best = min(map(objective, trials))
    assert objective(rows.best_intercept(loss, ridge)) <= best * (1.0 + 1e-12) + 1e-12


def test_of_two_poor_answers_that_which_is_proved_to_be_nearer():
    """The other one has the smaller relative gap, and a larger objective."""
    X, f = data()
    with pytest.warns(ConvergenceWarning):
        found = SVR(**POLY | {"time_limit": None}, max_iter=1, solver="irwls").fit(X, f)
    far = found.solution_.changed(certificate=Certificate(8e9, 1.0, 0.0, 0.0))
    near = far.changed(certificate=Certificate(2e9, -5e8, 0.0, 0.0), b=3.0)
    assert near.certificate.relative_gap > far.certificate.relative_gap
    assert or_before(far, near).certificate == near.certificate
    assert or_before(far, near).b == 3.0
    assert or_before(near, far) is near


def test_an_answer_that_becomes_almost_solved_says_so():
    X, f = data()
    problem = Problem(X, np.where(f > np.median(f), 1, -1), 10.0, "squared_hinge")
    stalled, near = (solve(problem, tol=tol) for tol in (1e-17, 1e-14))
    assert (stalled.status, near.status) == ("stalled", "almost_solved")
    worse = dataclasses.replace(near.certificate, primal=2.0 * near.certificate.primal)
    found = or_before(stalled.changed(certificate=worse, tol=1e-14), near)
    assert found.status == "almost_solved"
    assert "lack of progress (almost_solved)" in found.message
    assert "within 100 times tol" in found.message
    assert "stalled" not in found.message
    assert "another solver" not in found.message


@pytest.mark.parametrize(("dual", "stays"), [(0.0, True), (1e9, False)])
def test_what_proves_nothing_useful_takes_no_place(dual, stays):
    """Of a model without a certificate the steps say that it is more than a constant."""
    X, f = data()
    with pytest.warns(ConvergenceWarning):
        found = SVR(**POLY | {"time_limit": None}, max_iter=1, solver="irwls").fit(X, f)
    unproved = found.solution_.changed(certificate=Certificate(np.inf, 0.0))
    before = unproved.changed(certificate=Certificate(2e9, dual))
    assert (or_before(unproved, before) is unproved) == stays


@pytest.mark.parametrize("seed", [1, 36, 49])
def test_epsilon_is_not_negative(seed):
    """Rounding of rho made it -1e-16."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(int(rng.integers(5, 60)), 2))
    f = [rng.normal(size=len(X)), X[:, 0], X[:, 0] + 0.1 * rng.normal(size=len(X))]
    nu, kernel = (0.9, "rbf") if seed == 49 else (1.0, "linear")
    assert NuSVR(nu=nu, kernel=kernel).fit(X, f[seed % 3]).epsilon_ >= 0.0


def test_a_penalized_intercept_moves_where_there_is_no_loss():
    f, loss = np.array([2.9, 3.0, 3.1]), LOSSES["hinge"]
    rows = ConstantRows(np.repeat([1.0, -1.0], 3), np.ones(6), np.append(f, -f) - 1.0)
    b, objective = better_intercept(rows, 3.0, loss, 1.0, 1e-6), rows.objective(loss, 1)
    assert objective(b) <= objective(rows.best_intercept(loss, 1.0)) + 1e-6
