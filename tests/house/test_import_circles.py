"""No module of the package imports itself, by way of others."""

import ast
import graphlib
import pathlib

import pytest

SRC = pathlib.Path(__file__).parents[2] / "src"


def modules(folder):
    """{dotted name: file} of a folder of packages."""
    found = {}
    for path in folder.rglob("*.py"):
        parts = path.relative_to(folder).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(path, names):
    """Modules of ``names`` that a file imports, also within functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name in names)
        elif isinstance(node, ast.ImportFrom) and node.module in names:
            below = {f"{node.module}.{a.name}" for a in node.names}
            yield from below & set(names)
            if below - set(names) - {f"{node.module}._core"}:  # names of the module
                yield node.module


def order(folder):
    """Modules, each after those that it imports."""
    names = modules(folder)
    graph = {name: set(imports(path, names)) for name, path in names.items()}
    return list(graphlib.TopologicalSorter(graph).static_order())


def test_there_are_no_circles():
    assert len(order(SRC)) > 100


def test_a_circle_is_found(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "__init__.py").write_text("from a.b import x\n")
    (tmp_path / "a" / "b.py").write_text("from a import c\nx = 1\n")
    (tmp_path / "a" / "c.py").write_text("def f():\n    import math\n")
    assert order(tmp_path) == ["a.c", "a.b", "a"]
    (tmp_path / "a" / "c.py").write_text("def f():\n    import a.b\n")
    with pytest.raises(graphlib.CycleError):
        order(tmp_path)
