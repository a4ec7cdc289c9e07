"""One NDC problem, one method, in a process of its own: seconds, passes and memory."""

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))


def measured(**task):
    """A record of the task: rows, dtype, method, nu, repeat; from a fresh process."""
    command = [sys.executable, __file__, json.dumps(task)]
    answer = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(answer.stdout)


def main():
    """Do what the first argument says; write a record to standard output."""
    task = json.loads(sys.argv[1])
    sys.stdout.write(json.dumps(task | _run(**task)))


def _run(rows, dtype, method, nu, repeat):
    import numpy as np

    from papers.asvm import measure
    from widemargin import as_rows, make_ndc, solve

    X, y = make_ndc(rows, dtype=np.dtype(dtype))
    source, ones = as_rows(X), np.ones(X.shape[1])
    w = ones.astype(X.dtype)  # or NumPy would convert X
    ours, theirs, seconds, vectors = [], [], [], []
    for _ in range(repeat):
        ours.append(_pass(lambda: source.matvec(ones)))
        if X.dtype != np.int16:  # which NumPy multiplies without BLAS
            theirs.append(_pass(lambda: X @ w))
        before = _reset_peak()
        begin = time.perf_counter()
        problem = measure.as_problem(X, y, nu)
        solution = solve(problem, measure.SOLVERS[method], tol=measure.TOL)
        seconds.append(time.perf_counter() - begin)
        vectors.append((_kib("VmHWM") - before) * 1024 / (8 * rows))
        decision = solution.w, solution.b
        found = measure.record(solution, seconds)
        del problem, solution  # or the next run begins with its vectors
    X_test, y_test = make_ndc(max(rows // 100, 100), dtype=X.dtype, part="test")
    plain = statistics.median(theirs or ours)
    return found | {
        "pass": plain,
        "pass_by": "X @ w" if theirs else "rows.matvec",
        "matvec": statistics.median(ours),
        "passes": found["seconds"] / plain,
        "matvecs": found["seconds"] / statistics.median(ours),
        "vectors": max(vectors),
        "train": _correct(*decision, X, y),
        "test": _correct(*decision, X_test, y_test),
    }


def _correct(w, b, X, y):
    from papers.asvm.measure import correctness
    from widemargin import as_rows

    scores = as_rows(X).matvec(w)[:, None]
    return correctness([1.0], b, scores, y)


def _pass(read):
    """Seconds of one pass: the median of five."""
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        read()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def _reset_peak():
    """Resident KiB now; the peak begins anew. Linux only."""
    Path("/proc/self/clear_refs").write_text("5")
    return _kib("VmRSS")


def _kib(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(x for x in lines if x.startswith(name)).split()[1])


if __name__ == "__main__":
    main()
