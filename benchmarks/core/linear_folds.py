"""Linear machines of all folds and all C at once, or fold by fold.

Whole fits of `SVCCV(kernel="linear")` and `LinearSVCCV` without their last machine: as
they are; with as many pair steps on products of rows as these take; with none, but
Newton's method on the columns; and fold by fold. Beside `GridSearchCV` over the machine
of scikit-learn, for rows up to --peer. Sets of scikit-learn, blobs far from each other
and near, and images and spoken letters of --data. Five folds, C from 0.01 to 1,000.
Milliseconds by the clock, medians of fits in turns. Prints a table.
"""

import argparse
import contextlib
import time
import warnings
from statistics import median
from unittest import mock

import numpy as np
import sklearn.svm
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

from benchmarks.kernel.small_sets import SETS, file
from widemargin import SVC, SVCCV, LinearSVCCV
from widemargin.estimators import linear_folds

CS = np.logspace(-2, 3, 6)
SMALL = "iris", "wine", "breast_cancer", "digits"
READ = (("usps", 600), ("usps", 3_000), ("pendigits", 3_000), ("letter", 3_000))
READ += (("isolet", 1_000), ("isolet", 2_000))
SHAPES = ((2, 200, 5), (2, 600, 60), (2, 2_000, 20), (2, 2_000, 120), (2, 5_000, 60))
SHAPES += ((2, 1_000, 500), (5, 1_500, 20), (5, 1_500, 120), (10, 3_000, 60))
MACHINES = {
    "SVC": (
        SVCCV(kernel="linear", Cs=CS, refit=False),
        sklearn.svm.SVC(kernel="linear"),
    ),
    "LinearSVC": (LinearSVCCV(Cs=CS, refit=False), sklearn.svm.LinearSVC()),
}
PLAN = "widemargin.estimators.linear_folds._plan"
SECONDS = 10.0  # of the turns of one line, after which no more begin


def blobs(c, m, n, is_near):
    """Classes with a margin, or that overlap, of which half of the columns tell."""
    X, y = make_classification(
        m,
        n,
        n_informative=max(4, n // 2),
        n_redundant=0,
        n_classes=c,
        n_clusters_per_class=1,
        flip_y=0.05 * is_near,
        class_sep=0.5 if is_near else 2.0,
        random_state=1,
    )
    return StandardScaler().fit_transform(X), y


def sets(folder):
    """Names, and what makes the data."""
    for name in SMALL:
        yield name, lambda name=name: SETS[name].read(folder)
    for c, m, n in SHAPES:
        for is_near in (True, False):
            name = f"{c} classes, {m:,} x {n}, {'near' if is_near else 'far'}"
            yield name, lambda shape=(c, m, n, is_near): blobs(*shape)
    for name, m in READ if folder else ():

        def read(name=name, m=m):
            X, y = file(name)(folder)
            some = np.random.RandomState(0).permutation(len(y))[:m]
            return StandardScaler().fit_transform(X[some]), y[some]

        yield f"{name}, {m:,} rows", read


@contextlib.contextmanager
def one_by_one():
    """Searches fit point by point."""
    with contextlib.ExitStack() as stack:
        for module in ("svc_cv", "linear_svc_cv"):
            name = f"widemargin.estimators.{module}.solve_linear_folds"
            stack.enter_context(mock.patch(name, return_value=None))
        yield


def by_products(*asked, plan=linear_folds._plan):
    """Products of rows to their end; what is left is fitted as single machines are."""
    return plan(*asked)._replace(products=True, most=None, newton=False)


def by_columns(*asked, plan=linear_folds._plan):
    """Newton's method alone, where there are few columns."""
    found = plan(*asked)
    return found._replace(products=not found.newton)


WAYS = {
    "at once": contextlib.nullcontext,
    "products": lambda: mock.patch(PLAN, by_products),
    "columns": lambda: mock.patch(PLAN, by_columns),
    "by fold": one_by_one,
}


BATCH = "widemargin.estimators.batch"
FITS = {
    "as it is": contextlib.nullcontext,
    "products": lambda: mock.patch(f"{BATCH}.steps_of_pairs", return_value=None),
    "columns": lambda: mock.patch(f"{BATCH}.suits_products", return_value=False),
}
PAIRS = [(c, m * c // 2, n) for c in (3, 10) for m in (200, 500) for n in (5, 20, 60)]


def timed(search, X, y):
    """Milliseconds of a fit."""
    begin = time.perf_counter()
    search.fit(X, y)
    return 1e3 * (time.perf_counter() - begin)


def fits(rounds):
    """The table of single fits."""
    print(f"{'':36}" + "".join(f"{way:>10}" for way in FITS))
    for c, m, n in PAIRS:
        for is_near in (True, False):
            X, y = blobs(c, m, n, is_near)
            for C in (0.1, 1.0, 100.0):
                found = {way: [] for way in FITS}
                for _ in range(rounds):
                    for way, patched in FITS.items():
                        with patched():
                            found[way].append(timed(SVC(kernel="linear", C=C), X, y))
                shown = "".join(f"{median(times):10.1f}" for times in found.values())
                near = "near" if is_near else "far"
                name = f"{c} classes, {m:,} x {n}, {near}, C={C:g}"
                print(f"{name:36}{shown}", flush=True)


def line(name, kind, X, y, options):
    """Medians of each way, and of the peer."""
    ours, theirs = MACHINES[kind]
    found = {way: [] for way in WAYS}
    begin = time.perf_counter()
    for _ in range(options.rounds):
        for way, patched in WAYS.items():
            with patched():
                found[way].append(timed(ours, X, y))
        if time.perf_counter() - begin > SECONDS:
            break
    times = {way: median(found[way]) for way in WAYS}
    peer = ""
    if len(y) <= options.peer:
        times["sklearn"] = timed(GridSearchCV(theirs, {"C": CS}, refit=False), X, y)
        peer = f"{times['sklearn']:10.0f}"
    shown = "".join(f"{times[way]:10.0f}" for way in WAYS)
    print(f"{name:32}{kind:>10}{shown}{peer}", flush=True)


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--data", help="folder of sets: NAME/train.svm[.bz2|.xz]")
    add("--rounds", type=int, default=5)
    add("--peer", type=int, default=0, help="rows up to which scikit-learn is timed")
    add("--only", default="", help="how the names of sets begin")
    add("--fits", action="store_true", help="single fits of pairs of classes")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # scikit-learn's LinearSVC ends early
    if options.fits:
        fits(options.rounds)
        return
    heads = "".join(f"{way:>10}" for way in (*WAYS, "sklearn"))
    print(f"{'':32}{'':10}{heads}")
    for name, read in sets(options.data):
        if name.startswith(options.only):
            X, y = read()
            for kind in MACHINES:
                line(name, kind, X, y, options)


if __name__ == "__main__":
    main()
