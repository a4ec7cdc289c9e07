"""Smallest enclosing balls: ``python -m benchmarks.kernel.balls``.

Fits of `EnclosingBall` with both steps, on rows of a mixture of normals and on Adult:
the median of three, in seconds of the processor by one thread, so that other work
counts little. Writes a table of Markdown, pages/balls.md, which the documentation
includes, after a line on the machine, balls.txt.
"""

import time
from statistics import median
from typing import Any

import numpy as np

from benchmarks.environment import RESULTS, machine
from benchmarks.pages import PAGES, table
from widemargin import EnclosingBall, load_svmlight

TOL = 1e-3
STEPS = ("away", "pairwise")
# Mean squared excess of the rows; None: all rows are inside.
EXCESS = (None, 0.001, 0.01, 0.2)


def main() -> None:
    """Measure, and write the table."""
    rows = [line for name, X in data().items() for line in measured(name, X)]
    head = ["data", "mean excess q", "support vectors"]
    head += [f'`step="{step}"`, s' for step in STEPS]
    made = table([*head, "largest gap"], rows)
    (PAGES / "balls.md").write_text(made, "utf-8")
    (RESULTS / "kernel" / "balls.txt").write_text(machine_line())
    print(made)


def machine_line() -> str:
    """What the times depend on."""
    here = machine({})
    return f"{here['cpu']}, one thread; {here['versions']}\n"


def data() -> dict[str, Any]:
    """The rows: 10 normal clusters, and Adult."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(10, 10)) * 3.0
    mixture = centers[rng.integers(10, size=20_000)] + rng.normal(size=(20_000, 10))
    adult, _ = load_svmlight("examples/data/a9a.svm.bz2")
    return {
        "mixture of 10 normals, 20,000 × 10": mixture,
        "Adult (a9a), 32,561 × 123 sparse": adult,
    }


def measured(name: str, X: Any) -> list[list[str]]:
    """A line for each excess."""
    lines = []
    for q in EXCESS:
        C = None if q is None else 1.0 / (2.0 * X.shape[0] * q)
        fits = {step: [fit(X, C, step) for _ in range(3)] for step in STEPS}
        ball = fits["away"][0][1]
        gap = max(one.dual_gap_ for same in fits.values() for _, one in same)
        told = "hard: no row is outside" if q is None else f"{q:g}"
        times = [f"{median(t for t, _ in fits[step]):.2g}" for step in STEPS]
        lines.append([name, told, f"{len(ball.support_):,}", *times, f"{gap:.0e}"])
    return lines


def fit(X: Any, C: float | None, step: str) -> tuple[float, EnclosingBall]:
    """Seconds of the processor, and what was fitted."""
    begin = time.process_time()
    ball = EnclosingBall(C=C, step=step, tol=TOL, n_jobs=1).fit(X)
    return time.process_time() - begin, ball


if __name__ == "__main__":
    main()
