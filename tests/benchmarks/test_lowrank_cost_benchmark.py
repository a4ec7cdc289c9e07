"""The benchmark of what a rank costs; `benchmarks` is no package."""

import runpy
import sys
from pathlib import Path

import pytest
from sklearn.datasets import load_iris

FOLDER = Path(__file__).parents[2] / "benchmarks"


def test_all_rows_are_counted():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(FOLDER), *sys.path])
        bench = runpy.run_path(str(FOLDER / "lowrank_cost.py"))
    X, y = load_iris(return_X_y=True)
    for scheme, rows in (("ovo", 300), ("ovr", 450)):
        name, *numbers = bench["row"]("usps", X, y, 10, scheme).split()
        assert (name, *map(int, numbers[:3])) == ("usps", 10, 3, rows)
        assert float(numbers[4]) > 0.0
