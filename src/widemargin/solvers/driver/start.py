"""Where a solver starts."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Start:
    """A point to start from: v (k,) and alpha (m,), in the problem's coordinates.

    From a checkpoint also the row ``vectors`` and ``numbers`` of the same solver's last
    step: then it goes on as if nothing had been in between.
    """

    v: Vector
    alpha: Vector
    vectors: dict[str, Vector] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)
