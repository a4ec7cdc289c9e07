"""Benchmarks, papers and examples use public names only; `benchmarks.core` may use more.

So papers and examples leave `benchmarks.core` alone, which would hand such names on.

Public are the names in `__all__` of `widemargin` and `widemargin.solvers`, and those that the reference
(`docs/reference/api.rst`) documents. The list is read from there.
"""

import ast
import pathlib
import re

import pytest

import widemargin
from widemargin import solvers

ROOT = pathlib.Path(__file__).parents[2]
CORE = ROOT / "benchmarks" / "core"
FILES = [
    path
    for folder in ("benchmarks", "papers", "examples")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if CORE not in path.parents
]
OWN = {"self", "cls", "this"}
OF_NAMED_TUPLES = {"_replace", "_asdict", "_fields", "_make"}


def documented():
    """Dotted names that the reference shows."""
    text = (ROOT / "docs" / "reference" / "api.rst").read_text(encoding="utf-8")
    yield from re.findall(r"^   (widemargin\.\S+)$", text, re.MULTILINE)


EXPORTED = {
    f"{room.__name__}.{n}" for room in (widemargin, solvers) for n in room.__all__
}
PUBLIC = {*EXPORTED, *documented(), "widemargin.__version__", "widemargin.solvers"}


def imported(tree):
    """Dotted names of ours that a module imports, and those that it asks `widemargin` for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if is_ours(a.name))
        elif isinstance(node, ast.ImportFrom) and is_ours(node.module or ""):
            yield from (f"{node.module}.{a.name}" for a in node.names)
        elif (
            isinstance(node, ast.Attribute) and ast.unparse(node.value) == "widemargin"
        ):
            yield f"widemargin.{node.attr}"


def is_ours(module):
    return module.partition(".")[0] == "widemargin"


def private(tree):
    """Attributes that begin with an underscore, of anything but the object itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and re.match("_(?!_)", node.attr):
            owner = node.value
            own = isinstance(owner, ast.Name) and owner.id in OWN
            above = isinstance(owner, ast.Call) and ast.unparse(owner) == "super()"
            if not own and not above and node.attr not in OF_NAMED_TUPLES:
                yield ast.unparse(node)


def internals(text):
    """Names in a source that are not public."""
    tree = ast.parse(text)
    names = {name for name in imported(tree) if name != "widemargin"}
    return sorted({*(names - PUBLIC), *private(tree)})


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_public_names(path):
    assert internals(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "from widemargin.kernels.matrix import Columns",
            ["widemargin.kernels.matrix.Columns"],
        ),
        ("import widemargin.solvers.auto", ["widemargin.solvers.auto"]),
        ("from widemargin import _core", ["widemargin._core"]),
        ("import widemargin\nwidemargin.numerics.linalg", ["widemargin.numerics"]),
        ("problem._cache.clear()", ["problem._cache"]),
        ("from widemargin import SVC\nself._x, super()._y, t._replace(a=1)", []),
        ("import widemargin\nwidemargin.LinearSVC()", []),
        ("from widemargin.solution import Certificate", []),
    ],
)
def test_what_is_found(text, found):
    assert internals(text) == found


@pytest.mark.parametrize("folder", ["papers", "examples"])
def test_nobody_else_goes_through_benchmarks_core(folder):
    for path in (ROOT / folder).rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert re.findall(r"benchmarks(?:\.| import )core\b", text) == [], path


def test_the_reference_has_all_that_is_exported():
    assert set(documented()) >= EXPORTED
    assert "widemargin.report.write_report" in set(documented())


def test_nobody_changes_where_imports_come_from():
    """They run as modules from the root of the repository: `python -m benchmarks.run`."""
    for folder in ("benchmarks", "papers", "docs", "examples", "src", "tests"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            changes = re.findall(r"sys\.path(?:\.[a-z]+\(|(?:\[.*\])? *\+?= )", text)
            assert changes == [], path
