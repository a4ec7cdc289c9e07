"""Runs in processes of their own: the sets they read, the log they write."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.datasets import DATASETS
from benchmarks.one import save_set

SCORING = 10.0  # seconds that a process may take beyond its fit


class Sets:
    """The data sets as files that load fast, each made when first asked for."""

    def __init__(self, folder, data, known=DATASETS):
        self.folder, self.data, self.missing = folder, data, set()
        self.known = known

    def __call__(self, name):
        """Folder of the set, or None if its data are not here (said once)."""
        folder = self.folder / name
        if not folder.exists() and name not in self.missing:
            try:
                X, y = self.known[name](self.data)
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
    more = ("part", "rows")  # of runs with a kernel
    return json.dumps([*(record[x] for x in names), *(record.get(x) for x in more)])


class Runner:
    """Runs one setting of a peer on a problem in a process, unless it is on record.

    The module ``script`` does the run; it may take ``scoring`` seconds beyond the fit.
    """

    def __init__(
        self, log, sets, options, machine, script="benchmarks.one", scoring=SCORING
    ):
        self.log, self.sets, self.machine = log, sets, machine
        self.script, self.scoring = script, scoring
        self.timeout = options.timeout
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
        self.log.note({"machine": self.machine})
        self.log.note({**key, "beside": round(os.getloadavg()[0], 1), **result})
        print(_line(key, result), flush=True)
        return "failed" not in result

    def _apart(self, task):
        """Measurements of a run in a process of its own, or why it failed."""
        with tempfile.TemporaryDirectory() as folder:
            path, errors = Path(folder, "result.json"), Path(folder, "errors")
            task = json.dumps({**task, "result": str(path)})
            command = [sys.executable, "-m", self.script, task]
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
                process.communicate(timeout=self.timeout + self.scoring)
            except subprocess.TimeoutExpired:
                return None
            finally:
                if process.returncode is None:
                    os.killpg(process.pid, signal.SIGKILL)  # with what it has forked
                    process.wait()
        return process.returncode


def _line(key, result):
    setting = " ".join(f"{k}={_short(value)}" for k, value in key["setting"].items())
    start = f"{key['set']:18}{key['C']:7g} {key['loss']:14}{key['intercept']:10}"
    end = result.get("failed") or f"{result['seconds']:9.3f} s {result['mib']:7.0f} MiB"
    return f"{start} {key['peer']:11} {setting:38}{end}"


def _short(value):
    return value if isinstance(value, str) else f"{value:g}"
