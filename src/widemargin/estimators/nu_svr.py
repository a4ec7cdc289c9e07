"""NuSVR: regression whose tube is as wide as a share of errors asks for."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from widemargin.arrays import Vector
from widemargin.data.rows import Rows
from widemargin.estimators.functions import function_point
from widemargin.estimators.kernel_machines import check_kernel_of, set_kernel
from widemargin.estimators.low_rank import LINEAR, Mapping, check_nu_rank
from widemargin.estimators.no_worse import proves_more
from widemargin.estimators.plans import Fit, exact, low_rank
from widemargin.estimators.svr import SVR
from widemargin.estimators.training import (
    Recipe,
    Signs,
    Training,
)
from widemargin.kernels.kernel import Kernel
from widemargin.parameters import Checker
from widemargin.problems.base import Problem
from widemargin.problems.nu import SURELY, nu_regression_problem
from widemargin.problems.regression import margins, regression_problem
from widemargin.solution import Status, Step
from widemargin.solvers.driver.contract import Solver

# Tubes up to this share of the largest target may be those of rounding.
NO_TUBE = 1e-3


class NuSVR(SVR):
    """Support vector regression with nu in the place of epsilon, and a certified gap.

    Minimizes, for targets y_i and features with phi(x)'phi(z) = k(x, z),

        1/2 w'w + C (nu S epsilon + sum_i s_i max(0, abs(r_i) - epsilon)),
        r_i = y_i - phi(x_i)'w - b,

    over w, b and epsilon, with sample weights s_i and their sum S. At most a share nu
    of the rows, by their weights, has an error above epsilon, and at least as large a
    share are support vectors.

    Parameters
    ----------
    nu : float in (0, 1], default=0.5
        See above.
    C : float > 0, default=1.0
        Weight of the losses against the norm of w.
    kernel : str or callable, default="rbf"
        As of `SVC`: "linear", "poly", "rbf", "sigmoid", "laplacian", "chi2",
        "precomputed", or a function of two matrices that returns their kernel values.
    degree : int >= 1, default=3
        Of "poly".
    gamma : float > 0 or {"scale", "auto", "mean_distance"}, default="scale"
        As of `SVC`.
    coef0 : float, default=0.0
        Of "poly" and "sigmoid".
    rank : int >= 1, float in (0, 1) or None, default=None
        Rank of the kernel matrix that takes the place of K, as of `SVC`. None: K
        itself.
    approximation : str, default="auto"
        How, as of `SVC`.
    solver : {"auto", "batch", "irwls"} or Solver, default="auto"
        "auto": pair steps in float32, "batch", for few rows, else "irwls"; or an
        `IRWLS` with options.
    tol : float in (0, 1], default=1e-4
        Relative duality gap (P - D) / P. P counts as at least 1e-10 of the objective of
        w = 0, b = 0 and epsilon = 0, as the minimum may be zero.
    verbose : int, default=0
        1 shows the progress on standard error.
    max_iter : int >= 1 or None, default=None
        Iterations; None: the solver's own.
    time_limit : float > 0 in seconds, or None, default=None
        Of the whole fit, without the time of callbacks; half a second more for a
        certificate.
    memory_limit : int >= 16384 in bytes, or None, default=None
        For kernel values that are kept and for packed samples; None: half of the free
        memory. Also for temporary arrays of a prediction.
    n_jobs : int or None, default=None
        Threads. None: as many as BLAS may use at the moment.
    random_state : int >= 0, RandomState or None, default=None
        Seed of solvers that visit rows in random order.
    callback : callable or None, default=None
        Called with each `widemargin.solution.Step`; returning True stops the fit.
    checkpoint : str, path-like, `widemargin.Checkpoint` or None, default=None
        As of `SVC`.

    Attributes
    ----------
    epsilon_ : float, half the width of the tube
    support_ : ndarray of the rows whose error is epsilon or more
    support_vectors_ : ndarray or CSR array (n_sv, n); empty for "precomputed". Copied
        as of `SVC`.
    n_support_ : ndarray (1,)
    dual_coef_ : ndarray (1, n_sv), a CSR array where X is sparse; positive where the
        prediction is too small
    coef_ : ndarray (1, n), of kernel="linear"; read-only
    intercept_ : ndarray (1,)
    kernel_ : Kernel, with gamma as a number
    gamma_ : float
    feature_map_ : the map, where there is a rank
    n_iter_ : int
    seconds_ : float, time of the whole fit, without callbacks
    dual_gap_ : float, the certified relative gap, of the problem of low rank if any
    status_ : str
    solution_, solutions_ : Solution of the problem of two rows for each sample, whose
        ``rho`` is minus epsilon; list of it alone
    n_features_in_ : int
    feature_names_in_ : ndarray (n,), where X had column names

    See Also
    --------
    SVR : with epsilon in the place of nu; it has more losses, intercepts and solvers.

    Notes
    -----
    A prediction is the same as that of `SVR` with the same C and ``epsilon_``. Where a
    function meets all targets, and C is so large that rounding hides it, the fit is
    that of epsilon = 0, whose sum of alpha may be less than nu allows.

    With a rank the solvers are the same: each column of the kernel matrix takes m r
    multiplications, so that a fit is faster only where a value of the kernel takes
    more. A prediction takes r kernel values. There is no rank="auto" for that reason.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from widemargin import NuSVR
    >>> X, y = make_friedman1(200, random_state=0)
    >>> reg = NuSVR(C=100.0, nu=0.2).fit(X, y)
    >>> reg.status_, reg.dual_gap_ <= 1e-4, round(reg.score(X, y), 2)
    ('solved', True, 1.0)
    """

    # What `SVR` has beside nu.
    epsilon, loss, intercept = 0.0, "epsilon_insensitive", "free"
    _takes_infinity = False  # the sum of alpha is a share of C

    def __init__(
        self,
        *,
        nu: float = 0.5,
        C: float = 1.0,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        rank: float | None = None,
        approximation: str = "auto",
        solver: str | Solver = "auto",
        tol: float = 1e-4,
        verbose: int = 0,
        max_iter: int | None = None,
        time_limit: float | None = None,
        memory_limit: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        callback: Callable[[Step], Any] | None = None,
        checkpoint: Any = None,
    ) -> None:
        self.nu = nu
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.rank = rank
        self.approximation = approximation
        self.solver = solver
        self.tol = tol
        self.verbose = verbose
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback
        self.checkpoint = checkpoint

    # -- parts of fit ------------------------------------------------------------------

    def _check_parameters(self, check: Checker) -> None:
        check.positive("nu", self.nu, most=1.0)
        check_kernel_of(check, self)
        check_nu_rank(check, self)

    @property
    def _has_kernel_solver(self) -> bool:
        """Always: no linear solver has a given sum of alpha."""
        return True

    def _recipe(self, rows: Rows, weights: Vector | None, target: Vector) -> Recipe:
        level, target = _from_level(target, weights)
        return self._recipe_for(set_kernel(self, rows, weights), level, target)

    def _recipe_for(self, kernel: Kernel, level: float, target: Vector) -> Recipe:
        """The problem of targets from a level on; gamma of the kernel is a number."""
        nu = float(self.nu)
        options: Any = {"kernel": kernel, "memory_limit": self.memory_limit}

        def make(rows: Rows, y: Signs, C: ArrayLike) -> Problem:
            return nu_regression_problem(rows, target, C, nu, **options)

        def at(rows: Rows, w: Vector, b: float) -> dict[str, Any]:
            return function_point(kernel, rows, w, b + level)

        q = margins(target, 0.0)
        return Recipe(make, at, self.solver, kernel, ("hinge", "free"), q, nu)

    def _plan(self, training: Training, target: Vector) -> Fit:
        level, target = _from_level(target, training.C)
        if self.rank is None:
            fit = self._unless_tubeless(exact(training), training, target)
        else:
            recipe = self._recipe_for(LINEAR, level, target)
            mapping = Mapping(self.rank, self.approximation, recipe)
            fit = low_rank(training, mapping, False)
        raised = [dataclasses.replace(s, b=s.b + level) for s in fit.solutions]
        return dataclasses.replace(fit, solutions=raised)

    def _unless_tubeless(self, fit: Fit, training: Training, target: Vector) -> Fit:
        """The fit, or that of no tube where this proves more: epsilon is 0 then.

        Where a function meets all targets, and C is large, most of the sum of alpha is
        pairs that cancel, which leave few digits for what they differ by. The dual is
        the one of epsilon = 0 where that has a smaller sum: for no epsilon >= 0 is the
        objective below it.
        """
        found, size = fit.solutions[0], float(np.abs(target).max(initial=0.0))
        ended = found.status in (Status.STALLED, Status.ALMOST_SOLVED)
        if not (ended and found.is_convex and abs(found.rho) <= NO_TUBE * size):
            return fit
        if training.limits.checkpoint is not None or training.limits.is_late:
            return fit
        form: Any = {"kernel": training.recipe.kernel}
        form |= {"memory_limit": self.memory_limit}

        def make(rows: Rows, y: Signs, C: ArrayLike) -> Problem:
            return regression_problem(rows, target, C, 0.0, "hinge", "free", **form)

        recipe = dataclasses.replace(training.recipe, make=make, nu=None)
        other = exact(dataclasses.replace(training, recipe=recipe))
        (one,), most = other.solutions, float(self.nu) * training.weight(0)
        is_proof = one.is_convex and float(one.alpha.sum()) <= SURELY * most
        if is_proof and proves_more(one, found):
            return other.because("with no tube")
        if one.status is Status.INTERRUPTED:  # no press is lost
            fit = dataclasses.replace(fit, solutions=[found.changed(status=one.status)])
        return fit

    def _keep(self, fit: Fit) -> None:
        self.epsilon_ = max(0.0, -fit.solutions[0].rho)
        super()._keep(fit)
        facts = {"nu": float(self.nu), "epsilon": self.epsilon_, "svm_type": "nu_svr"}
        self._meta |= facts


def _from_level(target: Vector, C: Any) -> tuple[float, Vector]:
    """A level, and targets from there on: all zero where rows with a weight have one.

    That is the intercept then. Bounds of an optimum of zero, relative to the targets,
    would be smaller than what these leave of the sums by rounding.
    """
    own = target if np.ndim(C) == 0 else target[np.asarray(C) > 0.0]
    if len(own) and (own == own[0]).all():
        return float(own[0]), np.zeros(len(target))
    return 0.0, target
