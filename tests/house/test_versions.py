"""The version stands in several files, which agree."""

import importlib.util
import re
import tomllib
from pathlib import Path

import widemargin

ROOT = Path(__file__).parents[2]
STATED = {
    "CITATION.cff": r"^version: (\S+)$",
    "packaging/conda/recipe.yaml": r'^  version: "(.+)"$',
    "CHANGELOG.md": r"^## (\S+)",
}


def test_versions_agree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    found = {
        name: re.search(form, (ROOT / name).read_text("utf-8"), re.MULTILINE)[1]
        for name, form in STATED.items()
    }
    assert set(found.values()) | {project["version"]} == {widemargin.__version__}, found


def test_links_of_readme_outside_of_the_repository_are_absolute():
    spec = importlib.util.spec_from_file_location("wheel", ROOT / ".ci" / "wheel.py")
    wheel = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(wheel)
    words = wheel.absolute((ROOT / "README.md").read_text("utf-8"), "https://a.b/v1/")
    links = re.findall(r"\]\((\S+)\)", words)
    assert "https://a.b/v1/docs/tutorial/from_csv.md" in links
    assert all(link.startswith("https://") for link in links)
    assert (
        wheel.absolute("[a](#b) [c](https://d)", "https://a.b")
        == "[a](#b) [c](https://d)"
    )


def test_extras_that_are_named_are_there():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    text = "\n".join(page.read_text("utf-8") for page in pages)
    named = re.findall(r'pip install "(?:widemargin|\.)\[([\w,]+)\]"', text)
    assert len(named) >= 4
    assert {x for names in named for x in names.split(",")} <= set(
        project["optional-dependencies"]
    )
