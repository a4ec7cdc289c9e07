"""LinearSVR: linear regression that forgives errors up to epsilon."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from widemargin.arrays import Vector
from widemargin.data.row_vector import RowVector
from widemargin.data.rows import Rows
from widemargin.estimators.certified import OfWeights
from widemargin.estimators.checks import check_fit_intercept, intercept_of
from widemargin.estimators.functions import keep_coefficients
from widemargin.estimators.plans import Fit, exact
from widemargin.estimators.regressor import Regressor, loss_name, regression_model
from widemargin.estimators.training import (
    Recipe,
    Signs,
    Training,
)
from widemargin.models.decisions import Decisions
from widemargin.models.model import Model
from widemargin.parameters import Checker
from widemargin.problems.base import Problem
from widemargin.problems.regression import (
    coefficients,
    margins,
    regression_problem,
)
from widemargin.solution import Step
from widemargin.solvers.driver.contract import Solver


class LinearSVR(OfWeights, Regressor):
    """Linear support vector regression with a certified duality gap.

    Minimizes, for targets y_i,

        1/2 (w'w + p b^2) + C sum_i s_i L(abs(y_i - x_i'w - b) - epsilon),

    with L(t) = max(0, t) or max(0, t)^2, sample weights s_i, and p = 0 (free
    intercept), p = 1 (penalized) or b = 0 (none).

    Parameters
    ----------
    epsilon : float >= 0, default=0.0
        Errors up to this cost nothing, in the units of y.
    tol : float in (0, 1], default=1e-4
        Relative duality gap (P - D) / P: the minimum is at most this share below P. P
        counts as at least 1e-10 of the objective of w = 0 and b = 0, as the minimum may
        be zero.
    C : float > 0, default=1.0
        Weight of the losses against the norm of w. inf allows no loss: errors are at
        most epsilon > 0, the same for both losses. Where no model can do that
        ``status_`` is "infeasible".
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}
        The first one is the default. The square has no factor 1/2, as in LIBLINEAR.
    fit_intercept : bool, default=True
        False is ``intercept="none"``.
    intercept : {"auto", "free", "penalized", "none"}, default="auto"
        "auto" is free for the first loss (the problem of LIBSVM and `sklearn.svm.SVR`)
        and penalized for its square. LIBLINEAR and `sklearn.svm.LinearSVR` penalize it
        for both.
    solver : str or Solver, default="auto"
        "auto", "batch" (few entries: else refused), "active_set" (squared loss),
        "augmented_lagrangian" (the other), "coordinate_descent", "interior_point", or
        an object that carries its own options.
    dual : {"auto", True, False}, default="auto"
        For code that was written for `sklearn.svm.LinearSVR`. It has no influence.
    verbose : int, default=0
        1 shows the progress on standard error.
    random_state : int >= 0, RandomState or None, default=None
        Seed of solvers that visit rows in random order (coordinate descent).
    max_iter : int >= 1 or None, default=None
        Iterations; None: the solver's own.
    time_limit : float > 0 in seconds, or None, default=None
        Of the whole fit, without the time of callbacks; half a second more for a
        certificate.
    memory_limit : int >= 16384 in bytes, or None, default=None
        For temporary arrays of a sweep. The data and about 400 bytes a row come on top.
        Rows of `open_rows` have a limit of their own, which covers everything.
    n_jobs : int or None, default=None
        Threads. None: as many as BLAS may use at the moment (all cores, or fewer inside
        joblib). The answer does not depend on it.
    callback : callable or None, default=None
        Called with each `widemargin.solution.Step`; returning True stops the fit.
    checkpoint : str, path-like, `widemargin.Checkpoint` or None, default=None
        As of `LinearSVC`.

    Attributes
    ----------
    coef_ : ndarray (n,)
    intercept_ : ndarray (1,)
    support_ : ndarray of the rows whose error is epsilon or more
    support_vectors_ : ndarray or CSR array (n_sv, n), these rows as stored, copied as
        of `LinearSVC`
    n_support_ : ndarray (1,)
    dual_coef_ : ndarray (1, n_sv), positive where the prediction is too small
    n_iter_ : int
    seconds_ : float, time of the whole fit, without callbacks
    dual_gap_ : float, the certified relative gap
    status_ : str
    solution_, solutions_ : Solution of the problem of two rows for each sample; list
        of it alone
    n_features_in_ : int
    feature_names_in_ : ndarray (n,), where X had column names

    See Also
    --------
    SVR : with a kernel.

    Notes
    -----
    A row with sample weight 0 counts as removed, one of weight 2 as two rows. The data
    are read once for both rows of a sample.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from widemargin import LinearSVR
    >>> X, y = make_regression(200, 5, noise=1.0, random_state=0)
    >>> reg = LinearSVR(C=10.0, epsilon=0.5).fit(X, y)
    >>> reg.status_, reg.dual_gap_ <= 1e-4, round(reg.score(X, y), 2)
    ('solved', True, 1.0)
    """

    _takes_collections = True

    def __init__(
        self,
        *,
        epsilon: float = 0.0,
        tol: float = 1e-4,
        C: float = 1.0,
        loss: str = "epsilon_insensitive",
        fit_intercept: bool = True,
        intercept: str = "auto",
        solver: str | Solver = "auto",
        dual: str | bool = "auto",
        verbose: int = 0,
        random_state: Any = None,
        max_iter: int | None = None,
        time_limit: float | None = None,
        memory_limit: int | None = None,
        n_jobs: int | None = None,
        callback: Callable[[Step], Any] | None = None,
        checkpoint: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.tol = tol
        self.C = C
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept = intercept
        self.solver = solver
        self.dual = dual
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.callback = callback
        self.checkpoint = checkpoint

    def _model(self, meta: dict[str, Any]) -> Model:
        decisions = Decisions(np.reshape(self.coef_, (-1, 1)), self.intercept_)
        return regression_model({"decisions": decisions}, meta)

    # -- parts of fit ------------------------------------------------------------------

    def _check_parameters(self, check: Checker) -> None:
        check_fit_intercept(check, self)
        check.choice("dual", self.dual, ("auto", True, False))

    def _recipe(self, rows: Rows, weights: Vector | None, target: Vector) -> Recipe:
        return linear_recipe(self, target)

    def _plan(self, training: Training, target: Vector) -> Fit:
        return exact(training)

    def _keep(self, fit: Fit) -> None:
        if fit.n_support is None:
            keep_coefficients(self, fit, coefficients(fit.solutions[0].alpha))
        else:
            self.n_support_ = fit.n_support
        self.coef_ = fit.solutions[0].w.copy()  # solutions stay as they are


def linear_recipe(regressor: Any, target: Vector, in_a_row: bool = False) -> Recipe:
    """Problems that are linear in the columns of their rows, for these targets.

    Points have their weights as a vector, or ``in_a_row`` of a matrix.
    """
    epsilon, loss = float(regressor.epsilon), loss_name(regressor)
    intercept = intercept_of(regressor)

    def _make(rows: Rows, y: Signs, C: ArrayLike) -> Problem:
        return regression_problem(rows, target, C, epsilon, loss, intercept)

    def _at(rows: Rows, w: Vector, b: float) -> dict[str, Any]:
        return {"coef_": w[np.newaxis] if in_a_row else w, "intercept_": np.array([b])}

    # Margins beside rows of a cluster are for the solvers of one problem only.
    q = None if isinstance(target, RowVector) else margins(target, epsilon)
    return Recipe(_make, _at, regressor.solver, form=(loss, intercept), q=q)
