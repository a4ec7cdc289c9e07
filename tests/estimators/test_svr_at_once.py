"""SVR of few rows is solved by the batch engine: the same machine."""

import numpy as np
import pytest

from widemargin import SVR
from widemargin.losses.pointwise import LOSSES


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
def test_the_machine_is_that_of_working_sets(loss, intercept):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=120)
    options = {"loss": loss, "intercept": intercept, "C": 3.0, "tol": 1e-5}
    weights = rng.uniform(0.0, 2.0, 120)
    fits = [
        SVR(solver=solver, **options).fit(X, y, weights) for solver in ("auto", "irwls")
    ]
    assert [one.solution_.solver for one in fits] == ["batch", "irwls"]
    assert max(one.dual_gap_ for one in fits) <= 1e-5
    own, other = (one.solution_.alpha for one in fits)
    assert len(own) == len(other) == 240
    np.testing.assert_allclose(own, other, atol=0.1 * other.max())
    np.testing.assert_allclose(fits[0].predict(X), fits[1].predict(X), atol=0.01)


def test_every_loss_has_a_name_in_regression():
    for loss in LOSSES:
        X = np.arange(20.0)[:, np.newaxis]
        name = {"hinge": "epsilon_insensitive"}.get(loss, "squared_epsilon_insensitive")
        fit = SVR(loss=name, C=10.0, epsilon=0.0).fit(X, X[:, 0] % 5)
        assert fit.solution_.solver == "batch"
        assert fit.dual_gap_ <= fit.tol


def test_many_rows_take_working_sets(monkeypatch):
    monkeypatch.setattr("widemargin.estimators.engine_choice.MOST_ROWS_ALONE", 10)
    monkeypatch.setattr("widemargin.estimators.engine_choice.NARROW", 0)
    X = np.arange(20.0)[:, np.newaxis]
    assert SVR().fit(X, X[:, 0] % 5).solution_.solver == "irwls"
