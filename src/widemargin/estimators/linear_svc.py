"""LinearSVC: linear classifiers, one against the rest or one against one."""

from collections.abc import Callable
from typing import Any

import numpy as np

from widemargin.arrays import Vector
from widemargin.data.rows import Rows
from widemargin.estimators.certified import OfWeights
from widemargin.estimators.checks import check_fit_intercept, intercept_of
from widemargin.estimators.classifier import Classifier, check_form
from widemargin.estimators.multiclass import decided_by
from widemargin.estimators.plans import Fit, exact
from widemargin.estimators.support_vectors import keep_support
from widemargin.estimators.training import (
    Recipe,
    Training,
    linear_recipe,
)
from widemargin.models.decisions import Decisions
from widemargin.models.model import Model
from widemargin.parameters import Checker
from widemargin.solution import Step
from widemargin.solutions import weights_of
from widemargin.solvers.driver.contract import Solver


class LinearSVC(OfWeights, Classifier):
    """Linear support vector classifier with a certified duality gap.

    Minimizes, for labels y_i of +1 and -1,

        1/2 (w'w + p b^2) + C sum_i s_i L(1 - y_i (x_i'w + b)),

    with L(t) = max(0, t) or max(0, t)^2, sample weights s_i, and p = 0 (free
    intercept), p = 1 (penalized) or b = 0 (none). More than two classes are trained one
    against the rest, all with the same reads of the data, or one against one.

    Parameters
    ----------
    penalty : {"l2"}, default="l2"
        As above. `sklearn.svm.LinearSVC` has "l1", too, which is refused here.
    loss : {"hinge", "squared_hinge"}, default="squared_hinge"
        The squared hinge has no factor 1/2, as in LIBLINEAR. `sklearn.svm.LinearSVC`
        has the same default: the same name means the same problem.
    dual : {"auto", True, False}, default="auto"
        For code that was written for `sklearn.svm.LinearSVC`. It has no influence:
        every answer has a primal and a dual point, and ``solver`` chooses the method.
    tol : float in (0, 1], default=1e-4
        Relative duality gap (P - D) / P: the minimum is at most this share below P.
    C : float > 0, default=1.0
        How much losses count beside the size of the weights. A larger C makes fewer
        errors on the rows of the fit. inf allows no loss (a hard margin, the same for
        both losses): where classes cannot be told apart ``status_`` is "infeasible".
    multi_class : {"ovr", "ovo", "dag"}, default="ovr"
        How more than two classes are told apart: one against the rest, one against one,
        or by a directed acyclic graph of pairs, as of `SVC`.
    fit_intercept : bool, default=True
        False is ``intercept="none"``.
    intercept : {"auto", "free", "penalized", "none"}, default="auto"
        "auto" is free for the hinge (the problem of LIBSVM and `sklearn.svm.SVC`) and
        penalized for the squared hinge (as LIBLINEAR and `sklearn.svm.LinearSVC` do).
    solver : str or Solver, default="auto"
        "auto", "batch" (few entries, all classes at once: else refused), "active_set",
        "augmented_lagrangian", "coordinate_descent", "interior_point", or an object
        that carries its own options, such as ``InteriorPoint(reduction="omega")``.
    class_weight : dict, "balanced" or None, default=None
        Factors of C by class; "balanced" makes all classes weigh the same. Of several
        classes one against the rest the class of a problem has its factor there, and
        the rest has 1, as in LIBLINEAR and `sklearn.svm.LinearSVC`.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        As of `SVC`; "ovo" needs pairs of classes.
    break_ties : bool, default=False
        As of `SVC`.
    verbose : int, default=0
        1 shows the progress on standard error.
    random_state : int >= 0, RandomState or None, default=None
        Seed of solvers that visit rows in random order (coordinate descent).
    max_iter : int >= 1 or None, default=None
        Iterations of each binary problem. None: the solver's own, 200 of
        "interior_point", 500 of "active_set", 2,000 of "augmented_lagrangian", and 500
        certificates of "coordinate_descent".
    time_limit : float > 0 in seconds, or None, default=None
        Of the whole fit, without the time of callbacks; half a second more for a
        certificate. A class is left at zero when there is no time for it.
    memory_limit : int >= 16384 in bytes, or None, default=None
        For temporary arrays of a sweep and for classes trained at the same time. The
        data and about 200 bytes a row come on top. Rows of `open_rows` have a limit of
        their own, which covers everything.
    n_jobs : int or None, default=None
        Threads. None: as many as BLAS may use at the moment (all cores, or fewer inside
        joblib). The answer does not depend on it.
    callback : callable or None, default=None
        Called with each `widemargin.solution.Step`, whose ``problem`` says which class
        it is about; returning True stops the fit, and an error ends it.
    checkpoint : str, path-like, `widemargin.Checkpoint` or None, default=None
        A file that the fit is saved in every 60 s, and when a limit ends it (for more
        than two classes a file for each, with a number behind its name). If the file
        exists, the fit goes on from it, also after its process was killed; it is
        removed once the fit is solved.

    Attributes
    ----------
    classes_ : ndarray (c,), the labels
    coef_ : ndarray (1, n) for two classes, else (c, n), or a row for each pair
    intercept_ : ndarray (1,), (c,) or (c (c - 1) / 2,)
    support_ : ndarray of the rows with a positive dual variable in any problem
    support_vectors_ : ndarray or CSR array (n_sv, n), these rows as stored. More than
        16 MiB are copied when they are first asked for, or copied: until then the
        training data are kept, and must stay as they are. Not there where the rows are
        not in memory: ``rows.take(clf.support_)`` reads them, or some of them.
    n_support_ : ndarray (c,), support vectors by class
    dual_coef_ : ndarray (1 or c, n_sv), y_i alpha_i; of pairs (c - 1, n_sv) as of `SVC`
    n_iter_ : int, iterations of the longest binary problem, with a
        checkpoint those of all its runs
    seconds_ : float, time of the whole fit, without callbacks
    dual_gap_ : float, the largest certified relative gap of the binary problems
    status_ : str, "interrupted" after Ctrl-C, else the status of the problem with the
        largest gap
    solution_, solutions_ : Solution of the (first) binary problem, which prints
        what all are together; list of all
    n_features_in_ : int
    feature_names_in_ : ndarray (n,), where X had column names, as Parquet has

    See Also
    --------
    widemargin.solve : the layer below, with one problem and its certificate.

    Notes
    -----
    A row with sample weight 0 counts as removed, one of weight 2 as two rows, exactly.
    The fit that Ctrl-C ends keeps its best model and then raises KeyboardInterrupt.
    Probabilities: ``CalibratedClassifierCV(LinearSVC())`` of scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from widemargin import LinearSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = make_pipeline(StandardScaler(), LinearSVC()).fit(X, y)
    >>> clf[-1].status_, clf[-1].dual_gap_ <= 1e-4
    ('solved', True)
    """

    _takes_infinity = _takes_collections = True

    def __init__(
        self,
        *,
        penalty: str = "l2",
        loss: str = "squared_hinge",
        dual: str | bool = "auto",
        tol: float = 1e-4,
        C: float = 1.0,
        multi_class: str = "ovr",
        fit_intercept: bool = True,
        intercept: str = "auto",
        solver: str | Solver = "auto",
        class_weight: Any = None,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        verbose: int = 0,
        random_state: Any = None,
        max_iter: int | None = None,
        time_limit: float | None = None,
        memory_limit: int | None = None,
        n_jobs: int | None = None,
        callback: Callable[[Step], Any] | None = None,
        checkpoint: Any = None,
    ) -> None:
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.tol = tol
        self.C = C
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept = intercept
        self.solver = solver
        self.class_weight = class_weight
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.callback = callback
        self.checkpoint = checkpoint

    def _model(self, meta: dict[str, Any]) -> Model:
        decides = decided_by(self, self._scheme)
        decisions = Decisions(np.asarray(self.coef_).T, self.intercept_)
        return Model(self.classes_, decisions=decisions, meta=meta, **decides)

    # -- parts of fit ------------------------------------------------------------------

    def _check_parameters(self, check: Checker) -> None:
        check_form(check, self)
        check_fit_intercept(check, self)
        check.choice("penalty", self.penalty, ("l2", "l1"))
        check.choice("dual", self.dual, ("auto", True, False))
        if self.penalty == "l1":  # begins in scikit-learn's words
            raise ValueError(
                "Unsupported set of arguments: "
                f"penalty='l1', loss={self.loss!r}, dual={self.dual!r}. LinearSVC has "
                "the penalty 'l2' only; 'l1' is in sklearn.svm.LinearSVC and "
                "sklearn.linear_model.SGDClassifier."
            )

    def _recipe(self, rows: Rows, weights: Vector | None) -> Recipe:
        return linear_recipe(self.loss, intercept_of(self), self.solver)

    def _plan(self, training: Training) -> Fit:
        return exact(training)

    def _keep(self, fit: Fit) -> None:
        if fit.n_support is None:
            keep_support(self, fit.training, fit.solutions, by_class=False)
        else:
            self.n_support_ = fit.n_support
        self.coef_ = weights_of(fit.solutions)
