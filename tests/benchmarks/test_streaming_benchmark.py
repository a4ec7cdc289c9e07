"""The benchmark of rows after a feature map; `benchmarks` is no package."""

import runpy
import sys
from argparse import Namespace
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def streaming():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(FOLDER), *sys.path])
        yield runpy.run_path(str(FOLDER / "streaming.py"))


def test_every_part_is_measured(streaming, tmp_path):
    options = Namespace(
        folder=str(tmp_path),
        set="ndc",
        data=None,
        rows=3000,
        ranks=[20],
        solvers=["active_set"],
        store="always",
        gigabytes=4.0,
        time_limit=60.0,
    )
    (rates,) = streaming["rates"](options)
    assert rates.startswith("    3,000 x 32 rank   20: a sweep computed")
    (fit,) = streaming["fits"](options)
    assert "rank 20: active_set squared_hinge solved, gap" in fit
    assert float(fit.split("test accuracy ")[1][:6]) > 0.8
    assert [file.name for file in tmp_path.iterdir()] == ["ndc-3000x32"]
