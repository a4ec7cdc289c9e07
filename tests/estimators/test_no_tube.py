"""NuSVR with a C for which a function meets all targets: epsilon is 0."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from widemargin import NuSVR
from widemargin.estimators import nu_svr


def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 5))
    return X, np.sin(X[:, 0]) + 0.3 * rng.normal(size=100)


def assert_proved(machine, X, f, weights):
    """Bounds by sums of NumPy: those of the machine, but for rounding."""
    c = np.zeros(len(f))
    c[machine.support_] = machine.dual_coef_.ravel()
    K = rbf_kernel(X, gamma=machine.gamma_)
    beyond = np.maximum(0.0, abs(f - machine.predict(X)) - machine.epsilon_)
    pull = machine.nu * weights.sum() * machine.epsilon_
    square = 0.5 * c @ K @ c
    primal = square + machine.C * (pull + weights @ beyond)
    bounds = machine.solution_.certificate
    assert primal <= bounds.primal * (1.0 + 1e-4)
    assert c @ f - square == pytest.approx(bounds.dual, rel=1e-4)
    assert abs(c).sum() <= machine.nu * machine.C * weights.sum()
    assert (abs(c) <= machine.C * weights).all()
    assert bounds.dual <= bounds.primal


@pytest.mark.parametrize("C", [1e6, 1e7, 1e8])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_large_C_is_solved(C, weighted):
    """Pairs of dual variables of the size of C left few digits for what differs."""
    X, f = data()
    weights = np.ones(100)
    if weighted:
        weights[:9], weights[9:50] = 0.0, 2.0
    machine = NuSVR(C=C, nu=0.5).fit(X, f, weights)
    assert machine.status_ == "solved"
    assert machine.dual_gap_ <= machine.tol
    assert 0.0 <= machine.epsilon_ < 1e-9
    assert_proved(machine, X, f, weights)


def test_ctrl_c_in_the_second_fit_is_not_lost(monkeypatch):
    exact, calls = nu_svr.exact, []

    def pressed(training):
        calls.append(training.recipe.nu)
        if len(calls) == 2:
            training.callbacks.interrupt()
        return exact(training)

    monkeypatch.setattr(nu_svr, "exact", pressed)
    machine = NuSVR(C=1e8, nu=0.5)
    with pytest.raises(KeyboardInterrupt):
        machine.fit(*data())
    assert calls == [0.5, None]
    assert machine.status_ == "interrupted"
    assert np.isfinite(machine.predict(data()[0])).all()


def test_a_sum_of_alpha_beyond_what_nu_allows_proves_nothing(monkeypatch):
    monkeypatch.setattr(nu_svr, "SURELY", 0.0)
    X, f = data()
    with pytest.warns(ConvergenceWarning, match="lack of progress"):
        machine = NuSVR(C=1e8, nu=0.5).fit(X, f)
    assert machine.status_ == "stalled"


@pytest.mark.parametrize(("name", "value"), [("NO_TUBE", -1.0), ("proves_more", None)])
def test_a_fit_without_a_tube_is_taken_by_its_proof_alone(monkeypatch, name, value):
    """A tube that is none of rounding, or a second fit that proves less."""
    monkeypatch.setattr(nu_svr, name, value or (lambda *_: False))
    with pytest.warns(ConvergenceWarning):
        machine = NuSVR(C=1e8, nu=0.5).fit(*data())
    assert machine.status_ == "stalled"
    assert "no tube" not in machine.solution_.reason


def test_a_checkpoint_is_of_one_fit(monkeypatch, tmp_path):
    exact, calls = nu_svr.exact, []

    def counted(training):
        calls.append(training.recipe.nu)
        return exact(training)

    monkeypatch.setattr(nu_svr, "exact", counted)
    with pytest.warns(ConvergenceWarning):
        NuSVR(C=1e8, nu=0.5, checkpoint=tmp_path / "a.ckpt").fit(*data())
    assert calls == [0.5]
