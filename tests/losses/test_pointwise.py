"""Losses of single rows: their formulas, and that solvers ask these and no names."""

import pickle

import numpy as np
import pytest

from tests.cases.sources import SOURCES, compares_losses, module_of
from widemargin import Problem
from widemargin.losses.pointwise import LOSSES
from widemargin.numerics.rounding import Weights

T = np.array([-3.0, -1.0, -1e-3, 1e-3, 0.25, 1.0, 4.0])
C = np.array([0.5, 1.0, 2.0, 8.0, 0.25, 4.0, 1.0])

every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=list(LOSSES))


def conjugate(loss, a):
    """L*(a) = max over t of a t - L(t): on a grid that holds the maximum a / 2."""
    t = np.linspace(-1.0, 4.0, 5 * 2**10 + 1)
    return float(np.max(a * t - loss.value(t)))


@pytest.mark.parametrize(("name", "values"), [("hinge", 1), ("squared_hinge", 2)])
def test_the_value_is_a_power_of_the_positive_part(name, values):
    assert np.array_equal(LOSSES[name].value(T), np.maximum(T, 0.0) ** values)
    assert LOSSES[name].name == name


@every_loss
def test_the_slope_is_that_of_finite_differences(loss):
    h = 1e-6
    differences = (loss.value(T + h) - loss.value(T - h)) / (2.0 * h)
    assert np.allclose(loss.slope(T), differences, rtol=1e-9, atol=1e-9)


@every_loss
def test_the_curvature_is_that_of_the_slope_where_a_row_is_active(loss):
    h = 1e-6
    active = T[T > 0.0]
    differences = (loss.slope(active + h) - loss.slope(active - h)) / (2.0 * h)
    assert np.allclose(differences, loss.curvature, atol=1e-9)
    assert not loss.slope(T[T < 0.0]).any()


@every_loss
def test_the_dual_term_is_the_conjugate(loss):
    alpha = np.array([0.0, 0.25, 0.5, 1.0, 0.125, 0.75, 1.0]) * C
    terms = [c * conjugate(loss, a / c) for a, c in zip(alpha, C, strict=True)]
    assert loss.dual_term(alpha, C) == pytest.approx(sum(terms), rel=1e-12, abs=1e-15)


@every_loss
def test_slope_and_slack_meet_the_inequality_of_fenchel_with_equality(loss):
    alpha = C * loss.slope(T)
    both = loss.total(C, T) + loss.dual_term(alpha, C)
    assert both == pytest.approx(float(alpha @ T), rel=1e-14)


@every_loss
def test_no_feasible_alpha_breaks_the_inequality_of_fenchel(loss):
    random = np.random.default_rng(0)
    for _ in range(100):
        alpha = loss.clipped(random.normal(scale=4.0, size=len(C)), C)
        t = random.normal(scale=2.0, size=len(C))
        both = loss.total(C, t) + loss.dual_term(alpha, C)
        assert both >= float(alpha @ t) - 1e-12


@every_loss
def test_beyond_the_box_the_conjugate_is_infinite(loss):
    """For a above 1 the maximum of a t - L(t) is at the end of any grid, or inside."""
    t = np.linspace(0.0, 100.0, 1001)
    at_the_end = int(np.argmax(1.5 * t - loss.value(t))) == 1000
    assert at_the_end == loss.is_bounded
    most = loss.upper(C)
    assert np.array_equal(most, C if loss.is_bounded else np.full(len(C), np.inf))
    assert np.array_equal(loss.clipped(10.0 * C, C), np.minimum(10.0 * C, most))
    assert not loss.clipped(-C, C).any()


@every_loss
def test_the_ridge_is_the_curvature_of_the_dual_term(loss):
    h = 1e-3
    for i in range(len(C)):
        own = C[[i]]
        at = [loss.dual_term(np.array([1.0 + d]), own) for d in (-h, 0.0, h)]
        second = (at[0] - 2.0 * at[1] + at[2]) / h**2
        assert second == pytest.approx(loss.ridge(own)[0], rel=1e-6, abs=1e-9)
    squares = 0.25 * float((C * C / C).sum())
    assert loss.dual_share * squares == pytest.approx(loss.dual_term(C, C), abs=0.0)


@every_loss
def test_the_share_is_one_for_a_slack_of_one(loss):
    assert np.array_equal(loss.share(C * loss.slope(np.ones(len(C))), C), C / C)


@every_loss
def test_the_excess_bounds_what_errors_of_the_slacks_add(loss):
    random = np.random.default_rng(1)
    weights = Weights(float(C.max()), float(C.sum()))
    for _ in range(100):
        t, e = random.normal(size=(2, len(C)))
        losses = loss.total(C, t)
        most = loss.excess(weights, losses, float(np.linalg.norm(e)))
        assert loss.total(C, t + np.abs(e)) - losses <= most


@every_loss
def test_a_problem_has_the_object_of_its_loss_and_keeps_the_name(loss):
    problem = Problem([[0.0], [1.0]], [-1, 1], loss=loss.name)
    assert (problem.loss, problem.pointwise) == (loss.name, loss)
    assert problem.is_bounded == loss.is_bounded
    assert pickle.loads(pickle.dumps(loss)) == loss  # sweeps ship it


# The rooms that ask, and where they may look at what a user has written.
ASKING = {
    "solvers": ("supports",),
    "problems": ("__init__",),
    "losses": (),
    "models": (),
    "reduction": (),
    "estimators": ("loss_name",),
}


@pytest.mark.parametrize("room", ASKING)
def test_a_room_asks_the_loss_and_not_its_name(room):
    files = [f for f in SOURCES if module_of(f).startswith(f"widemargin.{room}.")]
    assert files
    found = [
        f"{module_of(path)}:{line}"
        for path in files
        for line in compares_losses(path, ASKING[room])
    ]
    assert found == []
