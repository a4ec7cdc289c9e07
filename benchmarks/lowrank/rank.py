"""Kernel machines of low rank beside exact ones and other packages.

For each set the exact machines of LIBSVM (scikit-learn's SVC) and ours; then for each
rank ours (rank), Nystroem features with LinearSVC (nystroem), Snap ML's random features
(snapml), and a machine of as many support vectors, which costs as much to predict with
(budget). The default loss of LinearSVC is the squared hinge: ours have either. Seconds
are of the wall, from the data to the fitted model: nothing else may run. The objective
is 1/2 |w|^2 + C sum L(1 - y (z(x)'w + b)) with the features z of each; those of
landmarks lie in the space of the kernel, and none is below the exact optimum.
"""

import argparse
import csv
import os
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse

from benchmarks.environment import RESULTS, list_of, machine
from benchmarks.kernel_sets import TASKS, Task, divided
from widemargin import SVC, BudgetSVC, Kernel
from widemargin.kernels.expansion import Expansion

# KDD99 has columns of at most 1, C and gamma by hand.
SETS = {
    "a9a": TASKS["a9a"],
    "ijcnn1": TASKS["ijcnn1"],
    "covtype_20k": TASKS["covtype_20k"],
    "mnist": TASKS["mnist"],
    "kdd99_10pc": Task(10.0, 1.0),
}
LOSSES = ("hinge", "squared_hinge")
COLUMNS = ("set", "method", "loss", "rank", "seconds", "accuracy", "objective")


def main():
    """Measure the sets, print a table, write OUTPUT/rank.csv and .txt."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--sets", type=list_of(SETS), default=list(SETS))
    add("--methods", type=list_of(METHODS), default=list(METHODS))
    add("--losses", type=list_of(LOSSES), default=list(LOSSES))
    add("--ranks", type=lambda s: [int(v) for v in s.split(",")], default=[256, 1024])
    add("--data", help="folder of the sets: NAME/train.svm[.bz2|.xz] and NAME/test...")
    add("--rows", type=int, help="so many rows to train with, the first after a draw")
    add("--output", type=Path, default=RESULTS / "lowrank")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    file = options.output / "rank.csv"
    with file.open("a", newline="") as out:
        writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        if file.stat().st_size == 0:
            writer.writeheader()
        for result in measure(options):
            print(*result, flush=True)
            writer.writerow(dict(zip(COLUMNS, result, strict=True)))
            out.flush()
    report(file)


def measure(options):
    """Results of the sets, methods, losses and ranks."""
    for name in options.sets:
        train, test = divided(name, options.data, options.rows)
        for method in options.methods:
            make, ranked = METHODS[method]
            for loss in options.losses:
                for rank in options.ranks if ranked else [0]:
                    model = make(SETS[name], loss, rank)
                    if model is not None:
                        yield (
                            name,
                            method,
                            loss,
                            rank,
                            *measured(model, train, test, SETS[name].C, loss),
                        )


def measured(model, train, test, C, loss):
    """Seconds, accuracy in percent, and the objective of a model that is fitted."""
    X, y = train
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # LIBLINEAR's 1,000 iterations were too few
        model.fit(X, y)
    seconds = time.perf_counter() - begin
    decide, half = scored(model)
    accuracy = np.mean(np.sign(decide(test[0])) == test[1])
    losses = np.maximum(1.0 - y * decide(X), 0.0)
    losses = losses if loss == "hinge" else losses**2
    objective = half + C * float(losses.sum())
    return f"{seconds:.3f}", f"{100 * accuracy:.2f}", f"{objective:.1f}"


def scored(model):
    """The decision function of a fitted model, and its 1/2 |w|^2.

    Of kernel machines by our core: the decisions of LIBSVM take minutes on mnist.
    """
    linear = model[-1] if hasattr(model, "steps") else model
    if hasattr(linear, "coef_"):
        return model.decision_function, 0.5 * float(np.square(linear.coef_).sum())
    c, vectors = model.dual_coef_, model.support_vectors_
    c = np.ravel(c.toarray() if sparse.issparse(c) else c)
    kernel, b = Kernel("rbf", gamma=model.gamma), np.ravel(model.intercept_)
    decide = Expansion(kernel, vectors, c[np.newaxis], b, np.array([len(c)]))
    f = decide(vectors)[:, 0] - b
    return lambda X: decide(X)[:, 0], 0.5 * float(c @ f)


def libsvm(task, loss, rank):
    """LIBSVM's exact machine, of the hinge only."""
    from sklearn import svm

    if loss == "hinge":
        return svm.SVC(C=task.C, gamma=task.gamma, cache_size=1000)
    return None


def exact(task, loss, rank):
    """Our exact machine."""
    return SVC(C=task.C, gamma=task.gamma, loss=loss, intercept="free", tol=1e-3)


def low_rank(task, loss, rank):
    """Our machine of low rank."""
    options = {"loss": loss, "intercept": "free", "tol": 1e-3, "random_state": 0}
    return SVC(C=task.C, gamma=task.gamma, rank=rank, **options)


def budget(task, loss, rank):
    """Our machine of few support vectors, chosen after the exact fit."""
    options = {"norm": {"hinge": "l1", "squared_hinge": "l2"}[loss]}
    options |= {"tol": 1e-3, "random_state": 0}
    return BudgetSVC(budget=rank, C=task.C, gamma=task.gamma, **options)


def nystroem(task, loss, rank):
    """scikit-learn's Nystroem features and LIBLINEAR."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    features = Nystroem(gamma=task.gamma, n_components=rank, random_state=0)
    linear = LinearSVC(loss=loss, C=task.C, dual=loss == "hinge", random_state=0)
    return make_pipeline(features, linear)


def snapml(task, loss, rank):
    """Snap ML's random features and dual coordinate descent."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer
    from snapml import SupportVectorMachine

    machine = SupportVectorMachine(
        loss=loss,
        regularizer=1.0 / task.C,
        fit_intercept=True,
        kernel="rbf",
        gamma=task.gamma,
        n_components=rank,
        n_jobs=len(os.sched_getaffinity(0)),
        random_state=0,
    )
    return make_pipeline(FunctionTransformer(_dense), machine)


def _dense(X):
    """Rows as Snap ML takes them for a kernel."""
    return X.toarray() if sparse.issparse(X) else X


# Whether they have a rank.
METHODS = {
    "libsvm": (libsvm, False),
    "exact": (exact, False),
    "rank": (low_rank, True),
    "budget": (budget, True),
    "nystroem": (nystroem, True),
    "snapml": (snapml, True),
}


def report(file):
    """The table of the results; the last one of a kind counts."""
    with file.open() as lines:
        found = {tuple(r[c] for c in COLUMNS[:4]): r for r in csv.DictReader(lines)}
    with file.open("w", newline="") as out:
        writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(found.values())
    here = machine({})
    lines = [f"{here['cpu']}, {here['cores']} cores; {here['versions']}", ""]
    lines += table(found)
    file.with_suffix(".txt").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


def table(found):
    """Lines of text, the objective as a multiple of the exact machine's."""
    yield (
        f"{'set':13}{'loss':15}{'method':10}{'rank':>5}{'seconds':>10}{'accuracy':>10}"
        f"{'P / P*':>9}"
    )
    for (name, method, loss, rank), r in sorted(found.items(), key=_place):
        whole = found.get((name, "exact", loss, "0"))
        ratio = float(r["objective"]) / float(whole["objective"]) if whole else np.nan
        yield (
            f"{name:13}{loss:15}{method:10}{rank if rank != '0' else '':>5}"
            f"{float(r['seconds']):>10.2f}{r['accuracy']:>10}{ratio:>9.3f}"
        )


def _place(item):
    (name, method, loss, rank), _ = item
    return name, loss, int(rank), list(METHODS).index(method)


if __name__ == "__main__":
    main()
