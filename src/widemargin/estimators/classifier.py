"""What the estimators share: from data and labels to solutions, and to predictions."""

import dataclasses
import functools
import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning

from widemargin.data import shared
from widemargin.data.rows import Rows
from widemargin.estimators import labels, multiclass
from widemargin.estimators.callbacks import (
    Callbacks,
    CallbackSupportMixin,
    with_callbacks,
)
from widemargin.estimators.checks import (
    check_limits,
    read_rows,
    seed_of,
    unchanged_by_failure,
    users_level,
)
from widemargin.estimators.multiclass import BinaryTask
from widemargin.estimators.support_vectors import (
    TrainingDataMixin,
    keep_support_vectors,
)
from widemargin.losses.pointwise import LOSSES
from widemargin.models.model import Model
from widemargin.parameters import Checker
from widemargin.problems.base import INTERCEPTS, Problem
from widemargin.solution import NOT_CONVEX, Solution, Status
from widemargin.solvers import auto
from widemargin.solvers.driver.checkpoint import Checkpoint
from widemargin.solvers.driver.contract import Solver
from widemargin.solvers.driver.driver import run, unsolved
from widemargin.solvers.driver.limits import Clock, Limits
from widemargin.system.deadline import GRACE, Deadline

Vector = NDArray[np.float64]

# A time limit of what is to end at once.
MOMENT = 1e-9


@dataclass
class Training:
    """The data of a fit, as problems are made of them, and what all solves share.

    Attributes
    ----------
    index : int ndarray (m,), the class of each row
    C : float or ndarray (m,), weights of the losses
    tasks : list of BinaryTask, the binary problems
    seed : int or None
    solver : str or Solver
    time_limit : float or None, when the fit ends, in seconds of the clock
    until : float or None, when the solves end, where that is before it
    checkpoint : str, path-like, Checkpoint or None
    names : sequence of str or None, of the columns; empty where they are not the user's
    starts : sequence of Solution or None, where the binary problems start
    known : sequence of Solution or None, answers with which they go on
    """

    rows: Rows
    index: NDArray[Any]
    C: Any
    tasks: list[BinaryTask]
    clock: Clock
    callbacks: Callbacks
    seed: int | None
    solver: str | Solver
    time_limit: float | None
    checkpoint: Any
    names: Sequence[str] | None
    starts: Sequence[Solution | tuple[Vector, Vector, float] | None] | None = None
    known: Sequence[Solution] | None = None
    until: float | None = None

    @property
    def deadline(self) -> Deadline | None:
        """When the work before and between the solves has to end."""
        return self.clock.deadline(self.until or self.time_limit)

    @property
    def grace(self) -> Deadline | None:
        """When the work after the solves has to end."""
        return self.clock.deadline(self.time_limit and self.time_limit + GRACE)

    def chosen(self, k: int) -> NDArray[np.intp] | None:
        """The rows of binary problem k; None for all of them."""
        return self.tasks[k].rows(self.index)

    def weight(self, k: int) -> float:
        """The sum of its C."""
        C = np.broadcast_to(self.C, len(self.index))
        chosen = self.chosen(k)
        return float((C if chosen is None else C[chosen]).sum())

    def sizes(self) -> NDArray[np.intp]:
        """How many rows the binary problems have."""
        counts, m = np.bincount(self.index), len(self.index)
        pairs = [(one.positive, one.negative) for one in self.tasks]
        return np.array([m if j is None else counts[i] + counts[j] for i, j in pairs])

    def signs(self, k: int) -> NDArray[np.int8]:
        """Its labels."""
        chosen = self.chosen(k)
        index = self.index if chosen is None else self.index[chosen]
        return multiclass.signs(index, self.tasks[k].positive)


class Classifier(
    TrainingDataMixin,
    CallbackSupportMixin,  # type: ignore[misc]
    ClassifierMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Base of the estimators; a subclass says what its problems and models are."""

    # How more than two classes can be told apart.
    _schemes: ClassVar[tuple[str, ...]]
    # Whether `support_` is sorted by class.
    _by_class: ClassVar[bool] = False
    # Whether problems share the time, and one may go on later.
    _shares_time: ClassVar[bool] = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on the rows of X.

        Parameters
        ----------
        X : array, sparse matrix or Rows (m, n)
            float32, float64 and integers are used as they are, without a copy; rows of
            `open_rows` stay in their files, but a kernel needs rows in memory, unless
            it has a rank. For kernel="precomputed" the kernel values of all pairs of
            rows, (m, m).
        y : array (m,) of labels: numbers, booleans, dates or strings
        sample_weight : array (m,) of numbers >= 0, or None

        Returns
        -------
        self

        Raises
        ------
        ValueError
            A parameter out of range, NaN or infinity, fewer than two classes. The
            estimator keeps the model of an earlier fit.
        KeyboardInterrupt
            After Ctrl-C, with the best model kept.
        MemoryError
            There was too little memory. With the best model kept, if there is one.

        Warns
        -----
        ConvergenceWarning
            The gap asked for was not reached; says how far it is and what helps.
        RuntimeWarning
            The kernel was seen not to be positive semidefinite: the answer is a
            stationary point, and its gap proves nothing.
        """
        self._check_parameters()
        with unchanged_by_failure(self):
            self._fit(X, y, sample_weight)
        if any(s.status is Status.INTERRUPTED for s in self.solutions_):
            raise KeyboardInterrupt
        for solution in self.solutions_:
            if solution.status is Status.OUT_OF_MEMORY:
                raise MemoryError(solution.message)
        worst = max(self.solutions_, key=lambda s: s.certificate.relative_gap)
        if worst.status is not Status.SOLVED:
            warnings.warn(worst.message, ConvergenceWarning, stacklevel=users_level())
        if any(s.trace[-1].details.get("negative") for s in self.solutions_):
            warnings.warn(NOT_CONVEX, RuntimeWarning, stacklevel=users_level())
        return self

    def decision_function(self, X: Any) -> Vector:
        """Decision values: (m,) for two classes, (m, c) for more.

        For two classes the score x'w + b, positive for ``classes_[1]``; for one against
        the rest those of all classes; for one against one the votes for each class,
        with a part of less than 1/3 that says how clear they are: see
        `widemargin.models.model.Model.scores`.

        Parameters
        ----------
        X : array, sparse matrix or Rows (m, n)

        Returns
        -------
        ndarray (m,) or (m, c)
        """
        model = self.model_  # refuses an estimator that is not fitted
        return model.scores(self._rows(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels of the rows of X.

        Parameters
        ----------
        X : array, sparse matrix or Rows (m, n)

        Returns
        -------
        ndarray (m,)
        """
        model = self.model_
        return model.decide(model.scores(self._rows(X)))

    @property
    @abstractmethod
    def model_(self) -> Model:
        """What `widemargin.save_model` writes: classes and decision functions."""

    # -- what a subclass says ----------------------------------------------------------

    @abstractmethod
    def _problem(self, rows: Rows, y: NDArray[np.int8], C: ArrayLike) -> Problem:
        """The binary problem of some rows."""

    @abstractmethod
    def _keep_decisions(self, training: Training, solutions: list[Solution]) -> None:
        """Set the attributes that `model_` is made of."""

    @abstractmethod
    def _at(self, rows: Rows, w: Vector, b: float) -> dict[str, Any]:
        """Attributes with which a point of the only binary problem predicts."""

    def _prepare(self, rows: Rows, weights: Vector | None) -> None:
        """Find what all problems share."""

    def _rows_of(self, rows: Rows, index: NDArray[np.intp] | None) -> Rows:
        """The rows of one problem."""
        return multiclass.rows_of(rows, index, False)

    def _is_pairwise(self) -> bool:
        """Whether X holds kernel values: then scikit-learn wants NaN told first."""
        return False

    def _finished(self, problem: Problem, solution: Solution, clock: Clock) -> Solution:
        """The solution, after what needs it and its binary problem, each in turn."""
        return solution

    def _decided(self, solutions: list[Solution]) -> list[Solution]:
        """The solutions as predictions use them."""
        return solutions

    def _solves_together(self) -> bool:
        """Whether the problems of all rows are solved side by side, sweep by sweep."""
        return True

    # -- parts of fit ------------------------------------------------------------------

    def _check_parameters(self) -> None:
        """Raise for a parameter out of range, in the words of scikit-learn."""
        check = Checker(type(self).__name__)
        check.positive("C", self.C)
        check_limits(check, self)
        check.choice("loss", self.loss, tuple(LOSSES))
        check.choice("intercept", self.intercept, INTERCEPTS)
        check.choice("multi_class", self.multi_class, self._schemes)
        Checkpoint.of(self.checkpoint, type(self).__name__)
        if not isinstance(self.solver, Solver):
            check.choice("solver", self.solver, ("auto", *auto.SOLVERS))

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Set the fitted attributes."""
        clock, data = Clock(), (X, y, sample_weight)
        owner = type(self).__name__
        check = Checker(f"{owner}.fit")
        if y is None:  # in scikit-learn's words
            raise ValueError(
                f"{owner} requires y to be passed, but the target y is None."
            )
        rows = self._rows(X, reset=True)
        m = rows.shape[0]
        y = labels.read_labels(check, y, m)
        weights = labels.read_weights(check, sample_weight, m)
        self.classes_, index = labels.find_classes(check, y, weights)
        self._prepare(rows, None if sample_weight is None else weights)
        factors = labels.class_factors(
            Checker(owner), self.class_weight, self.classes_, index, weights
        )
        C: Any = self.C
        if not (sample_weight is None and self.class_weight is None):
            C = self.C * weights
            C *= factors
        del y, weights, factors, sample_weight  # a few copies of a row vector
        tasks = multiclass.tasks_of(len(self.classes_), self.multi_class)
        point = functools.partial(self._at, rows)
        callbacks = Callbacks(self, len(tasks), data, point)
        names = getattr(self, "feature_names_in_", None)
        shared = clock, callbacks, seed_of(self)
        own = self.solver, self.time_limit, self.checkpoint
        training = Training(rows, index, C, tasks, *shared, *own, names)
        try:
            solutions = self._solve(training)
        finally:
            callbacks.close()
        self._store(training, solutions)
        self.seconds_ = clock.seconds()

    def _rows(self, X: Any, reset: bool = False) -> Rows:
        """Rows of data to train (reset) or to predict; numbers are checked later."""
        return read_rows(self, X, reset, self._is_pairwise())

    def _solve(self, training: Training) -> list[Solution]:
        """One solution a binary problem."""
        tasks, rows = training.tasks, training.rows
        saved = self._checkpoints(training)
        solves = [
            functools.partial(self._solve_one, training, k, saved[k])
            for k in range(len(tasks))
        ]
        if tasks[0].negative is None and self._solves_together():
            if len(tasks) > 1:  # dual variables of each, twice, and n x n sums
                order = min(rows.shape[1], shared.LARGEST_MATRIX)
                each = 8 * (2 * rows.shape[0] + 8 * order**2)
                what = f"{len(tasks)} classes"
                rows.reserve(len(tasks) * each, what, training.clock)
            solutions = shared.solve_together(rows, solves, self.memory_limit)
        elif self._shares_time:
            solutions = self._solve_in_turn(training, saved)
        else:
            solutions = [solve(rows) for solve in solves]
        if all(solution.status is Status.SOLVED for solution in solutions):
            for checkpoint in filter(None, saved):
                checkpoint.remove()
        return solutions

    def _solve_in_turn(
        self, training: Training, saved: list[Checkpoint | None]
    ) -> list[Solution]:
        """One solution a problem, each with its share, by rows, of the time left.

        Those that had too little share what the others have left, and go on.
        """
        sizes, clock = training.sizes(), training.clock
        found = dict(enumerate(training.known or ()))
        starts = list(training.known or training.starts or [None] * len(sizes))
        end = training.until or training.time_limit or np.inf

        def waiting() -> list[int]:
            """Problems that have no answer, or one that a limit has ended."""
            late = (k for k in found if found[k].status is Status.TIME_LIMIT)
            return [*late, *range(len(found), len(sizes))]

        while some := waiting():
            for i, k in enumerate(some):
                left = end - clock.seconds()
                if left <= 0.0 and k in found:
                    return list(found.values())
                until = clock.seconds() + left * sizes[k] / sizes[some[i:]].sum()
                one = dataclasses.replace(training, starts=starts, until=until)
                new = self._solve_one(one, k, saved[k], training.rows)
                if k in found and _is_worse(new, found[k]):
                    new = found[k]  # there was no time to take it up
                found[k] = starts[k] = new
        return list(found.values())

    def _solve_one(
        self, training: Training, k: int, saved: Checkpoint | None, rows: Rows
    ) -> Solution:
        """The solution of binary problem k, from rows that may wait for others'."""
        start = None if training.starts is None else training.starts[k]
        if start is None and saved is None and self._skips(training):
            return self._unsolved(training, k)
        problem = self._problem(*self._part(training, k, rows))
        choice = auto.choose(problem, training.solver, training.seed)
        limits = Limits(
            self.tol,
            self.max_iter,
            training.time_limit,
            training.callbacks.of(k),
            training.clock,
            saved,
            training.until,
        )
        solution = run(problem, choice, limits, start=start, names=training.names)
        solution = self._finished(problem, solution, training.clock)
        gap = solution.certificate.relative_gap
        training.callbacks.finish(k, gap, solution.status)
        return solution

    def _skips(self, training: Training) -> bool:
        """Whether one of several problems is left out: the time is over."""
        deadline = training.deadline
        late = deadline is not None and deadline.left <= 0.0
        return late and self._shares_time and len(training.tasks) > 1

    def _unsolved(self, training: Training, k: int) -> Solution:
        """The answer zero of binary problem k."""
        m = int(training.sizes()[k])
        order = m if self._is_kernel() else training.rows.shape[1]
        limits = Limits(self.tol, time_limit=training.time_limit)
        solver = training.solver
        if not isinstance(solver, str):
            solver = solver.name
        solution = unsolved(m, order, training.weight(k), limits, solver)
        gap = solution.certificate.relative_gap
        training.callbacks.finish(k, gap, solution.status)
        return solution

    def _is_kernel(self) -> bool:
        """Whether w of a problem has a number for each of its rows."""
        return False

    def _part(
        self, training: Training, k: int, rows: Rows
    ) -> tuple[Rows, NDArray[np.int8], ArrayLike]:
        """Rows, labels and weights of binary problem k."""
        chosen, C = training.chosen(k), training.C
        if chosen is not None and np.ndim(C):
            C = C[chosen]
        return self._rows_of(rows, chosen), training.signs(k), C

    def _checkpoints(self, training: Training) -> list[Checkpoint | None]:
        """That of each binary problem."""
        whole = Checkpoint.of(training.checkpoint, type(self).__name__)
        n_problems = len(training.tasks)
        if whole is None or n_problems == 1:
            return [whole] * n_problems
        return [whole.part(k) for k in range(n_problems)]

    def _store(self, training: Training, solutions: list[Solution]) -> None:
        """Keep the answers, and facts about the training as it was."""
        self.solutions_, self.solution_ = solutions, solutions[0]
        decided = self._decided(solutions)
        self._keep_support(training, decided)
        self.intercept_ = np.array([s.b for s in decided])
        self.n_iter_ = max(1, *(len(s.trace) - 1 for s in solutions))
        worst = max(solutions, key=lambda s: s.certificate.relative_gap)
        self.dual_gap_ = float(worst.certificate.relative_gap)
        interrupted = any(s.status is Status.INTERRUPTED for s in solutions)
        self.status_ = (Status.INTERRUPTED if interrupted else worst.status).value
        self._scheme = "binary" if len(self.classes_) == 2 else self.multi_class
        self._meta = {
            "loss": self.loss,
            "C": self.C,
            "dual_gap": self.dual_gap_,
            "status": self.status_,
        }
        if hasattr(self, "feature_names_in_"):
            self._meta["feature_names"] = [str(f) for f in self.feature_names_in_]
        self._keep_decisions(training, decided)

    def _keep_support(self, training: Training, solutions: list[Solution]) -> None:
        """Set the support vectors and their coefficients."""
        index, tasks = training.index, training.tasks
        alphas = [solution.alpha for solution in solutions]
        self.support_ = _support(tasks, alphas, index)
        if self._by_class:
            order = np.argsort(index[self.support_], kind="stable")
            self.support_ = self.support_[order]
        keep_support_vectors(self, training.rows)
        self.dual_coef_ = multiclass.dual_coefficients(
            tasks, alphas, index, self.support_
        )
        counts = np.bincount(index[self.support_], minlength=len(self.classes_))
        self.n_support_ = counts


def _is_worse(one: Solution, other: Solution) -> bool:
    """Whether a solution that ran out of time proves less than another one."""
    gaps = [found.certificate.relative_gap for found in (one, other)]
    return one.status is Status.TIME_LIMIT and gaps[0] > gaps[1]


def _support(
    tasks: Sequence[BinaryTask], alphas: Sequence[Vector], index: NDArray[Any]
) -> NDArray[np.intp]:
    """The rows with a positive dual variable in any problem."""
    found = np.zeros(len(index), bool)
    for task, alpha in zip(tasks, alphas, strict=True):
        chosen = task.rows(index)
        if chosen is None:
            found |= alpha != 0.0
        else:
            found[chosen[alpha != 0.0]] = True
    return np.flatnonzero(found)


def keep_in_model(classifier: Classifier, facts: Mapping[str, Any]) -> None:
    """Add facts that only the caller knows to those which the model file keeps."""
    classifier._meta |= facts
