"""The account of the kernel values of a fit."""

import numpy as np
import pytest

from benchmarks.kernel import account
from benchmarks.kernel_sets import Task
from widemargin.problems import conditioning


@pytest.mark.parametrize("copies", [1, 2])
def test_every_kernel_value_has_a_cause(copies, monkeypatch):
    monkeypatch.setattr(conditioning, "KERNEL_ROWS", 10)
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(600, 3)), copies, axis=0)
    y = np.where(X[:, 0] + X[:, 1] ** 2 > 0.5, 1.0, -1.0)
    causes, of = account.account(X, y, Task(1.0, 0.5), 1e-4)
    assert (of["m"], of["rows"]) == (600, 600 * copies)
    assert causes["block, new pair"] > 0.0
    assert causes["row, first"] > 0.0
    assert causes["certificate"] > 0.0
    made = sum(causes.values()) - causes["certificate"]
    assert made == pytest.approx(of["evaluations"])
    assert of["gap"] <= 1e-4
