"""SVC: classifiers with a kernel, one against one or one against the rest."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from widemargin.arrays import Vector
from widemargin.data.rows import Rows
from widemargin.estimators.classifier import check_form, iterations
from widemargin.estimators.kernel_machines import (
    WeightsOfKernel,
    check_kernel_of,
    keep_machines,
    kernel_model,
    kernel_recipe,
    set_kernel,
)
from widemargin.estimators.low_rank import Mapping, check_rank, facts_of
from widemargin.estimators.plans import Fit, exact, in_time, low_rank, polished
from widemargin.estimators.probability import (
    NOT_GIVEN,
    ProbabilityMixin,
    check_probability,
)
from widemargin.estimators.training import (
    Recipe,
    Training,
    linear_recipe,
)
from widemargin.kernels.kernel import Kernel
from widemargin.models.model import Model
from widemargin.parameters import Checker
from widemargin.solution import Step
from widemargin.solvers import auto
from widemargin.solvers.driver.contract import Solver


class SVC(ProbabilityMixin):
    """Support vector classifier with a kernel and a certified duality gap.

    Minimizes, for labels y_i of +1 and -1 and features with phi(x)'phi(z) = k(x, z),

        1/2 (w'w + p b^2) + C sum_i s_i L(1 - y_i (phi(x_i)'w + b)),

    with L(t) = max(0, t) or max(0, t)^2, sample weights s_i, and p = 0 (free
    intercept), p = 1 (penalized) or b = 0 (none). More than two classes are trained one
    against one, or one against the rest.

    Parameters
    ----------
    C : float > 0, default=1.0
        How much losses count beside the size of the weights. A larger C makes fewer
        errors on the rows of the fit, and the fit takes longer. inf allows no loss (a
        hard margin, the same for both losses; not with a rank): where classes cannot
        be told apart ``status_`` is "infeasible".
    kernel : str or callable, default="rbf"
        "linear", "poly", "rbf", "sigmoid", "laplacian", "chi2" (of data >= 0),
        "precomputed" (X holds the values of all pairs of rows), or a function of two
        matrices, dense or CSR, (k, n) and (l, n), that returns their kernel values (k,
        l). X may then be a list of objects of any kind, such as strings or graphs: the
        function gets two lists, of which the second one is the list of the fit, and
        all its values are kept. `widemargin.Kernel` has the formulas.
    degree : int >= 1, default=3
        Of "poly".
    gamma : float > 0 or {"scale", "auto", "mean_distance"}, default="scale"
        "scale": 1 / (n Var(X)); "auto": 1 / n; "mean_distance": 1 / (2 d), with d the
        mean of ``|x - z|^2`` over all pairs of rows. Rows count by ``sample_weight``.
    coef0 : float, default=0.0
        Of "poly" and "sigmoid".
    loss : {"hinge", "squared_hinge"}, default="hinge"
        The squared hinge has no factor 1/2, as in LIBLINEAR.
    intercept : {"auto", "free", "penalized", "none"}, default="auto"
        "auto" is free for the hinge (the problem of LIBSVM and `sklearn.svm.SVC`) and
        penalized for the squared hinge.
    rank : int >= 1, float in (0, 1), "auto" or None, default=None
        Rank of the kernel matrix that takes the place of K. Where fewer landmarks (or
        rows) are independent the rank is their number, and ``solution_.reason`` says
        so. A float: the share of the trace of K that may be left, by
        approximation="cholesky". None: K itself. "auto": K itself, unless that needs
        too much time or memory, see below.
    approximation : str, default="auto"
        How: "cholesky", "nystroem" (uniform landmarks), "eigen", "fourier" ("rbf" and
        "laplacian") or "polynomial" ("poly" of degree 2: exact, and ``rank`` the most
        that is allowed). "auto": "nystroem", or "cholesky" for a float.
    certify : {"approximate", "exact"}, default="approximate"
        "exact": bounds of the optimum with K itself, ``exact_certificates_``, too;
        without a rank they are the bounds of ``solutions_``.
    polish : bool, default=False
        With a rank: an exact solver goes on from the solution, and the model is as
        without a rank. On a9a and ijcnn1 that took 1.2 to 30 times as long as to start
        at zero (rank 50 to 1,000).
    solver : str or Solver, default="auto"
        "auto", "batch" (small problems, all at once: else refused), "irwls",
        "frank_wolfe" or "core_vector" (both for the squared hinge without a free
        intercept), or an object that carries its own options. For
        kernel="linear" also the solvers of `LinearSVC`, which "auto" prefers there;
        with a rank only these.
    probability : bool, default="deprecated"
        For code that was written for `sklearn.svm.SVC`, with its FutureWarning. True:
        five folds are trained, too, and sigmoids of their decision values on held-out
        rows make `predict_proba`: what ``CalibratedClassifierCV(SVC(),
        ensemble=False)`` does. A class needs five rows for that.
    tol : float in (0, 1], default=1e-4
        Relative duality gap (P - D) / P: the minimum is at most this share below P.
    class_weight : dict, "balanced" or None, default=None
        Factors of C by class; "balanced" makes all classes weigh the same. Of several
        classes one against the rest the class of a problem has its factor there, and
        the rest has 1.
    multi_class : {"ovo", "ovr", "dag"}, default="ovo"
        How more than two classes are told apart: one against one, as in LIBSVM; one
        against the rest; or by a directed acyclic graph, trained one against one.
    verbose : int, default=0
        1 shows the progress on standard error.
    max_iter : int >= 1 or None, default=None
        Iterations of each binary problem; None: the solver's own.
    time_limit : float > 0 in seconds, or None, default=None
        Of the whole fit, without the time of callbacks; half a second more for a
        certificate, and up to half of the limit itself where it needs that. Without
        time for a certificate the model is the best one so far, of which nothing is
        proved; for a map of low rank, zero. Binary problems share the time that is
        left, by their rows. More Fourier features than can be made in this time are
        refused.
    memory_limit : int >= 16384 in bytes, or None, default=None
        For kernel values that are kept and for packed samples; None: half of the free
        memory. Also for temporary arrays of a prediction.
    n_jobs : int or None, default=None
        Threads. None: as many as BLAS may use at the moment (all cores, or fewer inside
        joblib).
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Of more than two classes: decision values of the classes, or, not with
        multi_class="ovr", of the pairs. It counts from when it is set.
    break_ties : bool, default=False
        Of multi_class="ovo": among classes with as many votes the largest decision
        value wins, not the first class. `predict` refuses it with
        decision_function_shape="ovo".
    random_state : int >= 0, RandomState or None, default=None
        Seed of solvers that visit rows in random order, and of landmarks and random
        features, where None is 0.
    callback : callable or None, default=None
        Called with each `widemargin.solution.Step`, whose ``problem`` says which binary
        problem it is about; returning True stops the fit, and an error ends it.
    checkpoint : str, path-like, `widemargin.Checkpoint` or None, default=None
        A file that the fit is saved in every 60 s, and when a limit ends it (for
        several problems a file for each, with a number behind its name). If the file
        exists, the fit goes on from it; it is removed once the fit is solved.

    Attributes
    ----------
    classes_ : ndarray (c,), the labels
    support_ : ndarray of the rows with a positive dual variable in any problem, sorted
        by class
    support_vectors_ : ndarray or CSR array (n_sv, n), these rows as stored; empty for a
        precomputed kernel; a list where X is a list of objects. With
        kernel="linear" or a map more than 16 MiB are copied when they are first asked
        for, or when the estimator is copied or pickled: until then the training data
        are kept, and must stay as they are.
    n_support_ : ndarray (c,), support vectors by class
    dual_coef_ : ndarray (1, n_sv), a CSR array where X is sparse, of y_i alpha_i,
        positive for ``classes_[1]``. One against one: (c - 1, n_sv), arranged and
        signed as in `sklearn.svm.SVC`. One against the rest: (c, n_sv). With
        kernel="linear" ``coef_`` predicts: see there.
    intercept_ : ndarray (1,) of two classes, (c (c - 1) / 2,) of c classes with
        multi_class="ovo" or "dag", (c,) with "ovr"
    coef_ : ndarray (k, n), for kernel="linear" only: weights, a row each intercept. The
        certificate is of them; the sum of support vectors that ``dual_coef_`` makes is
        near, but with C = 1e6 its objective was up to 1.5e-4 higher (400 rows).
        With "fourier" and "polynomial" the weights of the features, (k, rank).
        Read-only
    feature_map_ : FeatureMap, with a rank only; its ``rank``, ``trace_residual`` and
        ``error`` say how near it is to K
    exact_certificates_ : list of Certificate, with certify="exact": bounds of the
        optimum with K itself, for each binary problem
    exact_gap_ : float, their largest relative gap
    calibrator_ : Calibration, with probability=True only; `model_` has it, too
    kernel_ : Kernel, with gamma as a number
    gamma_ : float, gamma of this kernel
    n_iter_ : int32 ndarray, iterations of each binary problem, with a
        checkpoint those of all its runs
    seconds_ : float, time of the whole fit, without callbacks
    dual_gap_ : float, the largest certified relative gap of the binary problems
    status_ : str, "interrupted" after Ctrl-C, else the status of the problem with the
        largest gap
    solution_, solutions_ : Solution of the (first) binary problem, which prints
        what all are together; list of all. One against one, each
        is over the rows of its two classes, in their order.
    n_features_in_ : int; of a list of objects, their number
    feature_names_in_ : ndarray (n,), where X had column names

    See Also
    --------
    LinearSVC : kernel="linear" for any number of rows.
    widemargin.Kernel : the formulas of the kernels.

    Notes
    -----
    For the pair of classes i < j a positive decision value speaks for i, as in LIBSVM
    and scikit-learn. `predict` counts votes. A tie goes to the first of its classes, as
    in `sklearn.svm.SVC` with ``break_ties=False``. A graph ("dag", [platt2000]_) drops
    one of the first and the last class that are left, by the decision of these two,
    until one class is left: c - 1 decisions.

    A row with sample weight 0 counts as removed, of weight 2 as two rows; also for
    gamma, unlike in scikit-learn. The fit that Ctrl-C ends keeps its best model and
    then raises KeyboardInterrupt. Where a kernel is seen not to be positive
    semidefinite ("sigmoid" often is not), the answer is a stationary point only, and a
    RuntimeWarning says so. Probabilities:
    ``CalibratedClassifierCV(SVC(), ensemble=False)``.

    With a rank ``dual_gap_`` and ``solutions_`` speak of the approximate problem, in
    which k(x, z) is the product of the features of `feature_map_`; ``w`` holds their
    weights. ``support_``, ``support_vectors_`` and ``n_support_`` are the landmarks
    then, ``dual_coef_`` their coefficients of any sign, (k, n_sv) with a row for each
    binary problem, one against one too. "fourier" and "polynomial" have no landmarks:
    ``support_`` are the rows with a dual variable, `predict` goes by ``coef_``. The
    approximation keeps only the positive semidefinite part of a kernel.
    docs/measurements/low_rank.md has times and accuracies.

    With rank="auto" the exact solver has two thirds of ``time_limit`` and, if the mean
    gap is at most 0.5 then, the rest as well. Else the rest goes to the rank that it
    allows, at most 1,000: about the seconds left over 2e-7 times the rows of all
    problems. The model with the lower objective is kept. ``feature_map_`` exists if
    that model is of low rank, and ``solution_.reason`` says why. A rank is also taken
    where ``memory_limit`` has no room for an exact solver. Rows in files are read into
    memory where they fit. With rank="auto" and with ``polish``, ``solver`` and
    ``checkpoint`` are for the exact solver.

    A prediction takes n_sv kernel values for each row. The result for a row does not
    depend on the other rows, bit for bit (named kernels but "linear"). The model is
    made at the first prediction, and anew after a fit or where an attribute is assigned
    another object; arrays that it is made of become read-only.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = SVC(C=10.0).fit(X, y)
    >>> clf.status_, clf.dual_gap_ <= 1e-4, round(clf.score(X, y), 2)
    ('solved', True, 0.99)
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        loss: str = "hinge",
        intercept: str = "auto",
        rank: float | str | None = None,
        approximation: str = "auto",
        certify: str = "approximate",
        polish: bool = False,
        solver: str | Solver = "auto",
        probability: bool | str = NOT_GIVEN,
        tol: float = 1e-4,
        class_weight: Any = None,
        multi_class: str = "ovo",
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
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.loss = loss
        self.intercept = intercept
        self.rank = rank
        self.approximation = approximation
        self.certify = certify
        self.polish = polish
        self.solver = solver
        self.probability = probability
        self.tol = tol
        self.class_weight = class_weight
        self.multi_class = multi_class
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

    coef_ = WeightsOfKernel()
    _takes_infinity = True
    _takes_present = _takes_objects = _leaves_out_negative = _takes_collections = True

    @property
    def model_(self) -> Model:
        """What `widemargin.save_model` writes: classes and decision functions.

        The same until a fit or an assignment changes an attribute that it is made of.
        """
        return kernel_model(self)

    # -- parts of fit ------------------------------------------------------------------

    def _check_parameters(self, check: Checker) -> None:
        check_form(check, self)
        check_kernel_of(check, self)
        check_probability(check, self)
        check_rank(check, self)

    def _recipe(self, rows: Rows, weights: Vector | None) -> Recipe:
        kernel = set_kernel(self, rows, weights)
        if not self._has_kernel_solver:
            recipe = linear_recipe(self.loss, self.intercept, self.solver)
            return dataclasses.replace(recipe, to_digits=True)
        return self._recipe_with(kernel)

    def _recipe_with(self, kernel: Kernel) -> Recipe:
        """Problems with a kernel whose gamma is a number."""
        form = self.loss, self.intercept
        return kernel_recipe(kernel, form, self.solver, self.memory_limit)

    @property
    def _has_kernel_solver(self) -> bool:
        """Whether a kernel solver is needed: not if linear solvers can do it."""
        return self.kernel != "linear" or auto.is_of_kernels(self.solver)

    def _plan(self, training: Training) -> Fit:
        certified = self.certify == "exact"
        if self.rank is None:
            return exact(training, certified)
        ends_exactly = self.polish or self.rank == "auto"  # and `solver` is for that
        recipe = linear_recipe(
            self.loss, self.intercept, "auto" if ends_exactly else self.solver
        )
        mapping = Mapping(self.rank, self.approximation, recipe, self.rank != "auto")
        if self.polish:
            return polished(training, mapping, certified)
        if self.rank == "auto":
            return in_time(training, mapping, certified)
        return low_rank(training, mapping, certified)

    def _keep(self, fit: Fit) -> None:
        if fit.map is not None:
            self.feature_map_ = fit.map.map
        keep_machines(self, fit)
        self.n_iter_ = iterations(fit)
        if fit.map is not None:
            self._meta |= facts_of(self.feature_map_)
        if self.certify == "exact":
            self.exact_certificates_ = fit.certificates
            self.exact_gap_ = max(c.relative_gap for c in fit.certificates)
            if np.isfinite(self.exact_gap_):
                self._meta["exact_gap"] = self.exact_gap_
