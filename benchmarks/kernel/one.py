"""One fit with a kernel in this process, measured and scored, for `kernel.run`."""

import importlib
import json
import statistics
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.one import load_set, measured
from widemargin import Kernel, Problem

# Predictions of one model: the median counts.
PREDICTIONS = 5


def main():
    """Run the task given as JSON; say "ready" before the fit; write the result."""
    task = json.loads(sys.argv[1])
    peer = importlib.import_module(f"benchmarks.peers.kernel.{task['peer']}")
    X, y = thinned(*load_set(task["folder"]), task["rows"])
    given = peer.prepared(X, **task["setting"])
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    options = {"C": task["C"], "gamma": task["gamma"], **task["setting"]}
    if task["part"] == "predict":
        result = predicted(peer, given, y, options, task)
    else:
        answer, result = measured(lambda: peer.fit(given, y, **options))
        result |= scored(X, y, task["C"], task["gamma"], answer)
    Path(task["result"]).write_text(json.dumps(result))


def thinned(X, y, rows):
    """That many rows, chosen at random, always the same; None: all in their order.

    Smaller choices are parts of larger ones.
    """
    if rows is None or rows >= len(y):
        return X, y
    chosen = np.random.default_rng(0).permutation(len(y))[:rows]
    return X[chosen], y[chosen]


def scored(X, y, C, gamma, answer):
    """Both objectives of an answer in float64, and how many support vectors it has.

    alpha is clipped to [0, C] and made to sum to 0 with the signs y, for its dual
    objective; the primal one is of what the peer returned.
    """
    problem = Problem(X, y, C, kernel=Kernel("rbf", gamma=gamma))
    c = y * answer.alpha
    certificate = problem.certify(answer.alpha, c, answer.b)
    return {
        "primal": certificate.primal,
        "dual": certificate.dual,
        "own_gap": certificate.relative_gap,
        "zero": problem.zero_objective,
        "support_vectors": int(np.count_nonzero(answer.alpha)),
        "m": len(y),
        **answer.more,
    }


def predicted(peer, X, y, options, task):
    """Seconds of a prediction on the test rows, and the share of them that is right."""
    model, result = measured(lambda: peer.trained(X, y, **options))
    X_test, y_test = thinned(*load_set(task["test"]), task["test_rows"])
    rows, seconds = peer.prepared(X_test, **task["setting"]), []
    for _ in range(PREDICTIONS):
        begin = time.perf_counter()
        classes = model.predict(rows)
        seconds.append(time.perf_counter() - begin)
    return result | {
        "predict_seconds": statistics.median(seconds),
        "correct": float(np.mean(np.ravel(classes) == y_test)),
        "test_m": len(y_test),
    }


if __name__ == "__main__":
    main()
