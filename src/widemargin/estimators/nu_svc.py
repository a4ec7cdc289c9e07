"""NuSVC: classifiers whose share of errors and of support vectors is given."""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from widemargin.arrays import Vector
from widemargin.data.rows import Rows
from widemargin.estimators.classifier import iterations
from widemargin.estimators.kernel_machines import (
    WeightsOfKernel,
    check_kernel_of,
    keep_machines,
    kernel_model,
    kernel_point,
    set_kernel,
)
from widemargin.estimators.low_rank import (
    LINEAR,
    Mapping,
    check_nu_rank,
    facts_of,
)
from widemargin.estimators.multiclass import BinaryTasks
from widemargin.estimators.no_margin import without_margin
from widemargin.estimators.plans import Fit, exact, low_rank
from widemargin.estimators.probability import (
    NOT_GIVEN,
    ProbabilityMixin,
    check_probability,
)
from widemargin.estimators.training import (
    Recipe,
    Signs,
    Training,
)
from widemargin.kernels.kernel import Kernel
from widemargin.models.model import Model
from widemargin.parameters import Checker
from widemargin.problems.base import Problem
from widemargin.problems.nu import largest_nu, nu_problem, with_squares
from widemargin.solution import Solution, Status, Step
from widemargin.solutions import Solutions, columns_of, dual_variables
from widemargin.solvers.driver.contract import Solver

# To so many parts a largest nu is told, rounded down.
PARTS_TOLD = 10**6


class NuSVC(ProbabilityMixin):
    """Support vector classifier with nu in the place of C, and a certified gap.

    Minimizes, for labels y_i of +1 and -1 and features with phi(x)'phi(z) = k(x, z),

        1/2 w'w - nu S rho + sum_i s_i max(0, rho - y_i (phi(x_i)'w + b)),

    with weights s_i, sample_weight times class_weight, their sum S, and a margin rho
    that is a variable. At most a share nu of the rows, by their weights, is on the
    wrong side of the margin, and at least as large a share are support vectors. The
    decision function is (phi(x)'w + b) / rho, as that of `SVC` with C = 1 / rho. More
    than two classes are trained one against one.

    Parameters
    ----------
    nu : float in (0, 1], default=0.5
        See above. It is feasible up to twice the share, by weight, of the smaller one
        of two classes; a larger one is refused.
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
    probability : bool, default="deprecated"
        For code that was written for `sklearn.svm.NuSVC`, with its FutureWarning. True:
        five folds are trained, too, and sigmoids of their decision values on held-out
        rows make `predict_proba`: what ``CalibratedClassifierCV(NuSVC(),
        ensemble=False)`` does. A class needs five rows for that.
    tol : float in (0, 1], default=1e-4
        Relative duality gap (P - D) / abs(P). The optimum is negative, or 0 where no
        margin exists: abs(P) counts as at least 1e-10 of the largest (nu S)^2 k(x, x).
    class_weight : dict, "balanced" or None, default=None
        Factors of the weights of the rows, by class; they have no influence on
        gamma="scale". "balanced" makes all classes weigh the same, so that each nu is
        feasible.
    verbose : int, default=0
        1 shows the progress on standard error.
    max_iter : int >= 1 or None, default=None
        Iterations of each binary problem; None: the solver's own.
    time_limit : float > 0 in seconds, or None, default=None
        Of the whole fit, without the time of callbacks; half a second more for a
        certificate.
    memory_limit : int >= 16384 in bytes, or None, default=None
        For kernel values that are kept and for packed samples; None: half of the free
        memory. Also for temporary arrays of a prediction.
    n_jobs : int or None, default=None
        Threads. None: as many as BLAS may use at the moment.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        As of `SVC`.
    break_ties : bool, default=False
        As of `SVC`.
    random_state : int >= 0, RandomState or None, default=None
        Seed of solvers that visit rows in random order.
    callback : callable or None, default=None
        Called with each `widemargin.solution.Step`; returning True stops the fit.
    checkpoint : str, path-like, `widemargin.Checkpoint` or None, default=None
        As of `SVC`.

    Attributes
    ----------
    classes_ : ndarray (c,), the labels
    support_ : ndarray of the rows with a positive dual variable in any problem, sorted
        by class
    support_vectors_ : ndarray or CSR array (n_sv, n), these rows as stored; empty for a
        precomputed kernel; a list where X is a list of objects. Copied as of `SVC`.
    n_support_ : ndarray (c,), support vectors by class
    dual_coef_ : ndarray (c - 1, n_sv), a CSR array where X is sparse, of y_i alpha_i /
        rho, arranged as of `SVC`
    intercept_ : ndarray (c (c - 1) / 2,), b / rho
    coef_ : ndarray (c (c - 1) / 2, n), of kernel="linear"; read-only
    calibrator_ : Calibration, with probability=True only; `model_` has it, too
    kernel_ : Kernel, with gamma as a number
    gamma_ : float, gamma of this kernel
    feature_map_ : the map, where there is a rank
    n_iter_ : int32 ndarray, iterations of each binary problem
    seconds_ : float, time of the whole fit, without callbacks
    dual_gap_ : float, the largest certified relative gap of the binary problems
    status_ : str, "interrupted" after Ctrl-C, else the status of the problem with the
        largest gap of those that are not solved; "no_margin": see the notes
    solution_, solutions_ : Solution of the first binary problem, with ``rho``, and not
        divided by it, which prints what all are together; list of all
    n_features_in_ : int; of a list of objects, their number
    feature_names_in_ : ndarray (n,), where X had column names

    See Also
    --------
    SVC : with C in the place of nu; it has more losses, intercepts and solvers.

    Notes
    -----
    scikit-learn's NuSVC has ``class_weight``, too, but ignores it. Ties of votes,
    weights of 0, kernels that are not positive semidefinite, and what a fit that Ctrl-C
    ends keeps: as of `SVC`. All
    problems of up to 4,000 rows (16,000, if they are many or have at most 32 columns)
    are solved at once by pair steps in float32; larger problems, and the last
    digits of all with tol < 1e-8, by working sets.

    Where nu is too small for classes that overlap, no margin exists, and the optimum
    is zero: ``status_`` is "no_margin", a ConvergenceWarning says so, decision values
    are rounding, not divided by rho, and predictions mean nothing.

    With a rank the solvers are the same: each column of the kernel matrix takes m r
    multiplications, so that a fit is faster only where a value of the kernel takes
    more. That is why there is no rank="auto". A prediction takes r kernel values.
    ``dual_gap_`` and ``solutions_`` speak of the approximate problem, and ``support_``
    and ``dual_coef_`` of landmarks, as of `SVC`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import NuSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = NuSVC(nu=0.2).fit(X, y)
    >>> clf.status_, clf.dual_gap_ <= 1e-4, round(clf.score(X, y), 2)
    ('solved', True, 0.99)
    """

    # What `SVC` has beside nu.
    C, multi_class = 1.0, "ovo"
    loss, intercept = "hinge", "free"
    certify, polish = "approximate", False

    coef_ = WeightsOfKernel()
    _takes_present = _takes_objects = _leaves_out_negative = True
    _said_of_one_class = ": the specified nu is infeasible, as any is"

    def __init__(
        self,
        *,
        nu: float = 0.5,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        rank: float | None = None,
        approximation: str = "auto",
        solver: str | Solver = "auto",
        probability: bool | str = NOT_GIVEN,
        tol: float = 1e-4,
        class_weight: Any = None,
        verbose: int = 0,
        max_iter: int | None = None,
        time_limit: float | None = None,
        memory_limit: int | None = None,
        n_jobs: int | None = None,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        callback: Callable[[Step], Any] | None = None,
        checkpoint: Any = None,
    ) -> None:
        self.nu = nu
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.rank = rank
        self.approximation = approximation
        self.solver = solver
        self.probability = probability
        self.tol = tol
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.callback = callback
        self.checkpoint = checkpoint

    @property
    def model_(self) -> Model:
        """What `widemargin.save_model` writes: classes and decision functions.

        The same until a fit or an assignment changes an attribute that it is made of.
        """
        return kernel_model(self)

    # -- parts of fit ------------------------------------------------------------------

    def _check_parameters(self, check: Checker) -> None:
        check.positive("nu", self.nu, most=1.0)
        check_kernel_of(check, self)
        check_probability(check, self)
        check_nu_rank(check, self)

    def _read(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Rows, NDArray[Any], Any, BinaryTasks, Recipe]:
        rows, index, C, tasks, recipe = super()._read(X, y, sample_weight)
        return rows, index, with_squares(C) if np.ndim(C) else C, tasks, recipe

    def _recipe(self, rows: Rows, weights: Vector | None) -> Recipe:
        return self._recipe_with(set_kernel(self, rows, weights))

    def _recipe_with(self, kernel: Kernel) -> Recipe:
        """Problems with a kernel whose gamma is a number."""
        nu = float(self.nu)
        options: Any = {"kernel": kernel, "memory_limit": self.memory_limit}

        def make(rows: Rows, y: Signs, C: ArrayLike) -> Problem:
            return nu_problem(rows, y, C, nu, **options)

        point = functools.partial(kernel_point, kernel)
        form = self.loss, self.intercept
        return Recipe(make, point, self.solver, kernel, form, nu=nu)

    def _plan(self, training: Training) -> Fit:
        self._refuse_infeasible(training)
        reason = "the classes overlap too much (their reduced hulls meet)"
        found = self._found_for(training)
        fit = without_margin(found, float(self.nu), reason, self._pairs)
        divided, W = _Divided(fit.solutions, training.sizes), fit.weights
        if W is not None:
            W = W / divided.by[:, np.newaxis]
        return dataclasses.replace(fit, reduced=divided, weights=W)

    def _pairs(self) -> list[str]:
        """The names of the classes of each binary problem."""
        classes = map(repr, self.classes_.tolist())
        return [f"{a} and {b}" for a, b in itertools.combinations(classes, 2)]

    def _found_for(self, training: Training) -> Fit:
        """The solutions, which are not yet divided by rho."""
        if self.rank is None:
            return exact(training)
        recipe = self._recipe_with(LINEAR)
        return low_rank(training, Mapping(self.rank, self.approximation, recipe), False)

    def _refuse_infeasible(self, training: Training) -> None:
        """Refuse a nu that a class of too few rows does not allow."""
        C = training.C if np.ndim(training.C) else None  # without weights C is 1
        total = np.bincount(training.index, C, len(self.classes_)).tolist()
        # The smallest and the largest class have the least.
        most = largest_nu(min(total), max(total))
        if self.nu > most * (1.0 + 1e-12):
            # Six digits of a small one, too: rounded down, so that it can be given.
            parts = max(PARTS_TOLD, 10.0 ** (5 - np.floor(np.log10(most))))
            told = np.floor(most * parts) / parts
            share = "share" if C is None else "share, by weight,"
            expected = (
                f"be at most {told:g}, twice the {share} of the smaller one of two "
                "classes (the specified nu is infeasible)"
            )
            Checker(type(self).__name__).refuse_part("nu", expected, f"{self.nu}")

    def _keep(self, fit: Fit) -> None:
        del self._meta["C"]
        self._meta |= {"nu": float(self.nu), "svm_type": "nu_svc"}
        if fit.map is not None:
            self.feature_map_ = fit.map.map
            self._meta |= facts_of(self.feature_map_)
        keep_machines(self, fit)
        self.n_iter_ = iterations(fit)


class _Divided(Solutions):
    """Solutions divided by their rho, where there is a margin: what predicts."""

    def __init__(self, solutions: Sequence[Solution], sizes: Any) -> None:
        found, alpha = columns_of(solutions), dual_variables(solutions)
        self.by = np.where(found.rho > 0.0, found.rho, 1.0)
        if Status.NO_MARGIN in found.statuses:
            has_none = [status is Status.NO_MARGIN for status in found.statuses]
            self.by[has_none] = 1.0
        columns = dataclasses.replace(found, b=found.b / self.by)
        super().__init__(columns, alpha / np.repeat(self.by, sizes), None)
        self._solutions = solutions

    def _make(self, k: int) -> Solution:
        """The solution of problem k."""
        one, by = self._solutions[k], float(self.by[k])
        return one.changed(alpha=one.alpha / by, w=one.w / by, b=one.b / by)
