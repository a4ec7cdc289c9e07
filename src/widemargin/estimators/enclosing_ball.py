"""EnclosingBall: the smallest ball around the data, as a detector of outliers."""

import dataclasses
import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils.validation import check_is_fitted

from widemargin.arrays import Index, Vector
from widemargin.data.memory import as_rows
from widemargin.data.rows import Rows
from widemargin.estimators import labels, multiclass
from widemargin.estimators.ball_model import OUTWARD, model_of
from widemargin.estimators.callbacks import Callbacks, with_callbacks
from widemargin.estimators.checks import (
    check_limits,
    fitted_anew,
    is_pairwise,
    read_rows,
    seed_of,
    tell_end,
    users_level,
)
from widemargin.estimators.kernel_machines import check_kernel_of, set_kernel
from widemargin.estimators.machine import Machine
from widemargin.estimators.outside import lowest_inside, warnings_of
from widemargin.estimators.support_vectors import keep_support_vectors
from widemargin.estimators.training import limits_of
from widemargin.kernels.distances import (
    Distances,
    from_center,
    from_point,
    from_products,
    score_distances,
)
from widemargin.kernels.matrix import Columns
from widemargin.models.model import Model
from widemargin.numerics import linalg
from widemargin.numerics.rounding import gamma_n
from widemargin.parameters import Checker
from widemargin.problems.ball import BallProblem
from widemargin.solution import Certificate, Status, Step
from widemargin.solvers.driver.checkpoint import Checkpoint
from widemargin.solvers.driver.limits import Limits
from widemargin.solvers.kernel.enclosing_ball import Ball, enclose, unbounded
from widemargin.solvers.kernel.simplex import STEPS
from widemargin.system.deadline import OutOfTime, until

# A radius counts as at least this many times the rounding of `center_` in a gap.
RESOLVED = 1e6
# Relative range within which k(x, x) of a precomputed kernel counts as constant.
CONSTANT = 1e-9


@dataclass(frozen=True)
class _Points:
    """What a ball is found around: all rows, the indices with a weight, and K."""

    rows: Rows
    kept: Index
    problem: Any  # BallProblem; None: there was no time to make it


class EnclosingBall(
    Machine,
    OutlierMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Smallest ball around the data, with a certified duality gap: an outlier detector.

    For features with phi(x)'phi(z) = k(x, z) it finds the center c and the squared
    radius rho of the smallest ball that encloses all points (hard, ``C=None``),

        minimize   rho   subject to   d_i <= rho,

    with the squared distances d_i = k(x_i, x_i) - 2 phi(x_i)'c + c'c; or of a ball that
    leaves some points out (soft: SVDD with squared slacks), with sample weights s_i:

        minimize   rho + C sum_i s_i max(0, d_i - rho)^2   over c and rho >= 0.

    The center is c = sum_i a_i phi(x_i), where (for rho > 0) a solves the dual

        maximize   sum_i a_i k(x_i, x_i) - a'K a [- sum_i a_i^2 / (4 C s_i)]

    over a >= 0, sum a = 1, with the last sum for the soft ball only.

    Parameters
    ----------
    C : float > 0 or None, default=1.0
        Price of points outside, in units of 1 / k(x, x); None: none are outside (hard).
        The excesses of the soft ball have a fixed sum: 2 C sum_i s_i max(0, d_i - rho)
        = 1, so C = 1 / (2 m q) allows for a mean excess of q. Below 1 / (2 sum_i s_i
        d_i) the radius is 0 and no point is inside; a RuntimeWarning says so.
    contamination : float in (0, 0.5], "auto" or None, default=None
        The share of the rows, by ``sample_weight``, that `predict` puts outside: the
        boundary is moved to that quantile of their scores. The ball itself, and so
        the certificate, depends on ``C`` only. "auto" or None: the surface of the ball
        is the boundary.
    kernel : str or callable, default="rbf"
        "linear" (a ball in the space of the data), "poly", "rbf", "sigmoid",
        "laplacian", "chi2" (of data >= 0), "precomputed" (X holds the values of all
        pairs of rows), or a function of two matrices, dense or CSR, (k, n) and (l, n),
        that returns their kernel values (k, l). `widemargin.Kernel` has the formulas.
    gamma : float > 0 or {"scale", "auto", "mean_distance"}, default="scale"
        "scale": 1 / (n Var(X)); "auto": 1 / n; "mean_distance": 1 / (2 d), with d the
        mean of ``|x - z|^2`` over all pairs of rows. Rows count by ``sample_weight``.
    degree : int >= 1, default=3
        Of "poly".
    coef0 : float, default=0.0
        Of "poly" and "sigmoid".
    step : {"toward", "away", "pairwise", "swap"}, default="away"
        How weight moves. "toward": from all points to the farthest one. "away": that,
        or from the nearest point with weight to all others. "pairwise": from one point
        with weight to the farthest one. "swap": as "toward" or "pairwise", whichever
        gains more. "toward" is sublinear: its gap stays at some percent. The others are
        close to each other; "away" was fastest on 20,000 to 30,000 rows
        (docs/measurements/enclosing_balls.md).
    tol : float in (0, 1], default=1e-3
        Relative duality gap. Of the hard ball 1 - D / max d_i: for tol <= 0.6 the
        radius is at most (1 + tol) times the smallest.
    max_iter : int >= 1 or None, default=None
        Steps; None: 5,000,000.
    time_limit : float > 0 in seconds, or None, default=None
        Of the fit, without the time of callbacks; half a second more for a certificate.
        Without time for a certificate the best known ball is the answer; its radius is
        infinite where not even all k(x, x) are known.
    memory_limit : int >= 16384 in bytes, or None, default=None
        For kernel values that are kept and for packed samples; None: half of the free
        memory. Also for temporary arrays of a prediction.
    n_jobs : int or None, default=None
        Threads. None: as many as BLAS may use at the moment (all cores, or fewer inside
        joblib).
    random_state : int >= 0, RandomState or None, default=None
        Seed of the point from which the start is sought; None: 0.
    verbose : int, default=0
        1 shows the progress on standard error.
    callback : callable or None, default=None
        Called with a `widemargin.solution.Step` every 0.05 s or so; returning True
        stops the fit, and an error ends it.
    checkpoint : str, path-like, `widemargin.Checkpoint` or None, default=None
        File of a fit that is not finished: a later fit to the same data goes on from
        it. It keeps the points with their weights a_i, 16 bytes a row. Kernel values
        are made anew.

    Attributes
    ----------
    radius_ : float, sqrt(rho), rounded up for the hard ball; see ``time_limit``. The
        radius of the ball itself, also with ``contamination``
    offset_ : float
        ``decision_function`` is ``score_samples`` - ``offset_``: -rho, less what
        rounding may do to a score if all points are inside. With ``contamination`` the
        quantile of the scores of the rows of the fit
    support_ : ndarray of the rows with a_i > 0, sorted
    support_vectors_ : ndarray or CSR array (n_sv, n), these rows as stored; empty for a
        precomputed kernel. With kernel="linear" more than 16 MiB are copied when they
        are first asked for, or copied: until then the training data are kept, and must
        stay as they are.
    coreset_ : ndarray, the same as ``support_``: no ball around these rows alone is
        smaller by more than the gap
    dual_coef_ : ndarray (1, n_sv), their a_i, of sum 1
    center_ : ndarray (n,), for kernel="linear" only
    kernel_ : Kernel, with gamma as a number
    gamma_ : float, gamma of this kernel
    n_iter_ : int, steps
    dual_gap_ : float
        Relative gap (P - D) / P, recomputed in float64 from the answer, and what
        rounding may hide: 9e-16 of the largest k(x, x). Where all d_i are below 1e-12
        times the largest k(x, x), they count as that large. Infinite like the radius.
    status_ : str, how the fit ended
    n_features_in_ : int
    feature_names_in_ : ndarray (n,), where X had column names

    See Also
    --------
    SVC : classifiers with the same kernels.

    Notes
    -----
    A row with sample weight 0 counts as removed; for a soft ball a row of weight 2 is
    two rows. Points with a_i > 0 lie outside a soft ball, and on a hard ball.

    The fit that Ctrl-C ends keeps its best model and then raises KeyboardInterrupt.
    Where a squared distance is seen to be negative the kernel is not positive
    semidefinite ("sigmoid" often is not), and a RuntimeWarning says so. Dense data are
    centered for kernel="linear", in a float64 copy.

    "precomputed" data do not hold k(x, x) of the rows to predict. Prediction works only
    where k(x, x) is the same for all rows of the fit, and takes it for new rows too.

    A step costs a few passes over vectors of length m, and a row of K where it is not
    kept: the rows of the support vectors should fit ``memory_limit``.

    References
    ----------
    [tax2004]_ for the description of data by a ball; [tsang2005]_ for squared slacks
    and coresets; [chang2013]_ for rho >= 0; [frandi2013]_ for the steps, here with
    second-order pairs and a certificate over all points.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import EnclosingBall
    >>> X = np.array([[0.0, 0.0], [4.0, 0.0], [2.0, 1.0], [2.0, -1.0]])
    >>> ball = EnclosingBall(C=None, kernel="linear").fit(X)
    >>> ball.center_, round(ball.radius_, 6), ball.support_
    (array([2., 0.]), 2.0, array([0, 1]))
    >>> ball.predict([[2.0, 1.5], [5.0, 0.0]])
    array([ 1, -1])
    """

    _advice_too: ClassVar[dict[str, str]] = {"solver": "; 'step' says how it moves"}

    _takes_present = True

    def __init__(
        self,
        *,
        C: float | None = 1.0,
        contamination: float | str | None = None,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        step: str = "away",
        tol: float = 1e-3,
        max_iter: int | None = None,
        time_limit: float | None = None,
        memory_limit: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callback: Callable[[Step], Any] | None = None,
        checkpoint: Any = None,
    ) -> None:
        self.C = C
        self.contamination = contamination
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.step = step
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
    def coreset_(self) -> Index:
        """Rows whose smallest ball is as large as the ball of all, up to the gap."""
        check_is_fitted(self)
        support: Index = self.support_
        return support

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(
        self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Find the ball around the rows of X.

        Parameters
        ----------
        X : array, sparse matrix or Rows in memory (m, n)
            float32, float64 and integers are used as they are. For
            kernel="precomputed" the kernel values of all pairs of rows, (m, m).
        y : None, not used: scikit-learn passes it
        sample_weight : array (m,) of numbers >= 0, or None

        Returns
        -------
        self

        Raises
        ------
        ValueError
            A parameter out of range, NaN or infinity, a kernel with k(x, x) < 0, no
            room in ``memory_limit``. The estimator keeps the model of an earlier fit.
        KeyboardInterrupt
            After Ctrl-C, with the best model kept.
        MemoryError
            Memory ran out; the best model so far is kept, if there was one.

        Warns
        -----
        ConvergenceWarning
            The gap asked for was not reached; says how far it is and what helps.
        RuntimeWarning
            C is so small that no point is inside; or the kernel was seen not to be
            positive semidefinite, and the gap proves nothing.
        UserWarning
            More than half of the rows, by weight, are outside: of the ball, without
            ``contamination``.
        """
        self._check_parameters()
        with fitted_anew(self):
            ball, weights = self._fit(X, sample_weight)
        tell_end(ball, ball.is_convex)
        if self.C is not None and not self._has_share:
            for message, kind in warnings_of(self.C, ball, weights):
                warnings.warn(message, kind, stacklevel=users_level())
        return self

    def score_samples(self, X: Any) -> Vector:
        """The squared distances from the center, with a minus: larger is more normal.

        Parameters
        ----------
        X : array, sparse matrix or Rows (k, n)
            For kernel="precomputed" the values with the rows of the fit, (k, m).

        Returns
        -------
        ndarray (k,), at most 0

        Raises
        ------
        ValueError
            Another number of columns, NaN or infinity; precomputed values where k(x, x)
            of the rows of the fit is not constant.
        """
        check_is_fitted(self)
        rows = read_rows(self, X)
        if rows.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {rows.shape[1]} features, but the model expects "
                f"{self.n_features_in_}."
            )
        return self._scores(rows)

    def _scores(self, rows: Rows) -> Vector:
        """Scores of the rows: (k,), writeable."""
        state = rows.state(scores=0.0)
        if rows.sweep(score_distances, state, self._distances()):
            rows.refuse_nonfinite()
        scores: Vector = state.scores
        return scores if scores.flags.writeable else scores.copy()

    def decision_function(self, X: Any) -> Vector:
        """The squared radius less the squared distance: not negative inside.

        With ``contamination`` the squared distance of the boundary takes the place of
        the squared radius.

        Parameters
        ----------
        X : array, sparse matrix or Rows (k, n), as of `score_samples`

        Returns
        -------
        ndarray (k,)
        """
        scores = self.score_samples(X)
        scores -= self.offset_
        return scores

    def predict(self, X: Any) -> Index:
        """Whether rows are inside: 1, or -1 outside.

        Parameters
        ----------
        X : array, sparse matrix or Rows (k, n), as of `score_samples`

        Returns
        -------
        ndarray (k,) of int
        """
        signs: Index = np.where(self.decision_function(X) >= 0, 1, -1)
        return signs

    @property
    def model_(self) -> Model:
        """What `widemargin.save_model` writes: the decision function, where it can.

        It is a sum of kernel values where k(x, x) is the same for all x: with the
        kernels rbf, laplacian and chi2, and with precomputed values of which that is
        true. Rows that are outside by less than rounding, 7e-15 of k(x, x), are inside.

        Raises
        ------
        ValueError, AttributeError
            With another kernel; or the radius is infinite.
        """
        check_is_fitted(self)
        return model_of(self)

    # -- parts of fit ------------------------------------------------------------------

    @property
    def _has_share(self) -> bool:
        """Whether a share of the rows sets the boundary."""
        given = self.contamination
        return not (given is None or (isinstance(given, str) and given == "auto"))

    def _check_parameters(self) -> None:
        """Raise for a parameter out of range, in the words of scikit-learn."""
        check = Checker(type(self).__name__)
        check.positive("C", self.C, optional=True)
        if self._has_share:
            share = self.contamination
            if not (isinstance(share, Real) and 0.0 < float(share) <= 0.5):
                expected = "a float in the range (0, 0.5], 'auto' or None"
                check.refuse("contamination", expected, share)
        check_limits(check, self)
        Checkpoint.of(self.checkpoint, type(self).__name__)
        check.choice("step", self.step, STEPS)
        check_kernel_of(check, self)

    def _fit(self, X: Any, sample_weight: Any) -> tuple[Ball, Vector]:
        """Set the fitted attributes; the ball, and the weights of its rows.

        There is no plan to choose: a ball has neither a low rank nor a budget.
        """
        limits = limits_of(self)
        rows = read_rows(self, X, reset=True)
        check = Checker(f"{type(self).__name__}.fit")
        weights = labels.as_weights(check, sample_weight, rows.shape[0])
        set_kernel(self, rows, None if sample_weight is None else weights)
        kept = np.flatnonzero(weights)
        try:
            with until(limits.grace):
                problem = self._problem(rows, kept, weights[kept])
        except OutOfTime:
            ball = self._keep_unbounded(rows, kept, limits)
            return ball, weights[kept]
        points = _Points(rows, kept, problem)
        ball = self._enclosed(points, limits, (X, None, sample_weight))
        self._store(points, ball)
        if self._has_share:
            self.offset_ = self._boundary(points, ball, weights[kept])
        return ball, weights[kept]

    def _enclosed(self, points: _Points, limits: Limits, data: Any) -> Ball:
        """The ball of a problem, of whose steps callbacks are told."""
        callbacks = Callbacks(self, 1, data)
        callback = callbacks.of(0, functools.partial(self._model, points))
        limits, seed = dataclasses.replace(limits, callback=callback), seed_of(self)
        try:
            ball = enclose(points.problem, limits, step=self.step, seed=seed or 0)
            gap = ball.certificate.relative_gap
            callbacks.finish([0], [gap], [ball.status])
        finally:
            callbacks.close()
        saved = limits.checkpoint
        if saved is not None and not saved.keep and ball.status is Status.SOLVED:
            saved.remove()  # the last step may have been the limit's
        return ball

    def _keep_unbounded(self, rows: Rows, kept: Index, limits: Limits) -> Ball:
        """Keep a ball that takes no time."""
        first = rows.take(kept[:1])
        square = float(self.kernel_.diag(first)[0])
        ball = unbounded(len(kept), square, limits)
        self._store(_Points(rows, kept, None), ball)
        return ball

    def _problem(self, rows: Rows, kept: Index, weights: Vector) -> BallProblem:
        """The points with a weight; for a linear kernel less their mean."""
        some = None if len(kept) == rows.shape[0] else kept
        rows = multiclass.rows_of(rows, some, is_pairwise(self))
        X = rows.in_memory()
        if self.kernel == "linear" and isinstance(X, np.ndarray):
            rows = as_rows(linalg.dense(X) - rows.moments.mean, **rows.options)
        columns = Columns(rows, self.kernel_, self.memory_limit, self.n_jobs)
        with np.errstate(over="ignore"):  # an infinite price is one
            prices = None if self.C is None else self.C * weights
        return BallProblem(columns, prices)

    def _model(
        self, points: _Points, a: Vector, numbers: tuple[float, float]
    ) -> dict[str, Any]:
        """Attributes with which a ball predicts: of a point, rho and |c|^2."""
        rho, square = numbers
        J = np.flatnonzero(a)
        support = points.kept[J]
        found: dict[str, Any] = {
            "radius_": float(np.sqrt(rho)),
            "offset_": -rho,
            "support_": support,
            "dual_coef_": a[np.newaxis, J],
            "_meta": {"center_square": square},
        }
        if self.kernel == "linear":
            found["center_"] = linalg.rmatvec(points.rows.take(support), a[J])
        if is_pairwise(self) and points.problem is not None:
            diagonal = points.problem.diagonal
            varies = np.ptp(diagonal) > CONSTANT * diagonal.max()
            found["_meta"]["diagonal"] = None if varies else float(diagonal[0])
            found["support_vectors_"] = np.empty((0, 0))
        return found

    def _store(self, points: _Points, ball: Ball) -> None:
        """Keep the answer."""
        rho = boundary = ball.rho
        if rho >= ball.distances.max():  # all points are inside
            rho, boundary = self._rounded_up(points, rho)
        found = self._model(points, ball.a, (rho, ball.center_square))
        found["offset_"] = -boundary
        for name, value in found.items():
            setattr(self, name, value)
        if not is_pairwise(self):
            keep_support_vectors(self, points.rows)
        self.n_iter_ = max(1, ball.trace[-1].iteration) if ball.trace else 1
        bounds, status = ball.certificate, ball.status
        if self.kernel == "linear" and points.problem is not None:
            bounds = self._of_center(points.problem, points, ball)
            if status is Status.SOLVED and bounds.relative_gap > self.tol:
                status = Status.STALLED
        self.dual_gap_ = float(bounds.relative_gap)
        self.status_ = status.value

    def _of_center(
        self, problem: BallProblem, points: _Points, ball: Ball
    ) -> Certificate:
        """The certificate with what rounding of ``center_`` does to the distances."""
        off = gamma_n(len(ball.a) + 8) * _longest(points.rows)
        d = ball.distances
        values = [
            problem.certify(ball.a, some).certificate.primal
            for some in (d, (np.sqrt(d) + off) ** 2)
        ]
        bounds, more = ball.certificate, max(0.0, values[1] - values[0])
        scale = max(bounds.scale, (RESOLVED * off) ** 2)
        return dataclasses.replace(bounds, primal=bounds.primal + more, scale=scale)

    def _boundary(self, points: _Points, ball: Ball, weights: Vector) -> float:
        """The score from which on rows are inside, for a given share outside."""
        share: Any = self.contamination
        if is_pairwise(self) and self._meta["diagonal"] is None:  # cannot predict
            return lowest_inside(-ball.distances, weights, float(share))
        scores = self._scores(points.rows)[points.kept]  # to the bit what `predict` has
        return lowest_inside(scores, weights, float(share))

    def _rounded_up(self, points: _Points, rho: float) -> tuple[float, float]:
        """Rho and the boundary, and what rounding may do to a distance in `predict`.

        The ball of equal points has no radius, and these are inside.
        """
        if points.problem is None:
            return rho, rho
        X = points.rows.in_memory()
        if self.kernel == "linear" and isinstance(X, np.ndarray):  # by differences
            more = float((np.sqrt(rho) + OUTWARD * _longest(points.rows)) ** 2)
            return more, more
        more = rho + OUTWARD * float(points.problem.diagonal.max())
        return more if rho > 0 else 0.0, more

    # -- parts of predict --------------------------------------------------------------

    def _distances(self) -> Distances:
        """Squared distances of the rows of a block from the center."""
        if self.kernel == "linear":
            return from_point(self.center_)
        if not is_pairwise(self):
            a, square = self.dual_coef_[0], self._meta["center_square"]
            return from_center(self.kernel_, self.support_vectors_, a, square)
        if self._meta["diagonal"] is None:
            raise ValueError(
                "EnclosingBall cannot predict with a precomputed kernel whose k(x, x) "
                "differs between the rows of the fit: X does not hold k(x, x) of its "
                "rows. Use a callable kernel."
            )
        w = np.zeros(self.n_features_in_)
        w[self.support_] = -2.0 * self.dual_coef_[0]
        return from_products(w, sum(self._meta.values()))


def _longest(rows: Rows) -> float:
    """The length of the longest row."""
    return float(np.sqrt(linalg.row_squares(rows.in_memory()).max()))
