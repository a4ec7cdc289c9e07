"""The check of the built pages finds links that lead nowhere."""

import runpy
from pathlib import Path

LINKS = runpy.run_path(str(Path(__file__).parents[2] / ".ci" / "links.py"))


def test_what_is_found(tmp_path):
    (tmp_path / "other.html").write_text('<p id="here">')
    (tmp_path / "page.html").write_text(
        '<a href="other.html#here"></a><a href="https://example.org"></a>'
        '<a href="other.html#gone"></a><a href="none.html"></a><a href="#no"></a>'
        '<img src="none.png"><img src="data:image/png;base64,"><img src="other.html">'
        '<script src="https://example.org/x.js"></script>'
    )
    assert sorted(LINKS["wrong"](tmp_path)) == [
        "page.html: #no names a place that is not there",
        "page.html: https://example.org/x.js needs the network",
        "page.html: none.html leads nowhere",
        "page.html: none.png leads nowhere",
        "page.html: other.html#gone names a place that is not there",
    ]
