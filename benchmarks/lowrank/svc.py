"""SVC with a rank: time, objective, exact gap and accuracy beside the exact solver.

For each data set the exact fit, and for each rank and approximation a fit with
certify="exact", and one with polish=True. Seconds are of `fit`, that of the exact
bounds apart, the least of some runs. Prints a table and writes OUTPUT/svc.txt.
"""

import argparse
import time
from pathlib import Path

from benchmarks.environment import RESULTS, list_of, machine
from benchmarks.kernel_sets import KERNEL_SETS, TASKS
from widemargin import SVC, load_svmlight

SETS = ("a9a", "ijcnn1")
METHODS = ("auto", "cholesky", "fourier", "eigen")
HEAD = (
    f"{'set':10}{'rank':>6} {'approximation':14}{'fit s':>8}{'bounds s':>9}"
    f"{'polished s':>11}{'gap':>9}{'objective':>11}{'exact P':>11}{'exact D':>11}"
    f"{'accuracy':>10}"
)


def main():
    """Measure the sets."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--sets", type=list_of(SETS), default=list(SETS))
    add("--methods", type=list_of(METHODS), default=["auto", "cholesky", "fourier"])
    add("--ranks", type=lambda s: [int(v) for v in s.split(",")], default=[100, 300])
    add("--data", help="folder of sets: NAME/train.svm[.bz2|.xz] and test")
    add("--rows", type=int, help="the first so many rows only")
    add("--repeat", type=int, default=3)
    add("--output", type=Path, default=RESULTS / "lowrank")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    here = machine({})
    lines = [f"{here['cpu']}, {here['cores']} cores; {here['versions']}", "", HEAD]
    print("\n".join(lines))
    for line in measure(options):
        print(line, flush=True)
        lines.append(line)
    (options.output / "svc.txt").write_text("\n".join(lines) + "\n")


def measure(options):
    """Lines of the table."""
    for name in options.sets:
        (X, y), test, task = *data(name, options), TASKS[name]
        given = {"C": task.C, "gamma": task.gamma}
        seconds, clf = least(options.repeat, X, y, **given)
        yield row(name, "", "exact", clf, test, seconds)
        for rank in options.ranks:
            for method in options.methods:
                given |= {"rank": rank, "approximation": method}
                seconds, _ = least(options.repeat, X, y, **given)
                whole, clf = least(options.repeat, X, y, certify="exact", **given)
                polished, _ = least(options.repeat, X, y, polish=True, **given)
                times = seconds, whole - seconds, polished
                yield row(name, rank, method, clf, test, *times)


def data(name, options):
    """Rows and labels to train on, and those to test on, or None."""
    X, y = KERNEL_SETS[name](options.data)
    folder = Path(options.data or "", name)
    files = sorted(folder.glob("test.svm*")) if options.data else []
    test = load_svmlight(files[0], n_features=X.shape[1]) if files else None
    return (X[: options.rows], y[: options.rows]), test


def least(repeat, X, y, **parameters):
    """The least time of some fits, and the last one."""
    times = []
    while len(times) < repeat and sum(times) < 30.0:
        begin = time.perf_counter()
        clf = SVC(**parameters).fit(X, y)
        times.append(time.perf_counter() - begin)
    return min(times), clf


def row(name, rank, method, clf, test, *times):
    """A line of text."""
    own = clf.solution_.certificate
    exact = getattr(clf, "exact_certificates_", [own])[0]
    seconds = "".join(f"{t:>{w}.2f}" for t, w in zip(times, (8, 9, 11), strict=False))
    accuracy = "" if test is None else f"{clf.score(*test):.4f}"
    return (
        f"{name:10}{rank:>6} {method:14}{seconds:28}{clf.dual_gap_:>9.1e}"
        f"{own.primal:>11.1f}{exact.primal:>11.1f}{exact.dual:>11.1f}{accuracy:>10}"
    )


if __name__ == "__main__":
    main()
