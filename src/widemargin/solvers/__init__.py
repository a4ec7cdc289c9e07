"""The training systems, one file each; `solve` chooses and runs one."""

from widemargin.solvers.active_set import ActiveSet as ActiveSet
from widemargin.solvers.augmented_lagrangian import (
    AugmentedLagrangian as AugmentedLagrangian,
)
from widemargin.solvers.coordinate_descent import (
    CoordinateDescent as CoordinateDescent,
)
from widemargin.solvers.interior_point import InteriorPoint as InteriorPoint

__all__ = ["ActiveSet", "AugmentedLagrangian", "CoordinateDescent", "InteriorPoint"]
