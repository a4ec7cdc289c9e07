"""What predicts: decision functions, and the classes they decide between."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from widemargin import linalg
from widemargin.data.memory import as_rows
from widemargin.data.rows import Rows
from widemargin.data.state import RowState

Vector = NDArray[np.float64]

# Scores that are decided on together: their indices take as much as they do.
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Decision:
    """Linear decision function x'w + b of one binary problem."""

    w: Vector
    b: float


@dataclass(frozen=True)
class Model:
    """Decisions and the classes between which they decide.

    Attributes
    ----------
    classes : ndarray (c,), sorted labels: numbers or strings
    scheme : {"binary", "ovr"}
        "binary": one decision, positive for ``classes[1]``. "ovr": one decision a
        class, the largest wins.
    decisions : tuple of Decision
    meta : dict of facts about the training, kept with the model
    """

    classes: NDArray[Any]
    scheme: str
    decisions: tuple[Decision, ...]
    meta: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        needed = 1 if self.scheme == "binary" else len(self.classes)
        if self.scheme not in ("binary", "ovr") or len(self.decisions) != needed:
            raise ValueError(
                f"A model of scheme {self.scheme!r} with {len(self.classes)} classes "
                f"cannot have {len(self.decisions)} decision(s)."
            )

    @property
    def n_features(self) -> int:
        """Columns that `scores` expects."""
        return int(self.decisions[0].w.shape[0])

    def scores(self, rows: Rows) -> Vector:
        """Decision values: (m,) for two classes, (m, c) for more. One sweep.

        Raises
        ------
        ValueError if X has another number of columns than the training data, or holds
        NaN or an infinity.
        """
        scores = self.scored(rows).scores
        return scores if scores.flags.writeable else scores.copy()

    def scored(self, rows: Rows) -> RowState:
        """Row state whose vector ``scores`` holds what `scores` returns.

        Its parts are read slice by slice, wherever the rows keep their vectors.
        """
        if rows.shape[1] != self.n_features:
            raise ValueError(
                f"X has {rows.shape[1]} features, but the model expects "
                f"{self.n_features}."
            )
        W = np.column_stack([decision.w for decision in self.decisions])
        b = np.array([decision.b for decision in self.decisions])
        if self.scheme == "binary":
            W = W[:, 0]
        shape = rows.shape[0], *W.shape[1:]
        state = rows.state(scores=np.broadcast_to(0.0, shape))
        if rows.sweep(_score, state, W, b):
            rows.refuse_nonfinite()
        return state

    def decide(self, scores: Vector) -> NDArray[Any]:
        """Labels from decision values: (m,)."""
        labels = np.empty(len(scores), self.classes.dtype)
        for start in range(0, len(scores), _CHUNK):
            part = scores[start : start + _CHUNK]
            labels[start : start + _CHUNK] = self.classes[self.winners(part)]
        return labels

    def winners(self, scores: Vector) -> NDArray[np.intp]:
        """Indices of the classes that decision values decide for: (m,)."""
        winner = scores >= 0 if scores.ndim == 1 else scores.argmax(axis=1)
        return winner.astype(np.intp)

    def decision_function(self, X: ArrayLike) -> Vector:
        """Decision values of an array, sparse matrix or Rows: (m,) or (m, c)."""
        return self.scores(as_rows(X))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Labels of an array, sparse matrix or Rows: (m,)."""
        return self.decide(self.decision_function(X))


def _score(block: Any, part: RowState, W: Vector, b: Vector) -> int:
    """Set the scores of a block; 1 where they show that it holds NaN or infinity."""
    scores = part.scores = linalg.matvec(block, W) + b
    return int(not np.all(np.isfinite(scores)))
