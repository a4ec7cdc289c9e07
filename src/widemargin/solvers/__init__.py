"""The training systems, one file each; `solve` chooses and runs one."""

from widemargin.solvers.active_set import ActiveSet as ActiveSet
from widemargin.solvers.augmented_lagrangian import (
    AugmentedLagrangian as AugmentedLagrangian,
)
from widemargin.solvers.budget import Budget as Budget
from widemargin.solvers.coordinate_descent import (
    CoordinateDescent as CoordinateDescent,
)
from widemargin.solvers.core_vector import CoreVector as CoreVector
from widemargin.solvers.frank_wolfe import FrankWolfe as FrankWolfe
from widemargin.solvers.interior_point import InteriorPoint as InteriorPoint
from widemargin.solvers.irwls import IRWLS as IRWLS

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
