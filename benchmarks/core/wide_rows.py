"""Few dense rows of many columns: values of all pairs by BLAS, or rows that are packed.

What `kernels/wide_rows.py` was chosen by, beside scikit-learn: `ours` is the fit as it
is where all shapes have their values made at once, `packed` where none has. Microarrays
have some 70 rows of 7,000 columns. With --searches `LinearSVCCV` over all products, or
one point after the other: spectra with an offset, and few points. Milliseconds by the
clock, medians of fits in turns, the fits with tol=1e-3. Prints a table.
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
    (2000, 5000),
    (4000, 4000),
)
FOR_PEERS = 1000  # rows up to which scikit-learn's fits are timed: larger take minutes

FORMS = (
    ("LinearSVC", {}),
    ("SVC", {"kernel": "linear"}),
    ("SVC", {"kernel": "rbf"}),
    ("SVR", {"kernel": "rbf"}),
)
LIMITS = "widemargin.kernels.wide_rows.MOST_ROWS"
SEARCH = "widemargin.estimators.linear_folds.MOST_OFF"
POINTS = "widemargin.estimators.linear_svc_cv.LEAST_POINTS"


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
    parser.add_argument("--searches", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # scikit-learn's LinearSVC ends early
    (searches if options.searches else fits)(options.rounds)


def spectra(m, n, offset):
    """Sums of eight bands, with an offset and little noise; classes."""
    rng, at = np.random.default_rng(3), np.linspace(0.0, 1.0, n)
    bands = [np.exp(-(((at - place) / 0.1) ** 2)) for place in np.linspace(0.1, 0.9, 8)]
    shares = rng.uniform(0.0, 0.1, size=(m, 8))
    X = offset + shares @ np.array(bands) + 1e-3 * rng.normal(size=(m, n))
    y = 10.0 * shares[:, 0] - 3.0 * shares[:, 1] + 0.05 * rng.normal(size=m)
    return X, y > np.median(y)


def searches(rounds):
    """The table of searches."""
    print(f"{'':32}{'|mean|^2 / spread':>18}{'shared':>9}{'points':>9}{'ratio':>7}")
    cases = [
        (f"spectra {m} x {n:,} + {offset:g}", spectra(m, n, offset), {})
        for m, n in ((80, 700), (300, 1000))
        for offset in (0.0, 1.0, 3.0, 10.0, 100.0)
    ]
    X, y, _ = data(2000, 2000)
    for few in ({"Cs": [0.01], "cv": 2}, {"Cs": 2, "cv": 5}, {}):
        cases.append((f"2,000 x 2,000 {few}", (X, y), few))
    for name, (X, y), few in cases:
        mean, search = X.mean(axis=0), widemargin.LinearSVCCV(refit=False, **few)
        off = mean @ mean / X.var(axis=0).sum()
        turns = []
        for _ in range(rounds):
            turn = []
            for most, least in ((np.inf, 0), (-1.0, 0)):
                with mock.patch(SEARCH, most), mock.patch(POINTS, least):
                    begin = time.perf_counter()
                    search.fit(X, y)
                    turn.append(1e3 * (time.perf_counter() - begin))
            turns.append(turn)
        one, other = map(median, zip(*turns, strict=True))
        print(f"{name:32}{off:18.2g}{one:9.0f}{other:9.0f}{one / other:7.2f}")


def fits(rounds):
    """The table of fits."""
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
                peers = [(theirs, 0)] * (m <= FOR_PEERS)
                for model, most in ((ours, m), (ours, 0), *peers):
                    with mock.patch(LIMITS, most):
                        begin = time.perf_counter()
                        model.fit(X, y)
                        turn.append(1e3 * (time.perf_counter() - begin))
                times.append(turn)
            mine, packed, *peer = map(median, zip(*times, strict=True))
            shown = f"{peer[0]:9.1f}" if peer else f"{'':9}"
            name = f"{m:,} x {n:,} {kind} {form.get('kernel', '')}"
            print(f"{name:28}{mine:9.1f}{packed:9.1f}{shown}{mine / packed:13.2f}")


if __name__ == "__main__":
    main()
