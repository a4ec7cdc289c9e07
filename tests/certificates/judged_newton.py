"""Drawn linear cases as problems that are solved in one call, judged one by one.

Two problems over the same rows: the labels, and others by chance; a fifth of the cases
has sparse rows, for another method. Points beside the answers are judged, too.
``judge_newton(seed, number)`` is one case again.
"""

import time
import warnings

import numpy as np
from scipy import sparse

from tests.certificates.draws import draw
from tests.certificates.exact import Exact, false_claims
from tests.certificates.judged import Verdict
from widemargin.losses.pointwise import LOSSES
from widemargin.problems.many_linear import ManyLinearProblems
from widemargin.solvers.driver.limits import Limits
from widemargin.solvers.linear.batch import solve_many_linear

TIME_LIMIT = 1.0


def judge_newton(seed, number):
    """Verdicts of the answers, and of points near them whose y'alpha is off."""
    case, rng = draw(seed, number, "linear"), np.random.default_rng((seed, number, 1))
    kept = case.prices > 0.0
    X, C = np.ascontiguousarray(case.X[kept]), case.prices[kept]
    y = np.stack([case.y[kept], rng.choice([-1.0, 1.0], len(X))]).astype(float)
    stored = sparse.csr_array(X) if number % 5 == 0 else X
    C = np.stack([C, np.where(y[1] > 0.0, 10.0 ** rng.uniform(-2, 2), 1.0) * C])
    problems = ManyLinearProblems(stored, y, C, LOSSES[case.loss], case.intercept)
    limits = Limits(tol=max(case.tol, 1e-6), time_limit=TIME_LIMIT)
    begin = time.perf_counter()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        by_descent = number % 2 or case.loss == "hinge"
        visits = 200.0 if sparse.issparse(stored) and by_descent else 0.0
        found = solve_many_linear(problems, limits, 1, visits=visits)
        points = [(s.alpha, s.w, s.b, s.certificate, str(s.status)) for s in found]
        points += _moved(problems, found, rng)
    verdicts = []
    for k, (alpha, w, b, bounds, status) in enumerate(points):
        exact = Exact(X, y[k % 2].astype(int), C[k % 2], case.loss, case.intercept)
        P, D = exact.primal(w, b), exact.dual(alpha)
        claims = {"tol": limits.tol, "status": status}
        verdicts.append(Verdict(status, false_claims(bounds, P, D, **claims)))
    verdicts[0].seconds = time.perf_counter() - begin
    verdicts[0].false += [f"warned: {w.message}" for w in seen]
    return verdicts


def _moved(problems, found, rng):
    """Points near answers."""
    alpha = np.stack([one.alpha for one in found])
    alpha = alpha * (1.0 - 10.0 ** rng.uniform(-16, -1) * rng.random(alpha.shape))
    size = 1.0 + 10.0 ** rng.uniform(-16, 0)
    W, b = (size * np.stack([getattr(one, name) for one in found]) for name in "wb")
    bounds = problems.certificates(alpha, W, b)
    return [
        (a, w, float(v), bound, "point")
        for a, w, v, bound in zip(alpha, W, b, bounds, strict=True)
    ]
