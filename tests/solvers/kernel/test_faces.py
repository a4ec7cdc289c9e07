"""Faces and inner points: small problems of the nu form, where K is nearly singular."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from tests.cases.working_sets import change_of_objective, check_feasible
from widemargin import NuSVC
from widemargin.kernels.packed import aligned, padded
from widemargin.solvers.kernel.faces import solve_on_faces
from widemargin.solvers.kernel.inner_points import inner_points
from widemargin.solvers.kernel.small_problem import Small, solve_by_pairs

STOP = 1e-10
Q = 60


def kernels():
    """Kernel matrices from well conditioned to singular."""
    X = np.random.default_rng(0).normal(size=(Q, 3))
    twice = np.tile(X[: Q // 2], (2, 1))
    return {
        "narrow": rbf_kernel(X, gamma=2.0),
        "wide": rbf_kernel(X, gamma=1e-3),
        "linear": X @ X.T,
        "twins": rbf_kernel(twice, gamma=0.5),
        "zero": np.zeros((Q, Q)),
    }


KERNELS = kernels()


def small_problem(K, targets, sums=2):
    """Half of both classes at the middle of their bounds, with a linear term."""
    y = np.where(np.arange(Q) % 2, 1.0, -1.0)
    wide = aligned((Q, padded(Q)), np.float64)
    wide[:] = 0.0
    wide[:, :Q] = K
    c = 0.5 * y * (np.arange(Q) % 4 < 2)
    lower, upper = np.minimum(y, 0.0), np.maximum(y, 0.0)
    F = K @ c - targets
    return Small(wide, c, lower, upper, F, np.zeros(Q), 0.0, sums)


@pytest.mark.parametrize("sums", [1, 2])
@pytest.mark.parametrize("size", [0.0, 1.0])
@pytest.mark.parametrize("name", KERNELS)
def test_conditions_hold_and_sums_stay(name, size, sums):
    targets = size * np.sin(np.arange(Q))
    small = small_problem(KERNELS[name], targets, sums)
    solved = solve_on_faces(small, STOP)
    assert solved.reached
    assert small.at(solved.c).violations.size <= 1.01 * STOP
    check_feasible(small, solved.c)
    for own in small.violations.groups:
        change = (solved.c - small.c)[own].sum()
        assert abs(change) <= 1e-12 * Q
    assert change_of_objective(small, solved.c) <= 0.0


def test_it_is_the_answer_of_pair_steps():
    small = small_problem(KERNELS["narrow"], np.sin(np.arange(Q)))
    ours = solve_on_faces(small, STOP)
    pairs = solve_by_pairs(small, STOP)
    np.testing.assert_allclose(ours.c, pairs.c, atol=1e-8)


@pytest.mark.parametrize("sums", [1, 2])
@pytest.mark.parametrize("size", [0.0, 1.0])
@pytest.mark.parametrize("name", KERNELS)
def test_an_inner_point_is_near_the_optimum(name, size, sums):
    small = small_problem(KERNELS[name], size * np.sin(np.arange(Q)), sums)
    best = change_of_objective(small, solve_on_faces(small, STOP).c)
    points = inner_points(small, STOP)
    for c in points:
        check_feasible(small, c)
        for own in small.violations.groups:
            assert abs((c - small.c)[own].sum()) <= 1e-12 * Q
    found = min(change_of_objective(small, c) for c in points)
    assert found == pytest.approx(best, rel=1e-7, abs=1e-12)
    assert min(small.at(c).violations.size for c in points) <= 1e-6


def test_no_inner_point_where_there_is_no_room():
    small = small_problem(KERNELS["narrow"], np.zeros(Q))
    assert inner_points(small._replace(c=small.lower), STOP) == []
    assert inner_points(small._replace(upper=np.full(Q, np.inf)), STOP) == []


def test_classes_that_are_all_mixed_take_few_working_sets():
    X = np.random.default_rng(300).normal(size=(300, 3))
    machine = NuSVC(nu=0.2).fit(X, np.arange(300) % 2)
    assert machine.status_ == "solved"
    assert machine.solution_.certificate.scale > 1e-8
    assert machine.n_iter_[0] <= 25  # 35 where it goes on in float32


def test_hulls_that_nearly_touch_take_few_working_sets():
    rng = np.random.RandomState(0)
    X = rng.uniform(size=(40, 3))
    X[X < 0.6] = 0.0
    y = (4 * rng.uniform(size=40)).astype(int) % 2
    machine = NuSVC(nu=0.25).fit(X, y)
    assert machine.status_ == "solved"
    assert abs(machine.solution_.certificate.primal) < 2e-8  # of 100, N^2 k(x, x)
    assert machine.n_iter_[0] <= 20  # pair steps alone took 1,700
