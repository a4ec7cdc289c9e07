"""OneClassSVM: where the data are, as a half-space of features; finds outliers."""

import dataclasses
import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils.validation import check_is_fitted

from widemargin.arrays import Vector
from widemargin.data.rows import Rows
from widemargin.estimators import labels
from widemargin.estimators.callbacks import with_callbacks
from widemargin.estimators.certified import checksum_of, facts_of_model
from widemargin.estimators.checks import check_limits, read_rows
from widemargin.estimators.functions import (
    fit_function,
    function_parts,
    function_point,
    keep_function,
    store_function,
)
from widemargin.estimators.kernel_machines import (
    FUNCTION_PARTS,
    WeightsOfKernel,
    check_kernel_of,
    set_kernel,
)
from widemargin.estimators.low_rank import LINEAR, Mapping, check_nu_rank
from widemargin.estimators.machine import Machine
from widemargin.estimators.made_once import made_once
from widemargin.estimators.multiclass import one_task
from widemargin.estimators.no_margin import without_margin
from widemargin.estimators.plans import Fit, exact, low_rank
from widemargin.estimators.training import (
    Recipe,
    Signs,
    Training,
    limits_of,
    training_of,
)
from widemargin.kernels.kernel import Kernel
from widemargin.losses.pointwise import Hinge
from widemargin.models.model import Model
from widemargin.models.schemes import ONE_CLASS
from widemargin.numerics.rounding import SLACK
from widemargin.parameters import Checker
from widemargin.problems.base import Problem
from widemargin.problems.nu import nu_mass, nu_problem, with_squares
from widemargin.problems.sums import level
from widemargin.solution import Solution, Step
from widemargin.solvers.driver.checkpoint import Checkpoint
from widemargin.solvers.driver.contract import Solver

# Share of rho that it is rounded down by, so that rows on the boundary are inside: the
# scores of free support vectors are rho, but for rounding. They were off by 1e-13 of it
# in 15 rows. And of what is left of the gap that is asked for, what that may cost.
OUTWARD, COST = 1e-11, 0.5


class OneClassSVM(
    Machine,
    OutlierMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """One-class machine with a certified duality gap: a detector of outliers.

    Finds the hyperplane that separates the data from the origin best: it minimizes, for
    features with phi(x)'phi(z) = k(x, z),

        1/2 w'w - nu S rho + sum_i s_i max(0, rho - phi(x_i)'w),    S = sum_i s_i,

    with sample weights s_i. Rows with phi(x)'w < rho are outliers: at most a share nu
    of the rows, by their weights. At least as large a share are support vectors.

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
        Relative duality gap (P - D) / abs(P). The optimum is negative, or 0 where the
        origin cannot be separated: abs(P) counts as at least 1e-10 of the largest
        (nu S)^2 k(x, x).
    nu : float in (0, 1], default=0.5
        See above.
    rank : int >= 1, float in (0, 1) or None, default=None
        Rank of the kernel matrix that takes the place of K, as of `SVC`. None: K
        itself.
    approximation : str, default="auto"
        How, as of `SVC`.
    solver : {"auto", "batch", "irwls"} or Solver, default="auto"
        "auto": pair steps in float32, "batch", for few rows, else "irwls"; or an
        `IRWLS` with options.
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
    offset_ : ndarray (1,), rho, rounded down as far as ``tol`` allows, so that rows on
        the boundary are inside; ``decision_function`` is ``score_samples`` -
        ``offset_``
    intercept_ : ndarray (1,), ``-offset_``
    support_ : ndarray of the rows with a positive dual variable
    support_vectors_ : ndarray or CSR array (n_sv, n); empty for "precomputed". Copied
        as of `SVC`.
    n_support_ : ndarray (1,)
    dual_coef_ : ndarray (1, n_sv), a CSR array where X is sparse: their dual variables,
        of sum nu S
    coef_ : ndarray (1, n), of kernel="linear"; read-only
    kernel_ : Kernel, with gamma as a number
    gamma_ : float
    feature_map_ : the map, where there is a rank
    n_iter_ : int
    seconds_ : float, time of the whole fit, without callbacks
    dual_gap_ : float, the certified relative gap, of the problem of low rank if any
    status_ : str; "no_margin": see the notes
    solution_, solutions_ : Solution; list of it alone
    n_features_in_ : int
    feature_names_in_ : ndarray (n,), where X had column names

    See Also
    --------
    EnclosingBall : the smallest ball around the data. With a kernel of constant k(x, x)
        ("rbf") both find the same with the same losses; those of the ball are squares.

    Notes
    -----
    A row with sample weight 0 counts as removed, of weight 2 as two rows; also for
    gamma, unlike in scikit-learn. Problems of up to 4,000 rows (16,000 with at most 32
    columns) are solved by pair steps in float32; larger problems, and the last
    digits of all with tol < 1e-8, by working sets.

    Where nu is so small that the origin is among the rows (inside their reduced hull),
    as of centered rows with a linear kernel, the optimum is zero: ``status_`` is
    "no_margin", a ConvergenceWarning says so, and predictions mean nothing.

    With a rank the solvers are the same: each column of the kernel matrix takes m r
    multiplications, so that a fit is faster only where a value of the kernel takes
    more. That is why there is no rank="auto". A prediction takes r kernel values.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import OneClassSVM
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> machine = OneClassSVM(nu=0.05).fit(X)
    >>> machine.predict([[0.0, 0.0], [5.0, 5.0]])
    array([ 1, -1])
    >>> round(float(np.mean(machine.predict(X) < 0)), 2)
    0.05
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
        nu: float = 0.5,
        rank: float | None = None,
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
        self.nu = nu
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

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(
        self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Train on the rows of X.

        Parameters
        ----------
        X : array, sparse matrix or Rows (m, n)
            float32, float64 and integers are used as they are. Rows of `open_rows`
            need a rank. For kernel="precomputed" the kernel values of all pairs of
            rows, (m, m).
        y : None, not used: scikit-learn passes it
        sample_weight : array (m,) of numbers >= 0, or None
            Rows of negative weight are left out, with a warning.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            A parameter out of range, NaN or infinity. The estimator keeps the model of
            an earlier fit.
        KeyboardInterrupt
            After Ctrl-C, with the best model kept.
        MemoryError
            There was too little memory. With the best model kept, if there is one.

        Warns
        -----
        ConvergenceWarning
            The gap asked for was not reached; says how far it is and what helps.
        UserWarning
            Rows of negative weight were left out.
        RuntimeWarning
            The kernel was seen not to be positive semidefinite: the answer is a
            stationary point, and its gap proves nothing.
        """
        fit_function(self, lambda: self._found(X, y, sample_weight))
        return self

    def decision_function(self, X: Any) -> Vector:
        """The score less ``offset_``: negative for outliers.

        Parameters
        ----------
        X : array, sparse matrix or Rows (k, n)
            For kernel="precomputed" the values with the rows of the fit, (k, m).

        Returns
        -------
        ndarray (k,)
        """
        model = self.model_  # refuses an estimator that is not fitted
        return model.scores(read_rows(self, X))

    def score_samples(self, X: Any) -> Vector:
        """The scores phi(x)'w: larger is more normal.

        Parameters
        ----------
        X : array, sparse matrix or Rows (k, n), as of `decision_function`

        Returns
        -------
        ndarray (k,)
        """
        scores = self.decision_function(X)
        scores += float(self.offset_[0])
        return scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Whether rows are like those of the fit: 1, or -1 for outliers.

        Parameters
        ----------
        X : array, sparse matrix or Rows (k, n), as of `decision_function`

        Returns
        -------
        ndarray (k,) of int
        """
        model = self.model_
        return model.labels(read_rows(self, X))

    @property
    def model_(self) -> Model:
        """What `widemargin.save_model` writes: the decision function.

        The same until a fit or an assignment changes an attribute that it is made of.
        """
        check_is_fitted(self)
        return made_once(self, FUNCTION_PARTS, lambda: _made(self))

    # -- parts of fit ------------------------------------------------------------------

    def _check(self) -> None:
        """Refuse parameters out of range."""
        check = Checker(type(self).__name__)
        check.positive("nu", self.nu, most=1.0)
        check_limits(check, self)
        Checkpoint.of(self.checkpoint, type(self).__name__)
        check_kernel_of(check, self)
        check_nu_rank(check, self)

    def _found(self, X: Any, y: Any, sample_weight: Any) -> Fit:
        """The solution for these data."""
        owner, limits = type(self).__name__, limits_of(self)
        rows = read_rows(self, X, reset=True)
        m = rows.shape[0]
        check = Checker(f"{owner}.fit")
        weights = labels.as_weights(check, sample_weight, m, self._leaves_out_negative)
        given = None
        if sample_weight is not None:
            given = weights = with_squares(weights)
        kernel = set_kernel(self, rows, given)
        recipe = self._recipe(kernel, weights)
        C = 1.0 if given is None else weights
        one = np.zeros(m, np.int8), C, one_task(), recipe
        with training_of(self, limits, (X, y, sample_weight), rows, *one) as training:
            found = self._found_for(training, weights)
        mass = nu_mass(float(self.nu), np.ones(m), weights)
        outward = [_outward(solution, mass) for solution in found.solutions]
        found = dataclasses.replace(found, solutions=outward)
        reason = "no function tells the rows from the origin, which is among them"
        return without_margin(found, float(self.nu), reason)

    def _found_for(self, training: Training, weights: Vector) -> Fit:
        """The solution of the kernel, or of a rank."""
        if self.rank is None:
            return exact(training)
        finish = functools.partial(_levels, float(self.nu), weights)
        linear = self._recipe(LINEAR, weights)
        mapping = Mapping(self.rank, self.approximation, linear, finish=finish)
        return low_rank(training, mapping, False)

    def _recipe(self, kernel: Kernel, weights: Vector) -> Recipe:
        """How the problem is made, and how a point of it predicts."""
        nu = float(self.nu)
        options: Any = {"kernel": kernel, "memory_limit": self.memory_limit}

        def make(rows: Rows, y: Signs, C: ArrayLike) -> Problem:
            return nu_problem(rows, y, C, nu, **options)

        at = functools.partial(_point, kernel, nu, weights)
        return Recipe(make, at, self.solver, kernel, ("hinge", "none"), nu=nu)

    def _store(self, fit: Fit) -> None:
        """Keep the answer, and facts about the training as it was."""
        facts = {"loss": "hinge", "nu": float(self.nu), "svm_type": "one_class"}
        store_function(self, fit.solutions, facts)
        self.offset_ = np.array([self.solution_.rho])
        self.intercept_ = -self.offset_
        keep_function(self, fit, self.solution_.alpha)
        self._certified = checksum_of(self)


def _outward(solution: Solution, mass: float) -> Solution:
    """The solution with rho rounded down, as it predicts, and the bounds of that.

    P rises by ``mass`` times as much at most: losses only fall. A solved fit stays one,
    and a margin that is proved stays so. Of other fits the scores of free support
    vectors are farther from rho than rounding.
    """
    bounds, rho = solution.certificate, solution.rho
    left = solution.tol * max(abs(bounds.primal), bounds.scale) - bounds.gap
    most = COST * min(left, -bounds.primal) / mass
    if not most > 0.0:
        return solution
    lower = rho - min(OUTWARD * abs(rho), most)
    cost = SLACK * mass * (rho - lower)
    primal = float(np.nextafter(bounds.primal + cost, np.inf))
    proved = dataclasses.replace(bounds, primal=primal)
    return solution.changed(rho=lower, certificate=proved)


def _point(
    kernel: Kernel, nu: float, weights: Vector, rows: Rows, w: Vector, b: float
) -> dict[str, Any]:
    """Attributes with which a point of the problem predicts, with its best rho."""
    found = function_point(kernel, rows, w, b)
    n = rows.shape[1]
    model = _made(SimpleNamespace(kernel_=kernel, n_features_in_=n, _meta={}, **found))
    return found | _levels(nu, weights, model.scores(rows))


def _levels(nu: float, weights: Vector, scores: Vector) -> dict[str, Any]:
    """The best rho for the scores of the rows, as attributes."""
    mass = nu_mass(nu, np.ones(len(weights)), weights)
    rho = level(-scores, weights, mass, Hinge())
    return {"intercept_": np.array([-rho]), "offset_": np.array([rho])}


def _made(fitted: Any) -> Model:
    """The model of the attributes of an estimator as they are."""
    parts, meta = function_parts(fitted), facts_of_model(fitted)
    if "offset_" in vars(fitted):
        meta["offset"] = float(fitted.offset_[0])
    return Model(np.array([-1, 1]), ONE_CLASS, meta=meta, **parts)
