"""The packages of `benchmarks.peers` on the paper's problem."""

import contextlib
import importlib
import time
import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from widemargin import solve

NAMES = ("sklearn", "liblinear", "snapml", "rehline", "sklearnex")
LABELS = {
    "sklearn": "LIBLINEAR (scikit-learn)",
    "liblinear": "LIBLINEAR",
    "snapml": "Snap ML",
    "rehline": "ReHLine",
}
LOSS, INTERCEPT = "squared_hinge", "penalized"
EPOCHS = 20_000  # the most that a package is allowed


def ladders(say=print):
    """{label: (fit, settings)}, settings from coarse to fine; says who is missing."""
    found = {}
    for name in NAMES:
        peer = load(name)
        if peer is None:
            say(f"{name} is skipped: it is not installed.")
        elif INTERCEPT not in peer.INTERCEPTS.get(LOSS, ()):
            say(f"{name} is skipped: it does not solve the squared hinge.")
        else:
            for settings in peer.ladders(LOSS, INTERCEPT):
                found[_label(name, settings[0])] = (peer.fit, settings)
    return found


def load(name):
    """A module of `benchmarks.peers.linear`, or None where its package is missing."""
    with warnings.catch_warnings(), contextlib.suppress(ImportError):
        warnings.simplefilter("ignore")
        return importlib.import_module(f"benchmarks.peers.linear.{name}")
    return None


def _label(name, setting):
    """A package, and its solver where it has several."""
    if name == "sklearn":
        return f"{LABELS[name]}, {'dual' if setting['dual'] else 'primal'}"
    if name == "liblinear":
        return f"{LABELS[name]}, {'dual' if setting['solver'] == 1 else 'primal'}"
    if name == "snapml":
        return f"{LABELS[name]}, {setting['n_jobs']} threads"
    return LABELS[name]


class Answer(NamedTuple):
    """What a package found: its gap is against the best dual bound of ours."""

    seconds: float
    gap: float
    w: NDArray[np.float64]
    b: float


class Race:
    """One problem on which all packages are asked for the same gap.

    Parameters
    ----------
    problem : Problem, (7) or (2) of the paper
    X, y, C : what it is made of
    goal : float, the relative gap
    limit : float
        Seconds after which finer settings of a package are left out.
    clock : function that gives seconds
    """

    def __init__(self, problem, X, y, C, *, goal, limit, clock=time.perf_counter):
        if sparse.issparse(X):
            X = sparse.csr_matrix(X)  # Snap ML knows no csr_array
        self._problem, self._data, self._goal = problem, (X, y, C), goal
        self._kind = problem.loss, problem.intercept
        self._limit, self._clock = limit, clock
        self._dual = solve(problem, tol=1e-9).certificate.dual

    def run(self, ladder):
        """The answer at the first setting that gets to the goal, or the best."""
        fit, settings = ladder
        best = None
        for setting in settings:
            answer = self._fit(fit, setting)
            if best is None or answer.gap < best.gap:
                best = answer
            if answer.gap <= self._goal or answer.seconds > self._limit:
                break
        return best

    def _fit(self, fit, setting):
        if "max_iter" in setting:
            setting = {**setting, "max_iter": min(setting["max_iter"], EPOCHS)}
        begin = self._clock()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the gap says how good the answer is
            w, b = fit(*self._data, *self._kind, **setting)[:2]
        seconds = self._clock() - begin
        primal = self._problem.primal(w, b)
        return Answer(seconds, (primal - self._dual) / abs(primal), w, b)
