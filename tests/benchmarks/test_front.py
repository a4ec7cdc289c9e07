"""The picture of the README shows what was measured."""

from benchmarks import front


def test_the_picture_has_the_times_of_the_results():
    drawn = (front.RESULTS / "seconds.svg").read_text()
    for panel in (front.everyday(), front.large(), front.linear()):
        assert "widemargin" in panel.seconds
        assert len(panel.seconds) >= 3
        for time in panel.seconds.values():
            assert f">{front.told(time)}<" in drawn


def test_only_runs_that_reached_the_gap_count():
    runs = [
        ("libsvm", 1.0, 0.1),
        ("libsvm", 5.0, 1e-4),
        ("libsvm", 3.0, 1e-3),
        ("other", 1.0, 0.0),
    ]
    assert front.least(runs) == {"libsvm": 3.0}
