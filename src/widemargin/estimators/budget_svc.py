"""BudgetSVC: kernel classifiers of bounded size, and those of Dekel and Singer."""

import copy
import dataclasses
import functools
import warnings
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from widemargin.arrays import Vector
from widemargin.data.rows import Rows
from widemargin.estimators.checks import seed_of, users_level
from widemargin.estimators.classifier import Classifier
from widemargin.estimators.kernel_machines import (
    check_kernel_of,
    keep_machines,
    kernel_model,
    kernel_point,
    set_kernel,
)
from widemargin.estimators.plans import Fit, exact, reduced
from widemargin.estimators.training import (
    Recipe,
    Training,
)
from widemargin.losses.norms import BudgetL1, BudgetL2, LossNorm
from widemargin.models.model import Model
from widemargin.parameters import Checker, is_integer
from widemargin.problems.base import Problem
from widemargin.reduction.reduce import Reduced, prune_path, reduce_path
from widemargin.solution import Solution, Step

METHODS = ("pursuit", "prune", "norm")
NORMS = {"l1": BudgetL1, "l2": BudgetL2}
# The coefficients of few support vectors are refitted to this gap, which is small
# beside what leaving out the others costs.
REFIT = 1e-3


class BudgetSVC(Classifier):
    """Support vector classifier of at most B support vectors a binary problem.

    ``method="pursuit"``: the usual machine is solved, B rows J are chosen by matching
    pursuit on its decision function, and

        1/2 beta'K_JJ beta + C sum_i s_i L(1 - y_i (sum_j beta_j k(x_i, x_j) + b))

    is minimized over beta and b for all rows; L is the hinge ("l1") or its square
    ("l2").

    ``method="norm"`` is the machine of Dekel and Singer, which minimizes

        1/2 ``|f|^2`` + C N(xi),   y_i (f(x_i) + b) >= 1 - xi_i,   xi >= 0,

    where N is the sum of the B largest losses ("l1"), the interpolation norm
    K(2, inf, sqrt(B)) of about the length of the B largest ("l2"), or another norm.
    **This B is no bound of the size of the model**: at most B dual variables are at
    their bound, and where the cap binds (``cap_active_``) at least B rows are support
    vectors. That is the nu machine with nu = B / m.

    ``method="prune"`` is their pruning: of that machine the B largest dual variables
    are kept, with the best b. It is far less accurate than "pursuit".

    Parameters
    ----------
    budget : int >= 2, float in (0, 1) or None, default=100
        B, or the share of the rows of each binary problem. With B at least the number
        of rows there is no cap; with a larger B a UserWarning says so. None goes with
        ``method="norm"`` and a `LossNorm` as ``norm``, which needs no B.
    C : float > 0, default=1.0
        Weight of the losses.
    method : {"pursuit", "prune", "norm"}, default="pursuit"
        Which machine, see above.
    norm : {"l1", "l2"} or LossNorm, default="l1"
        The losses, see above. "pursuit" takes no `widemargin.losses.LossNorm`.
        `Mahalanobis` is for some tens of rows in their order, `PNorm` for some
        hundreds.
    total : bool, default=False
        Not with "norm": B is the number of support vectors of all binary problems
        together. Each problem gets an equal part, at least one.
    kernel, gamma, degree, coef0 : as of `SVC`
    class_weight, multi_class, decision_function_shape, break_ties : as of `SVC`
    tol, max_iter, time_limit, memory_limit : as of `SVC`
    n_jobs : as of `SVC`
    random_state : int >= 0, RandomState or None, default=None
        Seed of the draw of candidates with "pursuit", where there are more than 8,192
        rows; None: 0.
    verbose, callback, checkpoint : as of `SVC`

    Attributes
    ----------
    cap_active_ : bool ndarray (k,), whether the cap binds, for each binary problem;
        with "pursuit", whether support vectors were left out
    theta_ : ndarray (k,), multiplier of the cap: margins are 1 - theta where it binds
    ridge_ : ndarray (k,), multiplier of the ball of "l2"; zero else
    pruned_ : int ndarray (k,), how many fewer support vectors the model has than the
        machine that was solved; zero with "norm"
    primal_ : ndarray (k,), objective of the model
    increase_ : ndarray (k,), how far ``primal_`` may be above the optimum of the
        problem without a cap on support vectors, as a share: a certified upper bound
    dual_gap_ : float, certified relative gap of the problem before support vectors
        are left out
    solution_, solutions_ : Solution, before support vectors are left out
    classes_, support_, support_vectors_, n_support_, dual_coef_, intercept_ : as of
        `SVC`; with "pursuit" the coefficients have any sign
    kernel_, gamma_, n_iter_, status_, n_features_in_, feature_names_in_ : as of `SVC`
    seconds_ : as of `SVC`; a `path` of "pursuit" gives all budgets the same time

    See Also
    --------
    SVC : without a budget.
    widemargin.reduction.reduce.reduce : what "pursuit" does.

    Notes
    -----
    Ctrl-C ends the solving of the machine, and the answer so far is still reduced; a
    second Ctrl-C may leave no model.

    Where the cap binds, decision values of "norm" have margins of 1 - theta; `predict`
    uses their signs.

    References
    ----------
    [dekel2006]_. That B is no bound of the number of support vectors:
    docs/explanation/budgets.md.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from widemargin import BudgetSVC
    >>> X, y = make_moons(500, noise=0.2, random_state=0)
    >>> clf = BudgetSVC(budget=20).fit(X, y)
    >>> len(clf.support_), bool(clf.score(X, y) > 0.95)
    (20, True)
    """

    _advice_too: ClassVar[dict[str, str]] = {"solver": "; 'method' says how it cuts"}

    _takes_present = True

    def __init__(
        self,
        *,
        budget: float | None = 100,
        C: float = 1.0,
        method: str = "pursuit",
        norm: str | LossNorm = "l1",
        total: bool = False,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        class_weight: Any = None,
        multi_class: str = "ovo",
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        tol: float = 1e-4,
        max_iter: int | None = None,
        time_limit: float | None = None,
        memory_limit: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callback: Callable[[Step], Any] | None = None,
        checkpoint: Any = None,
    ) -> None:
        self.budget = budget
        self.C = C
        self.method = method
        self.norm = norm
        self.total = total
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback
        self.checkpoint = checkpoint

    @property
    def loss(self) -> str:
        """The loss of which a sum is minimized with "pursuit"."""
        squared = self.method == "pursuit" and self.norm == "l2"
        return "squared_hinge" if squared else "hinge"

    def path(
        self,
        X: Any,
        y: ArrayLike,
        budgets: Sequence[float],
        sample_weight: ArrayLike | None = None,
    ) -> list[Self]:
        """Fitted copies for several budgets, each begun at the previous one.

        Parameters
        ----------
        X, y : as of `fit`
        budgets : sequence, each as ``budget``, all counts or all shares
        sample_weight : as of `fit`

        Returns
        -------
        list of BudgetSVC, in the order of ``budgets``

        Notes
        -----
        With "pursuit", and to prune a machine of a `LossNorm`, one fit and one order of
        rows serve all budgets.
        """
        check = Checker("BudgetSVC.path")
        for budget in budgets:
            _check_budget(check, "budgets", budget)
        if not len(budgets) or len({is_integer(budget) for budget in budgets}) > 1:
            check.refuse_part("budgets", "be counts only, or shares only", str(budgets))
        order = np.argsort(np.asarray(budgets, float), kind="stable")
        rising = [budgets[k] for k in order]
        models = self._path(X, y, rising, sample_weight)
        return [models[k] for k in np.argsort(order)]

    @property
    def model_(self) -> Model:
        """What `widemargin.save_model` writes: as of `SVC`."""
        return kernel_model(self)

    # -- parts of path -----------------------------------------------------------------

    def _path(
        self, X: Any, y: Any, budgets: Sequence[float], sample_weight: Any
    ) -> list[Self]:
        """Fitted copies for rising budgets."""
        if self._solves_once:
            return self._path_of_cuts(X, y, budgets, sample_weight)
        models: list[Self] = []
        for budget in budgets:
            model = clone(self).set_params(budget=budget)
            starts = models[-1].solutions_ if models else None
            plan = functools.partial(model._plan, starts=starts)
            model._fit(X, y, sample_weight, plan)
            models.append(model)
        return models

    @property
    def _solves_once(self) -> bool:
        """Whether the machine that is cut down does not depend on B."""
        is_named = isinstance(self.norm, str)
        return self.method == "pursuit" or (self.method == "prune" and not is_named)

    def _path_of_cuts(
        self, X: Any, y: Any, budgets: Sequence[float], sample_weight: Any
    ) -> list[Self]:
        """Copies of one fit, whose machines are cut to all budgets at once."""
        fits: list[Fit] = []

        def plan(training: Training) -> Fit:
            fits.extend(first._cuts(training, budgets))
            return fits[0]

        first = clone(self).set_params(budget=budgets[0])
        first._fit(X, y, sample_weight, plan)
        models = [first]
        for budget, fit in zip(budgets[1:], fits[1:], strict=True):
            model = copy.copy(first).set_params(budget=budget)
            model._store(fit)
            models.append(model)
        return models

    # -- parts of fit ------------------------------------------------------------------

    def _check_parameters(self, check: Checker) -> None:
        check.choice("method", self.method, METHODS)
        is_norm = isinstance(self.norm, LossNorm)
        if self.method == "pursuit" and is_norm:
            expected = f"one of {', '.join(map(repr, NORMS))} with method='pursuit'"
            check.refuse("norm", expected, self.norm)
        if not is_norm:
            check.choice("norm", self.norm, tuple(NORMS))
        check.choice("total", self.total, (True, False))
        if self.total and self.method == "norm":
            check.refuse("total", "False where 'method' is 'norm'", self.total)
        if self.method == "norm" and is_norm:
            if self.budget is not None:
                expected = "None where 'norm' is a LossNorm and nothing is cut"
                check.refuse("budget", expected, self.budget)
        else:
            _check_budget(check, "budget", self.budget)
        check_kernel_of(check, self)

    def _recipe(self, rows: Rows, weights: Vector | None) -> Recipe:
        kernel = set_kernel(self, rows, weights)
        make = self._machine if self.method == "pursuit" else self._normed
        return Recipe(make, functools.partial(kernel_point, kernel), "auto", kernel)

    def _machine(self, rows: Rows, y: NDArray[np.int8], C: ArrayLike) -> Problem:
        """A problem whose solution is cut afterwards."""
        options: Any = {"kernel": self.kernel_, "memory_limit": self.memory_limit}
        return Problem(rows, y, C, self.loss, "free", **options)

    def _normed(self, rows: Rows, y: NDArray[np.int8], C: ArrayLike) -> Problem:
        """A problem with a norm of the losses."""
        shares = None if np.ndim(C) == 0 else np.asarray(C) / self.C
        size = float(len(y) if shares is None else shares.sum())
        options: Any = {
            "norm": self._norm_of(size),
            "sample_weight": shares,
            "kernel": self.kernel_,
            "memory_limit": self.memory_limit,
        }
        return Problem(rows, y, self.C, **options)

    def _norm_of(self, size: float) -> LossNorm:
        """The norm for so many rows."""
        if isinstance(self.norm, LossNorm):
            return self.norm
        return NORMS[self.norm](budget=float(_count(self.budget, size)))

    def _plan(
        self, training: Training, starts: Sequence[Solution] | None = None
    ) -> Fit:
        training = dataclasses.replace(training, starts=starts)
        if self.budget is None:
            return exact(training)
        _check_sizes(training, [self.budget], self._parts(training))
        m = training.rows.shape[0]
        if self.budget > m:
            warnings.warn(
                f"The 'budget' parameter of BudgetSVC, {self.budget:,}, is more than "
                f"the {m:,} rows: there is no cap.",
                UserWarning,
                stacklevel=users_level(),
            )
        if self.method == "norm":
            return exact(training)
        return self._cuts(training, [self.budget])[0]

    def _cuts(self, training: Training, budgets: Sequence[float]) -> list[Fit]:
        """What one plan finds for rising budgets."""
        parts = self._parts(training)
        _check_sizes(training, budgets, parts)
        cut = functools.partial(self._cut, budgets, parts)
        return reduced(training, cut, len(budgets))

    def _cut(
        self,
        budgets: Sequence[float],
        parts: int,
        problem: Any,
        solution: Solution,
        seconds: float | None,
    ) -> list[Reduced]:
        """Models of few support vectors, one for each of rising budgets."""
        size = float(problem.weights.sum()) / self.C
        counts = [max(1, int(_count(budget, size)) // parts) for budget in budgets]
        if self.method == "prune":
            return prune_path(problem, solution, counts, time_limit=seconds)
        return reduce_path(
            problem,
            solution,
            counts,
            tol=max(self.tol, REFIT),
            time_limit=seconds,
            memory_limit=self.memory_limit,
            random_state=seed_of(self) or 0,
        )

    def _parts(self, training: Training) -> int:
        """How many binary problems have one budget together."""
        return len(training.tasks) if self.total else 1

    def _keep(self, fit: Fit) -> None:
        keep_machines(self, fit)
        solutions, decisions = fit.solutions, fit.decisions
        bounds = [found.certificate for found in decisions]
        self.primal_ = np.array([bound.primal for bound in bounds])
        dual = np.array([bound.dual for bound in bounds])
        with np.errstate(divide="ignore"):
            self.increase_ = (self.primal_ - dual) / np.maximum(dual, 0.0)
        # Bounds that contradict each other: the kernel is not positive semidefinite.
        self.increase_[self.primal_ < dual] = np.inf
        counts = [
            (np.count_nonzero(one.alpha), np.count_nonzero(other.alpha))
            for one, other in zip(solutions, decisions, strict=True)
        ]
        self.pruned_ = np.array([max(0, before - after) for before, after in counts])
        self.theta_, self.ridge_, capped = (
            np.array([found.extras.get(name, 0.0) for found in solutions])
            for name in ("theta", "ridge", "capped")
        )
        pursued = self.method == "pursuit"
        self.cap_active_ = self.pruned_ > 0 if pursued else capped > 0
        self._meta |= {"method": self.method, "norm": str(self.norm)}
        if self.budget is not None:
            self._meta["budget"] = self.budget
        if self.method != "norm" and np.isfinite(most := float(self.increase_.max())):
            self._meta["increase"] = most


def _check_budget(check: Checker, name: str, budget: Any) -> None:
    """Refuse what is neither a number of rows nor a share of them."""
    share = isinstance(budget, Real) and 0.0 < float(budget) < 1.0
    if not (share or (is_integer(budget) and budget >= 2)):
        check.refuse(name, "an int in the range [2, inf) or a float in (0, 1)", budget)


def _check_sizes(training: Training, budgets: Sequence[float], least: int) -> None:
    """Refuse a budget that is too small for these rows and problems."""
    check, m = Checker("BudgetSVC"), training.rows.shape[0]
    for budget in budgets:
        if is_integer(budget) and budget < least:
            expected = f"be at least {least:,}, the number of binary problems"
            check.refuse_part("budget", expected, str(budget))
        if int(_count(budget, m)) < 2:
            expected = f"be a share of at least 2 of the {m:,} rows"
            check.refuse_part("budget", expected, str(budget))


def _count(budget: Any, size: float) -> float:
    """The number that a budget means for m rows."""
    return float(budget if is_integer(budget) else budget * size)
