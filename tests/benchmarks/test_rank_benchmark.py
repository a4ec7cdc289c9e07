"""The table of ranks beside exact machines."""

import argparse
import csv

import numpy as np
import pytest

from benchmarks import kernel_sets
from benchmarks.lowrank import rank
from widemargin import Kernel, Problem, solve


@pytest.fixture
def options(tmp_path):
    return argparse.Namespace(
        sets=["covtype_20k"],
        methods=["libsvm", "exact", "rank", "budget", "nystroem"],
        losses=["hinge", "squared_hinge"],
        ranks=[40],
        data=None,
        rows=300,
        output=tmp_path,
    )


@pytest.fixture
def small(monkeypatch):
    """A set of 500 rows in the place of Covertype."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(500, 5))
    y = np.where(X[:, 0] + X[:, 1] ** 2 + 0.2 * rng.normal(size=500) > 0.8, 1.0, -1.0)
    monkeypatch.setitem(kernel_sets.KERNEL_SETS, "covtype_20k", lambda folder: (X, y))
    return X, y


def test_objectives_are_those_of_the_problem(options, small):
    found = {(r[1], r[2]): r for r in rank.measure(options)}
    (X, y), (X_test, _) = rank.divided("covtype_20k", None, 300)
    assert X.shape == (300, 5)
    assert X_test.shape == (100, 5)
    task = rank.SETS["covtype_20k"]
    for loss in rank.LOSSES:
        kernel = Kernel("rbf", gamma=task.gamma)
        best = solve(Problem(X, y, task.C, loss, "free", kernel=kernel), tol=1e-6)
        least = best.certificate.dual
        own = float(found["exact", loss][6])
        assert own == pytest.approx(least, rel=2e-3)
        for method in ("rank", "budget", "nystroem"):
            assert float(found[method, loss][6]) >= least * (1 - 1e-3)
    assert float(found["libsvm", "hinge"][6]) == pytest.approx(
        float(found["exact", "hinge"][6]), rel=2e-3
    )
    assert ("libsvm", "squared_hinge") not in found


def test_the_last_result_of_a_kind_counts(options, small, capsys):
    file = options.output / "rank.csv"
    rows = [dict.fromkeys(rank.COLUMNS, "1.0") for _ in range(2)]
    for row, seconds in zip(rows, ("1.0", "2.0"), strict=True):
        row |= {"set": "a9a", "method": "exact", "loss": "hinge", "rank": "0"}
        row["seconds"] = seconds
    with file.open("w", newline="") as out:
        writer = csv.DictWriter(out, rank.COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    rank.report(file)
    assert "a9a" in capsys.readouterr().out
    assert len(file.read_text().split("\n")) == 3
    assert "2.00" in file.with_suffix(".txt").read_text()
