"""Up to which sizes small linear problems are solved at once: `MOST_ENTRIES`.

Median seconds of `LinearSVC` by Newton's method on all problems at once, whatever the
size, and as without it, in turns. Prints a table and writes OUTPUT/newton_batch.txt.
"""

import argparse
import time
from pathlib import Path
from statistics import median

from scipy import sparse
from sklearn.datasets import load_digits, make_classification

from benchmarks.core.constants import changed
from benchmarks.environment import RESULTS, list_of, machine, numbers
from benchmarks.kernel.small_sets import SETS
from benchmarks.kernel_sets import KERNEL_SETS
from widemargin import LinearSVC
from widemargin.estimators import linear_choice

ALL = {"MOST_ENTRIES": 10**9, "MOST_ENTRIES_ALONE": 10**9, "MOST_SPARSE": 10**9}
NONE = dict.fromkeys(ALL, 0)


def drawn(m, n):
    """Two classes that overlap."""
    return lambda folder: make_classification(
        m, n, n_informative=n // 2, flip_y=0.05, random_state=0
    )


def first_of_a9a(m):
    """Some rows of a9a, 123 sparse columns."""

    def read(folder):
        X, y = KERNEL_SETS["a9a"](folder)
        return sparse.csr_array(X)[:m], y[:m]

    return read


SOME = ("iris", "breast_cancer", "satellite", "pendigits", "letter", "usps")
DATA = {
    **{name: SETS[name].read for name in SOME},
    "raw digits": lambda folder: load_digits(return_X_y=True),
    **{f"drawn {m} x {n}": drawn(m, n) for m, n in ((5000, 20), (2000, 100))},
    **{f"drawn {m} x {n}": drawn(m, n) for m, n in ((10_000, 100), (60_000, 30))},
    **{f"a9a {m}": first_of_a9a(m) for m in (300, 800, 1605, 5000)},
}


def main():
    """Measure the sets."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--sets", type=list_of(DATA), default=list(DATA))
    add("--C", type=numbers, default=[0.01, 1.0, 100.0])
    add("--data", help="folder of sets: NAME/train.svm[.bz2|.xz]")
    add("--rounds", type=int, default=5)
    add("--output", type=Path, default=RESULTS / "linear")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    here = machine({})
    lines = [f"{here['cpu']}, {here['cores']} cores; {here['versions']}"]
    lines.append(
        f"{'set':20}{'loss':15}{'C':>7}{'at once s':>11}{'others s':>11}  ratio"
    )
    print("\n".join(lines))
    for name in options.sets:
        X, y = DATA[name](options.data)
        for loss in ("hinge", "squared_hinge"):
            for C in options.C:
                new, old = in_turns(X, y, loss, C, options.rounds)
                cells = f"{C:>7g}{new:>11.4f}{old:>11.4f}{old / new:>7.2f}"
                lines.append(f"{name:20}{loss:15}{cells}")
                print(lines[-1], flush=True)
    (options.output / "newton_batch.txt").write_text("\n".join(lines) + "\n")


def in_turns(X, y, loss, C, rounds):
    """Median seconds at once, and by others."""
    times = [], []
    for _ in range(rounds):
        for mine, constants in zip(times, (ALL, NONE), strict=True):
            model = LinearSVC(loss=loss, C=C, intercept="penalized", tol=1e-3)
            with changed(constants, linear_choice):
                begin = time.perf_counter()
                model.fit(X, y)
                mine.append(time.perf_counter() - begin)
    return map(median, times)


if __name__ == "__main__":
    main()
