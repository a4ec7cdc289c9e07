"""Norms of the losses, and data for their tests."""

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st

from widemargin.losses import (
    BudgetL1,
    BudgetL2,
    Interpolation,
    L1Norm,
    L2Norm,
    Mahalanobis,
    PNorm,
)

NORMS = [
    L1Norm(),
    L2Norm(),
    BudgetL1(budget=2.6),
    BudgetL1(budget=1),
    BudgetL1(budget=1e6),
    BudgetL2(budget=2.6),
    BudgetL2(budget=1),
    BudgetL2(budget=1e6),
    Interpolation(t=1.3),
    Interpolation(t=0.4),
    Interpolation(t=1e3),
    PNorm(p=1.5),
    PNorm(p=3),
]
SIZE = 7
SPREAD = 0.9 * np.ones((SIZE, SIZE)) + 0.1 * np.eye(SIZE)
MATRICES = [
    Mahalanobis(M=SPREAD),
    Mahalanobis(M=SPREAD, nonneg_slack=False),
    Mahalanobis(M=np.diag(np.arange(1.0, SIZE + 1))),
]
each_norm = pytest.mark.parametrize("norm", NORMS, ids=str)
every_norm = pytest.mark.parametrize("norm", NORMS + MATRICES, ids=str)
few = settings(max_examples=settings().max_examples // 3)  # for each norm
cases = st.integers(0, 10**6).map(lambda seed: case(np.random.default_rng(seed)))


def case(rng, m=None):
    """Values with zeros and duplicates, weights with zeros, labels."""
    m = m or int(rng.integers(1, 12))
    t = np.round(rng.normal(size=m) * 2, rng.integers(0, 4))
    c = rng.integers(0, 4, m).astype(float)
    if rng.random() < 0.5:
        c *= rng.uniform(0.1, 2.0, m)
    c[rng.integers(m)] = 1.0
    return t, c, rng.choice([-1.0, 1.0], m)


def square_case(norm, seed):
    """A case of seven rows of weight one for a matrix, or of any for another norm."""
    t, c, y = case(np.random.default_rng(seed), SIZE)
    return t, np.ones(SIZE) if isinstance(norm, Mahalanobis) else c, y
