"""The training systems, one file each; `solve` chooses and runs one."""

from widemargin.solvers.kernel.budget import Budget as Budget
from widemargin.solvers.kernel.core_vector import CoreVector as CoreVector
from widemargin.solvers.kernel.frank_wolfe import FrankWolfe as FrankWolfe
from widemargin.solvers.kernel.irwls import IRWLS as IRWLS
from widemargin.solvers.linear.active_set import ActiveSet as ActiveSet
from widemargin.solvers.linear.augmented_lagrangian import (
    AugmentedLagrangian as AugmentedLagrangian,
)
from widemargin.solvers.linear.coordinate_descent import (
    CoordinateDescent as CoordinateDescent,
)
from widemargin.solvers.linear.interior_point import InteriorPoint as InteriorPoint

__all__ = [
    "ActiveSet",
    "AugmentedLagrangian",
    "Budget",
    "CoordinateDescent",
    "CoreVector",
    "FrankWolfe",
    "IRWLS",
    "InteriorPoint",
]
