"""Linear SVMs beside other packages: seconds, certified gap and memory on one problem.

Each run is a process of its own. Every answer is scored by `widemargin.Problem` against
the best dual bound that anyone of ours has proved. Runs are kept in OUTPUT/runs.jsonl;
the same command goes on where it stopped.
"""

import argparse
import contextlib
import importlib
import importlib.metadata
import itertools
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from datasets import DATASETS
from one import save_set
from ratios import OURS, best, best_dual, fastest, group, points, problem_of, reach
from tables import write_tables

PEERS = ["widemargin", "sklearn", "liblinear", "libsvm", "sklearnex", "snapml"]
PEERS += ["rehline"]
SCORING = 10.0  # seconds that a process may take beyond its fit


def main():
    """Run what is missing, then write tables and pictures."""
    options = _options()
    options.output.mkdir(parents=True, exist_ok=True)
    log = Log(options.output / "runs.jsonl", lambda run: _outdated(run, options))
    peers = _installed(options.peers)
    log.note({"machine": _machine(peers)})
    with tempfile.TemporaryDirectory() as folder:
        run = Runner(log, Sets(Path(folder), options.data), options)
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
    names = {"type": lambda text: text.split(",")}
    add = parser.add_argument
    add("--sets", **names, default="a9a,ndc-100k", help=", ".join(DATASETS))
    add("--data", help="folder of further sets: NAME/train.svm[.bz2|.xz]")
    add("--peers", **names, default=",".join(PEERS))
    add("--C", type=_numbers, default="1", help="numbers, with commas")
    add("--losses", **names, default="hinge", help="hinge,squared_hinge")
    add("--intercepts", **names, default="penalized,free", help="and none")
    add("--repeat", type=int, default=3, help="runs of each setting")
    add("--timeout", type=float, default=60, help="seconds a fit")
    add("--budget", type=float, default=np.inf, help="seconds, then stop cleanly")
    add("--load", type=int, default=0, help="again beside so many busy processes")
    add("--again", **names, default="", help="peers whose earlier runs are forgotten")
    add("--output", type=Path, default=Path(__file__).parent / "results")
    return parser.parse_args()


def _numbers(text):
    return [float(part) for part in text.split(",")]


def _outdated(run, options):
    """Runs to be made again: as asked, or given up sooner than now asked for."""
    return run["peer"] in options.again or run.get("limit", np.inf) < options.timeout


def _installed(peers):
    """Name -> module of the peers that can be imported; says which cannot."""
    modules = {}
    for name in peers:
        try:
            modules[name] = importlib.import_module(f"peers.{name}")
        except ImportError as reason:
            print(f"{name}: skipped, {reason}; pip install -e .[bench]")
    return modules


def _machine(peers):
    """What the times depend on."""
    packages = {"numpy", "scipy", *(peer.DISTRIBUTION for peer in peers.values())}
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "threads": {k: v for k, v in os.environ.items() if k.endswith("_NUM_THREADS")},
        "versions": {p: importlib.metadata.version(p) for p in sorted(packages)},
    }


def _cpu():
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


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


class Sets:
    """The data sets as files that load fast, each made when first asked for."""

    def __init__(self, folder, data):
        self.folder, self.data, self.missing = folder, data, set()

    def __call__(self, name):
        """Folder of the set, or None if its data are not here (said once)."""
        folder = self.folder / name
        if not folder.exists() and name not in self.missing:
            try:
                X, y = DATASETS[name](self.data)
            except FileNotFoundError as reason:
                print(f"{name}: skipped, {reason}")
                self.missing.add(name)
                return None
            folder.mkdir()
            save_set(folder, X, y)
        return None if name in self.missing else folder


class Log:
    """The records on disk, one JSON object a line."""

    def __init__(self, path, outdated):
        self.path, self.runs, self.machines, self._found = path, [], [], {}
        lines = path.read_text().splitlines() if path.exists() else []
        records = [json.loads(line) for line in lines]
        kept = [r for r in records if "machine" in r or not outdated(r)]
        if len(kept) < len(records):
            path.write_text("".join(json.dumps(record) + "\n" for record in kept))
        for record in kept:
            self._add(record)

    def _add(self, record):
        if "machine" in record:
            self.machines.append(record["machine"])
        else:
            self.runs.append(record)
            self._found.setdefault(_key(record), []).append(record)

    def note(self, record):
        """Append a record; the same machine is noted once."""
        if record.get("machine") in self.machines:
            return
        self._add(record)
        with self.path.open("a") as file:
            file.write(json.dumps(record) + "\n")

    def find(self, key):
        """The records of one setting."""
        return self._found.get(_key(key), [])


def _key(record):
    names = ("set", "C", "loss", "intercept", "peer", "setting", "load")
    return json.dumps([record[name] for name in names])


class Runner:
    """Runs one setting of a peer on a problem in a process, unless it is on record."""

    def __init__(self, log, sets, options):
        self.log, self.sets, self.timeout = log, sets, options.timeout
        self.end = time.monotonic() + options.budget
        self.out_of_time = False

    def __call__(self, problem, peer, setting, repeat, load=0):
        """Whether finer settings of the same ladder are worth a try.

        A setting whose runs together took the time limit is not run again.
        """
        key = {**problem, "peer": peer, "setting": setting, "load": load}
        done = self.log.find(key)
        if any("failed" in run for run in done):
            return False
        spent = sum(run["seconds"] for run in done)
        if len(done) > repeat or spent > self.timeout:
            return True
        self.out_of_time = self.out_of_time or time.monotonic() > self.end
        if self.out_of_time or (folder := self.sets(problem["set"])) is None:
            return False
        result = self._apart({**key, "folder": str(folder)})
        self.log.note({**key, "beside": round(os.getloadavg()[0], 1), **result})
        print(_line(key, result), flush=True)
        return "failed" not in result

    def _apart(self, task):
        """Measurements of a run in a process of its own, or why it failed."""
        with tempfile.TemporaryDirectory() as folder:
            path, errors = Path(folder, "result.json"), Path(folder, "errors")
            task = json.dumps({**task, "result": str(path)})
            command = [sys.executable, str(Path(__file__).with_name("one.py")), task]
            status = self._finish(command, errors)
            result = json.loads(path.read_text()) if path.exists() else {}
            said = errors.read_text().strip().splitlines()
        if status is None or result.get("seconds", 0.0) > self.timeout:
            return {"failed": f"> {self.timeout:g} s", "limit": self.timeout}
        if status < 0:
            return {"failed": f"died of {signal.Signals(-status).name}"}
        return result or {"failed": said[-1] if said else "no result"}

    def _finish(self, command, errors):
        """Exit status; None if out of time, which counts from when data are loaded."""
        pipes = {"stdout": subprocess.PIPE, "text": True, "start_new_session": True}
        with errors.open("w") as said:
            process = subprocess.Popen(command, stderr=said, **pipes)
            try:
                while process.stdout.readline() not in ("ready\n", ""):
                    pass
                process.communicate(timeout=self.timeout + SCORING)
            except subprocess.TimeoutExpired:
                return None
            finally:
                if process.returncode is None:
                    os.killpg(process.pid, signal.SIGKILL)  # with what it has forked
                    process.wait()
        return process.returncode


def _line(key, result):
    setting = " ".join(f"{name}={value:g}" for name, value in key["setting"].items())
    start = f"{key['set']:18}{key['C']:7g} {key['loss']:14}{key['intercept']:10}"
    end = result.get("failed") or f"{result['seconds']:9.3f} s {result['mib']:7.0f} MiB"
    return f"{start} {key['peer']:11} {setting:24}{end}"


if __name__ == "__main__":
    sys.exit(main())
