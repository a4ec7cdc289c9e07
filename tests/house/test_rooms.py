"""The plan of the house: rooms, what crosses their borders, and the table that tells it."""

import ast
import pathlib
import re
import tomllib

ROOT = pathlib.Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src" / "widemargin").rglob("*.py"))


def room_of(module):
    """The folder of a module: `widemargin.solvers.linear`, or the module itself."""
    parts = module.split(".")
    return ".".join(parts[:3] if "solvers" in parts else parts[:2])


def module_of(path):
    """The dotted name of a source file."""
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path):
    """Pairs of a module of ours and a name that a file imports from it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
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
