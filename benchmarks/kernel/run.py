"""Kernel SVMs beside other packages: seconds to the same certified gap.

Each run is a process of its own. Every answer is scored in float64 by `Problem.certify`
of widemargin, against the best dual objective that anyone has reached. Runs are kept in
OUTPUT/runs.jsonl; the same command goes on where it stopped.

Parts: fit (curves of time and gap), growth (subsets of 2,000 rows and up), memory (kept
kernel rows limited to a quarter), predict.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.core import kernel_rows
from benchmarks.environment import RESULTS, installed, list_of, machine, peers_of
from benchmarks.kernel.growth import write_growth
from benchmarks.kernel.tables import write_memory, write_predictions, write_summary
from benchmarks.kernel_sets import KERNEL_SETS, TASKS
from benchmarks.ratios import OURS
from benchmarks.runner import Log, Runner, Sets

PEERS = peers_of("kernel")
PARTS = ("fit", "growth", "memory", "predict")
# One setting of each, where a curve would say no more.
USUAL = {
    OURS: {"tol": 1e-4},
    "libsvm": {"tol": 1e-3},
    "sklearnex": {"tol": 1e-3, "input": "dense32"},
    "thundersvm": {"tol": 1e-3, "input": "dense32"},
}
FREE = {**USUAL[OURS], "memory": "free"}
SMALLEST = 2_000  # rows of the first subset
SCORING = 180.0  # seconds that certify may take
QUICK = {"rows": 4_000, "repeat": 1, "timeout": 20.0}


def main():
    """Run what is missing, then write tables and pictures."""
    options = _options()
    options.output.mkdir(parents=True, exist_ok=True)
    log = Log(options.output / "runs.jsonl", lambda run: _outdated(run, options))
    peers = installed(options.peers, "kernel")
    with tempfile.TemporaryDirectory() as folder:
        sets = Sets(Path(folder), options.data, KERNEL_SETS)
        run = KernelRunner(
            log, sets, options, machine(peers), "benchmarks.kernel.one", scoring=SCORING
        )
        for repeat in range(options.repeat):
            for part in options.parts:
                for name in options.sets:
                    STEPS[part](run, name, peers, repeat, options)
    if run.out_of_time:
        print("Out of budget: the same command goes on from here.")
    _write(options, log)
    return 0


def _options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--sets", type=list_of(TASKS), default=["a9a"], help=", ".join(TASKS))
    add("--data", help="folder of further sets: NAME/train.svm[.bz2|.xz]")
    add("--peers", type=list_of(PEERS), default=PEERS, help=", ".join(PEERS))
    add("--parts", type=list_of(PARTS), default=list(PARTS), help=", ".join(PARTS))
    add("--rows", type=int, help="so many rows of each set, chosen at random")
    add("--repeat", type=int, default=3, help="runs of each setting")
    add("--timeout", type=float, default=300, help="seconds a fit")
    add("--budget", type=float, default=np.inf, help="seconds, then stop cleanly")
    add("--again", type=list_of(PEERS), default=[], help="forget these peers' runs")
    add("--quick", action="store_true", help=f"a first look: {QUICK}")
    add("--output", type=Path, default=RESULTS / "kernel")
    options = parser.parse_args()
    if options.quick:
        vars(options).update(QUICK)
    return options


def _outdated(run, options):
    """Runs to be made again: as asked, or given up sooner than now asked for."""
    again = run["peer"] in options.again and run["set"] in options.sets
    return again or run.get("limit", np.inf) < options.timeout


class KernelRunner(Runner):
    """A `Runner` that knows where the rows to predict are."""

    def _apart(self, task):
        if task["part"] == "predict":
            known = TASKS[task["set"]]
            task = {**task, "test": str(self.sets(known.test))}
            task["test_rows"] = known.test_rows
        return super()._apart(task)

    def size(self, name):
        """Rows of a set; 0 if its data are not here."""
        folder = self.sets(name)
        return len(np.load(folder / "y.npy", mmap_mode="r")) if folder else 0

    def is_sparse(self, name):
        """Whether its rows are stored so."""
        folder = self.sets(name)
        return folder is not None and not (folder / "X.npy").exists()


def _problem(name, part, rows):
    known = TASKS[name]
    numbers = {"set": name, "C": known.C, "gamma": known.gamma, "rows": rows}
    return {**numbers, "loss": "hinge", "intercept": "free", "part": part}


def _fit(run, name, peers, repeat, options):
    """All settings of all peers."""
    problem, is_sparse = _problem(name, "fit", options.rows), run.is_sparse(name)
    for peer, module in peers.items():
        for ladder in module.ladders(is_sparse):
            for setting in ladder:
                if not run(problem, peer, setting, repeat):
                    break


def _growth(run, name, peers, repeat, options):
    """Subsets, each twice as large as the one before."""
    for peer in peers:
        for rows in sizes(min(run.size(name), options.rows or np.inf)):
            if not run(_problem(name, "growth", rows), peer, USUAL[peer], repeat):
                break


def sizes(m):
    """2,000, 4,000, ... and m rows; none if m is 0."""
    if m == 0:
        return []
    doubled = SMALLEST * 2 ** np.arange(30)
    return [*(int(k) for k in doubled[doubled < m]), int(m)]


def _memory(run, name, peers, repeat, options):
    """Our time with all the memory, and with a quarter for the kept rows, if any."""
    if OURS not in peers:
        return
    problem, free = _problem(name, "memory", options.rows), FREE
    if not run(problem, OURS, free, repeat):
        return
    first = run.log.find({**problem, "peer": OURS, "setting": free, "load": 0})[0]
    if first["kept_mib"]:
        run(problem, OURS, {**free, "memory": first["quarter"]}, repeat)


def _predict(run, name, peers, repeat, options):
    """Sets that have rows to predict."""
    test = TASKS[name].test
    if test is None or run.sets(test) is None:
        return
    for peer in peers:
        setting = USUAL[peer] if peer != OURS else {"tol": 1e-3}
        run(_problem(name, "predict", options.rows), peer, setting, repeat)


STEPS = {"fit": _fit, "growth": _growth, "memory": _memory, "predict": _predict}


def _write(options, log):
    """Tables and pictures of all runs on record."""
    rates = kernel_rows.update(options.output, options.sets, options.data, new=True)
    parts = {p: [r for r in log.runs if r["part"] == p] for p in PARTS}
    lines = write_summary(options.output, parts["fit"], log.machines, rates)
    lines += write_growth(options.output, parts["growth"])
    lines += write_memory(options.output, parts["memory"])
    lines += write_predictions(options.output, parts["predict"])
    print("\n".join(lines))


if __name__ == "__main__":
    sys.exit(main())
