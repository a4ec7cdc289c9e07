"""The examples of the gallery run, and draw something."""

import runpy
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "gallery"
EXAMPLES = sorted(FOLDER.rglob("plot_*.py"))
QUICK = ("plot_margins.py", "plot_active_set.py")


@pytest.fixture
def unseen():
    """Pictures without a screen, closed afterwards."""
    with mpl.rc_context({"backend": "agg"}):
        yield
        plt.close("all")


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=() if path.name in QUICK else pytest.mark.full)
        for path in EXAMPLES
    ],
    ids=lambda path: path.stem,
)
def test_an_example_runs(path, unseen, capsys):
    runpy.run_path(str(path))
    assert plt.get_fignums()
    assert capsys.readouterr().out


def test_there_is_a_picture_of_every_kind():
    names = {path.stem.removeprefix("plot_") for path in EXAMPLES}
    for topic in ("margins", "convergence", "choosing_c", "budget", "low_rank"):
        assert topic in names
    assert {"outliers", "report", "text"} <= names
    assert len(list((FOLDER / "systems").glob("plot_*.py"))) == 5
