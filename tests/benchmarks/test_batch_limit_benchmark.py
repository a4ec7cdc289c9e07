"""The benchmark of the batch engine beside working sets."""

from argparse import Namespace

from benchmarks.core import batch_limit
from benchmarks.kernel_sets import TASKS
from widemargin.estimators import engine_choice


def test_both_solve_every_size():
    options = Namespace(
        sets=["a9a"], sizes=(200, 300), data=None, jobs=1, rounds=1, limit=60.0
    )
    lines = [line.split() for line in batch_limit.measure(options)]
    assert [line[:2] for line in lines] == [["a9a", "200"], ["a9a", "300"]]
    for line in lines:
        assert line[-4:] == ["batch,", "irwls;", "auto:", "batch"]
        assert max(float(line[4]), float(line[7])) <= 1e-3


def test_the_batch_engine_is_taken_beyond_its_size(monkeypatch):
    monkeypatch.setattr(engine_choice, "MOST_ROWS_ALONE", 100)
    X, y = batch_limit.KERNEL_SETS["a9a"](None)
    taken = batch_limit.timed(X[:300], y[:300], TASKS["a9a"], "auto", 1)[-1]
    assert taken == "batch"
    assert engine_choice.MOST_ROWS_ALONE == 100
