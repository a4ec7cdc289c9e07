"""Table 1: where the passes settle, as printed, with guards, and with exact errors."""

import itertools
from dataclasses import replace

import numpy as np

from papers import measure, style
from widemargin import Kernel
from widemargin.solvers import IRWLS
from widemargin.solvers.kernel.published_irwls import Table1
from widemargin.solvers.kernel.small_problem import Small

NAME = "table_1"
MOST_PASSES = 1000
READINGS = {
    "as printed": Table1(max_passes=MOST_PASSES),
    "exact errors": Table1(max_passes=MOST_PASSES, products=True),
    "guarded": replace(IRWLS(inner="guarded").small_solver(), max_passes=MOST_PASSES),
}
ROWS, PROBLEMS, STOP = 120, 10, 1e-3
PRICES = (0.1, 1.0, 10.0, 100.0, 1000.0)
# The longest period that is looked for, in the sets of the last passes.
LONGEST = 100


def run(options):
    """A record for each C and reading: ten problems of 120 rows, each one whole."""
    prices = PRICES[::2] if options.quick else PRICES
    problems = 2 if options.quick else PROBLEMS
    return [
        {"C": C, "reading": name, **_tried(solver, C, problems)}
        for C, (name, solver) in itertools.product(prices, READINGS.items())
    ]


def problem(seed, C):
    """Labels by a noisy plane in four dimensions, K = exp(-|x - z|^2 / 2)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROWS, 4))
    y = np.sign(X[:, 0] + 0.7 * rng.normal(size=ROWS))
    K, zero = Kernel("rbf", gamma=0.5)(X, X), np.zeros(ROWS)
    return Small(K, zero, np.minimum(y * C, 0), np.maximum(y * C, 0), -y, zero, 0.0, 1)


def _tried(solver, C, problems):
    """How many settle, in how many passes, and how the others end."""
    steps, left, periods = [], [], []
    for seed in range(problems):
        small = problem(seed, C)
        solved = solver(small, STOP)
        if solved.reached:
            steps.append(solved.steps)
            continue
        left.append(small.at(solved.c).violations.size)
        periods.append(_period(solver, small, solved.steps))
    return {
        "problems": problems,
        "settled": len(steps),
        "most": max(steps, default=0),
        "passes": sorted(steps),
        "left": [measure.rounded(v) for v in sorted(left)],
        "periods": periods,
    }


def _period(solver, small, count):
    """Passes after which the sets come again; 1 where they stay, 0 where neither."""
    made = itertools.islice(solver.passes(small), count)
    sets = [found.group.tobytes() for found in made][-2 * LONGEST :]
    for length in range(1, len(sets) // 2 + 1):
        if sets[-length:] == sets[-2 * length : -length]:
            return length
    return 0


def table(records):
    """Lines of text."""
    yield (
        f"{ROWS} rows, a working set of all: to a violation of {STOP:g} within "
        f"{MOST_PASSES} passes. Of what does not settle: the least violation, and "
        "whether the sets S1, S2, S3 stay, come again (period) or change on"
    )
    yield (
        f"{'C':>6}  {'reading':14}{'settled':>9}{'passes: median':>16}{'most':>6}"
        f"{'left: least':>13}{'most':>9}  ends"
    )
    for r in records:
        passes, left = r["passes"] or [np.nan], r["left"] or [np.nan]
        yield (
            f"{r['C']:6g}  {r['reading']:14}{len(r['passes']):4} of {r['problems']:2}"
            f"{np.median(passes):15.0f}{max(passes):7.0f}{min(left):13.1e}"
            f"{max(left):9.1e}  {_ends(r['periods'])}"
        )


def _ends(periods):
    stay = sum(p == 1 for p in periods)
    again = sorted(p for p in periods if p > 1)
    change = sum(p == 0 for p in periods)
    words = [f"{stay} stay"] if stay else []
    words += (
        [f"{len(again)} come again ({', '.join(map(str, again))})"] if again else []
    )
    words += [f"{change} change"] if change else []
    return ", ".join(words)


def draw(records, folder):
    """How many problems settle, and in how many passes, over C."""
    figure, (settled, passes) = style.panels(1, 2, width=4.8, height=3.4)
    for k, name in enumerate(READINGS):
        mine = [r for r in records if r["reading"] == name]
        style.curve(settled, [r["C"] for r in mine], [_share(r) for r in mine], k, name)
        medians = [np.median(r["passes"] or [np.nan]) for r in mine]
        style.curve(passes, [r["C"] for r in mine], medians, k, name)
        never = [r["C"] for r in mine if not r["passes"]]
        style.crosses(passes, never, 0.05, style.LINES[k][0])
    settled.set(ylabel="problems that settle, %", xlabel="C", xscale="log")
    settled.set_ylim(-5, 105)
    passes.set(ylabel="passes, median of these", xscale="log", yscale="log")
    passes.set_xlabel("C (x: none settles)")
    style.plain(passes, "y", (1, 2, 5))
    style.legend(figure, settled, 3)
    style.save(figure, folder, NAME)


def _share(r):
    return 100.0 * r["settled"] / r["problems"]
