"""The intercept under a norm of the losses, against a search."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from tests.cases.norms import SIZE, case, each_norm, every_norm, few, square_case
from widemargin.losses.norms import BudgetL1, Interpolation, L1Norm
from widemargin.problems.norm import best_norm_intercept


@pytest.mark.one_of(2)
@every_norm
@few
@given(seed=st.integers(0, 10**6))
def test_no_intercept_is_better(norm, seed):
    f, c, y = square_case(norm, seed)

    def total(b):
        return norm.value(1.0 - y * (f + b), c)

    b = best_norm_intercept(norm, f, y, c, 0.25)
    candidates = np.concatenate(
        [y - f, b + np.linspace(-1, 1, 20) * 10.0 ** (-seed % 9)]
    )
    assert total(b) <= min(map(total, candidates)) * (1 + 1e-13) + 1e-13
    found = optimize.minimize_scalar(
        total, bounds=(-9.0, 9.0), method="bounded", options={"xatol": 1e-10}
    )
    assert total(b) <= found.fun * (1 + 1e-13) + 1e-13


@pytest.mark.parametrize(
    "norm", [L1Norm(), BudgetL1(budget=9), Interpolation(t=9)], ids=str
)
def test_of_several_intercepts_the_nearest(norm):
    f, y, c = np.zeros(2), np.array([1.0, -1.0]), np.ones(2)
    for near, expected in ((0.3, 0.3), (5.0, 1.0), (-9.0, -1.0), (1.0, 1.0)):
        assert best_norm_intercept(norm, f, y, c, near) == pytest.approx(
            expected, abs=1e-15
        )


@every_norm
def test_intercept_of_one_class_or_no_loss(norm):
    f, c = np.linspace(-1.0, 1.0, SIZE), np.ones(SIZE)
    for way in (1.0, -1.0):
        y = np.full(SIZE, way)
        assert best_norm_intercept(norm, f, y, c, 7.0 * way) == 7.0 * way
        b = best_norm_intercept(norm, f, y, c, -7.0 * way)
        assert norm.value(1.0 - y * (f + b), c) <= 1e-13
        assert b == pytest.approx(2.0 * way, abs=1e-13)


@each_norm
@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_intercept_beside_large_scores(norm, scale):
    f, c, y = case(np.random.default_rng(4), 9)
    f = f * scale
    b = best_norm_intercept(norm, f, y, c, 0.0)
    width = 1e-9 * max(1.0, scale)
    total = norm.value(1.0 - y * (f + b), c)
    for other in (b - width, b + width):
        assert total <= norm.value(1.0 - y * (f + other), c) * (1 + 1e-14)


@each_norm
def test_scores_that_are_no_numbers_have_the_intercept_they_came_with(norm):
    f, y = np.array([0.5, np.nan]), np.array([1.0, -1.0])
    assert best_norm_intercept(norm, f, y, np.ones(2), 0.3) == 0.3
