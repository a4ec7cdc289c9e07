"""Linear decisions: one, and several whose weights lie together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from widemargin.arrays import Index, Vector
from widemargin.parameters import in_one_line


@dataclass(frozen=True)
class Decision:
    """Linear decision function x'w + b of one binary problem."""

    w: Vector
    b: float

    def __repr__(self) -> str:
        return in_one_line(self, weights=len(self.w), b=self.b)


class Decisions(Sequence[Decision]):
    """Decisions whose weights are a matrix already, each made when it is asked for.

    Nothing is copied: an estimator that predicts shows its model the weights it has.

    Parameters
    ----------
    W : ndarray (n, k), a column each
    b : ndarray (k,)
    """

    def __init__(self, W: Vector, b: Vector) -> None:
        self.W, self.b = np.asarray(W, np.float64), np.asarray(b, np.float64)
        if self.W.shape[1:] != self.b.shape:
            raise ValueError(
                f"coef_ and intercept_ must have a row each decision. Got shapes "
                f"{self.W.T.shape} and {self.b.shape} instead."
            )

    def __len__(self) -> int:
        return len(self.b)

    @overload
    def __getitem__(self, which: int) -> Decision: ...

    @overload
    def __getitem__(self, which: slice) -> tuple[Decision, ...]: ...

    def __getitem__(self, which: Any) -> Any:
        chosen = range(len(self))[which]
        if isinstance(chosen, range):
            return tuple(self[k] for k in chosen)
        return Decision(self.W[:, chosen], float(self.b[chosen]))

    def __repr__(self) -> str:
        return repr(tuple(self))


def together(
    decisions: Sequence[Decision], columns: Index | None = None
) -> tuple[Vector, Vector]:
    """Weights (n, k), or those of some columns, and offsets (k,)."""
    if isinstance(decisions, Decisions):
        W = decisions.W
        return (W if columns is None else W[columns]), decisions.b
    b = np.array([decision.b for decision in decisions])
    every = slice(None) if columns is None else columns
    W = np.array([decision.w[every] for decision in decisions]).T
    return W, b
