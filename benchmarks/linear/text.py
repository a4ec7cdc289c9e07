"""Fits of LinearSVC on sparse text beside scikit-learn, at equal certified gaps.

Seconds of a whole fit, the best of several rounds in which all take turns: LinearSVC()
by its defaults, the hinge with a penalized intercept and with a free one. Beside them
scikit-learn's LinearSVC of the same loss, and for the free intercept SVC(kernel=
"linear"), one fit a class. The gap of a fit is the largest relative gap of its classes:
P of its coefficients by `widemargin.Problem` over the best dual objective that we
prove. A peer runs down a ladder of tolerances; its time is that of the fastest fit
whose gap is at most ours; SVC has its default alone. Beside other work processor
seconds, of all threads, say more than the clock: both are given. scikit-learn has no
linear machine with a free intercept: its hinge with a penalized one is on that line
too, scored on its own problem.
"""

import argparse
import time
import warnings
from typing import NamedTuple

import numpy as np
import sklearn.svm
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer

import widemargin
from benchmarks.datasets import DATASETS
from widemargin import Problem, solve

LADDERS = {"LinearSVC": (1.0, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-5), "SVC": (1e-3,)}
# Seconds after which a peer's fits are not repeated.
ENOUGH = 3.0


class Kind(NamedTuple):
    """A problem: our keywords, and the peers that solve it or the nearest to it."""

    ours: dict
    loss: str
    intercept: str
    peers: tuple


KINDS = {
    "default": Kind({}, "squared_hinge", "penalized", ("LinearSVC",)),
    "hinge, penalized": Kind(
        {"loss": "hinge", "intercept": "penalized"},
        "hinge",
        "penalized",
        ("LinearSVC",),
    ),
    "hinge, free": Kind(
        {"loss": "hinge", "intercept": "free"}, "hinge", "free", ("LinearSVC", "SVC")
    ),
}


def documents(m=3000, n=3985, classes=5):
    """Words by Zipf's law, two in five by the class of the document; TF-IDF."""
    rng = np.random.default_rng(0)
    words = 1.0 / np.arange(1.0, n + 1.0)
    words /= words.sum()
    topics = words * np.exp(rng.normal(size=(classes, n)))
    topics /= topics.sum(axis=1, keepdims=True)
    y = rng.integers(0, classes, m)
    counts = [
        rng.multinomial(10 + rng.poisson(60), 0.4 * topics[k] + 0.6 * words) for k in y
    ]
    X = sparse.csr_matrix(np.array(counts, dtype=np.float64))
    return sparse.csr_matrix(TfidfTransformer(sublinear_tf=True).fit_transform(X)), y


def scattered(m=6000, n=8000, density=0.004, classes=5):
    """Uniform numbers at random places, labels by the largest of random scores."""
    rng = np.random.default_rng(0)
    X = sparse.random(m, n, density=density, format="csr", random_state=0)
    scores = X @ rng.normal(size=(n, classes)) + 0.3 * rng.normal(size=(m, classes))
    return X, np.argmax(scores, axis=1)


SETS = {
    "documents": lambda folder: documents(),
    "scattered": lambda folder: scattered(),
    "reuters": DATASETS["reuters"],
}


def signs_of(y):
    """Labels +1 and -1 of the binary problems, one against the rest."""
    classes = np.unique(y)
    chosen = classes[1:] if len(classes) == 2 else classes
    return [np.where(y == k, 1.0, -1.0) for k in chosen]


class Scores:
    """The certified gap of coefficients on the problems of a set."""

    def __init__(self, X, y, C, loss, intercept):
        self.problems = [Problem(X, s, C, loss, intercept) for s in signs_of(y)]
        self.duals = [
            solve(problem, tol=1e-6, time_limit=60).certificate.dual
            for problem in self.problems
        ]

    def gap(self, coefficients, intercepts):
        """The largest relative gap of the binary problems."""
        gaps = []
        for k, (problem, dual) in enumerate(
            zip(self.problems, self.duals, strict=True)
        ):
            primal = problem.primal(coefficients[k], intercepts[k])
            gaps.append((primal - dual) / primal)
        return max(gaps)


def fit_linear(X, y, C, loss, tol):
    """scikit-learn's LinearSVC."""
    model = sklearn.svm.LinearSVC(C=C, loss=loss, tol=tol, max_iter=100_000)
    model.fit(X, y)
    return model.coef_, model.intercept_


def fit_svc(X, y, C, loss, tol):
    """scikit-learn's SVC, one against the rest as LinearSVC is."""
    models = [
        sklearn.svm.SVC(kernel="linear", C=C, tol=tol).fit(X, s) for s in signs_of(y)
    ]
    coefficients = [np.asarray(m.coef_.todense())[0] for m in models]
    return coefficients, [m.intercept_[0] for m in models]


PEERS = {"LinearSVC": fit_linear, "SVC": fit_svc}


def timed(f, *arguments):
    """Seconds by the clock and of the processor, and what f returns."""
    begin, cpu = time.perf_counter(), time.process_time()
    value = f(*arguments)
    return (time.perf_counter() - begin, time.process_time() - cpu), value


def least(times):
    """The least of either kind of seconds."""
    return np.min(times, axis=0)


def fit_ours(X, y, C, options, limit):
    """The fitted machine."""
    return widemargin.LinearSVC(C=C, time_limit=limit, **options).fit(X, y)


def reaches(peer, X, y, C, kind, gap):
    """The ladder's tolerances whose fits have at most this gap, and their gaps."""
    own = "penalized" if peer == "LinearSVC" else kind.intercept
    scores = Scores(X, y, C, kind.loss, own)
    found = {}
    for tol in LADDERS[peer]:
        found[tol] = scores.gap(*PEERS[peer](X, y, C, kind.loss, tol))
        if found[tol] <= 0.3 * gap:
            break
    return {tol: g for tol, g in found.items() if g <= gap}


def compare(X, y, C, kind, options):
    """Lines of one problem: ours, then each peer with the ratio of the times."""
    _, model = timed(fit_ours, X, y, C, kind.ours, options.limit)
    gap, ours = model.dual_gap_, []
    tolerances = {p: reaches(p, X, y, C, kind, gap) for p in kind.peers}
    theirs = {(p, tol): [] for p, found in tolerances.items() for tol in found}
    for _ in range(options.repeat):
        ours.append(timed(fit_ours, X, y, C, kind.ours, options.limit)[0])
        for (peer, tol), times in theirs.items():
            if sum(wall for wall, _ in times) < ENOUGH:
                times.append(timed(PEERS[peer], X, y, C, kind.loss, tol)[0])
    wall, cpu = least(ours)
    solvers = ", ".join({s.solver for s in model.solutions_})
    yield f"{wall:8.4f} s, {cpu:7.4f} cpu  gap {gap:.1e}  {model.status_}, {solvers}"
    for peer, found in tolerances.items():
        if not found:
            yield f"{'-':>8}    {peer}: never at that gap"
            continue
        tol = min(found, key=lambda tol: least(theirs[peer, tol])[1])
        their_wall, their_cpu = least(theirs[peer, tol])
        yield (
            f"{their_wall:8.4f} s, {their_cpu:7.4f} cpu  gap {found[tol]:.1e}  sklearn "
            f"{peer}, tol={tol:g}: ratio {wall / their_wall:.2f}, "
            f"cpu {cpu / their_cpu:.2f}"
        )


def main():
    """A line for each fit of each set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="folder of reuters")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--C", default="1")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of our fits")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in options.sets.split(","):
        X, y = SETS[name](options.data)
        print(
            f"{name}: {X.shape[0]:,} x {X.shape[1]:,}, {X.nnz / X.shape[0]:.0f} a row"
        )
        for C in map(float, options.C.split(",")):
            for title, kind in KINDS.items():
                print(f"  C={C:g}, {title}")
                for line in compare(X, y, C, kind, options):
                    print("    " + line, flush=True)


if __name__ == "__main__":
    main()
