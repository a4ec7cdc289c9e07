"""The source files of the package, and what they compare."""

import ast
import functools
import pathlib

ROOT = pathlib.Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src" / "widemargin").rglob("*.py"))


@functools.cache
def nodes_of(path):
    """All nodes of a source file, its module first; a walk takes longer than reading."""
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def module_of(path):
    """The dotted name of a source file."""
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def compares_losses(path, allowed=("supports",)):
    """The lines of a file that compare the name of a loss, or look something up by it.

    Those in functions of the ``allowed`` names are left out: refusals, and what a
    user's options mean.
    """
    names = ("hinge", "squared_hinge")

    def is_name(node):
        loss = isinstance(node, ast.Attribute) and node.attr == "loss"
        return loss or (isinstance(node, ast.Constant) and node.value in names)

    def lines(node):
        if isinstance(node, ast.FunctionDef) and node.name in allowed:
            return
        parts = {
            ast.Compare: lambda: [node.left, *node.comparators],
            ast.Subscript: lambda: [node.slice],
        }.get(type(node), list)()
        if any(map(is_name, parts)):
            yield node.lineno
        for child in ast.iter_child_nodes(node):
            yield from lines(child)

    return list(lines(nodes_of(path)[0]))
