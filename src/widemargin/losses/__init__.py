"""Losses of single rows, and norms of all of them."""

from widemargin.losses.mahalanobis import Mahalanobis as Mahalanobis
from widemargin.losses.norms import BoundedNorm as BoundedNorm
from widemargin.losses.norms import BudgetL1 as BudgetL1
from widemargin.losses.norms import BudgetL2 as BudgetL2
from widemargin.losses.norms import Interpolation as Interpolation
from widemargin.losses.norms import L1Norm as L1Norm
from widemargin.losses.norms import L2Norm as L2Norm
from widemargin.losses.norms import LossNorm as LossNorm
from widemargin.losses.p_norm import PNorm as PNorm

__all__ = [
    "BoundedNorm",
    "BudgetL1",
    "BudgetL2",
    "Interpolation",
    "L1Norm",
    "L2Norm",
    "LossNorm",
    "Mahalanobis",
    "PNorm",
]
