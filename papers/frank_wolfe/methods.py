"""The methods of the comparison, and how one is run on one data set.

The paper's C weighs half of the squared slacks: its problem is the squared hinge with
C / 2 and a penalized intercept.
"""

import contextlib
import signal
import statistics
import time
import warnings
from typing import NamedTuple

import numpy as np

from papers import measure
from papers.frank_wolfe.datasets import CVM, FW, MFW
from widemargin import SVC
from widemargin.solvers import IRWLS, CoreVector, FrankWolfe

DEFAULT, PAIRWISE = "default", "pairwise"
STEPS = {FW: "toward", MFW: "away", PAIRWISE: "pairwise"}
SAMPLE, EPSILON = 59, 1e-6  # of the paper
# What a step looks at: a sample as the paper describes it, one as LibCVM draws it, on
# which the paper's code is built, or all rows.
ONE, TURNS, ALL = "one sample", "LibCVM's samples", "all rows"
WAYS = {
    ONE: {"sample": SAMPLE},
    TURNS: {"sample": SAMPLE, "balanced": True, "tries": 7},
    ALL: {},
}
GAP = 1e-3  # the relative gap of our stop
NO_GAP = 1e-12  # where the gap is not to stop a run
# Limits are seconds of the processor; so many times as many by the clock are too many.
SLOWER = 40.0
# A training that does not look at its time limit is interrupted at so many times it,
# and so many seconds after it at least: before or after the solver there is no model.
INTERRUPTED, GRACE = 1.25, 5.0
NEVER = 10**9


class CoreVectors(CoreVector):
    """They go on where nothing seems to get better: a step adds one point."""

    patience = NEVER


class Run(NamedTuple):
    """One training.

    Attributes
    ----------
    seconds, gap, primal, accuracy : floats; of the processor; the largest gap and the
        sum of the objectives of the pairs of classes; percent, nan without test rows
    over : bool, the time limit ended it
    vectors, coreset, evaluations : ints, support vectors of all pairs together, sums
        over the pairs of points that have a weight or are kept, and of kernel values
    pairs, ended, balls : ints, pairs of classes, those that no limit ended, and those
        that the rule of the paper ended
    """

    seconds: float
    gap: float
    primal: float
    accuracy: float
    over: bool
    vectors: int
    coreset: int
    evaluations: int
    pairs: int
    ended: int
    balls: int


def by_paper(method, seed=0, way=ONE):
    """A method with the stop of the paper, and its sample or another way to look."""
    options = {"epsilon": EPSILON, "random_state": seed, **WAYS[way]}
    if method == CVM:
        return CoreVectors(**options)
    return FrankWolfe(step=STEPS[method], first_weights="solved", **options)


def by_gap(method, seed=0):
    """A method of ours, or one of the paper's looking at all rows."""
    if method == DEFAULT:
        return IRWLS()
    if method == CVM:
        return CoreVectors(random_state=seed)
    return FrankWolfe(step=STEPS[method], random_state=seed)


def rbf(C):
    """The paper's problem, as parameters of `SVC`."""
    return _classifier(C, kernel="rbf", gamma="mean_distance")


def polynomial(C, gamma):
    """The same with k(x, z) = (gamma x'z)^2."""
    return _classifier(C, kernel="poly", degree=2, gamma=gamma, coef0=0.0)


def _classifier(C, **kernel):
    return {"C": 0.5 * C, "loss": "squared_hinge", **kernel}


@contextlib.contextmanager
def interrupted_after(seconds):
    """Ctrl-C comes by itself: not every solver looks at its time limit often."""

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def train(data, problem, solver, limit, tol):
    """One training, timed: a Run."""
    begin = time.process_time()  # the machine does other things too
    clock = SLOWER * limit
    model = SVC(
        solver=solver,
        tol=tol,
        time_limit=clock,
        callback=lambda step: time.process_time() - begin > limit,
        n_jobs=1,
        **problem,
    )
    interrupted = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the record says how it ended
        try:
            with interrupted_after(max(INTERRUPTED * clock, clock + GRACE)):
                model.fit(data.X, data.y)
        except KeyboardInterrupt:
            interrupted = True
    seconds = time.process_time() - begin
    accuracy = np.nan
    if data.X_test is not None:
        accuracy = 100.0 * model.score(data.X_test, data.y_test)
    found = model.solutions_
    last = [s.trace[-1].details if len(s.trace) else {} for s in found]
    limits = {"time_limit", "interrupted", "stopped_by_callback"}
    ended = sum(str(s.status) not in limits for s in found)
    return Run(
        seconds,
        float(model.dual_gap_),
        float(sum(s.certificate.primal for s in found)),
        accuracy,
        interrupted or ended < len(found),
        len(model.support_),
        int(sum(d.get("coreset", d.get("support_vectors", 0)) for d in last)),
        int(sum(d.get("evaluations", 0) for d in last)),
        len(found),
        ended,
        sum(bool(d.get("is_ball")) for d in last),
    )


def repeated(data, problem, solver, options, tol):
    """Record of ``options.repeat`` runs of solver(seed), as the limit allows.

    There is no other run once one is over the limit, or the runs together.
    """
    runs = []
    for seed in range(options.repeat):
        runs.append(train(data, problem, solver(seed), options.limit, tol))
        if runs[-1].over or sum(r.seconds for r in runs) > options.limit:
            break
    return summed(runs, options.limit)


def summed(runs, limit):
    """Means of the runs, with the deviations that the paper prints; medians of gaps."""
    over = any(run.over for run in runs)

    def mean(key):
        return rounded(np.mean([getattr(run, key) for run in runs]))

    def deviation(key):
        return rounded(np.std([getattr(run, key) for run in runs]))

    return {
        "runs": len(runs),
        "over": over,
        "limit": limit,
        "seconds": mean("seconds"),
        "seconds_std": deviation("seconds"),
        "gap": rounded(statistics.median(run.gap for run in runs)),
        "gap_most": rounded(max(run.gap for run in runs)),
        "primal": statistics.median(run.primal for run in runs),
        "accuracy": mean("accuracy"),
        "accuracy_std": deviation("accuracy"),
        "vectors": round(mean("vectors")),
        "coreset": round(mean("coreset")),
        "evaluations": mean("evaluations"),
        "pairs": runs[-1].pairs,
        "ended": runs[-1].ended,
        "balls": runs[-1].balls,
    }


def rounded(number):
    """To five digits; None for nan, which JSON does not know."""
    return None if np.isnan(number) else measure.rounded(number, 5)


def seconds(record):
    """As the tables show them: "> 60" where a limit ended a run, and pairs done."""
    if record["over"]:
        pairs = record["pairs"]
        share = f", {record['ended']} of {pairs}" if pairs > 1 else ""
        least = min(record["limit"], record["seconds"])  # less: it was the clock's
        return f"> {least:.3g}{share}"
    return f"{record['seconds']:.3g}"


def percent(value):
    """An accuracy, or a bar."""
    return "-" if value is None or np.isnan(value) else f"{value:.2f}"
