"""Whole fits of everyday sets, all classes, beside scikit-learn and its extension.

`SVC(tol=1e-3)` of ours, with each number of threads, beside `SVC` of scikit-learn and
of scikit-learn-intelex with their defaults; on small sets `LinearSVC(tol=1e-3)` beside
scikit-learn's, either loss, a penalized intercept. All take turns in one process, and
medians count: a fit has validation, all binary problems and their certificates in it.
Of tiny fits many are made a turn. Writes small.json, small.txt and small.png; results
that are there already stay, but for those of the same fits.

The gap of an answer is the largest one of its binary problems: (P - D) / P, P by
`widemargin.Problem` from what the package returned, D the best dual objective that any
of the answers proves, or a fit of ours with tol=1e-6 by another solver.
"""

import argparse
import json
import os
import time
import warnings
from itertools import combinations
from pathlib import Path
from statistics import median

import numpy as np
import sklearn.svm
from scipy import sparse

import widemargin
from benchmarks.environment import RESULTS, installed, list_of, machine, numbers
from benchmarks.kernel.small_sets import LARGE, LINEAR, SETS
from benchmarks.kernel.small_tables import key_of, write_results
from benchmarks.ratios import OURS
from widemargin import Kernel, Problem

PEERS = (OURS, "libsvm", "sklearnex")
# What they are called in the tables: LinearSVC of scikit-learn is not LIBSVM.
NAMES = {"libsvm": "sklearn"}
KINDS = ("rbf", "hinge", "squared_hinge")
TOL = 1e-3
# The fit whose bounds all are compared with, not by the engine that is measured.
REFERENCE = {
    "rbf": {"tol": 1e-6, "solver": "irwls"},
    "hinge": {"tol": 1e-6, "solver": "augmented_lagrangian"},
    "squared_hinge": {"tol": 1e-6, "solver": "active_set"},
}
# Seconds of fits in a turn, and the most fits.
TURN, MOST = 0.05, 20


def main():
    """Measure the sets that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--sets", type=list_of(SETS), help="default: all that are not large")
    add("--kinds", type=list_of(KINDS), default=list(KINDS))
    add("--C", type=numbers, default=[1.0, 10.0, 100.0])
    add("--jobs", type=lambda s: [int(v) for v in s.split(",")], default=[2, 1])
    add("--data", help="folder of sets: NAME/train.svm[.bz2|.xz], mnist/train.npz")
    add("--large", action="store_true", help=f"{', '.join(LARGE)} too")
    add("--rounds", type=int, default=7)
    add("--limit", type=float, default=20.0, help="seconds of the fits of a package")
    add("--output", type=Path, default=RESULTS / "kernel")
    options = parser.parse_args()
    modules = installed(PEERS, "kernel")
    options.peers = [NAMES.get(name, name) for name in modules]
    if options.sets is None:
        options.sets = [s for s in SETS if options.large or s not in LARGE]
    options.output.mkdir(parents=True, exist_ok=True)
    file = options.output / "small.json"
    saved = json.loads(file.read_text())["runs"] if file.exists() else []
    runs = {key_of(run): run for run in saved}
    about = machine(modules) | {"load": os.getloadavg()[0]}
    for run in measure(options):
        runs[key_of(run)] = run
        print(line(run), flush=True)
        file.write_text(as_json(about, in_order(runs.values())))
    print("\n".join(write_results(options.output)))


def in_order(runs):
    """Runs in the order of the sets, kernels before linear machines."""
    places = list(SETS)
    return sorted(
        runs,
        key=lambda run: (
            run["kind"] != "rbf",
            places.index(run["set"]),
            run["kind"],
            run["C"],
        ),
    )


def as_json(about, runs):
    """A line for each run."""
    lines = ",\n".join(json.dumps(run) for run in runs)
    return f'{{"machine": {json.dumps(about)}, "runs": [\n{lines}\n]}}\n'


def line(run):
    """What is printed of a run."""
    name = f"{run['set']:15}{run['kind']:14} C={run['C']:<5g}{run['peer']}"
    return f"{name:48}jobs={run['jobs']} {run['seconds']:.5f} s  gap {run['gap']:.1e}"


def measure(options):
    """A dict for each set, kind, C, package and number of threads."""
    for name in options.sets:
        try:
            X, y = SETS[name].read(options.data)
        except FileNotFoundError as reason:
            print(f"{name}: left out, {reason}")
            continue
        for kind in options.kinds:
            if kind == "rbf" or name in LINEAR:
                for C in options.C:
                    yield from compared(name, X, y, kind, C, options)


def compared(name, X, y, kind, C, options):
    """The runs of one problem, of all packages in turns."""
    gamma = SETS[name].gamma
    makers = {
        (peer, jobs): MAKERS[peer](kind, C, gamma, jobs)
        for peer in options.peers
        if peer not in SETS[name].slow and (peer, kind) not in LACKING
        for jobs in (options.jobs if peer != "sklearn" else [1])
    }
    models, times = in_turns(makers, X, y, options.rounds, options.limit)
    gaps = certified(X, y, kind, C, gamma, models)
    for (peer, jobs), each in times.items():
        ours = models[peer, jobs] if peer == OURS else None
        yield {
            "set": name,
            "kind": kind,
            "C": C,
            "m": X.shape[0],
            "n": X.shape[1],
            "classes": len(np.unique(y)),
            "peer": peer,
            "jobs": jobs,
            "seconds": median(wall for wall, _ in each),
            "cpu_seconds": median(cpu for _, cpu in each),
            "least": min(each)[0],
            "fits": len(each),
            "gap": gaps[peer, jobs],
            "claimed": ours and ours.dual_gap_,
            "solvers": ours and sorted({s.solver for s in ours.solutions_}),
        }


# -- packages --------------------------------------------------------------------------


def of_widemargin(kind, C, gamma, jobs):
    """Ours."""
    options = {"C": C, "tol": TOL, "n_jobs": jobs}
    if kind == "rbf":
        return widemargin.SVC(gamma=gamma, **options)
    return widemargin.LinearSVC(loss=kind, intercept="penalized", **options)


def of_sklearn(kind, C, gamma, jobs):
    """LIBSVM and LIBLINEAR, of one thread."""
    if kind == "rbf":
        return sklearn.svm.SVC(C=C, gamma=gamma)
    return sklearn.svm.LinearSVC(C=C, loss=kind, random_state=0)


def of_sklearnex(kind, C, gamma, jobs):
    """The machine on oneDAL."""
    from sklearnex.svm import SVC

    return SVC(C=C, gamma=gamma, n_jobs=jobs)


MAKERS = {OURS: of_widemargin, "sklearn": of_sklearn, "sklearnex": of_sklearnex}
# Its LinearSVC is scikit-learn's.
LACKING = {("sklearnex", "hinge"), ("sklearnex", "squared_hinge")}


# -- times -----------------------------------------------------------------------------


def in_turns(models, X, y, rounds, limit):
    """Fitted models, and wall and CPU seconds of their fits but for a first one.

    Where the fits of a package took longer than the limit it has no more turns. Of one
    whose first fit did, that one counts.
    """
    first = {key: timed(model, X, y) for key, model in models.items()}
    counts = {
        key: min(max(round(TURN / wall), 1), MOST) for key, (wall, _) in first.items()
    }
    times = {key: [each] if each[0] > limit else [] for key, each in first.items()}
    for _ in range(rounds):
        for key, model in models.items():
            if sum(wall for wall, _ in times[key]) <= limit:
                times[key] += [timed(model, X, y) for _ in range(counts[key])]
    return models, times


def timed(model, X, y):
    """Seconds of a fit by the clock, and of the processor."""
    begin, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the gap says how good the answer is
        model.fit(X, y)
    return time.perf_counter() - begin, time.process_time() - cpu


# -- gaps ------------------------------------------------------------------------------


def certified(X, y, kind, C, gamma, models):
    """The largest gap of the binary problems of each model."""
    bounds = kernel_bounds if kind == "rbf" else linear_bounds
    worst = dict.fromkeys(models, 0.0)
    for dual, primals in bounds(X, y, kind, C, gamma, models):
        for key, primal in primals.items():
            worst[key] = max(worst[key], (primal - dual) / primal)
    return worst


def kernel_bounds(X, y, kind, C, gamma, models):
    """The best dual objective of each pair of classes, and the primal one of models."""
    classes, labels = np.unique(y, return_inverse=True)
    kernel = Kernel("rbf", gamma=width(X, gamma))
    best = reference(X, y, kind, C, gamma)
    pairs = combinations(range(len(classes)), 2)
    for k, (pair, solution) in enumerate(zip(pairs, best.solutions_, strict=True)):
        rows = np.flatnonzero(np.isin(labels, pair))
        positive = pair[0] if len(classes) > 2 else pair[1]
        signs = np.where(labels[rows] == positive, 1.0, -1.0)
        problem = Problem(X[rows], signs, C, kernel=kernel)
        found = {}
        for key, model in models.items():
            c = of_pair(model, labels, pair)[rows]
            found[key] = problem.certify(np.abs(c), c, float(model.intercept_[k]))
        duals = [solution.certificate.dual, *(each.dual for each in found.values())]
        yield max(duals), {key: each.primal for key, each in found.items()}


def reference(X, y, kind, C, gamma):
    """A fit of ours with small gaps."""
    return of_widemargin(kind, C, gamma, None).set_params(**REFERENCE[kind]).fit(X, y)


def of_pair(model, labels, pair):
    """Coefficients y alpha of all rows in the problem of a pair of classes."""
    coefficients = model.dual_coef_
    if sparse.issparse(coefficients):
        coefficients = coefficients.toarray()
    c, support = np.zeros(len(labels)), np.asarray(model.support_)
    for own, other in (pair, pair[::-1]):
        mine = labels[support] == own
        # Row j of those of a class is that of the j-th other class.
        c[support[mine]] = coefficients[other - (other > own)][mine]
    return c


def width(X, gamma):
    """Gamma as a number: "scale" is 1 / (n Var X)."""
    if gamma != "scale":
        return gamma
    dense = X.toarray() if sparse.issparse(X) else X
    return 1.0 / (X.shape[1] * dense.var())


def linear_bounds(X, y, kind, C, gamma, models):
    """The same of each class against the rest, with a penalized intercept."""
    best = reference(X, y, kind, C, gamma)
    classes = best.classes_[1:] if len(best.classes_) == 2 else best.classes_
    for k, label in enumerate(classes):
        signs = np.where(y == label, 1.0, -1.0)
        problem = Problem(X, signs, C, kind, "penalized")
        yield (
            best.solutions_[k].certificate.dual,
            {
                key: problem.primal(model.coef_[k], model.intercept_[k])
                for key, model in models.items()
            },
        )


if __name__ == "__main__":
    main()
