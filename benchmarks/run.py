"""Linear SVMs beside other packages: seconds, certified gap and memory on one problem.

Each run is a process of its own. Every answer is scored by `widemargin.Problem` against
the best dual bound that anyone of ours has proved. Runs are kept in OUTPUT/runs.jsonl;
the same command goes on where it stopped.
"""

import argparse
import contextlib
import itertools
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.datasets import DATASETS
from benchmarks.environment import (
    RESULTS,
    installed,
    list_of,
    machine,
    numbers,
    peers_of,
)
from benchmarks.ratios import (
    OURS,
    best,
    best_dual,
    fastest,
    group,
    points,
    problem_of,
    reach,
)
from benchmarks.runner import Log, Runner, Sets
from benchmarks.tables import write_tables

PEERS = peers_of("linear")
LOSSES = ("hinge", "squared_hinge")
INTERCEPTS = ("penalized", "free", "none")


def main():
    """Run what is missing, then write tables and pictures."""
    options = _options()
    options.output.mkdir(parents=True, exist_ok=True)
    log = Log(options.output / "runs.jsonl", lambda run: _outdated(run, options))
    peers = installed(options.peers, "linear")
    with tempfile.TemporaryDirectory() as folder:
        sets = Sets(Path(folder), options.data)
        run = Runner(log, sets, options, machine(peers))
        _passes(run, peers, options)
        if options.load:
            _loaded(run, peers, options)
    if run.out_of_time:
        print("Out of budget: the same command goes on from here.")
    write_tables(options.output, log.runs, log.machines)
    return 0


def _options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    known = ", ".join(DATASETS)
    add("--sets", type=list_of(DATASETS), default="a9a,ndc-100k", help=known)
    add("--data", help="folder of further sets: NAME/train.svm[.bz2|.xz]")
    add("--peers", type=list_of(PEERS), default=",".join(PEERS))
    add("--C", type=numbers, default="1", help="numbers, with commas")
    add("--losses", type=list_of(LOSSES), default="hinge", help=", ".join(LOSSES))
    names = {"type": list_of(INTERCEPTS), "help": ", ".join(INTERCEPTS)}
    add("--intercepts", **names, default="penalized,free")
    add("--repeat", type=int, default=3, help="runs of each setting")
    add("--timeout", type=float, default=60, help="seconds a fit")
    add("--budget", type=float, default=np.inf, help="seconds, then stop cleanly")
    add("--load", type=int, default=0, help="again beside so many busy processes")
    add("--again", type=list_of(PEERS), default=[], help="forget these peers' runs")
    add("--output", type=Path, default=RESULTS)
    return parser.parse_args()


def _outdated(run, options):
    """Runs to be made again: as asked, or given up sooner than now asked for."""
    again = run["peer"] in options.again and run["set"] in options.sets
    return again or run.get("limit", np.inf) < options.timeout


def _passes(run, peers, options):
    """All settings once, then all again: medians over different moments."""
    for repeat in range(options.repeat):
        for problem in _problems(options):
            for name, peer in peers.items():
                for ladder in _ladders(peer, problem):
                    for setting in ladder:
                        if not run(problem, name, setting, repeat):
                            break


def _problems(options):
    names = ("set", "C", "loss", "intercept")
    lists = (options.sets, options.C, options.losses, options.intercepts)
    return [
        dict(zip(names, values, strict=True)) for values in itertools.product(*lists)
    ]


def _ladders(peer, problem):
    """The settings of a peer for a problem, none if it solves another one."""
    loss, intercept = problem["loss"], problem["intercept"]
    exact = intercept in peer.INTERCEPTS.get(loss, ())
    return peer.ladders(loss, intercept) if exact else []


def _loaded(run, peers, options):
    """Ours at 1e-6 and the fastest peer at its best, beside busy processes."""
    quiet = group([r for r in run.log.runs if not r["load"]], problem_of)
    with _busy(options.load):
        for problem in _problems(options):
            runs = [r for r in quiet.get(problem_of(problem), ()) if r["peer"] in peers]
            for name, setting in _chosen(runs):
                for repeat in range(options.repeat):
                    run(problem, name, setting, repeat, options.load)


def _chosen(runs):
    """Pairs (peer, setting) to compare under load."""
    dual = best_dual(runs)
    if dual is None:
        return
    curves = points(runs, dual)
    if mine := reach(curves.get(OURS, []), 1e-6):
        yield OURS, json.loads(mine.setting)
    if peer := fastest(curves):
        yield peer, json.loads(best(curves[peer]).setting)


@contextlib.contextmanager
def _busy(count):
    command = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(command) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()


if __name__ == "__main__":
    sys.exit(main())
