"""The plan of the house: rooms, what crosses their borders, and the table that tells it."""

import ast
import re
import tomllib

from tests.cases.sources import ROOT, SOURCES, module_of, nodes_of


def room_of(module):
    """The folder of a module: `widemargin.solvers.linear`, or the module itself."""
    parts = module.split(".")
    return ".".join(parts[:3] if "solvers" in parts else parts[:2])


def imports_of(path):
    """Pairs of a module of ours and a name that a file imports from it."""
    for node in nodes_of(path):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            "widemargin"
        ):
            yield from ((node.module, alias.name) for alias in node.names)


def test_no_private_name_crosses_a_room():
    crossing = [
        f"{module_of(path)} imports {module}.{name}"
        for path in SOURCES
        for module, name in imports_of(path)
        if name.startswith("_") and not name.startswith("__") and name != "_core"
        if room_of(module) != room_of(module_of(path))
    ]
    assert crossing == []


# Public in spite of their underscore: methods of named tuples, and what scikit-learn
# gives its estimators for callbacks.
PUBLIC = {"_replace", "_make", "_asdict", "_fields", "_init_callback_context"}


def is_private(name):
    return name.startswith("_") and not name.startswith("__") and name not in PUBLIC


def own(node):
    """Whether a node is `self`, `cls`, or what they inherit."""
    if isinstance(node, ast.Call):
        return ast.unparse(node.func) == "super"
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def names_made_by(nodes):
    """What a module defines: functions, classes, variables, attributes of its objects."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield from [node.attr] if own(node.value) else []


def crossing(trees):
    """Private attributes of others that no module of the same room makes, by module."""
    made = {}
    for module, nodes in trees.items():
        made.setdefault(room_of(module), set()).update(names_made_by(nodes))
    return [
        f"{module}, line {node.lineno}: {ast.unparse(node)}"
        for module, nodes in trees.items()
        for node in nodes
        if isinstance(node, ast.Attribute) and is_private(node.attr)
        if not own(node.value) and node.attr not in made[room_of(module)]
    ]


def test_no_private_attribute_crosses_a_room():
    trees = {module_of(path): nodes_of(path) for path in SOURCES}
    assert crossing(trees) == []


def test_a_private_attribute_of_another_room_is_seen():
    texts = {
        "widemargin.kernels.a": "class A:\n    def f(self):\n        self._x = 1\n",
        "widemargin.kernels.b": "def g(a, t): return a._x + t._replace(y=1)",
        "widemargin.problems.c": "def h(a): return a._x",
    }
    found = crossing({m: [*ast.walk(ast.parse(text))] for m, text in texts.items()})
    assert found == ["widemargin.problems.c, line 1: a._x"]


def layers():
    """The rows of the first contract of import-linter, each a list of rooms."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    return [
        [room.strip().removeprefix("widemargin.") for room in re.split("[|:]", row)]
        for row in contracts[0]["layers"]
    ]


def test_the_table_of_rooms_is_that_of_the_linter():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = re.search(r"enforces it\):\n\n((?:    .*\n)+)", text).group(1)
    rows = [re.split(r"\s{2,}", line.strip())[0] for line in table.splitlines()]
    assert [row.split(" · ") for row in rows] == layers()


def test_every_module_is_in_a_room():
    rooms = {room for row in layers() for room in row}
    for path in SOURCES:
        module = module_of(path).removeprefix("widemargin").lstrip(".")
        parts = module.split(".")
        known = {".".join(parts[:k]) for k in range(1, len(parts) + 1)}
        assert module in ("", "solvers", "_core") or known & rooms, module
