"""SVC with a rank: polish=True and rank="auto"."""

import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from tests.cases.approximate import LOSSES, digits_data, moons_data  # noqa: F401
from widemargin import SVC, as_rows, open_rows
from widemargin.estimators import plans
from widemargin.estimators.low_rank import ERROR, MOST, SECONDS, rank_for
from widemargin.estimators.multiclass import tasks_of
from widemargin.solution import Status
from widemargin.solvers.driver.limits import Clock


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
    assert len(set(first)) == 2
    assert first[-1] < first[0]


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
    solve = plans.exact

    def stopped(training, certified):
        if training.known is not None:
            return solve(training, certified)
        until = training.limits.until if max_iter else 1e-9
        part = training.limited(max_iter=max_iter or 1, until=until)
        found = solve(part, certified)
        training.clock._begin -= seconds
        solutions = [replace(s, status=Status.TIME_LIMIT) for s in found.solutions]
        return replace(found, solutions=solutions, training=training)

    monkeypatch.setattr(plans, "exact", stopped)


@pytest.mark.parametrize("scheme", ["ovo", "ovr"])
def test_auto_takes_a_rank_where_time_is_short(digits, scheme, monkeypatch):
    X, y = digits[0][:300], digits[1][:300] % 3
    options = {"gamma": 0.05, "C": 5.0, "multi_class": scheme}
    exact = SVC(**options, tol=1e-7).fit(X, y)
    late(monkeypatch, max_iter=0, seconds=50.0)
    monkeypatch.setattr("widemargin.estimators.low_rank.MOST", 150)
    clf = SVC(**options, rank="auto", certify="exact", time_limit=100.0).fit(X, y)
    assert clf.feature_map_.rank == 150
    assert clf.status_ == "solved"
    words = (
        "the exact solver had not ended after 67% of time_limit, and of its objective"
    )
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
    monkeypatch.setattr("widemargin.estimators.plans.NEAR", 0.0)
    late(monkeypatch, max_iter=1)
    monkeypatch.setattr("widemargin.estimators.low_rank.MOST", 2)
    monkeypatch.setattr("widemargin.estimators.plans.LEAST", 2)
    clf = SVC(gamma=0.05, rank="auto", certify="exact", time_limit=100.0)
    with pytest.warns(UserWarning, match="at a relative gap of"):
        clf.fit(X, y)
    assert not hasattr(clf, "feature_map_")
    assert "of its objective" in clf.solution_.reason
    assert " of rank 2, " in clf.solution_.reason
    assert clf.status_ == "time_limit"
    certificate = clf.solution_.certificate
    assert clf.exact_certificates_[0].primal == certificate.primal
    assert clf.exact_certificates_[0].dual >= certificate.dual


def test_auto_goes_on_where_the_exact_solver_is_near(digits, monkeypatch):
    X, y = digits[0][:300], digits[1][:300] % 2
    monkeypatch.setattr("widemargin.estimators.plans.NEAR", 1.0)
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


class Ticks:
    """A clock that a step of a solver takes a second of."""

    def __init__(self, monkeypatch):
        self.now, self.steps = 0, []
        monkeypatch.setattr(Clock, "seconds", lambda clock: self.now)

    def __call__(self, step):
        self.now += 1
        self.steps.append((step.problem, step.iteration))


def test_problems_share_the_time_and_take_what_others_leave(digits, monkeypatch):
    X, y = digits[0][:400], digits[1][:400] % 5
    options = {"gamma": 0.05, "rank": 40, "C": 100.0}
    whole = SVC(**options, callback=lambda step: False).fit(X, y)
    needed = sum(len(s.trace) for s in whole.solutions_)
    clock = Ticks(monkeypatch)
    clf = SVC(**options, time_limit=0.7 * needed, callback=clock)
    with pytest.warns(UserWarning, match=f"time_limit={0.7 * needed} s"):
        clf.fit(X, y)
    assert 0.7 * needed <= clock.now <= 0.7 * needed + len(clf.solutions_)
    steps = np.bincount([problem for problem, _ in clock.steps])
    assert len(steps) == len(clf.solutions_)
    assert steps.min() > 0.5 * steps.max()
    assert clf.score(X, y) > 0.9
    clock = Ticks(monkeypatch)
    clf = SVC(**options, time_limit=10.0 * needed, callback=clock).fit(X, y)
    assert clock.now == needed
    np.testing.assert_array_equal(clf.dual_coef_, whole.dual_coef_)


def test_auto_solves_nothing_twice(digits, monkeypatch):
    X, y = digits[0][:400], digits[1][:400] % 5
    whole = SVC(gamma=0.05, callback=lambda step: False).fit(X, y)
    needed = sum(len(s.trace) for s in whole.solutions_)
    clock = Ticks(monkeypatch)
    clf = SVC(gamma=0.05, rank="auto", time_limit=1.4 * needed, callback=clock)
    assert clf.fit(X, y).status_ == "solved"
    assert not hasattr(clf, "feature_map_")
    begun = [problem for problem, iteration in clock.steps if iteration == 0]
    assert len(whole.solutions_) < len(begun) < 2 * len(whole.solutions_)


@pytest.mark.parametrize("scheme", ["ovo", "ovr"])
def test_auto_reads_rows_in_files_where_they_fit(digits, scheme, tmp_path):
    X, y = digits[0][:300], digits[1][:300] % 3
    np.save(tmp_path / "X.npy", X)
    options = {"gamma": 0.05, "multi_class": scheme, "rank": "auto"}
    exact = SVC(**options).fit(X, y)
    clf = SVC(**options, time_limit=600.0).fit(open_rows(tmp_path / "X.npy"), y)
    np.testing.assert_array_equal(clf.dual_coef_, exact.dual_coef_)
    np.testing.assert_array_equal(clf.support_vectors_, exact.support_vectors_)
    assert clf.solution_.reason == exact.solution_.reason
    clf.set_params(memory_limit=16 * X.size - 1).fit(open_rows(tmp_path / "X.npy"), y)
    assert clf.feature_map_.rank > 100
    assert "because memory_limit has no room for the rows" in clf.solution_.reason


@pytest.mark.parametrize(
    ("classes", "scheme", "files", "times"),
    [(2, "ovo", False, 1), (5, "ovo", False, 4), (5, "ovo", True, 10)]
    + [(5, "ovr", False, 5), (2, "ovr", True, 1)],
)
def test_the_rank_is_that_for_the_rows_of_all_problems(
    classes, scheme, files, times, tmp_path
):
    X = np.random.default_rng(0).normal(size=(1000, 3))
    np.save(tmp_path / "X.npy", X)
    rows = open_rows(tmp_path / "X.npy") if files else as_rows(X)
    training = SimpleNamespace(rows=rows, tasks=tasks_of(classes, scheme))
    for rank in (2, 40, 500):
        seconds = SECONDS * 1000 * (ERROR + (rank + 0.5) * times)
        assert rank_for(training, None, seconds) == rank
        assert rank_for(training, 8 * 1000 * 20, seconds) == min(rank, 20)
    assert rank_for(training, None, -1.0) == 2
    assert rank_for(training, None, None) == MOST


def test_fourier_features_are_judged_by_what_they_predict(digits, monkeypatch):
    X, y = digits[0][:300], digits[1][:300] % 2
    late(monkeypatch, max_iter=2)
    monkeypatch.setattr("widemargin.estimators.plans.NEAR", 0.0)
    options = {"gamma": 0.05, "approximation": "fourier", "certify": "exact"}
    for most in (10, 150):
        monkeypatch.setattr("widemargin.estimators.low_rank.MOST", most)
        low = SVC(**options, rank=most).fit(X, y)
        clf = SVC(**options, rank="auto", time_limit=100.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # where the exact one is kept
            clf.fit(X, y)
        own, lifted = low.solution_.certificate, low.exact_certificates_[0]
        assert own.primal != pytest.approx(lifted.primal, rel=0.01)
        assert f"that of rank {most}, {own.primal:.6g}," in clf.solution_.reason


@pytest.mark.parametrize(
    ("limits", "most"),
    [
        ({"memory_limit": 1 << 20}, (1 << 20) // (8 * 402)),
        ({"time_limit": 1e-3, "n_jobs": 1}, 833_333),  # in a second, the least
        ({"time_limit": 2.0, "n_jobs": 1}, 1_666_666),
    ],
)
def test_fourier_features_that_no_limit_allows(moons, limits, most):
    X, y = moons[0][:400], moons[1][:400]
    clf = SVC(rank=10_000_000, approximation="fourier", **limits)
    words = f"'rank' parameter of SVC must be at most {most:,} for approximation='four"
    with pytest.raises(ValueError, match=f"{words}.* Got 10,000,000 instead"):
        clf.fit(X, y)
