"""What the library says about a drawn case, judged by exact arithmetic.

``replay(seed, number)`` shows one case: what was drawn, how it ended, what is false.
"""

import time
import warnings
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from tests.certificates.draws import draw
from tests.certificates.dyadic import Dyadic
from tests.certificates.exact import (
    GAP_ULPS,
    Exact,
    at_least,
    false_claims,
    false_gap,
    kernel_matrix,
    told,
)
from tests.certificates.exact_ball import ball_bounds, distances, primal
from widemargin import (
    SVC,
    BudgetSVC,
    EnclosingBall,
    LinearSVC,
    Problem,
    as_rows,
    solve,
)
from widemargin.kernels.matrix import Columns
from widemargin.losses.norms import BudgetL1, BudgetL2
from widemargin.numerics import linalg
from widemargin.problems.ball import BallProblem
from widemargin.solvers.driver.limits import Limits
from widemargin.solvers.kernel.enclosing_ball import enclose

# Seconds that a fit may take, and steps of a ball for each iteration of others.
TIME_LIMIT, BALL_STEPS = 1.0, 100
NORMS = {"l1": BudgetL1, "l2": BudgetL2}
# Share of the largest k(x, x) below which a squared radius counts as that large.
RESOLVED = Fraction(1, 10**12)
# Warnings that a fit may end with; any other is counted as false.
EXPECTED = (
    (ConvergenceWarning, ""),
    (RuntimeWarning, "not positive semidefinite"),
    (RuntimeWarning, "No point lies inside"),
    (UserWarning, "there is no cap"),
    (UserWarning, "outside"),
    (RuntimeWarning, "outside"),
)


@dataclass
class Verdict:
    """How a case ended ("refused" too), and what was said that is not so."""

    status: str
    false: list = field(default_factory=list)
    gaps: tuple = ()
    refusal: str = ""
    seconds: float = 0.0


def judge(case):
    """Fit a case and check what is said about the answer."""
    begin = time.perf_counter()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            found = _FITS[case.level](case)
            refusal = ""
        except ValueError as error:
            found, refusal = None, str(error)
        except ArithmeticError as error:  # no way to end a fit
            return Verdict("error", [repr(error)])
        except Exception as error:
            error.add_note(f"replay({case.seed}, {case.number})")
            raise
    seconds = time.perf_counter() - begin
    if found is None:
        return Verdict("refused", refusal=refusal, seconds=seconds)
    verdict = _CHECKS[case.level](case, found)
    verdict.false += [f"warned: {w.message}" for w in seen if not _is_expected(w)]
    verdict.seconds = seconds
    return verdict


def replay(seed, number):
    """Show one case."""
    case = draw(seed, number)
    print(case, "\n", case.X.shape, case.weights)
    print(judge(case))


def _is_expected(warning):
    text = str(warning.message)
    return any(
        issubclass(warning.category, kind) and part in text for kind, part in EXPECTED
    )


def _limits(case, steps=1):
    most = None if case.max_iter is None else steps * case.max_iter
    return {"tol": case.tol, "max_iter": most, "time_limit": TIME_LIMIT}


# -- problems --------------------------------------------------------------------------


def _fit_problem(case):
    C = case.C if case.weights is None else case.prices
    problem = Problem(
        case.rows, case.y, C, case.loss, case.intercept, kernel=case.kernel
    )
    return solve(problem, case.solver, **_limits(case))


def _fit_norm(case):
    problem = Problem(
        case.rows,
        case.y,
        case.C,
        kernel=case.kernel,
        norm=case.options["norm"],
        sample_weight=case.weights,
    )
    return solve(problem, **_limits(case))


def exact_of(case, kernel=None, norm=None):
    """The problem of a case, exactly; those of a norm have weights and a factor."""
    kernel = kernel or case.kernel
    if norm is None:
        C, factor = case.prices, 1.0
    else:
        factor = case.C
        C = np.ones(len(case.y)) if case.weights is None else case.prices / factor
    return Exact(case.X, case.y, C, case.loss, case.intercept, kernel, norm, factor)


def _check_problem(case, solution):
    exact = exact_of(case, norm=case.options.get("norm"))
    P, D = exact.primal(solution.w, solution.b), exact.dual(solution.alpha)
    return _verdict(case, solution.certificate, solution.status.value, P, D)


def _verdict(case, certificate, status, P, D):
    false = false_claims(certificate, P, D, tol=case.tol, status=status)
    return Verdict(status, false, _gaps(certificate.relative_gap, P, D))


def _gaps(gap, P, D):
    """The gap that is told, and the true one."""
    return float(gap), told((P - D) / P) if P > 0 else "no gap"


# -- estimators ------------------------------------------------------------------------


def _options(case):
    return {"C": case.C, "n_jobs": case.n_jobs, **_limits(case)}


def _kernel_options(case):
    kernel = case.kernel
    names = ("gamma", "degree", "coef0")
    return {"kernel": kernel.name} | {name: getattr(kernel, name) for name in names}


def _fit_linear(case):
    options = {"loss": case.loss, "intercept": case.intercept, "solver": case.solver}
    clf = LinearSVC(**options, **_options(case))
    return clf.fit(case.data, case.y, sample_weight=case.weights)


def _check_linear(case, clf):
    exact, solution = exact_of(case), clf.solution_
    P = exact.primal(clf.coef_[0], clf.intercept_[0])
    verdict = _verdict(
        case, solution.certificate, clf.status_, P, D := exact.dual(solution.alpha)
    )
    verdict.false += false_gap(clf.dual_gap_, (P - D) / P)
    return verdict


def _fit_svc(case):
    options = _options(case) | _kernel_options(case)
    options |= {"loss": case.loss, "intercept": case.intercept}
    if case.level == "rank":
        options |= {"certify": "exact", **case.options}
    return SVC(**options).fit(case.data, case.y, sample_weight=case.weights)


def coefficients(clf, m):
    """Coefficients of the kernel functions of all rows: (m,)."""
    c = np.zeros(m)
    c[clf.support_] = linalg.dense(clf.dual_coef_)[0]
    return c


def _check_svc(case, clf):
    exact = exact_of(case, kernel=clf.kernel_)
    P = exact.primal(coefficients(clf, len(case.y)), clf.intercept_[0])
    D = exact.dual(clf.solution_.alpha)
    verdict = _verdict(case, clf.solution_.certificate, clf.status_, P, D)
    if P > 0:
        verdict.false += false_gap(clf.dual_gap_, (P - D) / P)
    return verdict


def _check_rank(case, clf):
    """Bounds of the problem with the kernel itself; of the model, if it has rows."""
    exact, (bounds,) = exact_of(case, kernel=clf.kernel_), clf.exact_certificates_
    D = exact.dual(clf.solution_.alpha, scaled=True)
    P = D  # no upper bound is below that
    if case.options["approximation"] != "fourier":
        P = exact.primal(coefficients(clf, len(case.y)), clf.intercept_[0])
    false = false_claims(bounds, P, D)
    if P > 0:
        false += false_gap(clf.exact_gap_, (P - D) / P)
    return Verdict(clf.status_, false, _gaps(clf.exact_gap_, P, D))


def _fit_budget(case):
    options = _options(case) | _kernel_options(case) | case.options
    return BudgetSVC(**options).fit(case.data, case.y, sample_weight=case.weights)


def _check_budget(case, clf):
    """The objective of the model, and how far above the optimum it may be."""
    pursued = clf.method == "pursuit"
    norm = None if pursued else NORMS[clf.norm](budget=float(clf.budget))
    exact = exact_of(replace(case, loss=clf.loss), kernel=clf.kernel_, norm=norm)
    P = exact.primal(coefficients(clf, len(case.y)), clf.intercept_[0])
    solution = clf.solution_
    D, before = exact.dual(solution.alpha), exact.primal(solution.w, solution.b)
    verdict = _verdict(case, solution.certificate, clf.status_, before, D)
    if not at_least(float(clf.primal_[0]), P):
        verdict.false.append(f"primal_ {clf.primal_[0]:.9g} below {told(P)}")
    verdict.false += false_increase(float(clf.increase_[0]), P, D)
    return verdict


def false_increase(increase, P, D):
    """Whether an increase is told smaller than it may be by the bounds P and D."""
    if P <= 0 or increase == np.inf:
        return []
    if D <= 0:
        return [f"increase_ {increase:.3g} is infinite"]
    true = (P - D) / D
    if increase >= 0 and Fraction(increase) + GAP_ULPS * (1 + true) >= true:
        return []
    return [f"increase_ {increase:.3g} is {told(true)}"]


# -- balls -----------------------------------------------------------------------------


def _ball_prices(case):
    return None if case.options["hard"] else case.prices


def _kept(case):
    return np.flatnonzero(case.prices > 0)


def _fit_ball(case):
    kept, C = _kept(case), _ball_prices(case)
    data = case.data
    data = data[kept][:, kept] if case.kernel.name == "precomputed" else data[kept]
    columns = Columns(as_rows(data), case.kernel, n_jobs=case.n_jobs)
    problem = BallProblem(columns, None if C is None else C[kept])
    return enclose(problem, Limits(**_limits(case, BALL_STEPS)))


def _rows_of_ball(case):
    """The rows with a weight, their prices, and the exact kernel matrix."""
    kept, C = _kept(case), _ball_prices(case)
    square = case.kernel.name == "precomputed"
    X = case.X[np.ix_(kept, kept)] if square else case.X[kept]
    return X, None if C is None else C[kept], kernel_matrix(case.kernel, X)


def _check_ball(case, ball):
    X, C, K = _rows_of_ball(case)
    P, D = ball_bounds(K, ball.a, C)
    false = [
        claim for claim in false_claims(ball.certificate, P, D) if "gap" not in claim
    ]
    return _ball_verdict(
        case, ball.status.value, ball.certificate.relative_gap, (P, D, K), false
    )


def _ball_verdict(case, status, gap, bounds, false):
    P, D, K = bounds
    largest = max(Dyadic(np.diagonal(K.n), K.e).fractions())
    scale = max(P, RESOLVED * largest)
    if scale > 0 and P > 0:
        true = (P - D) / scale
        false = false + false_gap(gap, true)
        if status == "solved" and true > Fraction(case.tol) + Fraction(1, 2**48):
            false = [*false, f"solved to {case.tol:.3g} at {told(true)}"]
        return Verdict(status, false, (float(gap), told(true)))
    return Verdict(status, false, (float(gap), "no gap"))


def _fit_enclosing(case):
    options = _limits(case, BALL_STEPS) | _kernel_options(case)
    options |= {"C": None if case.options["hard"] else case.C, "n_jobs": case.n_jobs}
    return EnclosingBall(**options).fit(case.data, sample_weight=case.weights)


def _check_enclosing(case, clf):
    X, C, K = _rows_of_ball(case)
    a = coefficients(clf, len(case.y))[_kept(case)]
    P, D = ball_bounds(K, a, C)
    if case.kernel.name == "linear":
        P = primal(distances(X, clf.center_), C)
        if not case.storage.startswith("csr"):  # these are centered
            mean = X - X.mean(axis=0)
            K = kernel_matrix(case.kernel, mean)
    return _ball_verdict(case, clf.status_, clf.dual_gap_, (P, D, K), [])


_FITS = {
    "linear": _fit_problem,
    "kernel": _fit_problem,
    "norm": _fit_norm,
    "LinearSVC": _fit_linear,
    "SVC": _fit_svc,
    "rank": _fit_svc,
    "BudgetSVC": _fit_budget,
    "ball": _fit_ball,
    "EnclosingBall": _fit_enclosing,
}
_CHECKS = {
    "linear": _check_problem,
    "kernel": _check_problem,
    "norm": _check_problem,
    "LinearSVC": _check_linear,
    "SVC": _check_svc,
    "rank": _check_rank,
    "BudgetSVC": _check_budget,
    "ball": _check_ball,
    "EnclosingBall": _check_enclosing,
}
