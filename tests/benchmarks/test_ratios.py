"""What the benchmark computes from its runs."""

import numpy as np
import pytest

from benchmarks import ratios


def run(peer, tol, seconds, primal, **more):
    problem = {"set": "toy", "loss": "hinge", "C": 1.0, "intercept": "free"}
    key = {**problem, "peer": peer, "setting": {"tol": tol}, "load": 0}
    return {**key, "seconds": seconds, "primal": primal, "mib": 1.0, **more}


RUNS = [
    run("widemargin", 1e-2, 1.0, 1.01, dual=0.99),
    run("widemargin", 1e-6, 2.0, 1.000001, dual=1.0),
    run("other", 1e-2, 0.5, 1.1),
    run("other", 1e-3, 3.0, 1.001),
    run("other", 1e-3, 4.0, 1.001),
    run("other", 1e-3, 8.0, 1.001),
    run("other", 1e-4, 9.0, 1.002),
    {**run("silent", 1e-2, 0.0, 0.0), "failed": "> 60 s"},
]


def curves():
    assert ratios.best_dual(RUNS) == 1.0
    return ratios.points(RUNS, 1.0)


def test_points_are_medians():
    point = curves()["other"][1]
    assert (point.seconds, point.spread, point.runs) == (4.0, 5.0, 3)
    assert point.gap == pytest.approx(0.001 / 1.001)
    assert curves()["silent"] == []


def test_envelope_keeps_what_is_better_than_everything_faster():
    assert [p.seconds for p in ratios.envelope(curves()["other"])] == [0.5, 4.0]


def test_ratio_is_our_time_to_the_gap_of_the_peer():
    ours, other = curves()["widemargin"], curves()["other"]
    best = ratios.best(other)
    assert best.seconds == 4.0
    assert ratios.ratio(ours, best) == 2.0 / 4.0
    assert ratios.worst_ratio(ours, other) == 1.0 / 0.5
    assert ratios.ratio(ours[:1], best) == np.inf


def test_gaps_below_the_smallest_count_as_it():
    point = curves()["widemargin"][0]
    exact = [point._replace(seconds=5.0, gap=-1e-12), point._replace(gap=9e-9)]
    assert ratios.best(exact).seconds == point.seconds


def test_fastest_reaches_the_gap_or_is_the_most_accurate():
    assert ratios.fastest(curves(), 1e-2) == "other"
    assert ratios.fastest(curves(), 1e-9) == "other"
    assert ratios.fastest({"widemargin": curves()["widemargin"]}) is None
