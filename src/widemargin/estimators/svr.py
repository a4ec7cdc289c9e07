"""SVR: regression with a kernel."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from widemargin.arrays import Vector
from widemargin.data.rows import Rows
from widemargin.estimators.certified import facts_of_model
from widemargin.estimators.functions import (
    function_parts,
    function_point,
    keep_function,
)
from widemargin.estimators.kernel_machines import (
    FUNCTION_PARTS,
    WeightsOfKernel,
    check_kernel_of,
    set_kernel,
)
from widemargin.estimators.linear_svr import linear_recipe
from widemargin.estimators.low_rank import Mapping, check_rank
from widemargin.estimators.made_once import made_once
from widemargin.estimators.plans import Fit, exact, in_time, low_rank
from widemargin.estimators.regressor import Regressor, loss_name, regression_model
from widemargin.estimators.training import (
    Recipe,
    Signs,
    Training,
)
from widemargin.kernels.kernel import Kernel
from widemargin.models.model import Model
from widemargin.parameters import Checker
from widemargin.problems.base import Problem
from widemargin.problems.regression import (
    coefficients,
    margins,
    regression_problem,
)
from widemargin.solution import Step
from widemargin.solvers import auto
from widemargin.solvers.driver.contract import Solver


class SVR(Regressor):
    """Support vector regression with a kernel and a certified duality gap.

    Minimizes, for targets y_i and features with phi(x)'phi(z) = k(x, z),

        1/2 (w'w + p b^2) + C sum_i s_i L(abs(y_i - phi(x_i)'w - b) - epsilon),

    with L(t) = max(0, t) or max(0, t)^2, sample weights s_i, and p = 0 (free
    intercept), p = 1 (penalized) or b = 0 (none).

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        As of `SVC`: "linear", "poly", "rbf", "sigmoid", "laplacian", "chi2",
        "precomputed", or a function of two matrices that returns their kernel values.
    degree : int >= 1, default=3
        Of "poly".
    gamma : float > 0 or {"scale", "auto", "mean_distance"}, default="scale"
        As of `SVC`.
    coef0 : float, default=0.0
        Of "poly" and "sigmoid".
    tol : float in (0, 1], default=1e-4
        Relative duality gap (P - D) / P: the minimum is at most this share below P. P
        counts as at least 1e-10 of the objective of w = 0 and b = 0, as the minimum may
        be zero.
    C : float > 0, default=1.0
        Weight of the losses against the norm of w. inf allows no loss: errors are at
        most epsilon > 0, the same for both losses. Where no model can do that
        ``status_`` is "infeasible".
    epsilon : float >= 0, default=0.1
        Errors up to this cost nothing, in the units of y.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}
        The first one, the loss of LIBSVM and `sklearn.svm.SVR`, is the default. The
        square has no factor 1/2.
    intercept : {"auto", "free", "penalized", "none"}, default="auto"
        "auto" is free for the first loss (the problem of LIBSVM and `sklearn.svm.SVR`)
        and penalized for its square.
    rank : int >= 1, float in (0, 1), "auto" or None, default=None
        Rank of the kernel matrix that takes the place of K, as of `SVC`. None: K
        itself.
    approximation : str, default="auto"
        How, as of `SVC`.
    solver : str or Solver, default="auto"
        "auto", "batch" (few rows: else refused), "irwls", or an object that carries its
        own options. For kernel="linear" also the solvers of `LinearSVR`, which "auto"
        prefers there; with a rank only these.
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
        Seed of landmarks and random features, where None is 0, and of solvers that
        visit rows in random order.
    callback : callable or None, default=None
        Called with each `widemargin.solution.Step`; returning True stops the fit.
    checkpoint : str, path-like, `widemargin.Checkpoint` or None, default=None
        As of `SVC`.

    Attributes
    ----------
    support_ : ndarray of the rows whose error is epsilon or more
    support_vectors_ : ndarray or CSR array (n_sv, n); empty for "precomputed". Copied
        as of `SVC`.
    n_support_ : ndarray (1,)
    dual_coef_ : ndarray (1, n_sv), a CSR array where X is sparse; positive where the
        prediction is too small
    coef_ : ndarray (1, n), of kernel="linear"; read-only. The certificate is of it,
        and the sum that ``dual_coef_`` makes is only near: see `SVC`
    intercept_ : ndarray (1,)
    kernel_ : Kernel, with gamma as a number
    gamma_ : float
    feature_map_ : the map, where the model is of low rank
    n_iter_ : int
    seconds_ : float, time of the whole fit, without callbacks
    dual_gap_ : float, the certified relative gap, of the problem of low rank if any
    status_ : str
    solution_, solutions_ : Solution of the problem of two rows for each sample; list
        of it alone
    n_features_in_ : int
    feature_names_in_ : ndarray (n,), where X had column names

    See Also
    --------
    LinearSVR : linear in the columns, also for rows in files.

    Notes
    -----
    Each sample is two rows of a classification with margins of its own, which share
    their kernel values. With a rank of landmarks ``support_`` are these, and
    ``dual_coef_`` their coefficients.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from widemargin import SVR
    >>> X, y = make_friedman1(200, random_state=0)
    >>> reg = SVR(C=100.0).fit(X, y)
    >>> reg.status_, reg.dual_gap_ <= 1e-4, round(reg.score(X, y), 2)
    ('solved', True, 1.0)
    """

    certify, polish = "approximate", False  # what `SVC` has beside a rank
    coef_ = WeightsOfKernel()
    _takes_present = _takes_objects = _leaves_out_negative = True

    def __init__(
        self,
        *,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        tol: float = 1e-4,
        C: float = 1.0,
        epsilon: float = 0.1,
        loss: str = "epsilon_insensitive",
        intercept: str = "auto",
        rank: float | str | None = None,
        approximation: str = "auto",
        solver: str | Solver = "auto",
        verbose: int = 0,
        max_iter: int | None = None,
        time_limit: float | None = None,
        memory_limit: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        callback: Callable[[Step], Any] | None = None,
        checkpoint: Any = None,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
        self.epsilon = epsilon
        self.loss = loss
        self.intercept = intercept
        self.rank = rank
        self.approximation = approximation
        self.solver = solver
        self.verbose = verbose
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback
        self.checkpoint = checkpoint

    @property
    def model_(self) -> Model:
        """What `widemargin.save_model` writes: the function that predicts.

        The same until a fit or an assignment changes an attribute that it is made of.
        """
        check_is_fitted(self)
        return made_once(self, FUNCTION_PARTS, self._made)

    # -- parts of fit ------------------------------------------------------------------

    def _check_parameters(self, check: Checker) -> None:
        check_kernel_of(check, self)
        check_rank(check, self)

    def _recipe(self, rows: Rows, weights: Vector | None, target: Vector) -> Recipe:
        kernel = set_kernel(self, rows, weights)
        if not self._has_kernel_solver:
            recipe = linear_recipe(self, target, in_a_row=True)
            return dataclasses.replace(recipe, to_digits=True)
        return self._recipe_with(kernel, float(self.epsilon), target)

    def _recipe_with(self, kernel: Kernel, epsilon: float, target: Vector) -> Recipe:
        """The problem with a kernel, whose gamma is a number, and a width."""
        loss = loss_name(self)
        options: Any = {"kernel": kernel, "memory_limit": self.memory_limit}

        def make(rows: Rows, y: Signs, C: ArrayLike) -> Problem:
            form = epsilon, loss, self.intercept
            return regression_problem(rows, target, C, *form, **options)

        at, form = functools.partial(function_point, kernel), (loss, self.intercept)
        q = margins(target, epsilon)
        return Recipe(make, at, self.solver, kernel, form, q)

    @property
    def _has_kernel_solver(self) -> bool:
        """Whether a kernel solver is needed: not if linear solvers can do it."""
        return self.kernel != "linear" or auto.is_of_kernels(self.solver)

    def _plan(self, training: Training, target: Vector) -> Fit:
        if self.rank is None:
            return exact(training)
        recipe = linear_recipe(self, target)
        if self.rank == "auto":  # the solver is for the exact problem
            recipe = dataclasses.replace(recipe, solver="auto")
        given = self.rank != "auto"
        mapping = Mapping(self.rank, self.approximation, recipe, given)
        plan = low_rank if given else in_time
        return plan(training, mapping, False)

    def _made(self) -> Model:
        """The model of the attributes as they are."""
        return regression_model(function_parts(self), facts_of_model(self))

    def _keep(self, fit: Fit) -> None:
        keep_function(self, fit, coefficients(fit.solutions[0].alpha))
