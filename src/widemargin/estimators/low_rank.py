"""SVC with a kernel matrix of low rank: the map, the model that comes back, the proof.

The rows z(x_i) of a feature map, z(x)'z(x') near k(x, x'), make linear problems, and
all binary problems share one map. Through landmarks x_j, z(x) = W'k(x), a solution w is
the kernel model with the coefficients W w of the landmarks, which has the same norm and
the same scores. Other maps (Fourier features, monomials) stay a part of the model.
"""

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from widemargin.arrays import Index, Vector
from widemargin.data.memory import as_rows
from widemargin.data.row_vector import RowVector
from widemargin.data.rows import RemoteRows, Rows
from widemargin.estimators import multiclass
from widemargin.estimators.training import (
    Recipe,
    Training,
)
from widemargin.features.builder import ALL_ROWS, ERROR_ROWS
from widemargin.features.maps import FeatureMap, LandmarkFeatures, SquareFeatures
from widemargin.features.methods import METHODS, feature_map
from widemargin.kernels.kernel import Kernel
from widemargin.kernels.table import KERNELS, with_spectrum
from widemargin.parameters import Checker, is_integer, refused_by
from widemargin.problems.exact_bounds import (
    Monomials,
    NormedExpansion,
    exact_certificate,
)
from widemargin.problems.regression import of_samples
from widemargin.solution import Certificate, Solution
from widemargin.solvers import auto
from widemargin.solvers.driver.contract import Solver
from widemargin.solvers.kernel import batch
from widemargin.system.deadline import OutOfTime, until
from widemargin.system.memory import free_bytes
from widemargin.system.progress import telling
from widemargin.system.threads import n_threads

CERTIFIED = ("approximate", "exact")
# Down to this gap, and from this many numbers on, features are float32. Their models
# had objectives within 4e-6 of the solver's, on a9a and ijcnn1 (rank 100, 300, 1,000);
# maps took half of the time, solvers a third less. Fewer numbers, 8 MiB, are fast
# anyway.
SINGLE, MANY = 1e-5, 1 << 20
# The kernel of features, where a kernel solver works in them.
LINEAR = Kernel("linear", 1.0)
# With rank="auto":
# seconds for a row and a dimension, up to the largest rank: 0.7e-7 to 2.2e-7 for maps
# and solvers on six sets (benchmarks/results/lowrank/cost.txt, one core), and so on
# mnist and up to rank 1,000; rank 1,934 of a9a took more than four times as long as
# 985. The dimensions that the error of a map counts as: 30 to 140
# on a9a, ijcnn1, usps and mnist.
SECONDS, MOST, ERROR = 2e-7, 1000, 100
# Why a map has less than the rank that was asked for.
_RANK_OF_ALL = "a higher one would add nothing above rounding"
_LOWERED = {
    "nystroem": "no other of its landmarks adds anything above rounding",
    "cholesky": _RANK_OF_ALL,
    "eigen": _RANK_OF_ALL,
    "fourier": "its features come in pairs",
}
# Bytes for an entry of rows that are read into memory: float64, and again packed or
# with the number of the column.
ENTRY = 16
# Seconds for a Fourier feature of a row with one thread: 3e-9 to 7e-9 in float32, of 2
# to 123 dense columns (`feature_map.features_of`, 1,000 and 20,000 rows).
FEATURE = 3e-9
# Seconds that they may take however short the time limit is: a second is worth no
# refusal.
TRIFLE = 1.0


def check_rank(check: Checker, svc: Any, features: str = "linear") -> None:
    """Refuse a rank, or what belongs to one, that is out of range.

    ``features`` says what solves problems in the features of a map: "linear" or
    "kernel" solvers. The latter are no faster than without a rank: no "auto" then.
    """
    rank, method = svc.rank, svc.approximation
    check.choice("approximation", method, ("auto", *METHODS))
    check.choice("certify", svc.certify, CERTIFIED)
    check.choice("polish", svc.polish, (True, False))
    if rank is None and method != "auto":
        check.refuse("approximation", "'auto' where 'rank' is None", method)
    if svc.polish and (rank is None or rank == "auto"):
        check.refuse("polish", f"False where 'rank' is {rank!r}", svc.polish)
    kernel = svc.kernel
    known = isinstance(kernel, str) and kernel in KERNELS
    if svc.certify == "exact" and known and not Kernel(kernel, coef0=svc.coef0).is_psd:
        expected = "be positive semidefinite for certify='exact'"
        check.refuse_part("kernel", expected, repr(kernel))
    if rank is not None:
        if features == "kernel" and isinstance(rank, str):
            expected = "an int in the range [1, inf), a float in (0, 1) or None"
            check.refuse("rank", expected, rank)
        _check_number(check, rank, method)
        _check_kernel(check, svc)
        _check_solver(check, svc, features)


def check_nu_rank(check: Checker, machine: Any) -> None:
    """Refuse a solver or a rank that machines with a sum of alpha do not have."""
    if not isinstance(machine.solver, Solver):
        check.choice("solver", machine.solver, ("auto", batch.NAME, "irwls"))
    check_rank(check, machine, "kernel")


def refuse_stored(rows: Rows) -> None:
    """Refuse rows in files where an exact solver is to go on with them."""
    if not rows.is_in_memory:
        expected = "be False for rows that are not in memory"
        Checker("SVC").refuse_part("polish", expected, "True")


def _check_number(check: Checker, rank: Any, method: str) -> None:
    """Refuse what is no rank, or a rank that the method does not have."""
    share = isinstance(rank, Real) and 0.0 < float(rank) < 1.0
    is_auto = isinstance(rank, str) and rank == "auto"
    if not (share or is_auto or (is_integer(rank) and rank >= 1)):
        expected = "an int in the range [1, inf), a float in (0, 1), 'auto' or None"
        check.refuse("rank", expected, rank)
    if share and method not in ("auto", "cholesky"):
        check.refuse("rank", f"an int for approximation={method!r}", rank)
    if is_auto and method == "polynomial":
        check.refuse("rank", f"an int for approximation={method!r}", rank)
    if method == "fourier" and rank == 1:
        check.refuse("rank", "at least 2 for approximation='fourier'", rank)


def _check_kernel(check: Checker, svc: Any) -> None:
    """Refuse a kernel that the method, the bounds or the solver cannot do."""
    kernel, method = svc.kernel, svc.approximation
    if isinstance(kernel, str) and kernel == "linear":
        expected = "None for kernel='linear', whose rank is that of the data"
        check.refuse("rank", expected, svc.rank)
    named = isinstance(kernel, str)
    if method == "fourier" and not (named and kernel in with_spectrum()):
        kernels = " or ".join(map(repr, with_spectrum()))
        expected = f"{kernels} for approximation='fourier'"
        check.refuse_part("kernel", f"be {expected}", repr(kernel))
    square = named and kernel == "poly" and svc.degree == 2 and svc.coef0 >= 0
    if method == "polynomial" and not square:
        expected = "'poly' with degree=2 and coef0 >= 0 for approximation='polynomial'"
        check.refuse_part("kernel", f"be {expected}", repr(kernel))


def _check_solver(check: Checker, svc: Any, features: str) -> None:
    """Refuse a solver that cannot do what is solved last."""
    if svc.solver == batch.NAME:
        check.refuse("rank", "None for solver='batch'", svc.rank)
    solver = auto.SOLVERS.get(svc.solver) if isinstance(svc.solver, str) else svc.solver
    last = "kernel" if svc.polish or svc.rank == "auto" else features
    if solver is not None and solver.for_kernels != (last == "kernel"):
        expected = f"be 'auto' or a solver of {last} problems"
        check.refuse_part("solver", expected, repr(svc.solver))


@dataclass(frozen=True)
class Mapping:
    """Which map of low rank is asked for, and what solves the problems after it.

    Attributes
    ----------
    rank : int, float or "auto", as of `SVC`
    method : str, ``approximation`` of `SVC`
    recipe : Recipe, of linear problems, or of problems with the linear kernel
    is_given : bool, whether the rank is the user's, not what the time allows
    finish : callable (scores) -> dict, or None
        Attributes with which a point predicts that follow from the scores of the rows.
    """

    rank: Any
    method: str
    recipe: Recipe
    is_given: bool = True
    finish: Callable[[Vector], dict[str, Any]] | None = None


@dataclass(frozen=True)
class Approximation:
    """The training rows after a map of low rank.

    Attributes
    ----------
    map : FeatureMap, without features
    rows : Rows (m, r): z(x_i); zero for rows without weight
    landmarks : int ndarray (l,) or None, the landmarks' rows, sorted by class
    order : int ndarray (l,) or None, the number that each has in the map
    """

    map: FeatureMap
    rows: Rows
    landmarks: Index | None
    order: Index | None

    @property
    def is_empty(self) -> bool:
        """Whether there was no time for a map: z(x) = 0."""
        W = self.map.whitening
        return W is not None and not W.any()

    def lowered_from(self, mapping: Mapping) -> str:
        """Why the rank is lower than that which the user asked for; else empty.

        "polynomial" takes it as the most that is allowed.
        """
        asked, r, method = mapping.rank, self.map.rank, self.map.method
        is_number = mapping.is_given and is_integer(asked) and method in _LOWERED
        if not is_number or r >= asked or self.is_empty:
            return ""
        return f"rank {r:,} instead of {asked:,}, as {_LOWERED[method]}"

    def coefficients(self, w: Vector) -> Vector:
        """Coefficients of the landmarks, in their order, from weights (r,): (l,)."""
        return self.map.coefficients(w)[self.order]

    def mapped(self, training: Training, mapping: Mapping) -> Training:
        """The linear problems in the features; rows in memory where a kernel is."""
        recipe, rows, at = mapping.recipe, self.rows, self._at
        if recipe.kernel is not None:
            rows = _held(rows, training)
            at = functools.partial(self._at_sum, mapping.finish)
        recipe = dataclasses.replace(recipe, at=at)
        return dataclasses.replace(training, rows=rows, recipe=recipe, names=())

    def _at_sum(self, finish: Any, rows: Rows, c: Vector, b: float) -> dict[str, Any]:
        """Attributes of a point that is a sum of the features of rows."""
        w = rows.rmatvec(of_samples(c, rows.shape[0]))
        found = self._at(rows, w, b)
        return found if finish is None else found | finish(rows.matvec(w))

    def _at(self, rows: Rows, w: Vector, b: float) -> dict[str, Any]:
        """Attributes with which a point of the only binary problem predicts."""
        J, intercept = self.landmarks, np.array([b])
        if J is None:
            weights = {"coef_": w[np.newaxis], "intercept_": intercept}
            return weights | {"feature_map_": self.map}
        return {
            "support_": J,
            "support_vectors_": self.map.vectors[self.order],
            "dual_coef_": self.coefficients(w)[np.newaxis],
            "n_support_": np.array([0, len(J)]),
            "intercept_": intercept,
        }

    def bounds(self, training: Training, k: int, solution: Solution) -> Certificate:
        """Bounds of exact problem k from its approximate solution, or from zero.

        The training has the rows before the map.
        """
        try:
            with until(training.limits.grace):
                return self._bounds(training, k, solution)
        except OutOfTime:
            bounds = solution.certificate
            return dataclasses.replace(bounds, primal=training.weight(k), dual=0.0)

    def _bounds(self, training: Training, k: int, solution: Solution) -> Certificate:
        """The bounds from the approximate solution, where there is time."""
        rows, alpha, kernel = training.rows, solution.alpha, self.map.kernel
        problem = training.problem(k)
        chosen, some = training.chosen(k), np.flatnonzero(alpha)
        support = some if chosen is None else chosen[some]
        lifted = NormedExpansion(rows, kernel, support, problem.y[some] * alpha[some])
        model: NormedExpansion | Monomials | None = None
        if self.landmarks is not None:
            beta = self.coefficients(solution.w)
            model = NormedExpansion(rows, kernel, self.landmarks, beta)
        elif isinstance(self.map.expand, SquareFeatures):
            model = Monomials(self.map.expand, solution.w)
        return exact_certificate(problem, alpha, lifted, model, solution.b)


def read(rows: Rows, memory_limit: int | None) -> Rows:
    """The rows, in memory if they fit there."""
    (m, n), limit = rows.shape, _limit(memory_limit)
    if rows.is_in_memory or rows.copy_rows < m or ENTRY * m * n * rows.density > limit:
        return rows
    return as_rows(rows.take(np.arange(m)), **rows.options)


def _held(features: Rows, training: Training) -> Rows:
    """The features of the rows of a training, in memory."""
    found = read(features, training.memory_limit)
    if found.is_in_memory:
        return found
    (m, r), limit = features.shape, _limit(training.memory_limit)
    size, what = int(ENTRY * m * r * features.density), f"{r:,} features of {m:,} rows"
    if size > limit:
        expected = f"be at least {size:,} bytes for {what}"
        Checker("SVC").refuse_part("memory_limit", expected, f"{limit:,}")
    training.rows.reserve(size, what, training.clock)  # refuses what has no room
    return as_rows(features.take(np.arange(m)), **features.options)


def rank_for(training: Training, memory_limit: int | None, left: float | None) -> int:
    """The rank for the seconds that are left, at most `MOST`, and for the memory."""
    m = training.rows.shape[0]
    rank = min(MOST, _limit(memory_limit) // (8 * m))
    if left is not None:
        # Each row is in c - 1 pairs of c classes; of files, each pair reads all rows.
        pairs = training.tasks[-1].negative if training.rows.is_in_memory else None
        times = pairs or len(training.tasks)
        rank = min(rank, int((left / (SECONDS * m) - ERROR) / times))
    return max(2, rank)


def _limit(memory_limit: int | None) -> int:
    """Bytes that may be used."""
    return free_bytes() if memory_limit is None else memory_limit


def approximate(training: Training, mapping: Mapping) -> Approximation:
    """One map of all training rows that weigh something, for all binary problems."""
    begin, rows, C = training.clock.seconds(), training.rows, training.C
    pairwise, kept = training.recipe.is_pairwise, None
    if np.ndim(C) and not isinstance(C, RowVector) and not np.all(C > 0):
        kept = np.flatnonzero(C > 0)
    some = multiclass.rows_of(rows, kept, pairwise)
    try:
        told = telling(training.callbacks.count)
        with until(training.limits.deadline), told:
            z = _map(training, mapping, some)
            mapped = _mapped(z, rows, kept)
    except OutOfTime:
        z = _empty(training.recipe, some)
        mapped = as_rows(np.zeros((rows.shape[0], 1)), **rows.options)
    landmarks = z.landmarks
    if kept is not None:
        landmarks = None if landmarks is None else kept[landmarks]
    if kept is not None and pairwise:
        columns = {"vectors": kept[z.vectors], "n_features": rows.shape[1]}
        z = dataclasses.replace(z, expand=dataclasses.replace(z.expand, **columns))
    seconds = training.clock.seconds() - begin
    z = dataclasses.replace(z, features=None, landmarks=landmarks, seconds=seconds)
    if landmarks is None:
        return Approximation(z, mapped, None, None)
    order = np.lexsort((landmarks, training.index[landmarks]))
    return Approximation(z, mapped, landmarks[order], order)


def _empty(recipe: Recipe, rows: Any) -> FeatureMap:
    """The map z(x) = 0, for which there is always time: a landmark without weight."""
    kernel: Any = recipe.kernel
    first = np.zeros(1, np.intp)
    vectors = first if recipe.is_pairwise else rows.take(first)
    W = np.zeros((1, 1))
    expand = LandmarkFeatures(kernel, rows.shape[1], vectors, W, W.dtype)
    facts: dict[str, Any] = {"trace_residual": 1.0, "error": 1.0, "seconds": 0.0}
    return FeatureMap(
        "nystroem",
        kernel,
        None,
        first,
        error_rows=rows.shape[0],
        expand=expand,
        **facts,
    )


def _mapped(z: FeatureMap, rows: Any, kept: Index | None) -> Rows:
    """The rows z(x_i); rows without weight may be zero."""
    if isinstance(rows, RemoteRows):
        return rows.mapped_once(z)
    if z.features is None:
        return z.rows(rows)
    features = z.features
    if kept is not None:
        features = np.zeros((rows.shape[0], z.rank), z.dtype)
        features[kept] = z.features
    return as_rows(features, **rows.options)


def _map(training: Training, mapping: Mapping, rows: Any) -> FeatureMap:
    """The feature map, with features where they fit in memory.

    Objectives with 300 uniform landmarks, residual ones, "cholesky" and "fourier", and
    accuracies: a9a (C = 1, gamma = 0.05) 11,239, 11,270, 11,323 and 11,416, and 84.87,
    85.01, 84.90 and 84.64 %; ijcnn1 (C = 8, gamma = 2) 36,456, 36,811, 48,252 and
    50,859, and 96.3, 96.8, 94.6 and 93.9 %. Uniform landmarks had the least objective
    for rank 100 and 1,000 too, and took the least time with landmarks.
    """
    method, options = mapping.method, dict[str, Any]()
    rank: Any = mapping.rank
    if not is_integer(rank):
        method, rank, options = "cholesky", None, {"tol": float(rank)}
    method = "nystroem" if method == "auto" else method
    kernel: Any = training.recipe.kernel
    if method == "fourier" and mapping.is_given:
        _check_features(training, rows, rank)
    numbers = rows.shape[0] * _most_columns(kernel, method, rows.shape, rank)
    single = training.limits.tol >= SINGLE and numbers >= MANY
    limit = _limit(training.memory_limit)
    pairwise = training.recipe.is_pairwise
    whole = method == "eigen" or pairwise  # these hold their features
    if whole and not rows.is_in_memory:
        given = "kernel='precomputed'" if pairwise else f"approximation={method!r}"
        expected = f"be in memory for {given}"
        Checker("SVC.fit").refuse_part("X", expected, "rows that are not")
    if rows.is_in_memory and not whole and (4 if single else 8) * numbers > limit:
        options["features"] = False
    with refused_by("SVC", "feature_map"):
        return feature_map(
            rows,
            kernel,
            method,
            None if method == "polynomial" else rank,
            random_state=training.seed or 0,
            dtype=np.float32 if single else np.float64,
            memory_limit=training.memory_limit,
            **options,
        )


def _check_features(training: Training, rows: Rows, rank: int) -> None:
    """Refuse more Fourier features than there is memory or time to make."""
    m, n = rows.shape
    # Frequencies, and features of the rows that the error is estimated from.
    held = n + (m if m <= ALL_ROWS else ERROR_ROWS)
    most = _limit(training.memory_limit) // (8 * held)
    if (seconds := training.limits.time_limit) is not None:
        speed = n_threads(rows.options.get("n_jobs")) / (FEATURE * m)
        most = min(most, int(max(seconds, TRIFLE) * speed))
    if rank > max(2, most):
        expected = f"be at most {max(2, most):,} for approximation='fourier' of "
        expected += f"{m:,} rows in the time and memory there is"
        Checker("SVC").refuse_part("rank", expected, f"{rank:,}")


def _most_columns(
    kernel: Kernel, method: str, shape: tuple[int, int], rank: Any
) -> int:
    """The largest number of features; refuses a rank with less than all monomials."""
    m, n = shape
    if method == "fourier":
        return int(rank)
    if method != "polynomial":
        return m if rank is None else int(min(rank, m))
    whole = SquareFeatures(1.0, kernel.coef0, n, np.float64).rank
    if rank < whole:
        expected = f"be at least {whole:,} for approximation={method!r} of these data"
        Checker("SVC").refuse_part("rank", expected, str(rank))
    return whole


def facts_of(z: FeatureMap) -> dict[str, Any]:
    """What a model says about the map that it was trained with."""
    return {
        "approximation": z.method,
        "rank": z.rank,
        "trace_residual": z.trace_residual,
        "kernel_error": z.error,
    }
