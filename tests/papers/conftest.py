"""What the tests of papers share: pictures that are drawn fast."""

import pytest
from matplotlib.figure import Figure


@pytest.fixture(autouse=True)
def pictures_without_a_layout(monkeypatch):
    """All that is in a picture is drawn; finding places for it takes as long again."""
    savefig = Figure.savefig

    def fast(figure, *arguments, **options):
        figure.set_layout_engine("none")
        savefig(figure, *arguments, **options)

    monkeypatch.setattr(Figure, "savefig", fast)
