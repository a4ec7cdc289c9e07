"""Where a solver starts."""

from collections.abc import Callable
from dataclasses import dataclass, field

from widemargin.arrays import Vector


@dataclass(frozen=True)
class Start:
    """A point to start from: v (k,) and alpha (m,), in the problem's coordinates.

    ``given`` is alpha, or what makes it of v where someone asks for it.

    ``gap`` is its relative gap, where another solver has left the point, else zero.
    From a checkpoint also the row ``vectors`` and ``numbers`` of the same solver's last
    step: then it goes on as if nothing had been in between.
    """

    v: Vector
    given: Vector | Callable[[], Vector]
    vectors: dict[str, Vector] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)
    gap: float = 0.0

    @property
    def is_of_v(self) -> bool:
        """Whether alpha is `Problem.slopes` of v."""
        return callable(self.given)

    @property
    def alpha(self) -> Vector:
        """The dual variables; where v says them they are made by a sweep each time."""
        # Not functools.cached_property: see `Rows.moments`.
        return self.given() if callable(self.given) else self.given
