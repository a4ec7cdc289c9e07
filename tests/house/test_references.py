"""Each reference is cited by a page, or by a docstring that a page has."""

import inspect
import pydoc
import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [
    page
    for end in ("*.md", "*.rst")
    for page in DOCS.rglob(end)
    if not {"_build", "generated"} & set(page.parts)
]


def documented():
    """Docstrings of what the reference lists, and of its methods."""
    names = re.findall(
        r"^   (widemargin\.[\w.]+)$", (DOCS / "reference/api.rst").read_text(), re.M
    )
    for name in names:
        found = pydoc.locate(name)
        yield inspect.getdoc(found) or ""
        if inspect.isclass(found):
            for _, one in inspect.getmembers(found):
                yield inspect.getdoc(one) or ""


def test_each_reference_is_cited():
    keys = re.findall(
        r"^\.\. \[(\w+)\]", (DOCS / "reference/references.rst").read_text(), re.M
    )
    texts = [page.read_text() for page in PAGES] + list(documented())
    cited = {key for text in texts for key in re.findall(r"\[(\w+)\]_", text)}
    assert len(keys) > 30
    assert sorted(set(keys) - cited) == []
