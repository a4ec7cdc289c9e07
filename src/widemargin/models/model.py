"""What predicts: decision functions, and the classes they decide between."""

import dataclasses
import functools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from widemargin.arrays import Index, Vector
from widemargin.data.memory import as_rows
from widemargin.data.rows import Rows
from widemargin.data.state import RowState, check_length, finite
from widemargin.data.words import encoded
from widemargin.features.maps import FourierFeatures, SquareFeatures, tiles
from widemargin.features.scaling import Scaling
from widemargin.kernels.expansion import Expansion
from widemargin.models.calibration import Calibration
from widemargin.models.decisions import Decision, Decisions, together
from widemargin.models.schemes import (
    ONE_CLASS,
    PAIRED,
    REGRESSION,
    SHAPES,
    SINGLE,
    n_decisions,
)
from widemargin.models.votes import are_sure, by_class, largest, winners
from widemargin.numerics import linalg
from widemargin.parameters import Conditional, in_one_line

# Scores that are decided on together: their indices take as much as they do.
_CHUNK = 1 << 20
# Rows in memory that are scored without a sweep: setting the threads of BLAS, 0.05 ms,
# takes longer than most of them: 64 rows of 1,000 columns take 0.02 ms.
FEW = 64
# The same of CSR rows by their entries: about a block of a sweep.
SPARSE = 1 << 18
# Names that a sentence tells.
SHOWN = 5


def _calibrated(method: Callable[..., Any]) -> Any:
    """A method of models that keep what makes probabilities."""

    def allow(model: Any) -> None:
        if model.calibration is None:
            raise AttributeError(
                "This Model has no probabilities: they come from SVCCV or LinearSVCCV "
                "with calibrate='sigmoid', or SVC or NuSVC with probability=True."
            )

    return Conditional(method, allow)


@dataclass(frozen=True)
class Model:
    """Decisions and the classes between which they decide.

    Attributes
    ----------
    classes : ndarray (c,), sorted labels: numbers or strings; none for "regression",
        -1 and 1 for "one_class"
    scheme : {"binary", "ovr", "ovo", "dag", "regression", "one_class"}
        "binary": one decision, positive for ``classes[1]``. "ovr": one decision a
        class, the largest wins. "ovo": one decision for each pair of classes i < j in
        the order (0, 1), (0, 2), ..., positive for the first; most votes win, and of
        several classes with as many the first. "dag": the same decisions; that of the
        first and the last class drops one of them, until one class is left.
        "regression": the value of the one decision is what is predicted. "one_class":
        as "binary", 1 for rows like those of the training.
    decisions : sequence of Decision, linear ones; empty with ``kernels``
    meta : dict of facts about the training, kept with the model
    kernels : Expansion or None, the decisions of a model with a kernel
    expand : FourierFeatures, SquareFeatures or None
        Features z(x) that the linear decisions are about in place of x; of `n_features`
        columns.
    shape : {"ovr", "ovo"}
        What `scores` are about: classes, or with "ovo" and "dag" perhaps pairs.
    break_ties : bool
        Of "ovo": the largest score wins, so that of several classes with as many votes
        the sums of decision values choose one.
    scaling : Scaling or None
        Map of the columns before the kernel or the features of ``expand``; weights of
        the columns themselves have it folded in (`scaled`).
    calibration : Calibration or None
        What makes probabilities of `scores` (`predict_proba`).
    """

    classes: NDArray[Any]
    scheme: str
    decisions: Sequence[Decision] = ()
    meta: dict[str, Any] = field(default_factory=dict)
    kernels: Expansion | None = None
    expand: FourierFeatures | SquareFeatures | None = None
    shape: str = "ovr"
    break_ties: bool = False
    scaling: Scaling | None = None
    calibration: Calibration | None = None

    def __repr__(self) -> str:
        facts: dict[str, Any] = {"scheme": self.scheme, "classes": len(self.classes)}
        if self.is_regression:
            del facts["classes"]
        facts["n_features"] = self.n_features
        if self.kernels is not None:
            name = self.vectors_name.replace(" ", "_")
            facts |= self.kernels.kernel.facts | {name: self.kernels.vectors.shape[0]}
        if self.expand is not None:
            facts["expand"] = self.expand
        if self.scaling is not None:
            facts["scaled"] = True
        if self.calibration is not None:
            facts["calibration"] = self.calibration.method
        return in_one_line(self, **facts)

    def __post_init__(self) -> None:
        c = len(self.classes)
        needed = n_decisions(self.scheme, c)
        found = len(self.decisions)
        if self.kernels is not None:
            found += len(self.kernels.b)
        if found != needed:
            raise ValueError(
                f"A model of scheme {self.scheme!r} with {c} classes cannot have "
                f"{found} decision(s)."
            )
        if self.is_regression == bool(len(self.classes)):
            self._refuse(f"{len(self.classes)} classes")
        if self.shape not in SHAPES[: 1 + self.is_paired]:
            self._refuse(f"the shape {self.shape!r}")
        if self.break_ties and (self.scheme != "ovo" or self.shape == "ovo"):
            self._refuse("break_ties")
        if self.scaling is not None:
            self._check_scaling(self.scaling)
        if self.calibration is not None:
            self._check_calibration(self.calibration)

    def _check_calibration(self, calibration: Calibration) -> None:
        columns = 1 if self.is_single else len(self.classes)
        if self.is_regression or self.scheme == ONE_CLASS or self.shape == "ovo":
            self._refuse("a calibration")
        if len(calibration.counts) != columns:
            self._refuse(f"a calibration of {len(calibration.counts)} column(s)")

    def _check_scaling(self, scaling: Scaling) -> None:
        if self.is_linear:
            self._refuse("a scaling beside weights that have it folded in")
        if scaling.rank != self.n_features:
            self._refuse(f"a scaling of {scaling.rank} columns")

    def _refuse(self, what: str) -> NoReturn:
        raise ValueError(f"A model of scheme {self.scheme!r} cannot have {what}.")

    @property
    def is_linear(self) -> bool:
        """Whether its decisions are weights of the columns."""
        return self.kernels is None and self.expand is None

    @property
    def is_single(self) -> bool:
        """Whether it has one decision."""
        return self.scheme in SINGLE

    @property
    def is_regression(self) -> bool:
        """Whether it predicts numbers, and has no classes."""
        return self.scheme == REGRESSION

    @property
    def is_paired(self) -> bool:
        """Whether it has a decision for each pair of several classes."""
        return self.scheme in PAIRED

    @property
    def n_features(self) -> int:
        """Columns that `scores` expects."""
        if self.kernels is not None:
            return self.kernels.n_features
        if self.expand is not None:
            return self.expand.n_features
        return int(self.decisions[0].w.shape[0])

    @property
    def n_features_in_(self) -> int:
        """Columns that X must have: ``n_features`` by the name of scikit-learn."""
        return self.n_features

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, sorted: ``classes`` by the name of scikit-learn."""
        return self.classes

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the columns, (n,); AttributeError where the model has none."""
        names = self._names
        if names is None:
            raise AttributeError("This Model has no names of columns.")
        return np.array(names, dtype=object)

    @property
    def has_weights(self) -> bool:
        """Whether each class has weights of the columns, that say what speaks for it.

        Not with a kernel (a precomputed one too) or features of one, nor where each
        pair of classes has weights, nor without classes to speak for.
        """
        kernel = self.kernels is not None or self.meta.get("kernel") == "precomputed"
        alone = self.is_regression or self.scheme == ONE_CLASS
        return not (kernel or self.expand is not None or self.is_paired or alone)

    @property
    def vectors_name(self) -> str:
        """What the vectors of a kernel model are: "landmarks" of a low rank, or not."""
        low = "approximation" in self.meta and self.expand is None
        return "landmarks" if low else "support vectors"

    def scores(self, rows: Rows) -> Vector:
        """Decision values: (m,) for one decision, else (m, c) or (m, pairs).

        Columns that have names, as in a table or in Parquet, are matched with the names
        that the model keeps, in any order; columns without names are taken as they
        come, and so are all where the model keeps no names.

        For "ovo" a value is the number of votes for the class, plus a part of less than
        1/3 in size that is s / (3 (abs(s) + 1)), with s the sum of its pairs' decision
        values: scikit-learn's ``decision_function_shape="ovr"``. For "dag" it is the
        number of classes that were dropped before the class, plus that part. With
        ``shape="ovo"`` the values are those of the pairs.

        Raises
        ------
        ValueError if X has another number of columns than the training data, or other
        names of columns, or holds NaN or an infinity.
        """
        scores = self.scored(rows).scores
        return scores if scores.flags.writeable else scores.copy()

    def scored(self, rows: Rows) -> RowState:
        """Row state whose vector ``scores`` holds what `scores` returns.

        Its parts are read slice by slice, wherever the rows keep their vectors.
        """
        return self._scored(self._matched(rows))

    def _scored(self, rows: Rows) -> RowState:
        """Row state with ``scores`` for rows as the decisions take them."""
        c, shown = len(self.classes), self.scheme if self.shape == "ovr" else "pairs"
        width = (n_decisions(self.scheme, c) or 0) if shown == "pairs" else c
        shape = (rows.shape[0],) if self.scheme in SINGLE else (rows.shape[0], width)
        state = rows.state(scores=np.broadcast_to(0.0, shape))
        is_direct = self._is_quick(rows) or self._is_sparse_block(rows)
        block = rows.in_memory() if is_direct else None
        scorer: tuple[Any, ...]
        if self._is_narrowed(block):
            block, W, b = self._narrow(block)
            scorer = _score, W, b
        else:
            scorer = self._scorer
        score, *what = scorer
        what += [shown, c]
        if block is None:
            broken = rows.sweep(score, state, *what)
        else:
            broken = score(block, state, *what)
        if broken:
            rows.refuse_nonfinite()
        return state

    def _is_quick(self, rows: Rows) -> bool:
        """Whether the start of a sweep would take longer than the rows themselves."""
        called = self.kernels is not None and not self.kernels.kernel.is_named
        return rows.is_in_memory and rows.shape[0] <= FEW and not called

    def _is_sparse_block(self, rows: Rows) -> bool:
        """Whether linear decisions take CSR rows at once, in which BLAS has no part."""
        stored = rows.density * rows.shape[0] * rows.shape[1]
        is_small = rows.density < 1.0 and stored <= SPARSE
        return self.is_linear and rows.is_in_memory and is_small

    def _is_narrowed(self, block: Any) -> bool:
        """Whether a few rows take less time than the weights to bring together.

        Those of 20 classes and 50,000 columns take 5 ms.
        """
        several = self.is_linear and self.scheme not in SINGLE
        few = block is not None and block.shape[0] <= FEW
        if not (several and few) or "_scorer" in vars(self):
            return False
        if isinstance(self.decisions, Decisions):
            return not self.decisions.W.flags.c_contiguous
        return bool(sparse.issparse(block))

    def _narrow(self, block: Any) -> tuple[Any, Vector, Vector]:
        """A few rows, weights and b; of CSR rows the columns that they have."""
        if not sparse.issparse(block):
            return block, *together(self.decisions)
        columns, place = np.unique(block.indices, return_inverse=True)
        shape = block.shape[0], len(columns)
        narrow = sparse.csr_array((block.data, place, block.indptr), shape=shape)
        W, b = together(self.decisions, columns)
        return narrow, np.ascontiguousarray(W), b

    @functools.cached_property
    def _scorer(self) -> tuple[Any, ...]:
        """The function of a block that sets its scores, and what it needs."""
        if self.kernels is not None:
            return _score_by_kernel, self.kernels
        W, b = together(self.decisions)
        W = np.ascontiguousarray(W)  # as products of CSR rows want it
        W = W[:, 0] if self.scheme in SINGLE else W
        return (
            (_score, W, b)
            if self.expand is None
            else (_score_mapped, self.expand, W, b)
        )

    def decide(self, scores: Vector) -> NDArray[Any]:
        """Labels from decision values: (m,); these themselves for a regression."""
        if self.is_regression:
            return scores
        labels = np.empty(len(scores), self.classes.dtype)
        for start in range(0, len(scores), _CHUNK):
            part = scores[start : start + _CHUNK]
            labels[start : start + _CHUNK] = self.classes[self.winners(part)]
        return labels

    def labels(self, rows: Rows) -> NDArray[Any]:
        """Labels of rows, or the numbers that a regression predicts: (m,). One sweep.

        They are those that `decide` has for `scores`. Kernel values are float32 where
        that has enough digits, and the scores of a row in float64 only where the errors
        could change its label.

        Raises
        ------
        ValueError as of `scores`.
        """
        rows = self._matched(rows)
        if self.is_regression:
            return self._scored(rows).scores
        kernels = self.kernels
        if kernels is None or self._is_quick(rows) or not kernels.gains_by_float32:
            return self.decide(self._scored(rows).scores)
        state = rows.state(winner=np.broadcast_to(0.0, rows.shape[0]))
        form = self.scheme, len(self.classes), self.break_ties
        if rows.sweep(_choose_by_kernel, state, kernels, form):
            rows.refuse_nonfinite()
        return np.asarray(self.classes[state.winner.astype(np.intp)])

    def winners(self, scores: Vector) -> Index:
        """Indices of the classes that decision values decide for: (m,)."""
        if self.is_single:
            return (scores >= 0).astype(np.intp)
        if self.shape == "ovo":
            return winners(scores, self.scheme, len(self.classes))
        return largest(scores, self.scheme, self.break_ties)

    def decision_function(self, X: ArrayLike) -> Vector:
        """Decision values: see `scores`.

        Parameters
        ----------
        X : array, table, sparse matrix or Rows (m, n)
            Columns with names are matched as `scores` says.

        Returns
        -------
        ndarray (m,) for two classes, else (m, c) or (m, pairs)
        """
        return self.scores(self._read(X))

    def score_samples(self, X: ArrayLike) -> Vector:
        """What a detector of outliers scores: its decision values plus ``offset_``.

        Parameters
        ----------
        X : array, table, sparse matrix or Rows (m, n), as of `decision_function`

        Returns
        -------
        ndarray (m,)
            Larger is more normal.

        Raises
        ------
        ValueError
            The model is of classes or of a regression.
        """
        if self.scheme != ONE_CLASS:
            raise ValueError(
                "This Model has no score_samples: they are of OneClassSVM and "
                f"EnclosingBall, not of scheme {self.scheme!r}."
            )
        offset = self.meta.get("offset")
        if offset is None:  # of LIBSVM and LIBLINEAR
            first = self.decisions[0].b if self.kernels is None else self.kernels.b[0]
            offset = -float(first)
        return self.decision_function(X) + float(offset)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Labels of the rows of X, or the numbers that a regression predicts.

        Parameters
        ----------
        X : array, table, sparse matrix or Rows (m, n), as of `decision_function`

        Returns
        -------
        ndarray (m,)
        """
        return self.labels(self._read(X))

    @_calibrated
    def predict_proba(self, X: ArrayLike) -> Vector:
        """Probabilities of the classes, by what a search with ``calibrate`` has found.

        Parameters
        ----------
        X : array, table, sparse matrix or Rows (m, n), as of `decision_function`

        Returns
        -------
        ndarray (m, c)
            In [0, 1], with sum 1 in each row; in the order of ``classes``.

        Raises
        ------
        AttributeError
            The model keeps no calibration: it has no such method then.
        """
        calibration: Any = self.calibration
        found: Vector = calibration.probabilities(self.decision_function(X))
        return found

    def score(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Share of the rows whose label is predicted; R^2 of a regression.

        Parameters
        ----------
        X : array, table, sparse matrix or Rows (m, n), as of `decision_function`
        y : array (m,) of labels, or of targets
        sample_weight : array (m,) of numbers >= 0, or None
            Of the rows in the share; None: all count the same.

        Returns
        -------
        float in [0, 1], or at most 1 for a regression

        Raises
        ------
        ValueError
            y or sample_weight has not length m.
        """
        found, truth = self.predict(X), np.ravel(np.asarray(y))
        check_length("y", truth, len(found))
        weights = None
        if sample_weight is not None:
            weights = finite("sample_weight", sample_weight, len(found))
        if self.is_regression:
            return _r2(finite("y", truth, len(found)), found, weights)
        return float(np.average(found == truth, weights=weights))

    def scaled(self, scaling: Scaling) -> "Model":
        """The model that predicts of rows what this one predicts of the scaled rows.

        Weights of the columns have it folded in, to rounding; kernels and features
        keep it as a map of the rows.
        """
        if not self.is_linear:
            whole = scaling if self.scaling is None else scaling.then(self.scaling)
            return dataclasses.replace(self, scaling=whole)
        folded = (scaling.folded(d.w, d.b) for d in self.decisions)
        decisions = tuple(Decision(w, b) for w, b in folded)
        return dataclasses.replace(self, decisions=decisions)

    def _read(self, X: Any) -> Rows:
        """The rows of X; words of a table become the features that the model has."""
        return as_rows(encoded(X, self._names))

    def _matched(self, rows: Rows) -> Rows:
        """The rows as the decisions take them: their columns in order, and scaled."""
        rows = self._ordered(rows)
        if self.scaling is None:
            return rows
        few = self._is_quick(rows)
        return self.scaling.applied(rows) if few else self.scaling.view(rows)

    def _ordered(self, rows: Rows) -> Rows:
        """The rows with their columns as the model has them: by name, else by place."""
        known, found = self._names, rows.names
        if known is None or found is None or list(found) == known:
            if rows.shape[1] != self.n_features:
                raise ValueError(
                    f"X has {rows.shape[1]} features, but the model expects "
                    f"{self.n_features}."
                )
            return rows
        _check_names(known, found)
        place = {name: j for j, name in enumerate(found)}
        order = np.array([place[name] for name in known])
        X = rows.in_memory() if self._is_quick(rows) else None
        if X is not None:
            return as_rows(linalg.columns(X, order), **rows.options)
        return rows.mapped(_Ordered(order))

    @property
    def _names(self) -> list[str] | None:
        """Names of the columns, if the model has one for each."""
        names = self.meta.get("feature_names")
        if not isinstance(names, list) or len(names) != self.n_features:
            return None
        return [str(name) for name in names]


def _r2(truth: Vector, found: Vector, weights: Vector | None) -> float:
    """Share of the variance of targets that predictions explain."""
    center = np.average(truth, weights=weights)
    left = np.average((truth - found) ** 2, weights=weights)
    whole = np.average((truth - center) ** 2, weights=weights)
    if whole == 0.0:
        return float(left == 0.0)
    return float(1.0 - left / whole)


class _Ordered:
    """Feature map that puts columns in another order."""

    def __init__(self, order: Index) -> None:
        self.rank, self._order = len(order), order

    def map(self, block: Any) -> Any:
        """The block with its columns in the order of the model."""
        return linalg.columns(block, self._order)


def _check_names(known: list[str], found: Sequence[str]) -> None:
    """Refuse columns of which one is missing, unknown or there twice."""
    missing, unknown = (
        [name for name in some if name not in others]
        for some, others in ((known, set(found)), (found, set(known)))
    )
    twice = [name for name, k in Counter([*found]).items() if k > 1]
    got = [f"no column {_listed(missing)}"] * bool(missing)
    got += [f"{_listed(unknown)}, which it does not know"] * bool(unknown)
    got += [f"{_listed(twice)} more than once"] * bool(twice)
    if got:
        raise ValueError(
            "X must have the columns that the model was trained on, in any order. "
            f"Got {' and '.join(got)} instead."
        )


def _listed(names: Sequence[str]) -> str:
    """The first names, for a sentence."""
    shown = ", ".join(repr(name) for name in names[:SHOWN])
    return shown + f" and {len(names) - SHOWN:,} more" * (len(names) > SHOWN)


def _score(
    block: Any, part: RowState, W: Vector, b: Vector, scheme: str, c: int
) -> int:
    """Set the scores of a block; 1 where they show that it holds NaN or infinity."""
    with np.errstate(invalid="ignore", over="ignore"):  # what is returned tells of it
        values = linalg.matvec(block, W)
        values += b
        scores = part.scores = by_class(values, scheme, c)
    return int(not np.isfinite(scores).all())


def _score_mapped(
    block: Any, part: RowState, expand: Any, W: Vector, b: Vector, scheme: str, c: int
) -> int:
    """Set the scores of a block, from the features of its rows: see `_score`."""
    broken = 0
    with np.errstate(invalid="ignore", over="ignore"):
        for some, features in tiles(expand, linalg.formed(block)):
            broken += _score(features, part.part(some), W, b, scheme, c)
    return broken


def _score_by_kernel(
    block: Any, part: RowState, decisions: Expansion, scheme: str, c: int
) -> int:
    """Set the scores of a block; 1 where it holds NaN or infinity, or they do."""
    block = linalg.formed(block)
    values = decisions(block)
    scores = values[:, 0] if scheme in SINGLE else values
    scores = part.scores = by_class(scores, scheme, c)
    # exp(-inf) is a number like any other.
    return int(not (np.isfinite(scores).all() and linalg.all_finite(block)))


def _choose_by_kernel(
    block: Any, part: RowState, decisions: Expansion, form: tuple[str, int, bool]
) -> int:
    """Set the numbers of the winning classes; 1 where there is NaN or infinity."""
    block = linalg.formed(block)
    values, errors = decisions.rough(block)
    chosen = winners(values, *form)
    again = np.flatnonzero(~are_sure(values, errors, *form))
    broken = not linalg.all_finite(block)
    if again.size:
        exact = decisions(block[again])
        chosen[again] = winners(exact, *form)
        broken = broken or not np.isfinite(exact).all()
    part.winner = chosen
    return int(broken)
