"""What a solver reports and what a solve returns."""

import functools
import importlib
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin import _core
from widemargin.arrays import Vector

# Rounding that matters, as a share of the gap. (0 to 0.9 solve the same 166 of 180
# problems: benchmarks/core/twofold_share.py. A small one tells smaller gaps of the
# others.)
SHARE = 0.1
# Steps at either end of a long trace that a notebook shows.
_ENDS = 5
# Fields of a solution that may have a number for each training row.
_OF_ROWS = ("alpha", "w")


class Status(StrEnum):
    """How a solve ended; the value is the word users see, `advice` what they can do."""

    SOLVED = "solved"
    ALMOST_SOLVED = "almost_solved"
    MAX_ITER = "max_iter"
    TIME_LIMIT = "time_limit"
    INTERRUPTED = "interrupted"
    STOPPED_BY_CALLBACK = "stopped_by_callback"
    OUT_OF_MEMORY = "out_of_memory"
    STALLED = "stalled"
    NUMERICAL_ERROR = "numerical_error"
    INFEASIBLE = "infeasible"
    NO_MARGIN = "no_margin"

    @property
    def advice(self) -> str:
        """A sentence: what this status means for the user and what helps."""
        return _ADVICE[self]

    @property
    def ends_fit(self) -> bool:
        """Whether the fit begins nothing more: its time is over, or after Ctrl-C."""
        return self in (Status.TIME_LIMIT, Status.INTERRUPTED)


_ADVICE = {
    Status.SOLVED: "The answer is as good as asked.",
    Status.ALMOST_SOLVED: (
        "The gap is within 100 times tol, and at most 0.1; the solver got no further. "
        "Scaling the features (StandardScaler) or a smaller C usually helps."
    ),
    Status.MAX_ITER: (
        "Raise max_iter or leave it out, scale the features (StandardScaler) or lower "
        "C."
    ),
    Status.TIME_LIMIT: "Raise time_limit, raise tol or lower C.",
    Status.INTERRUPTED: "The best answer so far was kept.",
    Status.STOPPED_BY_CALLBACK: "The callback returned True; the best answer was kept.",
    Status.OUT_OF_MEMORY: (
        "The best answer so far was kept. Lower memory_limit or n_jobs, or raise what "
        "the system allows (ulimit)."
    ),
    Status.STALLED: (
        "The last iterations did not improve the answer. Scaling the features "
        "(StandardScaler), a smaller C or another solver usually helps."
    ),
    Status.NUMERICAL_ERROR: (
        "The arithmetic broke down; the best answer before that was kept. Scale the "
        "features (StandardScaler) or lower C."
    ),
    Status.INFEASIBLE: (
        "No model reaches all margins, as C=inf asks. A finite C allows losses; for "
        "regressions a larger epsilon helps too."
    ),
    Status.NO_MARGIN: (
        "Decision values are rounding, and predictions mean nothing. Take a larger nu, "
        "another kernel (rbf, or a larger gamma of it) or, if any, a larger rank."
    ),
}
# How `str` begins where the gap is no proof, and else by the status.
_NO_PROOF = "Stationary, but not proved to be best (the kernel is not PSD), to"
_HEADS = {
    Status.SOLVED: "Solved to",
    Status.NO_MARGIN: "Proved that no margin exists, to",
}


# The relative gap of zero in classification: from there on nothing useful is proved.
UNPROVED = 1.0


def reached(gap: float, tol: float) -> str:
    """How far a fit came that did not get to ``tol``: what follows "Stopped"."""
    if gap < UNPROVED:
        return f"at a relative gap of {gap:.1e} (asked: {tol:.0e})"
    return f"before anything useful was proved (asked: a relative gap of {tol:.0e})"


def ended(status: Status | str, gap: float, tol: float, is_convex: bool) -> str:
    """How a fit has ended, and with which gap: what a sentence begins with."""
    head = _HEADS.get(Status(status)) if is_convex else _NO_PROOF
    if head is None:
        return f"Stopped ({status}) {reached(gap, tol)}"
    return f"{head} a relative gap of {gap:.1e} (asked: {tol:.0e})"


# Said where a solver has met negative curvature, whatever the gap.
NOT_CONVEX = (
    "The kernel is not positive semidefinite on these data: the answer is a stationary "
    "point, perhaps not the best one, and its gap is no proof. Use another kernel "
    "('rbf'), or other parameters of this one."
)


@dataclass
class Step:
    """One iteration, as a solver yields it; the driver adds what it knows.

    Attributes
    ----------
    iteration : int, from 0
    primal, dual : float
        Objective values of the current point, as the solver estimates them.
    residual : float
        Largest violation of w = X'Y alpha, in the units of w.
    active : int, rows that the iteration worked on: the active or working set
    at : callable or None, what `point` returns the value of; None once that has passed
    seconds : float, since the solve began, without callbacks
    sweeps : int, reads of the data since the solve began
    details : dict of the solver's own numbers, which its class explains
    best_primal, best_dual : float
        The least primal and the largest dual value up to this step, of all steps.
    problem : int, which binary problem of a fit this is, in the order of ``solutions_``
    vectors : names of the row vectors that the solver goes on from, for checkpoints
    waits : bool, whether the solver would go on though the gap may be small enough
    scale : float, floor of ``|P|`` in relative gaps: see `Certificate`
    """

    iteration: int
    primal: float
    dual: float
    residual: float
    active: int
    details: dict[str, float] = field(default_factory=dict)
    at: Callable[[], tuple[Vector, Any]] | None = field(default=None, repr=False)
    seconds: float = 0.0
    sweeps: int = 0
    best_primal: float = np.nan
    best_dual: float = np.nan
    problem: int = 0
    vectors: tuple[str, ...] = ()
    waits: bool = False
    scale: float = 0.0

    @property
    def gap(self) -> float:
        """Duality gap P - D."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """Duality gap over ``|P|``, or the scale (infinite where P is 0 without)."""
        return relative_gap(self.primal, self.dual, self.scale)

    @property
    def best_gap(self) -> float:
        """Relative gap of the best objective values so far, as `relative_gap`."""
        return relative_gap(self.best_primal, self.best_dual, self.scale)

    def point(self) -> tuple[Vector, Any]:
        """The current (w, b), while the step is the latest one.

        From a solver to the driver: v and the row state that holds ``alpha``, or None.
        """
        if self.at is None:
            raise ValueError("This step has passed: only the latest step has a point.")
        return self.at()

    def forget_point(self) -> None:
        """Drop the point, which the next iteration overwrites."""
        self.at = None


@dataclass(frozen=True)
class Certificate:
    """Bounds of the optimum recomputed from an answer, and their difference.

    Attributes
    ----------
    primal : float
        Upper bound: the objective P of (w, b), and what rounding may hide; infinite
        where there was no time to prove one. Nu machines of classes and of one class
        have 0, the objective of w = 0, where that is smaller: then it is not proved
        that there is a margin.
    dual : float
        Lower bound: the objective D of alpha, less what rounding may add.
    scale : float
        Floor of ``|P|`` in the relative gap, for smallest enclosing balls, regressions
        and nu machines, whose optimum may be zero. 0 for classification.
    rounding : float, what the bounds allow for rounding, both together
    """

    primal: float
    dual: float
    scale: float = 0.0
    rounding: float = 0.0

    @property
    def gap(self) -> float:
        """Duality gap P - D."""
        return self.primal - self.dual

    @functools.cached_property
    def relative_gap(self) -> float:
        """Duality gap ``|P - D| / max(|P|, scale)``, at least the rounding of P.

        Infinite where P is 0, or P or the scale not finite: then nothing is proved.
        """
        size, gap = max(abs(self.primal), self.scale), abs(self.primal - self.dual)
        if not (gap < math.inf and 0.0 < size < math.inf):  # false for NaN
            return math.inf
        return max(gap, sys.float_info.epsilon * abs(self.primal)) / size

    def is_beaten_by(self, other: "Certificate") -> bool:
        """Whether other bounds have the smaller objective, and the smaller gap, too.

        A larger objective with a smaller gap is proved to be near the best one, and of
        a smaller one with a larger gap the dual variables are to blame. Bounds that are
        no numbers are beaten by all others.
        """
        primal, gap = self.primal <= other.primal, self.gap <= other.gap
        return not (primal or gap)

    @property
    def told_scale(self) -> str:
        """What a reader of both bounds has to know of the gap, where that is less."""
        if not max(abs(self.primal), abs(self.dual)) < self.scale:
            return ""
        return f"\nThe gap is relative to {self.scale:.3g}: the optimum may be zero."

    def widened(self, times: float) -> "Certificate":
        """Bounds that allow so many times more for rounding."""
        more = times * self.rounding
        bounds = self.primal + more, self.dual - more
        return Certificate(*bounds, self.scale, self.rounding + 2.0 * more)

    def is_within(self, tol: float) -> bool:
        """Whether P - D is at most that share of P: below zero it is, unlike its size.

        Bounds by scores with errors may contradict each other.
        """
        size = max(abs(self.primal), self.scale)
        return bool(size < math.inf and self.gap <= tol * size)

    def hides(self, tol: float) -> bool:
        """Whether a relative gap above ``tol`` may be rounding: a tenth of it, or more.

        Then more precise sums may prove more.
        """
        enough = tol * max(abs(self.primal), self.scale)
        small = np.isfinite(self.rounding) and self.rounding <= SHARE * self.gap
        return bool(not self.gap <= enough and not small)


def relative_gap(primal: float, dual: float, scale: float) -> float:
    """(P - D) / max(``|P|``, scale); infinite where that is 0, or P not finite."""
    size = max(abs(primal), scale)
    return (primal - dual) / size if 0.0 < size < math.inf else math.inf


def relative_gaps(bounds: Vector) -> Vector:
    """Relative gaps of several certificates, (t,), of which each is a row: (t, 4)."""
    gaps = np.empty(len(bounds))
    _core.relative_gaps(bounds, gaps)
    return gaps


class Trace(list[Step]):
    """All steps of a solve, in order, as a list with columns.

    What the columns are is said by `Step`; those of ``details`` differ by solver, whose
    class says which it has, as ``IRWLS`` and ``CoordinateDescent`` of
    `widemargin.solvers`. The page "The trace of a fit" of the documentation has all of
    them. Several steps have one ``iteration`` where a solver certifies some of its
    steps only.
    """

    def column(self, name: str) -> NDArray[Any]:
        """One number of every step, by attribute or key of ``details``: (steps,)."""
        return np.array([getattr(s, name, s.details.get(name, np.nan)) for s in self])

    def to_frame(self) -> Any:
        """All steps as a `pandas.DataFrame`: a row each, a column each number.

        Columns are the attributes of `Step` that are numbers, and the keys of
        ``details``, which the class of the solver explains.

        Returns
        -------
        pandas.DataFrame

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        import pandas

        keys = dict.fromkeys(key for step in self for key in step.details)
        names = [*_NUMBERS, *(key for key in keys if key not in _NUMBERS)]
        return pandas.DataFrame({name: self.column(name) for name in names})

    def _repr_html_(self) -> str:
        """The steps as a table of a notebook: the first and the last of many."""
        shown = [*self[:_ENDS], *self[-_ENDS:]] if len(self) > 2 * _ENDS else self
        cells = [
            [s.iteration, f"{s.seconds:.3g} s", f"{s.best_gap:.1e}", f"{s.active:,}"]
            for s in shown
        ]
        head = ["iteration", "time", "relative gap", "active rows"]
        note = f"{len(self):,} steps; to_frame() has all their numbers"
        return f"{_html_table([head, *cells])}<p>{note}</p>"


# Attributes of a step that are numbers: columns of a frame.
_NUMBERS = (
    "iteration",
    "seconds",
    "primal",
    "dual",
    "relative_gap",
    "best_primal",
    "best_dual",
    "best_gap",
    "residual",
    "active",
    "sweeps",
)


def _html_table(rows: Sequence[Sequence[Any]]) -> str:
    """Rows of plain words as a table; the first row is its head."""
    lines = [
        "".join(f"<{tag}>{escape(str(cell))}</{tag}>" for cell in row)
        for row, tag in zip(rows, ["th", *["td"] * len(rows)], strict=False)
    ]
    return f"<table><tr>{'</tr><tr>'.join(lines)}</tr></table>"


@dataclass(frozen=True)
class Solution:
    """Answer of a solve, with its proof.

    Attributes
    ----------
    alpha : ndarray (m,), dual variables, feasible
    w : ndarray (n,), weights
    b : float, intercept: the score is x @ w + b
    status : Status
    certificate : Certificate, recomputed by the problem from alpha, w and b
    trace : Trace, one step an iteration; of several problems of one fit, those of the
        first (``solutions_[k].trace`` of the estimator has those of problem k)
    solver : str, name of the solver
    reason : str, why this solver
    seconds : float, wall time of the solve, without callbacks
    tol : float, the relative gap asked for
    message : str, how the solve ended and what to do about it
    extras : dict of what the solver adds: the ``details`` of its last step
    at_bound : int or None
        How many dual variables are at their bound C; None where there is none.
    rho : float
        What scores are compared with where the sum of alpha is given; else 0.
    together : dict or None
        Of the first of several solutions of one fit, what all of them are: how many
        ``problems``, how many of each ``status``, the largest ``relative_gap``, how
        many are ``unproved`` (a gap of 1 or more), the largest number of
        ``iterations``, the sums of ``primal``, ``dual`` and ``seconds``, which
        ``solvers``, and the ``message`` of the worst one where not all are solved, and
        whether all are convex (``is_convex``). `str` and notebooks then speak of all.
    w_of_rows : bool, whether w has a number a row, as with a kernel, not a column
    copies : int
        How often a row of the data is one of the problem: 2 in a fit of a regression,
        whose dual variables of a row are ``alpha[i]`` and ``alpha[m + i]``.
    """

    alpha: Vector
    w: Vector
    b: float
    status: Status
    certificate: Certificate
    trace: Trace
    solver: str
    reason: str
    seconds: float
    tol: float
    message: str
    extras: dict[str, Any] = field(default_factory=dict)
    at_bound: int | None = None
    rho: float = 0.0
    together: dict[str, Any] | None = None
    copies: int = 1
    w_of_rows: bool = False

    def __getattr__(self, name: str) -> Any:
        if name in _OF_ROWS and "status" in vars(self):
            raise AttributeError(
                f"This Solution has no {name}: fits on a cluster leave dual variables "
                "there, and pickles of estimators leave them out; keep_training_data() "
                "of the estimator before pickling keeps them."
            )
        raise AttributeError(
            f"{type(self).__name__!r} object has no attribute {name!r}"
        )

    def changed(self, **changes: Any) -> "Solution":
        """A copy with other values: `dataclasses.replace` takes ten times as long."""
        other = object.__new__(type(self))
        vars(other).update(vars(self), **changes)
        return other

    def without_rows(self) -> "Solution":
        """A copy without alpha, and without w where that has a number a row too."""
        bare = self.changed()
        for name in ("alpha", "w") if self.w_of_rows else ("alpha",):
            vars(bare).pop(name, None)
        return bare

    @property
    def n_support(self) -> int:
        """How many rows of the data are support vectors.

        In a regression those whose two dual variables differ: equal ones cancel.
        """
        alpha = self.alpha
        if self.copies == 2:
            first, second = np.split(alpha, 2)
            return int(np.count_nonzero(first != second))
        return int(np.count_nonzero(alpha))

    @property
    def is_convex(self) -> bool:
        """Whether nothing has shown that the kernel is not positive semidefinite.

        Else the gap is no proof.
        """
        return not (self.trace and self.trace[-1].details.get("negative"))

    def __repr__(self) -> str:
        """One line, as a prompt shows it; `str` says more."""
        gap = self.certificate.relative_gap
        return (
            f"<{type(self).__name__}: {self.status}, relative gap {gap:.1e}, "
            f"{self.trace[-1].iteration:,} iterations of {self.solver}>"
        )

    def plot(self, axes: Any = None) -> Any:
        """Draw how the gap, the primal and the dual objective went, against time.

        Of several problems of one fit it is the first, and the title says so:
        ``solutions_[k].plot()`` of the estimator draws problem k.

        Parameters
        ----------
        axes : matplotlib Axes or None, default=None
            Where to draw. None: a new figure of pyplot.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        # By name, as this room lies below the one that knows matplotlib.
        return importlib.import_module("widemargin.report.plot").plot(self, axes)

    def _repr_html_(self) -> str:
        """What `str` says, as a table of a notebook."""
        head, _ = str(self).split("\n")
        if self.together is not None:
            facts, said = _facts_of(self.together), self.together["message"]
        else:
            facts = self._facts()
            plain = self.status == Status.SOLVED and self.is_convex
            said = "" if plain else self.message
        advice = said and f"<p>{escape(said)}</p>"
        return f"<p>{escape(head)}</p>{_html_table(facts)}{advice}"

    def _facts(self) -> list[list[str]]:
        """Lines of a table on one problem."""
        known = hasattr(self, "alpha")
        vectors = f"{self.n_support:,}" if known else "not stored"
        return [
            ["certificate", ""],
            ["status", self.status.value],
            ["primal (upper bound)", f"{self.certificate.primal:.10g}"],
            ["dual (lower bound)", f"{self.certificate.dual:.10g}"],
            ["relative gap", f"{self.certificate.relative_gap:.1e}"],
            ["support vectors", vectors],
            ["iterations", f"{self.trace[-1].iteration:,}"],
        ]

    def __str__(self) -> str:
        if self.together is not None:
            return _summary(self.together, self.tol)
        gap = self.certificate.relative_gap
        # skops keeps the text of the status.
        head = ended(self.status, gap, self.tol, self.is_convex)
        known = hasattr(self, "alpha")
        vectors = f"{self.n_support:,}" if known else "not stored"
        if self.at_bound is not None:
            vectors += f" ({self.at_bound:,} at the bound)"
        return (
            f"{head} in {_seconds(self.seconds)} by {self.solver}, {self.reason}.\n"
            f"primal {self.certificate.primal:.10g}  "
            f"dual {self.certificate.dual:.10g}  "
            f"support vectors {vectors}  iterations {self.trace[-1].iteration}"
            f"{self.certificate.told_scale}"
        )


def _seconds(seconds: float) -> str:
    return f"{seconds:,.{0 if seconds >= 100 else 2}f} s"


# -- several problems of one fit -------------------------------------------------------


def _summary(together: dict[str, Any], tol: float) -> str:
    """What `str` says of several problems."""
    gaps = f"relative gaps of at most {together['relative_gap']:.1e} (asked: {tol:.0e})"
    head = f"Solved {together['problems']} problems to {gaps}"
    unproved = together.get("unproved", 0)  # older pickles have none
    if set(together["status"]) != {Status.SOLVED.value}:
        head = f"Stopped ({_counted(together['status'])}) at {gaps}"
        if unproved:  # as of one problem: see `reached`
            head = (
                f"Stopped ({_counted(together['status'])}) before anything useful was "
                f"proved of {unproved:,} of {together['problems']:,} problems (asked: "
                f"relative gaps of {tol:.0e})"
            )
    elif not together["is_convex"]:
        head = f"Stationary, but {together['problems']} problems not proved, to {gaps}"
    return (
        f"{head} in {_seconds(together['seconds'])} by "
        f"{'; '.join(together['solvers'])}.\n"
        f"total primal {_total(together['primal'])}  "
        f"total dual {_total(together['dual'])}  "
        f"iterations at most {together['iterations']}  (solutions_ has each problem)"
    )


def _facts_of(together: dict[str, Any]) -> list[list[str]]:
    """Lines of a table on several problems."""
    return [
        ["certificates", "of all problems; solutions_ has each"],
        ["status", _counted(together["status"])],
        ["total primal (upper bound)", _total(together["primal"])],
        ["total dual (lower bound)", _total(together["dual"])],
        ["largest relative gap", f"{together['relative_gap']:.1e}"],
        ["iterations, at most", f"{together['iterations']:,}"],
    ]


def _counted(status: dict[str, int]) -> str:
    """How many problems ended how: 2 solved, 1 max_iter."""
    return ", ".join(f"{count:,} {word}" for word, count in status.items())


def _total(value: float) -> str:
    """A sum of objectives; none where one of them is not finite."""
    return f"{value:.10g}" if math.isfinite(value) else "none"
