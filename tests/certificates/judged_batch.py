"""Drawn cases as several problems that are solved in one call, judged one by one.

`judge_family` has those with a linear term of any sign, or with a sum of alpha.

Two classes or three, of which one stands against another one or against the rest; a
problem that starts at the answer of another one; rows in numbers that float32 has to
do for, too. ``replay(seed, number)`` shows one case.
"""

import time
import warnings
from dataclasses import dataclass, replace
from typing import NamedTuple
from unittest.mock import patch

import numpy as np

from tests.cases.many import many, one_problem
from tests.certificates.draws import draw
from tests.certificates.exact import Exact, false_claims
from tests.certificates.judged import Verdict
from widemargin import Problem, as_rows, solve
from widemargin.data.doubled import DoubledRows
from widemargin.problems import many as many_problems
from widemargin.solution import Certificate
from widemargin.solvers.driver.limits import Limits
from widemargin.solvers.kernel.batch import INTERCEPTS, solve_many, solve_places

# Seconds that a call may take, bytes of kernel values, and the share of large cases.
TIME_LIMIT, MEMORY, LARGE = 1.0, 1 << 24, 0.4
# Steps; and a share by which margins are above what kept scores can tell.
MOST, EDGE = 20_000, 1e-12
# More rows than are solved in float64.
MANY_ROWS = 72
# Kinds of problems with a linear term, of which the last ones have a sum of alpha.
FAMILY = ("any", "regression", "uneven", "one_class", "nu_classes", "nu_regression")
# Columns of which distances lose digits, where they are differences of squares.
WIDE = 72


@dataclass(frozen=True)
class Batch:
    """A case, the class of each row, the problems, and which scores are made again."""

    case: object
    group: np.ndarray
    problems: object
    all_places: float


class Point(NamedTuple):
    """Coefficients at the places of a problem, an intercept, and what is claimed."""

    w: np.ndarray
    b: float
    certificate: Certificate
    status: str = "point"
    tol: float = 1.0

    @property
    def alpha(self):
        return np.abs(self.w)


def batch(seed, number):
    """The problems of a number."""
    case, rng = draw(seed, number, "batch"), np.random.default_rng((seed, number, 1))
    if rng.random() < LARGE:
        case = enlarged(rng, case)
    group = (case.y > 0).astype(int)
    groups = [(1, 0), ((1, 0), 0, float(rng.choice([0.1, 1.0, 7.0])))]
    if rng.random() < 0.4:
        group[rng.random(len(group)) < 0.4] = 2
        group[:3] = 0, 1, 2
        groups = [(2, 1), (1, 0, 2), (0, 2)]
    C = case.prices
    problems = many(case.data, group, case.kernel, C, case.loss, case.intercept, groups)
    return Batch(case, group, problems, float(rng.choice([0.0, 1e6])))


def judge_batch(seed, number):
    """Solve them and check what is said about each: a verdict for each."""
    try:
        with np.errstate(all="ignore"):
            one = batch(seed, number)
    except ValueError as error:
        return [Verdict("refused", refusal=str(error))]
    if not one.problems.samples.is_fit:
        return [Verdict("unfit")]
    begin = time.perf_counter()
    limits = Limits(tol=max(one.case.tol, 1e-6), time_limit=TIME_LIMIT)
    with (
        warnings.catch_warnings(record=True) as seen,
        patch.object(many_problems, "ALL_PLACES", one.all_places),
    ):
        warnings.simplefilter("always")
        found = solve_many(one.problems, limits, MEMORY, 1)
        edge = _at_the_edge(one, limits.tol, np.random.default_rng((seed, number, 2)))
    seconds = time.perf_counter() - begin
    verdicts = [_verdict(one, k, answer) for k, answer in enumerate(found)]
    verdicts += [_verdict(one, k, answer) for k, answer in enumerate(edge)]
    verdicts[0].seconds = seconds
    verdicts[0].false += [f"warned: {w.message}" for w in seen]
    return verdicts


def family(seed, number):
    """The problem of a number that has a linear term, or a sum of alpha; and its kind."""
    case, rng = draw(seed, number, "batch"), np.random.default_rng((seed, number, 3))
    if rng.random() < LARGE:
        case = enlarged(rng, case)
    kind, m = str(rng.choice(FAMILY)), len(case.y)
    q = rng.normal(size=m) * 10.0 ** rng.uniform(-4, 4)
    q[rng.random(m) < 0.2] = 0.0
    twice = kind in ("regression", "uneven", "nu_regression")
    y, C = case.y, case.prices
    if twice:
        epsilon = abs(q).max() * float(rng.choice([0.0, 0.01, 0.3]))
        epsilon = 0.0 if kind == "nu_regression" else epsilon
        y, C = np.repeat([1.0, -1.0], m), np.tile(C, 2)
        q = np.append(q - epsilon, -q - epsilon)
    if kind == "uneven":
        C = C * rng.choice([1.0, 2.0], len(C))
        q = q + rng.normal(size=len(q)) * abs(q).max() * 0.01
    mass, intercept, loss = None, case.intercept, case.loss
    if kind == "one_class":
        y, intercept, q = np.ones(m), "none", q * rng.choice([0.0, 1.0])
    if kind.startswith(("one", "nu")):
        halves = (
            [C.sum()] if kind == "one_class" else [C[y == s].sum() for s in (-1, 1)]
        )
        mass = float(rng.uniform(0.02, 0.95)) * min(halves) * len(halves)
        intercept = "none" if kind == "one_class" else "free"
        q = 0.0 * q if kind == "nu_classes" else q
    form = case.data, y, case.kernel, q, C, loss, intercept, mass
    return case, kind, one_problem(*form), form


def judge_family(seed, number):
    """Solve it and check what is said about it: verdicts of the answer and of a point."""
    try:
        with np.errstate(all="ignore"):
            case, _, problems, form = family(seed, number)
    except ValueError as error:
        return [Verdict("refused", refusal=str(error))]
    if not problems.samples.is_fit:
        return [Verdict("unfit")]
    limits = Limits(tol=max(case.tol, 1e-6), time_limit=TIME_LIMIT)
    rng = np.random.default_rng((seed, number, 4))
    with (
        warnings.catch_warnings(record=True) as seen,
        patch.object(many_problems, "ALL_PLACES", float(rng.choice([0.0, 1e6]))),
    ):
        warnings.simplefilter("always")
        found = solve_places(problems, limits, MEMORY, 1)
        other = _moved(problems, found, rng)
    status = "solved" if found.solved(limits.tol)[0] else "stalled"
    bounds = Certificate(*found.proofs[0].tolist())
    points = [(found.c, found.b, found.rho, bounds, status), other]
    verdicts = [_verdict_of(case, problems, limits.tol, *point) for point in points]
    verdicts[0].false += [f"warned: {w.message}" for w in seen]
    return verdicts + _by_working_sets(case, form)


def _by_working_sets(case, form):
    """Verdicts of the same problem solved by working sets, where alpha has a sum."""
    X, y, kernel, q, C, loss, intercept, mass = form
    if mass is None:
        return []
    rows, points = as_rows(X), case.X
    if len(y) > rows.shape[0]:
        rows, points = DoubledRows(rows), np.tile(points, (2, 1))
    options = {"q": q, "kernel": kernel, "mass": mass}
    try:
        with np.errstate(all="ignore"):
            problem = Problem(rows, y, C, loss, intercept, **options)
            found = solve(problem, "irwls", tol=case.tol, time_limit=TIME_LIMIT)
    except ValueError as error:
        return [Verdict("refused", refusal=str(error))]
    exact = Exact(points, y, C, loss, intercept, kernel, q=q, mass=mass)
    P, D = exact.primal(found.w, found.b, found.rho), exact.dual(found.alpha)
    if not np.any(q):  # w = 0 has the objective 0
        P = min(P, 0)
    status = str(found.status)
    claims = {"tol": case.tol, "status": status, "floor": problem.scale}
    return [Verdict(status, false_claims(found.certificate, P, D, **claims))]


def _moved(problems, found, rng):
    """A point near the answer, whose sums of alpha are off by some."""
    size = 1.0 - 10.0 ** rng.uniform(-16, -1) * rng.random(len(found.c))
    b = found.b * (1.0 + 10.0 ** rng.uniform(-16, -1))
    b = b if problems.intercept != "none" else 0.0 * b
    rho = found.rho * (1.0 - 10.0 ** rng.uniform(-16, -1))
    c, scores = found.c * size, np.full(len(found.c), np.nan)  # none is known
    with np.errstate(all="ignore"):
        (bound,) = problems.certificates(c, scores, b, 1, lambda: False, rho)
    return c, b, rho, bound, "point"


def _verdict_of(case, problems, tol, c, b, rho, bound, status):
    """Whether a point is what its certificate says."""
    y, C, q, mass = problems.data
    mass = None if np.isnan(mass[0]) else float(mass[0])
    X, form = case.X[problems.rows], (problems.loss.name, problems.intercept)
    exact = Exact(X, y, C, *form, case.kernel, q=q, mass=mass)
    P = exact.primal(c, float(b[0]), float(rho[0]))
    D = exact.dual(y * c)
    size = float(problems.zero_objectives[0])
    if mass is not None and not np.any(q):  # w = 0 has the objective 0
        P, size = min(P, 0), mass**2 * float(problems.samples.diagonal.max())
    floor = many_problems.FLOOR * size
    claims = false_claims(bound, P, D, tol=tol, status=status, floor=floor)
    return Verdict(status, claims)


def replay(seed, number):
    """Show one case."""
    one = batch(seed, number)
    print(one.case, one.case.X.shape, one.problems.groups, one.all_places)
    print(*judge_batch(seed, number), sep="\n")


def _at_the_edge(one, tol, rng):
    """Points with intercepts by which some row just has no loss, by its kept score."""
    problems, intercept = one.problems, INTERCEPTS[one.case.intercept]
    c = np.zeros(len(problems.y))
    scores, _, _, _ = problems.samples.solve(
        (problems.groups, problems.group_ends, problems.ends, problems.after),
        problems.data,
        c,
        (not problems.loss.is_bounded, intercept),
        (tol, MOST, MEMORY, 1, False),
        lambda: False,
    )
    margins = 1.0 + problems.samples.kept_errors(problems.rows, c, problems.starts)
    row = rng.integers(problems.starts, problems.ends)
    b = problems.y[row] * margins[row] * (1.0 + EDGE) - scores[row]
    b = np.where(np.isfinite(b) & (intercept > 0), b, 0.0)
    bounds = problems.certificates(c, scores, b, 1, lambda: False)
    ends = zip(problems.starts, problems.ends, b, bounds, strict=True)
    return [Point(c[i:j], float(b), bound) for i, j, b, bound in ends]


def _verdict(one, k, answer):
    """Whether problem k is what its certificate says."""
    problems = one.problems
    places = np.arange(problems.starts[k], problems.ends[k])
    if not isinstance(answer, Point):  # it has the order of the data
        places = problems.order[places]
    X, y, C = one.case.X[problems.rows[places]], problems.y[places], problems.C[places]
    exact = Exact(X, y, C, one.case.loss, one.case.intercept, one.case.kernel)
    P, D = exact.primal(answer.w, answer.b), exact.dual(answer.alpha)
    status, tol = str(answer.status), answer.tol
    return Verdict(
        status, false_claims(answer.certificate, P, D, tol=tol, status=status)
    )


def enlarged(rng, case):
    """The case with more rows: its own ones, moved a little, and for rbf in more columns."""
    rows = rng.integers(0, len(case.y), MANY_ROWS)
    rows[: len(case.y)] = np.arange(len(case.y))
    near = 10.0 ** rng.uniform(-3, -1)
    X = case.X[rows] * (1.0 + near * rng.random((MANY_ROWS, 1)))
    X = np.rint(X) if case.storage == "int" else X
    X = X.astype(np.float32).astype(float) if "32" in case.storage else X
    weights = None if case.weights is None else case.weights[rows]
    case = replace(case, X=X, y=case.y[rows], weights=weights)
    return _widened(rng, case) if case.kernel.name == "rbf" else case


def _widened(rng, case):
    """The case with so many columns, and such a gamma, that float32 just has digits."""
    X = np.tile(case.X, (1, WIDE // case.X.shape[1]))
    with np.errstate(over="ignore"):
        reach = ((X - X.mean(axis=0)) ** 2).sum(axis=1).max()
    power = rng.uniform(0.0, 3.4) if rng.random() < 0.5 else rng.uniform(3.48, 3.6)
    gamma = 10.0**power / (reach or 1.0)
    return replace(case, X=X, kernel=replace(case.kernel, gamma=max(gamma, 1e-300)))
