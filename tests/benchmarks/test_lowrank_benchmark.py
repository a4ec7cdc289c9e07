"""The methods that the benchmark of feature maps compares."""

from argparse import Namespace

import numpy as np
import pytest

from benchmarks.lowrank import maps
from widemargin import Kernel


def test_every_method_is_measured(tmp_path):
    options = Namespace(
        sets=["a9a"],
        methods=list(maps.METHODS),
        dtypes=["float64"],
        ranks=[10],
        data=None,
        rows=400,
        repeat=1,
    )
    results = list(maps.measure(options))
    assert [r[2] for r in results] == options.methods
    trace = {r[2]: float(r[5]) for r in results}
    assert all(r[4] == 10 for r in results)
    landmarks = [trace[name] for name in trace if name not in ("eigen", "fourier")]
    assert 0 < trace["eigen"] < min(landmarks)
    assert max(landmarks) < 0.8
    file = tmp_path / "lowrank.csv"
    lines = [maps.COLUMNS, *results, *results]
    file.write_text("".join(",".join(map(str, line)) + "\n" for line in lines))
    assert len(list(maps.table(file))) == 1 + len(results)


def test_features_of_others_are_measured_as_ours():
    X = np.random.default_rng(0).normal(size=(100, 3))
    kernel = Kernel("rbf", gamma=0.5)
    z = maps.own(X, kernel, 10, "cholesky", "float64")
    same = maps.Measured(X, kernel, z.features, 1.0)
    assert (same.trace_residual, same.rank) == (z.trace_residual, 10)
    assert same.error == pytest.approx(z.error)
