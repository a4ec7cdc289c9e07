"""One NDC problem, one method, in a process of its own: seconds, passes and memory."""

import json
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def measured(**task):
    """A record of the task: rows, dtype, method, nu, repeat; from a fresh process."""
    command = [sys.executable, "-m", __spec__.name, json.dumps(task)]
    pipes = {"stdout": subprocess.PIPE, "text": True}
    answer = subprocess.run(command, check=True, cwd=ROOT, **pipes)
    return json.loads(answer.stdout)


def main():
    """Do what the first argument says; write a record to standard output."""
    task = json.loads(sys.argv[1])
    sys.stdout.write(json.dumps(task | _run(**task)))


def _run(rows, dtype, method, nu, repeat):
    import numpy as np

    from papers.asvm import methods
    from widemargin import as_rows, make_ndc, solve

    X, y = make_ndc(rows, dtype=np.dtype(dtype))
    source, ones = as_rows(X), np.ones(X.shape[1])
    w = ones.astype(X.dtype)  # or NumPy would convert X
    read = (lambda: source.matvec(ones)) if X.dtype == np.int16 else (lambda: X @ w)
    solves, passes, matvecs, vectors = [], [_timed(read)], [], []
    made, stepped = [], []
    for _ in range(repeat):
        matvecs.append(_timed(lambda: source.matvec(ones)))
        before = _reset_peak()
        begin = _now()
        problem = methods.as_problem(X, y, nu)
        made.append(_now()[0] - begin[0])
        solution = solve(problem, methods.SOLVERS[method], tol=methods.TOL)
        solves.append(_now() - begin)
        vectors.append((_kib("VmHWM") - before) * 1024 / (8 * rows))
        found = methods.record(solution, [wall for wall, _ in solves])
        stepped.append(solution.trace[-1].seconds)
        decision = solution.w, solution.b
        del problem, solution  # or the next run begins with its vectors
        passes.append(_timed(read))
    X_test, y_test = make_ndc(max(rows // 100, 100), dtype=X.dtype, part="test")
    wall, cpu = np.array(solves).T
    pass_wall, pass_cpu = np.array(passes).T
    # Of each solve: those before and after it, as other work comes and goes.
    around = 0.5 * (pass_wall[:-1] + pass_wall[1:])
    return found | {
        "pass": float(np.median(pass_wall)),
        "pass_by": "rows.matvec" if X.dtype == np.int16 else "X @ w",
        "passes": float(np.median(wall / around)),
        "passes_least": float(wall.min() / pass_wall.min()),
        "passes_cpu": float(cpu.min() / pass_cpu.min()),
        "passes_made": float(np.median(np.array(made) / around)),
        "passes_stepped": float(np.median(np.array(stepped) / around)),
        "matvec": float(np.median(matvecs, axis=0)[0]),
        "vectors": max(vectors),
        "train": _correct(*decision, X, y),
        "test": _correct(*decision, X_test, y_test),
    }


def _correct(w, b, X, y):
    from papers.asvm.methods import correctness
    from widemargin import as_rows

    scores = as_rows(X).matvec(w)[:, None]
    return correctness([1.0], b, scores, y)


def _now():
    """Seconds of the clock and of all processors."""
    import numpy as np

    return np.array([time.perf_counter(), time.process_time()])


def _timed(read):
    """Seconds, and processor seconds, of one pass: medians of five."""
    import numpy as np

    times = []
    for _ in range(5):
        begin = _now()
        read()
        times.append(_now() - begin)
    return np.median(times, axis=0)


def _reset_peak():
    """Resident KiB now; the peak begins anew. Linux only."""
    Path("/proc/self/clear_refs").write_text("5")
    return _kib("VmRSS")


def _kib(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(x for x in lines if x.startswith(name)).split()[1])


if __name__ == "__main__":
    main()
