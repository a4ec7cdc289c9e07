"""Fits of given kernel values: ``python -m benchmarks.kernel.given``.

The processor's milliseconds of a whole fit with one thread (OPENBLAS_NUM_THREADS=1) at
the defaults of each package, medians of fits in turn: by working sets
(``solver="irwls"``), by what "auto" takes, and by scikit-learn. The callable is
scikit-learn's `rbf_kernel`, and its time is part of the fit. Writes pages/given.md,
which the documentation includes, and a line on the machine and its load,
kernel/given.txt.
"""

import os
import time
import warnings
from collections.abc import Callable
from statistics import median
from typing import Any

import sklearn.svm as theirs
from sklearn.base import clone
from sklearn.datasets import (
    load_digits,
    load_iris,
    make_classification,
    make_friedman1,
)
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV

import widemargin as ours
from benchmarks.environment import RESULTS, machine
from benchmarks.pages import PAGES, table

TURNS = 5
CS = [0.1, 1.0, 10.0]


def main() -> None:
    """Measure, and write the table."""
    rows = []
    for title, kind, data, options in cases():
        K, y = data
        given = {
            "kernel": rbf_kernel if title.startswith("callable") else "precomputed"
        }
        rows.append(
            [title, *(milliseconds(t) for t in measured(kind, K, y, options | given))]
        )
        print(rows[-1], flush=True)
    rows.append(["`SVCCV`, 3 C x 5 folds, 2,000 rows (`GridSearchCV`)", *searches()])
    head = ['`kernel="precomputed"`', "by working sets", 'by "auto"', "scikit-learn"]
    made = table(head, rows)
    (PAGES / "given.md").write_text(made, "utf-8")
    here, load = machine({}), os.getloadavg()[0]
    said = f"{here['cpu']}, one thread, load {load:.1f}; {here['versions']}\n"
    (RESULTS / "kernel" / "given.txt").write_text(said)
    print(made)


def cases() -> list[tuple[str, str, Any, dict[str, Any]]]:
    """Title, name of the machine, kernel values (or rows) and targets, parameters."""
    iris, digits = load_iris(return_X_y=True), load_digits(return_X_y=True)
    drawn = make_classification(2000, random_state=0)
    targets = make_friedman1(1000, random_state=0)
    sets = {"iris": iris, "digits": digits, "2,000 rows": drawn}
    both: list[tuple[str, str, Any, dict[str, Any]]] = [
        (f"{name}, C = {C:g}", "SVC", values(*data), {"C": C})
        for name, data in sets.items()
        for C in (1.0, 10.0)
    ]
    both += [
        (f"`SVR`, 1,000 rows, C = {C:g}", "SVR", values(*targets), {"C": C})
        for C in (1.0, 10.0)
    ]
    many = (
        make_classification(6000, random_state=0),
        make_friedman1(6000, random_state=0),
    )
    both += [
        ("6,000 rows, C = 1", "SVC", values(*many[0]), {}),
        ("`SVR`, 6,000 rows, C = 1", "SVR", values(*many[1]), {}),
        ("`NuSVC`, 2,000 rows", "NuSVC", values(*drawn), {}),
        ("`OneClassSVM`, 2,000 rows", "OneClassSVM", values(*drawn), {}),
    ]
    return both + [
        (f"callable: {name}", "SVC", data, {}) for name, data in sets.items()
    ]


def values(X: Any, y: Any) -> tuple[Any, Any]:
    """Kernel values of all pairs, with gamma as "scale" chooses it."""
    return rbf_kernel(X, gamma=1.0 / (X.shape[1] * X.var())), y


def measured(kind: str, K: Any, y: Any, options: dict[str, Any]) -> list[float]:
    """Seconds of the three, in turns."""
    mine, other = getattr(ours, kind), getattr(theirs, kind)
    alone = options | {"n_jobs": 1}
    machines = [mine(**alone, solver="irwls"), mine(**alone), other(**options)]
    return in_turns([lambda m=m: clone(m).fit(K, y) for m in machines])


def in_turns(fits: list[Callable[[], Any]]) -> list[float]:
    """Medians of the processor's seconds."""
    found: list[list[float]] = [[] for _ in fits]
    for _ in range(TURNS):
        for seconds, fit in zip(found, fits, strict=True):
            begin = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fit()
            seconds.append(time.process_time() - begin)
    return [median(seconds) for seconds in found]


def milliseconds(seconds: float) -> str:
    """A time in three digits, or whole."""
    found = 1e3 * seconds
    return f"{found:,.0f}" if found >= 100 else f"{found:.3g}"


def searches() -> list[str]:
    """The same of searches for C."""
    K, y = values(*make_classification(2000, random_state=0))
    mine = {"Cs": CS, "cv": 5, "kernel": "precomputed", "n_jobs": 1}
    fits = [
        lambda: ours.SVCCV(**mine, solver="irwls").fit(K, y),
        lambda: ours.SVCCV(**mine).fit(K, y),
        lambda: GridSearchCV(theirs.SVC(kernel="precomputed"), {"C": CS}, cv=5).fit(
            K, y
        ),
    ]
    return [milliseconds(t) for t in in_turns(fits)]


if __name__ == "__main__":
    main()
