"""The benchmark of SVC with a rank."""

from argparse import Namespace

from benchmarks.lowrank import svc


def test_every_method_is_measured():
    options = Namespace(
        sets=["a9a"], methods=["auto", "fourier"], ranks=[10], data=None, rows=300
    )
    options.repeat = 1
    exact, *low = (line.split() for line in svc.measure(options))
    assert exact[:2] == ["a9a", "exact"]
    assert [line[:3] for line in low] == [["a9a", "10", m] for m in options.methods]
    optimum = float(exact[-3])
    for line in low:
        _, upper, lower = map(float, line[-3:])
        assert lower <= optimum <= upper
