"""Below the least gap of the batch solver fits go there first, and on by working sets."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from widemargin import SVC, SVR, NuSVC
from widemargin.estimators import solving
from widemargin.solvers.kernel.batch import LEAST_GAP

POLY = {"kernel": "poly", "degree": 4, "gamma": 5.0, "C": 50.0}


def hard_data():
    """Rows whose values of degree 4 differ by orders of magnitude, and targets."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(97, 5))
    return X, np.sin(X[:, 0]) + 0.3 * rng.normal(size=97)


def hard_fit(tol, loss="squared_epsilon_insensitive"):
    return SVR(epsilon=0.05, loss=loss, tol=tol, **POLY).fit(*hard_data())


@pytest.mark.parametrize("share", [0.99, 0.1, 1e-4])
def test_a_smaller_gap_is_no_worse_fit(share):
    """Working sets alone ended at zero."""
    least = hard_fit(LEAST_GAP)
    less = hard_fit(share * LEAST_GAP)
    assert less.status_ == least.status_ == "solved"
    assert less.dual_gap_ <= less.tol == less.solution_.tol
    primal = least.solution_.certificate.primal
    assert less.solution_.certificate.primal == pytest.approx(primal, rel=1e-8)
    assert less.solution_.reason.startswith("after batch got no further")


def test_an_answer_that_is_good_enough_is_the_batch_solvers():
    """What it finds of few rows has all digits."""
    X, y = np.arange(6.0)[:, np.newaxis], np.array([0, 0, 1, 0, 1, 1])
    machine = SVC(gamma=0.5, tol=0.5 * LEAST_GAP).fit(X, y)
    assert machine.solution_.solver == "batch"
    assert machine.solution_.tol == machine.tol
    assert machine.dual_gap_ <= machine.tol


@pytest.mark.parametrize("copies", [1, 2])
@pytest.mark.parametrize("kind", [SVC, NuSVC])
def test_all_pairs_of_classes_go_on(kind, copies):
    X, f = hard_data()
    X, y = np.tile(X, (copies, 1)), np.tile(np.digitize(f, [-0.5, 0.5]), copies)
    options = {"kernel": "rbf", "gamma": 0.5}
    near, less = (kind(tol=tol, **options).fit(X, y) for tol in (LEAST_GAP, 1e-11))
    assert less.status_ == "solved"
    assert less.dual_gap_ <= 1e-11
    for before, after in zip(near.solutions_, less.solutions_, strict=True):
        assert after.tol == 1e-11
        assert "batch" in after.solver + after.reason
        primal = before.certificate.primal
        assert after.certificate.primal == pytest.approx(primal, rel=2.0 * LEAST_GAP)


def test_an_answer_that_is_better_than_the_last_one_stays(monkeypatch):
    """Working sets that begin at zero stay there."""
    monkeypatch.setattr(solving, "_is_start", lambda *ends: False)
    with pytest.warns(ConvergenceWarning) as caught:
        machine = hard_fit(1e-2 * LEAST_GAP)
    said = str(caught[0].message)
    primal = hard_fit(1e-4).solution_.certificate.primal
    found = machine.solution_
    assert found.certificate.primal == pytest.approx(primal, rel=1e-4)
    assert found.solver == "irwls"
    assert found.alpha.any()
    assert machine.status_ in ("stalled", "almost_solved")
    assert f"at a relative gap of {machine.dual_gap_:.1e}" in said
    assert "The model is usable" in said
    residuals = np.maximum(abs(machine.predict(hard_data()[0]) - hard_data()[1]), 0.05)
    assert 50.0 * ((residuals - 0.05) ** 2).sum() <= found.certificate.primal
