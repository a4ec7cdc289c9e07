"""No model with a kernel that ended early is worse than no function at all."""

import contextlib

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from widemargin import SVC, SVR
from widemargin.estimators import solving
from widemargin.solution import Status
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
        ends = solve_all(*args, **options | {"most": 1_000})
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
        worse = bool(before.certificate.primal > zero)
        replaced[worse] = True
        assert after.alpha.any() == (not worse)
        assert (after.certificate == before.certificate) == (not worse)
        if worse:
            assert after.certificate.primal == pytest.approx(zero, rel=1e-9)
            assert after.status == before.status
    assert replaced == [True, True]
