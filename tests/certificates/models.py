"""Objectives of fitted models in fractions, and what their certificates may state."""

from fractions import Fraction

import numpy as np


def fractions(values):
    return [Fraction(float(v)) for v in np.ravel(values)]


def dot(a, b):
    return sum(s * t for s, t in zip(a, b, strict=True))


def objective(w, scores, losses, C):
    """1/2 w'w + sum C L of what is beyond zero."""
    return dot(w, w) / 2 + Fraction(C) * sum(max(Fraction(0), loss) for loss in losses)


def scores_of(machine, X, k=0):
    w, b = fractions(machine.coef_[k]), Fraction(float(machine.intercept_[k]))
    return w, [dot(w, fractions(x)) + b for x in X]


def regression_objective(machine, X, y, epsilon):
    w, f = scores_of(machine, X)
    beyond = [abs(t - g) - epsilon for t, g in zip(fractions(y), f, strict=True)]
    return objective(w, f, beyond, machine.C)


def assert_bounds(machine, objective, bounds=None):
    """No model is better than its bound, nor its gap smaller than the true one."""
    bounds = machine.solution_.certificate if bounds is None else bounds
    slack = abs(bounds.primal) * 2.0**-50
    assert objective <= Fraction(bounds.primal) + Fraction(slack)
