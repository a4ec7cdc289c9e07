"""By how much fits exceed their time limit: every estimator, many options.

    python -m benchmarks.core.time_limits [--only WORD] [--most SECONDS]

Each fit has ``time_limit=1`` and a process of its own. Told are the seconds beyond the
limit by the wall, the status, the certified gap and the accuracy on the data.
"""

import argparse
import subprocess
import sys
import time
import warnings

import numpy as np

LIMIT = 1.0


def blobs(m, n, classes=2, scale=1.0, noise=1.0, sparse=0.0):
    """Noisy classes: (X, y)."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, m)
    X = rng.normal(size=(m, n)) * noise + rng.normal(size=(classes, n))[y] * 0.3
    X[rng.random((m, n)) < sparse] = 0.0
    if sparse:
        from scipy.sparse import csr_array

        return csr_array(X), y
    return X * scale, y


def slow(A, B):
    """A linear kernel of 50 ms a call."""
    time.sleep(0.05)
    return np.asarray(A @ B.T) + 1.0


def linear(**options):
    """LinearSVC."""
    from widemargin import LinearSVC

    return LinearSVC(time_limit=LIMIT, **options)


def svc(**options):
    """SVC."""
    from widemargin import SVC

    return SVC(time_limit=LIMIT, **options)


def budget(size, **options):
    """BudgetSVC."""
    from widemargin import BudgetSVC

    return BudgetSVC(budget=size, time_limit=LIMIT, **options)


def ball(**options):
    """EnclosingBall."""
    from widemargin import EnclosingBall

    return EnclosingBall(time_limit=LIMIT, **options)


def stored(m, n):
    """Rows in a file."""
    import tempfile

    from widemargin import open_rows

    X, y = blobs(m, n)
    with tempfile.NamedTemporaryFile(suffix=".npy", delete=False) as file:
        np.save(file, X)
    return open_rows(file.name), y


def square(m, n):
    """A precomputed linear kernel."""
    X, y = blobs(m, n)
    return X @ X.T, y


CASES = {
    # Those that were 2 to 100 s late.
    "rank=.001 C=1e3": (lambda: blobs(5000, 100), lambda: svc(rank=0.001, C=1e3)),
    "soft ball C=1e-5": (lambda: blobs(30_000, 20), lambda: ball(C=1e-5)),
    "soft ball C=1e-5 linear": (
        lambda: blobs(20_000, 20),
        lambda: ball(C=1e-5, kernel="linear"),
    ),
    "callable 50 ms": (lambda: blobs(5000, 20), lambda: svc(kernel=slow)),
    "callable 50 ms rank=100": (
        lambda: blobs(5000, 20),
        lambda: svc(kernel=slow, rank=100),
    ),
    "budget norm 1000 C=1e3": (
        lambda: blobs(5000, 50),
        lambda: budget(1000, C=1e3, method="norm"),
    ),
    "budget 1000 C=1e3": (
        lambda: blobs(20_000, 50),
        lambda: budget(1000, C=1e3),
    ),
    "linear C=1e6 tol=1e-9": (
        lambda: blobs(3000, 8000),
        lambda: linear(C=1e6, tol=1e-9),
    ),
    "poly raw": (
        lambda: blobs(10_000, 50, scale=100.0),
        lambda: svc(kernel="poly", gamma=1.0, coef0=1.0, C=1e3),
    ),
    "eigen 1000 exact": (
        lambda: blobs(8000, 50),
        lambda: svc(rank=1000, approximation="eigen", certify="exact"),
    ),
    "26 linear classes": (lambda: blobs(100_000, 100, 26), lambda: linear(C=100.0)),
    # More.
    "linear ipm": (
        lambda: blobs(100_000, 300),
        lambda: linear(solver="interior_point", C=100.0),
    ),
    "linear ipm wide": (
        lambda: blobs(3000, 8000),
        lambda: linear(solver="interior_point", C=100.0),
    ),
    "linear alm": (
        lambda: blobs(200_000, 100),
        lambda: linear(solver="augmented_lagrangian", C=1e4, tol=1e-9),
    ),
    "linear cd": (
        lambda: blobs(100_000, 200),
        lambda: linear(solver="coordinate_descent", C=1e3, intercept="penalized"),
    ),
    "linear active_set wide": (
        lambda: blobs(3000, 6000),
        lambda: linear(loss="squared_hinge", solver="active_set", C=1e4, tol=1e-9),
    ),
    "linear sparse": (
        lambda: blobs(20_000, 3000, sparse=0.99),
        lambda: linear(C=1e4, tol=1e-8),
    ),
    "linear file": (lambda: stored(300_000, 50), lambda: linear(C=100.0)),
    "svc exact": (lambda: blobs(30_000, 50), lambda: svc(C=10.0)),
    "svc exact near": (lambda: blobs(30_000, 5), lambda: svc(C=0.01, gamma=0.01)),
    "svc squared frank_wolfe": (
        lambda: blobs(20_000, 50),
        lambda: svc(loss="squared_hinge", solver="frank_wolfe", C=10.0),
    ),
    "svc squared core_vector": (
        lambda: blobs(20_000, 50),
        lambda: svc(loss="squared_hinge", solver="core_vector", C=10.0),
    ),
    "svc 26 classes": (lambda: blobs(20_000, 20, 26), lambda: svc()),
    "svc 26 classes ovr": (
        lambda: blobs(20_000, 20, 26),
        lambda: svc(multi_class="ovr"),
    ),
    "svc precomputed": (
        lambda: square(5000, 50),
        lambda: svc(kernel="precomputed", C=1e3),
    ),
    "svc rank=2000": (lambda: blobs(20_000, 50), lambda: svc(rank=2000)),
    "svc rank=1000 exact 5 classes": (
        lambda: blobs(10_000, 50, 5),
        lambda: svc(rank=1000, certify="exact"),
    ),
    "svc rank=auto": (lambda: blobs(30_000, 50), lambda: svc(rank="auto", C=10.0)),
    "svc polish": (lambda: blobs(20_000, 50), lambda: svc(rank=500, polish=True)),
    "svc fourier": (
        lambda: blobs(20_000, 50),
        lambda: svc(rank=2000, approximation="fourier"),
    ),
    "svc polynomial": (
        lambda: blobs(20_000, 50),
        lambda: svc(
            rank=2000, approximation="polynomial", kernel="poly", degree=2, coef0=1.0
        ),
    ),
    "svc rank file": (lambda: stored(100_000, 50), lambda: svc(rank=300)),
    "budget norm 0.2": (
        lambda: blobs(10_000, 20),
        lambda: budget(0.2, norm="l2", method="norm"),
    ),
    "budget norm nu": (lambda: blobs(10_000, 20), lambda: budget(500, method="norm")),
    "budget ovo": (lambda: blobs(5000, 20, 8), lambda: budget(300, C=100.0)),
    "ball hard": (lambda: blobs(50_000, 30), lambda: ball(C=None, tol=1e-9)),
    "ball callable": (
        lambda: blobs(5000, 20),
        lambda: ball(kernel=slow, C=None, tol=1e-6),
    ),
    "ball 1": (lambda: blobs(50_000, 30), lambda: ball(C=1.0, tol=1e-9)),
}


def one(name):
    """Fit one case, and tell."""
    warnings.simplefilter("ignore")
    data, make = CASES[name]
    (X, y), model = data(), make()
    begin = time.perf_counter()
    model.fit(X) if type(model).__name__ == "EnclosingBall" else model.fit(X, y)
    beyond = time.perf_counter() - begin - LIMIT
    told = f"{name:32} {beyond:7.2f} {model.status_:12} {model.dual_gap_:8.1e}"
    if isinstance(X, np.ndarray) and model.__dict__.get("kernel") is not slow:
        right = model.predict(X[:500])
        told += f" {np.mean(right == (1 if np.ndim(y) == 0 else y[:500])):6.2f}"
    print(told, flush=True)
    if not isinstance(X, np.ndarray) and hasattr(X, "close"):
        X.close()


def main():
    """Run the cases, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="cases whose name has this")
    parser.add_argument("--one", help="a case, in this process")
    parser.add_argument("--most", type=float, default=100.0, help="seconds of a case")
    options = parser.parse_args()
    if options.one:
        one(options.one)
        return
    print(f"{'case':32} {'beyond':>7} {'status':12} {'gap':>8} right")
    for name in (name for name in CASES if options.only in name):
        command = [sys.executable, "-m", __spec__.name, "--one", name]
        try:
            subprocess.run(command, timeout=options.most, check=False)
        except subprocess.TimeoutExpired:
            print(f"{name:32}  > {options.most:.0f} s", flush=True)


if __name__ == "__main__":
    main()
