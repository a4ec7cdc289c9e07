"""The benchmark of rows after a feature map."""

from argparse import Namespace

from benchmarks.lowrank import streaming


def test_every_part_is_measured(tmp_path):
    options = Namespace(
        folder=str(tmp_path),
        set="ndc",
        data=None,
        rows=3000,
        ranks=[30],
        solvers=["active_set"],
        store="always",
        gigabytes=4.0,
        time_limit=60.0,
    )
    (rates,) = streaming.rates(options)
    assert rates.startswith("    3,000 x 32 rank   30: a sweep computed")
    (fit,) = streaming.fits(options)
    assert "rank 30: active_set squared_hinge solved, gap" in fit
    assert float(fit.split("test accuracy ")[1][:6]) > 0.8
    assert [file.name for file in tmp_path.iterdir()] == ["ndc-3000x32"]
