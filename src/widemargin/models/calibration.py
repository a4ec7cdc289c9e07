"""Probabilities of classes by decision values: sigmoids, or steps between points."""

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from scipy.special import expit

from widemargin.arrays import Index64, Vector
from widemargin.parameters import in_one_line

METHODS = ("sigmoid", "isotonic")


@dataclass(frozen=True)
class Calibration:
    r"""What makes probabilities of decision values f: one function a column of f.

    "sigmoid": p(f) = 1 / (1 + exp(a f + b)). "isotonic": p(f) rises from point to point
    (f_i, p_i) in straight lines, and is constant beyond the first and the last. Of two
    classes, p is the probability of the second. Of c classes, each has a column and a
    p, which are divided by their sum; where that is 0, each class has 1 / c.

    Attributes
    ----------
    method : {"sigmoid", "isotonic"}
    first, second : ndarray (t,)
        Slopes a and offsets b; or the decision values f_i, rising, and p_i in [0, 1].
    counts : ndarray (k,) of int
        How many of these belong to each column, in order; 1 each for "sigmoid".

    Raises
    ------
    ValueError
        Numbers that are no such functions.
    """

    method: str
    first: Vector
    second: Vector
    counts: Index64

    def __repr__(self) -> str:
        return in_one_line(self, method=self.method, columns=len(self.counts))

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            _refuse(f"the method sigmoid or isotonic, not {self.method!r}")
        t, counts = len(self.first), self.counts
        possible = ((counts >= 1) & (counts <= t)).all()  # no sum of these overflows
        if not possible or not counts.sum() == t == len(self.second):
            _refuse("numbers for each column")
        if not (np.isfinite(self.first).all() and np.isfinite(self.second).all()):
            _refuse("finite numbers")
        if self.method == "sigmoid" and t != len(self.counts):
            _refuse("one slope for each column")
        if self.method == "isotonic":
            for f, p in self.columns:
                if (np.diff(f) <= 0).any() or (np.diff(p) < 0).any():
                    _refuse("values that rise")
                if p[0] < 0 or p[-1] > 1:
                    _refuse("probabilities in [0, 1]")

    @property
    def columns(self) -> list[tuple[Vector, Vector]]:
        """First and second numbers of each column."""
        ends = np.cumsum(self.counts)[:-1]
        first, second = np.split(self.first, ends), np.split(self.second, ends)
        return list(zip(first, second, strict=True))

    def probabilities(self, scores: Vector) -> Vector:
        """Probabilities of the classes, (m, c), of decision values (m,) or (m, c)."""
        each = scores.reshape(len(scores), -1)
        found = np.empty(each.shape)
        for k, (first, second) in enumerate(self.columns):
            found[:, k] = (
                expit(-(first[0] * each[:, k] + second[0]))
                if self.method == "sigmoid"
                else np.interp(each[:, k], first, second)
            )
        if found.shape[1] == 1:
            return np.hstack([1.0 - found, found])
        total = found.sum(axis=1, keepdims=True)
        shares: Vector = np.full_like(found, 1.0 / found.shape[1])
        np.divide(found, total, out=shares, where=total > 0.0)
        return shares

    @property
    def facts(self) -> dict[str, Any]:
        """What there is to say about it, in the types of JSON."""
        names = {
            "sigmoid": ("slopes", "offsets"),
            "isotonic": ("scores", "probabilities"),
        }
        numbers = {"counts": self.counts.tolist()} if self.method == "isotonic" else {}
        values = (self.first.tolist(), self.second.tolist())
        named = zip(names[self.method], values, strict=True)
        return {"method": self.method, **dict(named), **numbers}


def _refuse(what: str) -> NoReturn:
    raise ValueError(f"A calibration must have {what}.")
