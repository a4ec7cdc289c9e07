"""What the comparisons share: lists on the command line, peers, the machine."""

import argparse
import contextlib
import importlib
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

from benchmarks.ratios import OURS

HERE = Path(__file__).parent
RESULTS = HERE / "results"


def list_of(known):
    """Parser of known names with commas."""

    def parse(text):
        names = text.split(",")
        if unknown := sorted(set(names) - set(known)):
            raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {list(known)}")
        return names

    return parse


def numbers(text):
    """Parser of numbers with commas."""
    return [float(part) for part in text.split(",")]


def peers_of(kind):
    """Names of the peers, "linear" or "kernel"; ours first, for its dual bound."""
    found = sorted(path.stem for path in HERE.glob(f"peers/{kind}/[a-z]*.py"))
    return sorted(found, key=lambda peer: peer != OURS)


def installed(peers, kind):
    """Name -> module of the peers that can be imported; says which cannot."""
    modules = {}
    for name in peers:
        try:
            modules[name] = importlib.import_module(f"benchmarks.peers.{kind}.{name}")
        except ImportError as reason:
            print(f"{name}: skipped, {reason}; pip install --group bench")
    return modules


def machine(peers):
    """What the times depend on."""
    packages = {"numpy", "scipy", *(peer.DISTRIBUTION for peer in peers.values())}
    versions = {p: importlib.metadata.version(p) for p in sorted(packages)}
    versions["commit"] = _commit()
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "threads": {k: v for k, v in os.environ.items() if k.endswith("_NUM_THREADS")},
        "versions": versions,
    }


def _commit():
    command = ["git", "describe", "--always", "--dirty", "--exclude", "*"]
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        return subprocess.check_output(
            command, text=True, cwd=HERE, stderr=subprocess.DEVNULL
        ).strip()
    return "unknown"


def _cpu():
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()
