"""Linear SVMs beside other packages: seconds and certified gap on the same problem."""

import argparse
import importlib
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
from datasets import DATASETS
from scipy import sparse

from widemargin import Problem, solve

PEERS = ("widemargin", "liblinear", "libsvm")


def main():
    """Run all peers on all sets, or one peer on one set in this process."""
    options = _options()
    if options.one:
        return _run_one(options)
    print(
        f"{platform.platform()}, {os.cpu_count()} cores, hinge, "
        "gap to the best dual bound"
    )
    print(
        f"{'set':14}{'C':>8}  {'intercept':10}  {'peer':12}"
        f"{'seconds':>9}{'spread':>9}{'gap':>10}{'MiB':>7}"
    )
    for name in options.sets.split(","):
        try:
            X, y = DATASETS[name](options.data)
        except FileNotFoundError as reason:
            print(f"{name:14}skipped: {reason}")
            continue
        for C in map(float, options.C.split(",")):
            for intercept in ("free", "penalized"):
                _compare(options, name, X, y, C, intercept)
    return 0


def _options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", default="a9a,ndc-100k", help="names, with commas")
    parser.add_argument(
        "--data", help="folder of further sets: NAME/train.svm[.bz2|.xz]"
    )
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--C", default="1")
    parser.add_argument(
        "--tol", type=float, default=1e-4, help="relative gap asked of us"
    )
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=120, help="seconds a run")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--intercept", help=argparse.SUPPRESS)
    return parser.parse_args()


def _compare(options, name, X, y, C, intercept):
    """One line a peer that solves this problem."""
    problem = Problem(X, y, C, intercept=intercept)
    best = solve(problem, tol=1e-9, time_limit=options.timeout).certificate.dual
    for peer in options.peers.split(","):
        if intercept not in importlib.import_module(f"peers.{peer}").INTERCEPTS:
            continue
        start = f"{name:14}{C:8g}  {intercept:10}  {peer:12}"
        runs = []
        while len(runs) < options.repeat and None not in runs:
            runs.append(_run_apart(options, peer, name, C, intercept))
        if None in runs:
            print(f"{start}{'> ' + format(options.timeout, '.0f'):>9}", flush=True)
            continue
        seconds = [run["seconds"] for run in runs]
        primal = problem.primal(np.array(runs[0]["w"]), runs[0]["b"])
        print(
            f"{start}{statistics.median(seconds):9.3f}"
            f"{max(seconds) - min(seconds):9.3f}{(primal - best) / primal:10.1e}"
            f"{runs[0]['mib']:7.0f}",
            flush=True,
        )


def _run_apart(options, peer, name, C, intercept):
    """One run in a process of its own; None if it takes too long."""
    with tempfile.NamedTemporaryFile("r", suffix=".json") as result:
        command = [sys.executable, __file__, "--one", f"{peer}:{result.name}"]
        command += ["--sets", name, "--C", str(C), "--intercept", intercept]
        command += ["--tol", str(options.tol)]
        if options.data:
            command += ["--data", options.data]
        try:
            subprocess.run(command, check=True, timeout=options.timeout)
        except subprocess.TimeoutExpired:
            return None
        return json.load(result)


def _run_one(options):
    """Fit once and write down time, memory above the data, and the answer."""
    peer, path = options.one.split(":", 1)
    fit = importlib.import_module(f"peers.{peer}").fit
    X, y = DATASETS[options.sets](options.data)
    if sparse.issparse(X):  # scikit-learn's wrappers take 32-bit indices only
        X.indices, X.indptr = X.indices.astype("i4"), X.indptr.astype("i4")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the gap says how good the answer is
        w, b = fit(X, y, float(options.C), options.intercept, options.tol)
    seconds = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answer = {
        "seconds": seconds,
        "mib": (after - before) / 1024,
        "w": list(w),
        "b": float(b),
    }
    with open(path, "w") as file:
        json.dump(answer, file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
