"""The benchmark of SVC with a rank; `benchmarks` is no package."""

import runpy
import sys
from argparse import Namespace
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


def test_every_method_is_measured():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(FOLDER), *sys.path])
        bench = runpy.run_path(str(FOLDER / "lowrank_svc.py"))
    options = Namespace(
        sets=["a9a"], methods=["auto", "fourier"], ranks=[10], data=None, rows=300
    )
    options.repeat = 1
    exact, *low = (line.split() for line in bench["measure"](options))
    assert exact[:2] == ["a9a", "exact"]
    assert [line[:3] for line in low] == [["a9a", "10", m] for m in options.methods]
    optimum = float(exact[-3])
    for line in low:
        _, upper, lower = map(float, line[-3:])
        assert lower <= optimum <= upper
