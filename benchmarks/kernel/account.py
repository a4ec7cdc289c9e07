"""What every kernel value of a fit is made for: a table of causes.

Counts stand where values are asked for, in Python: the engine runs as it always does.
For each set: millions of kernel values by cause, and in units of the rows of K of the
final support vectors once, the least that any method with exact scores computes. Where
there are many equal rows, those that differ are solved: m of all rows. Prints a table
and writes OUTPUT/account.txt, or account_LEVEL.txt where WIDEMARGIN_SIMD names a level.
"""

import argparse
import os
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.environment import RESULTS, list_of, machine
from benchmarks.kernel_sets import KERNEL_SETS, TASKS
from widemargin import Kernel, Problem, solve
from widemargin.solvers import IRWLS

SETS = ("a9a", "w7a", "w8a", "ijcnn1")
CAUSES = {
    "block, new pair": "pairs of a working set that no set had before",
    "block, twice": "pairs of two new rows, whose value is computed both ways",
    "block, again": "pairs that a set before had, too",
    "row, first": "row of a variable that moved for the first time, and is a "
    "support vector in the end",
    "row, first, zero": "the same, of one that ends at zero",
    "row, again": "row of a variable that had moved before",
    "row, again, zero": "the same, of one that ends at zero",
    "settled": "rows for samples that had been left out, once at the end",
    "certificate": "values in float64",
}


@dataclass(frozen=True, kw_only=True)
class Counted(IRWLS):
    """The solver, which lets an account know the problem that it is given.

    That is one without equal rows where there are many.
    """

    account: "Account"

    def iterate(self, problem, start, tol):
        """The same steps."""
        self.account.watch(problem)
        yield from super().iterate(problem, start, tol)


class Account:
    """Counts what the `Columns` of a problem are asked for; no values are changed.

    Parameters
    ----------
    problem : Problem with a kernel, all of its rows: the certificate is of them
    """

    def __init__(self, problem):
        self.counts, self.whole, self.solved = Counter(), problem, problem
        self._wrap(problem.columns, "bounded")

    def watch(self, problem):
        """The problem that is solved: the methods of its columns are wrapped."""
        self.solved, columns = problem, problem.columns
        self._columns = columns
        self._moves = []  # rows, values of each, and whether they had been left out
        self._sets = np.zeros(columns.shape[0], np.uint64)
        self.kept = self.number = 0
        self._wrap(columns, "block")
        self._wrap(columns, "add")
        if problem is not self.whole:
            self._wrap(columns, "bounded")

    def _wrap(self, columns, name):
        count, method = getattr(self, f"_{name}"), getattr(columns, name)

        def counted(*given, **options):
            count(*given)
            return method(*given, **options)

        setattr(columns, name, counted)

    @property
    def evaluations(self):
        """Kernel values by the counts of the columns themselves."""
        problems = {id(one): one for one in (self.whole, self.solved)}
        return sum(one.columns.evaluations for one in problems.values())

    def _block(self, new, rows, *_):
        """A working set of ``rows``, the last of which are new."""
        bit, count = np.uint64(1 << (self.number % 64)), len(new)
        before = self._sets[new][:, np.newaxis] & self._sets[rows] != 0
        again = int(np.count_nonzero(before))
        inner = int(np.count_nonzero(~before[:, len(rows) - count :]))
        twice = (inner - count) // 2
        self.counts["block, again"] += again
        self.counts["block, twice"] += twice
        self.counts["block, new pair"] += before.size - again - twice
        self._sets &= ~bit
        self._sets[rows] |= bit
        self.number += 1

    def _add(self, rows, change, sums, again=None):
        """Rows of K, for all samples or for those in focus."""
        new = rows[self._columns.places[rows] < 0]
        length, current = self._columns.length, self.solved.scores.current
        self.kept += (len(rows) - len(new)) * length
        settled = current is not None and length != np.count_nonzero(current)
        self._moves.append((new, length, settled))

    def _bounded(self, rows, others, weights):
        """Values in float64, half of them where rows are their own samples."""
        own = int(np.isin(rows, others, assume_unique=True).sum())
        k = len(others)
        square = k * (k + 1) // 2 if 2 * own > k else own * k
        self.counts["certificate"] += (len(rows) - own) * k + square

    def closed(self, c):
        """Millions of values by cause, where c is what the fit ended at."""
        counts, moved = Counter(self.counts), np.zeros(len(c), bool)
        for rows, length, settled in self._moves:
            if settled:
                counts["settled"] += len(rows) * length
                continue
            for again in (False, True):
                for zero in (False, True):
                    some = (moved[rows] == again) & ((c[rows] == 0) == zero)
                    name = "row, again" if again else "row, first"
                    name += ", zero" if zero else ""
                    counts[name] += int(np.count_nonzero(some)) * length
            moved[rows] = True
        return {name: counts[name] / 1e6 for name in CAUSES}


def account(X, y, task, tol):
    """The causes of a fit, and what else is known of it."""
    problem = Problem(X, y, task.C, kernel=Kernel("rbf", gamma=task.gamma))
    mine = Account(problem)
    cpu = time.process_time()
    solution = solve(problem, Counted(account=mine), tol=tol)
    cpu = time.process_time() - cpu
    c = mine.solved.scores.c
    return mine.closed(c), {
        "cpu": cpu,
        "gap": solution.certificate.relative_gap,
        "least": np.count_nonzero(c) * len(c) / 1e6,
        "evaluations": mine.evaluations / 1e6,
        "kept": mine.kept / 1e6,
        "sets": mine.number,
        "support_vectors": int(np.count_nonzero(c)),
        "m": len(c),
        "rows": len(y),
    }


def table(found):
    """Lines: causes in rows, sets in columns."""
    lines = [f"{'millions (of SV rows once)':28}" + "".join(f"{n:>16}" for n in found)]
    for cause in CAUSES:
        cells = [
            f"{by[cause]:.1f} ({by[cause] / of['least']:.2f})"
            for by, of in found.values()
        ]
        lines.append(f"{cause:28}" + "".join(f"{cell:>16}" for cell in cells))
    whole = {n: sum(by.values()) for n, (by, _) in found.items()}
    cells = [f"{whole[n]:.1f} ({whole[n] / found[n][1]['least']:.2f})" for n in found]
    lines.append(f"{'all':28}" + "".join(f"{cell:>16}" for cell in cells))
    for name in ("evaluations", "least", "kept", "cpu"):
        lines.append(
            f"{name:28}" + "".join(f"{of[name]:16.1f}" for _, of in found.values())
        )
    for name in ("support_vectors", "m", "rows", "sets"):
        lines.append(
            f"{name:28}" + "".join(f"{of[name]:16,}" for _, of in found.values())
        )
    lines.append(
        f"{'gap':28}" + "".join(f"{of['gap']:16.1e}" for _, of in found.values())
    )
    return lines


def main():
    """Write the account of the sets."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--sets", type=list_of(TASKS), default=list(SETS))
    add("--data", help="folder of sets: NAME/train.svm[.bz2|.xz], mnist/train.npz")
    add("--tol", type=float, default=1e-4)
    add("--output", type=Path, default=RESULTS / "kernel")
    options = parser.parse_args()
    found = {}
    for name in options.sets:
        X, y = KERNEL_SETS[name](options.data)
        found[name] = account(X, y, TASKS[name], options.tol)
    here = machine({})
    level = os.environ.get("WIDEMARGIN_SIMD", "")
    cores = f"{here['cores']} cores" + f", {level}" * bool(level)
    lines = [f"{here['cpu']}, {cores}; {here['versions']}"]
    lines += [f"gap {options.tol:g}", *table(found), ""]
    lines += [f"{cause}: {why}" for cause, why in CAUSES.items()]
    print("\n".join(lines))
    options.output.mkdir(parents=True, exist_ok=True)
    name = f"account_{level}.txt" if level else "account.txt"
    (options.output / name).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
