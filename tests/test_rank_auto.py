"""SVC with a rank: polish=True and rank="auto"."""

from dataclasses import replace

import numpy as np
import pytest
from approximate_cases import LOSSES, digits_data, moons_data  # noqa: F401

from widemargin import SVC
from widemargin.solution import Status


@pytest.mark.parametrize("scheme", ["ovo", "ovr"])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_polished_machine_is_the_exact_one(digits, scheme, loss):
    X, y = digits[0][:300], digits[1][:300] % 3
    options = {"gamma": 0.02, "C": 3.0, "multi_class": scheme, "loss": loss}
    solver = "frank_wolfe" if loss == "squared_hinge" else "auto"
    steps = []
    clf = SVC(
        **options,
        rank=60,
        polish=True,
        certify="exact",
        solver=solver,
        callback=lambda step: steps.append((step.problem, step.iteration, step.primal)),
    ).fit(X, y)
    exact = SVC(**options, tol=1e-7).fit(X, y)
    assert clf.status_ == "solved"
    assert not hasattr(clf, "feature_map_")
    assert {s.solver for s in clf.solutions_} == {
        "irwls" if loss == "hinge" else "frank_wolfe"
    }
    assert clf.exact_certificates_ == [s.certificate for s in clf.solutions_]
    np.testing.assert_allclose(
        clf.intercept_, exact.intercept_, atol=0.05 * np.abs(exact.intercept_).max()
    )
    for a, b in zip(clf.solutions_, exact.solutions_, strict=True):
        assert a.certificate.primal == pytest.approx(b.certificate.primal, rel=2e-4)
    # The exact solver starts at the other one's answer: not at zero, where P = C m.
    first = [primal for k, iteration, primal in steps if (k, iteration) == (0, 0)]
    assert len(first) == 2
    assert first[1] < first[0]


def test_a_checkpoint_is_that_of_the_exact_solver(moons, tmp_path):
    options = {"gamma": 1.0, "tol": 1e-9, "checkpoint": str(tmp_path / "c")}
    for parameters in ({"rank": 30, "polish": True}, {"rank": "auto"}, {"rank": 30}):
        clf = SVC(**options, **parameters, max_iter=1)
        with pytest.warns(UserWarning, match="max_iter"):
            clf.fit(*moons)
        assert (tmp_path / "c").exists()
        assert clf.set_params(max_iter=None).fit(*moons).status_ == "solved"
        assert "resumed at iteration 1" in clf.solution_.reason
        assert not (tmp_path / "c").exists()


def test_auto_is_exact_where_it_can(moons):
    exact = SVC(gamma=1.0).fit(*moons)
    for time_limit in (None, 600.0):
        clf = SVC(gamma=1.0, rank="auto", certify="exact", time_limit=time_limit)
        clf.fit(*moons)
        assert not hasattr(clf, "feature_map_")
        np.testing.assert_array_equal(clf.dual_coef_, exact.dual_coef_)
        assert clf.solution_.reason == exact.solution_.reason
        assert clf.exact_gap_ == exact.dual_gap_


def late(monkeypatch, max_iter, seconds=0.0):
    """Exact solves are ended by time after some iterations, with some time used up."""
    solve = SVC._solve_exactly

    def stopped(self, training):
        if training.starts is not None:
            return solve(self, training)
        self.set_params(max_iter=max_iter or 1)
        limit = training.time_limit if max_iter else 1e-9
        found = solve(self, replace(training, time_limit=limit))
        self.set_params(max_iter=None)
        training.clock._begin -= seconds
        solutions = [replace(s, status=Status.TIME_LIMIT) for s in found.solutions]
        return replace(found, solutions=solutions)

    monkeypatch.setattr(SVC, "_solve_exactly", stopped)


@pytest.mark.parametrize("scheme", ["ovo", "ovr"])
def test_auto_takes_a_rank_where_time_is_short(digits, scheme, monkeypatch):
    X, y = digits[0][:300], digits[1][:300] % 3
    options = {"gamma": 0.05, "C": 5.0, "multi_class": scheme}
    exact = SVC(**options, tol=1e-7).fit(X, y)
    late(monkeypatch, max_iter=0, seconds=50.0)
    monkeypatch.setattr("widemargin.estimators.approximate.MOST", 150)
    clf = SVC(**options, rank="auto", certify="exact", time_limit=100.0).fit(X, y)
    assert clf.feature_map_.rank == 150
    assert clf.status_ == "solved"
    words = "irwls had not ended after 50% of time_limit, and of its exact objective"
    assert words in clf.solution_.reason
    assert clf.dual_coef_.shape == (3, 150)
    low = SVC(**options, rank=150, certify="exact").fit(X, y)
    for k, bounds in enumerate(clf.exact_certificates_):
        optimum = exact.solutions_[k].certificate
        assert bounds.dual <= optimum.primal
        assert bounds.primal >= optimum.dual
        assert bounds.primal == low.exact_certificates_[k].primal
        assert bounds.dual >= low.exact_certificates_[k].dual


def test_auto_keeps_the_exact_machine_where_it_is_better(digits, monkeypatch):
    X, y = digits[0][:300], digits[1][:300] % 2
    monkeypatch.setattr("widemargin.estimators.approximate.NEAR", 0.0)
    late(monkeypatch, max_iter=1)
    monkeypatch.setattr("widemargin.estimators.approximate.MOST", 2)
    clf = SVC(gamma=0.05, rank="auto", certify="exact", time_limit=100.0)
    with pytest.warns(UserWarning, match="at a relative gap of"):
        clf.fit(X, y)
    assert not hasattr(clf, "feature_map_")
    assert "of its exact objective" in clf.solution_.reason
    assert " of rank 2, " in clf.solution_.reason
    assert clf.status_ == "time_limit"
    certificate = clf.solution_.certificate
    assert clf.exact_certificates_[0].primal == certificate.primal
    assert clf.exact_certificates_[0].dual >= certificate.dual


def test_auto_goes_on_where_the_exact_solver_is_near(digits, monkeypatch):
    X, y = digits[0][:300], digits[1][:300] % 2
    monkeypatch.setattr("widemargin.estimators.approximate.NEAR", 1.0)
    late(monkeypatch, max_iter=1)
    clf = SVC(gamma=0.05, rank="auto", time_limit=100.0).fit(X, y)
    assert clf.status_ == "solved"
    assert not hasattr(clf, "feature_map_")
    assert " of rank " not in clf.solution_.reason


def test_auto_takes_a_rank_where_memory_is_short():
    X = np.random.default_rng(0).normal(size=(4000, 60))
    y = X[:, 0] > 0
    clf = SVC(gamma=0.01, rank="auto", memory_limit=1 << 20).fit(X, y)
    assert clf.feature_map_.rank == (1 << 20) // (8 * 4000)
    assert "rank 32 because memory_limit has no room for an exact solver" in (
        clf.solution_.reason
    )
    with pytest.raises(ValueError, match="'memory_limit' parameter must be at least"):
        SVC(gamma=0.01, memory_limit=1 << 20).fit(X, y)


def test_auto_stops_when_the_callback_says_so(moons):
    clf = SVC(rank="auto", time_limit=60.0, callback=lambda step: True)
    with pytest.warns(UserWarning, match="the callback"):
        clf.fit(*moons)
    assert clf.status_ == "stopped_by_callback"
    assert not hasattr(clf, "feature_map_")
