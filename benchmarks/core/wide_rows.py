"""Few dense rows of many columns: values of all pairs by BLAS, or rows that are packed.

What `kernels/wide_rows.py` was chosen by, beside scikit-learn: `ours` is the fit as it
is where all shapes have their values made at once, `packed` where none has. Microarrays
have some 70 rows of 7,000 columns. Milliseconds by the clock, medians of fits in turns,
all with tol=1e-3. Prints a table.
"""

import argparse
import time
import warnings
from statistics import median
from unittest import mock

import numpy as np
from sklearn import svm

import widemargin

SHAPES = (
    (30, 400),
    (72, 7129),
    (100, 5000),
    (60, 20000),
    (200, 2000),
    (300, 10000),
    (400, 400),
    (600, 1000),
    (1000, 1000),
    (1000, 3000),
    (1500, 6000),
    (2000, 2000),
)
FORMS = (
    ("LinearSVC", {}),
    ("SVC", {"kernel": "linear"}),
    ("SVC", {"kernel": "rbf"}),
    ("SVR", {"kernel": "rbf"}),
)
LIMITS = "widemargin.kernels.wide_rows.MOST_ROWS"


def data(m, n):
    """Noise, of which 20 columns say something; classes and targets."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, n))
    target = X[:, :20].sum(axis=1) + rng.normal(size=m)
    return X, target > 0, target


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    warnings.simplefilter("ignore")  # scikit-learn's LinearSVC ends early
    print(f"{'':28}{'ours':>9}{'packed':>9}{'sklearn':>9}{'ours/packed':>13}")
    for m, n in SHAPES:
        X, classes, target = data(m, n)
        for kind, form in FORMS:
            y = target if kind == "SVR" else classes
            ours, theirs = (
                getattr(package, kind)(tol=1e-3, **form)
                for package in (widemargin, svm)
            )
            times = []
            for _ in range(rounds):
                turn = []
                for model, most in ((ours, m), (ours, 0), (theirs, 0)):
                    with mock.patch(LIMITS, most):
                        begin = time.perf_counter()
                        model.fit(X, y)
                        turn.append(1e3 * (time.perf_counter() - begin))
                times.append(turn)
            mine, packed, peer = map(median, zip(*times, strict=True))
            name = f"{m:,} x {n:,} {kind} {form.get('kernel', '')}"
            print(f"{name:28}{mine:9.1f}{packed:9.1f}{peer:9.1f}{mine / packed:13.2f}")


if __name__ == "__main__":
    main()
