"""Grids of gamma."""

import dataclasses
from typing import Any

import numpy as np

from widemargin.arrays import Vector
from widemargin.estimators.points import Judge
from widemargin.estimators.selection import values
from widemargin.kernels.kernel import Kernel
from widemargin.kernels.table import GAMMAS, having
from widemargin.parameters import Checker, is_integer

# The grid of gamma that a number stands for: this factor below and above "scale".
WIDTH = 10.0


def has_gamma(estimator: Any) -> bool:
    """Whether the kernel of an estimator has a gamma."""
    return estimator.kernel in having("gamma")


def check_gammas(check: Checker, estimator: Any) -> None:
    """Refuse ``gammas`` that are no grid."""
    gammas = estimator.gammas
    if gammas is None:
        return
    if not has_gamma(estimator):
        expected = f"be None with kernel={estimator.kernel!r}"
        check.refuse_part("gammas", expected, repr(gammas))
    if is_integer(gammas):
        check.count("gammas", gammas, ", a list of numbers > 0 or names, or None")
        return
    if isinstance(gammas, str) or np.ndim(gammas) != 1:
        expected = "an int >= 1, a list of numbers > 0 or names, or None"
        check.refuse("gammas", expected, gammas)
    names = [one for one in gammas if isinstance(one, str)]
    for one in names:
        check.choice("gammas", one, tuple(GAMMAS))
    if len(names) < len(gammas) or not names:
        values(check, "gammas", [g for g in gammas if g not in names])


def with_gammas(
    estimator: Any, kernel: Kernel, judge: Judge
) -> tuple[Vector, list[Kernel]]:
    """The values of the grid as numbers, and the kernel with each."""
    given = estimator.gammas
    if given is None:
        return np.array([kernel.gamma], float), [kernel]

    def number(gamma: Any) -> float:
        """The value of gamma that a name stands for."""
        one = dataclasses.replace(kernel, gamma=gamma)
        return float(one.resolved(judge.rows, judge.weights).gamma)

    if is_integer(given):
        width = np.linspace(-1.0, 1.0, given) if given > 1 else [0.0]
        found = number("scale") * WIDTH ** np.asarray(width)
    else:
        # In the order given, as names are; a value once, also by name and number.
        found = np.array(list(dict.fromkeys(number(gamma) for gamma in given)))
    return found, [dataclasses.replace(kernel, gamma=float(g)) for g in found]
