"""Links, files and modules that the texts of the repository name are there."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
TEXTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "Makefile")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "benchmarks").rglob("README.md")),
    *sorted((ROOT / "papers").rglob("*.md")),
]
SOURCES = [
    path
    for folder in ("src", "benchmarks", "papers", "examples")
    for path in sorted((ROOT / folder).rglob("*.py"))
]
FILE = re.compile(
    r"(?<![\w/.])((?:benchmarks|papers|docs|examples)/[\w/.]+\.(?:py|md|txt|rst))\b"
)
MODULE = re.compile(r"(?:python -m |`)((?:benchmarks|papers)(?:\.\w+)*)\b(?!/)")


def missing(text):
    """Files and modules that a text names, and that are not there."""
    for name in FILE.findall(text):
        if not (ROOT / name).exists():
            yield name
    for name in MODULE.findall(text):
        path = ROOT.joinpath(*name.split("."))
        module = path.parent if path.name[0].isupper() else path
        if not module.is_dir() and not module.with_suffix(".py").exists():
            yield name


def broken(text, folder):
    """Links of a page in a folder to files that are not there."""
    for link in re.findall(r"\]\(([\w./-]+)(?:#[\w-]*)?\)", text):
        if not (folder / link).exists():
            yield link


@pytest.mark.parametrize(
    "path", [*TEXTS, *SOURCES], ids=lambda path: str(path.relative_to(ROOT))
)
def test_what_is_named_is_there(path):
    assert list(missing(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert list(broken(text, path.parent)) == []


def test_what_is_missing_is_found():
    text = "See `benchmarks/none.py`, [a page](no/page.md), python -m papers.none, README.md."
    assert list(missing(text)) == ["benchmarks/none.py", "papers.none"]
    assert list(broken(text, ROOT)) == ["no/page.md"]
