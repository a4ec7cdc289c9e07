"""Drawn cases as searches, whose folds' gaps are proved from scores in float32.

What each bound of a fold claims is judged, and what is said of the last fit.
``replay(seed, number)`` shows one case.
"""

import warnings
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
from sklearn.model_selection import KFold

from tests.certificates.draws import draw
from tests.certificates.exact import Exact, false_claims, kernel_matrix
from tests.certificates.judged import Verdict
from tests.certificates.judged_batch import enlarged
from widemargin import SVCCV, SVRCV
from widemargin.numerics import linalg
from widemargin.problems import many as many_problems
from widemargin.problems.many import ManyProblems
from widemargin.solution import Certificate

# The share of regressions and of larger cases; seconds that a search may take.
REGRESSIONS, LARGE, TIME_LIMIT = 0.3, 0.4, 5.0


@dataclass(frozen=True)
class Said:
    """Problems, coefficients and intercepts that bounds were asked for, and these."""

    problems: ManyProblems
    c: np.ndarray
    b: np.ndarray
    bounds: np.ndarray


def drawn(seed, number):
    """The case of a number, its targets, and the search for it."""
    case, rng = draw(seed, number, "search"), np.random.default_rng((seed, number, 5))
    is_given = case.kernel.name == "precomputed"
    if rng.random() < LARGE and not is_given:
        case = enlarged(rng, case)
    kernel = {"kernel": case.kernel.name, "intercept": case.intercept}
    if not is_given:
        kernel |= {name: getattr(case.kernel, name) for name in ("degree", "coef0")}
        kernel |= {"gamma": case.kernel.gamma}
    Cs = np.unique(case.C * 10.0 ** rng.uniform(-2, 2, int(rng.integers(1, 6))))
    cv = KFold(int(rng.integers(2, 4)), shuffle=True, random_state=number)
    options = {"Cs": Cs, "cv": cv, "tol": max(case.tol, 1e-6), **kernel}
    options |= {"time_limit": TIME_LIMIT, "n_jobs": case.n_jobs}
    if rng.random() >= REGRESSIONS:
        return case, case.y, SVCCV(loss=case.loss, **options)
    targets = rng.normal(size=len(case.y)) * 10.0 ** rng.uniform(-4, 4)
    epsilon = np.abs(targets).max() * float(rng.choice([0.0, 0.01, 0.3]))
    loss = case.loss.replace("hinge", "epsilon_insensitive")
    return case, targets, SVRCV(loss=loss, epsilon=epsilon, **options)


def judge_search(seed, number):
    """Verdicts of all bounds of a search, those of its last fit too."""
    case, targets, search = drawn(seed, number)
    said, bounds = [], ManyProblems.bounds

    def noted(self, c, scores, b, threads, stop, rho=None):
        found = bounds(self, c, scores, b, threads, stop, rho)
        said.append(Said(self, c.copy(), b.copy(), found.copy()))
        return found

    rng = np.random.default_rng((seed, number, 6))
    places = float(rng.choice([0.0, 1e6], p=[0.8, 0.2]))
    with (
        warnings.catch_warnings(),
        patch.object(many_problems, "ALL_PLACES", places),
        patch.object(ManyProblems, "bounds", noted),
    ):
        warnings.simplefilter("ignore")
        try:
            search.fit(case.data, targets, sample_weight=case.weights)
        except ValueError as error:
            if not said:
                return [Verdict("refused", refusal=str(error))]
    judge = _Judge(case)
    verdicts = [judge.verdict(one, t) for one in said for t in range(len(one.b))]
    return verdicts or [Verdict("apart")]


class _Judge:
    """Judges what is said of problems over the rows of a case."""

    def __init__(self, case):
        self._case, self._known = case, {}

    def _rows(self, problems):
        """The rows of the samples, and their kernel values, exactly."""
        samples = problems.samples
        if id(samples) not in self._known:
            X = getattr(samples, "_X", None)
            if X is None:
                X, kernel = samples._values, self._case.kernel
            else:
                X, kernel = linalg.dense(X).astype(float), samples.kernel
            K = None if problems.X is not None else kernel_matrix(kernel, X)
            self._known[id(samples)] = samples, X, kernel, K
        return self._known[id(samples)][1:]

    def verdict(self, said, t):
        """Whether a bound is what it claims."""
        problems, exact = said.problems, self._exact(said.problems, t)
        own = slice(problems.starts[t], problems.ends[t])
        c, b = said.c[own], float(said.b[t])
        # Answers by weights are these, as they are rounded, and not what c makes.
        w = c if problems.X is None else problems.weights(said.c)[t]
        P, D = exact.primal(w, b), exact.dual(problems.y[own] * c)
        floor = None
        if not problems.is_plain:
            floor = many_problems.FLOOR * float(problems.zero_objectives[t])
        claims = false_claims(Certificate(*said.bounds[t].tolist()), P, D, floor=floor)
        return Verdict("float32" if problems.enough else "float64", claims)

    def _exact(self, problems, t):
        """Problem t, exactly."""
        X, kernel, K = self._rows(problems)
        own = slice(problems.starts[t], problems.ends[t])
        rows, y, C = problems.rows[own], problems.y[own], problems.C[own]
        form = problems.loss.name, problems.intercept, None if K is None else kernel
        exact = Exact(X[rows], y, C, *form, q=problems.data[2][own])
        if K is not None:
            vars(exact)["K"] = K[np.ix_(rows, rows)]
        return exact


def replay(seed, number):
    """Show one case."""
    case, _, search = drawn(seed, number)
    print(case, case.X.shape, search)
    print(*judge_search(seed, number), sep="\n")
