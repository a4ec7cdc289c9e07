"""The tables of the published methods in docs/measurements/papers.md are true."""

import re
from pathlib import Path

import pytest

from tests.cases.problems import PROBLEMS
from widemargin import Kernel, Problem, solve, solvers
from widemargin.cli.solver_options import made

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "measurements" / "papers.md").read_text("utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
ROWS = re.findall(r"\| `(\w+\([^`]*\))` \| `--solver (\w+)([^`]*)` \|", PAGE)


def test_tables_are_found():
    assert len(ROWS) >= 20
    assert len(NAMED) >= len(ROWS)
    rooms = {"linear", "kernel", "losses", "estimators", "reduction", "papers"}
    assert {Path(path).parent.name for path, _ in NAMED} >= rooms
    bare = re.findall(r"\| `tests/[\w/]+\.py` \|", PAGE)
    assert bare == []  # a row names tests, and not files only
    assert {name for _, name, _ in ROWS} >= {"active_set", "irwls", "core_vector"}


@pytest.mark.parametrize(("path", "name"), sorted(set(NAMED)))
def test_tests_that_are_named_are_there(path, name):
    text = (ROOT / path).read_text("utf-8")
    assert re.search(rf"^def {name}\(", text, re.MULTILINE)


@pytest.mark.parametrize(("python", "name", "options"), ROWS)
def test_python_and_the_command_line_ask_for_the_same(python, name, options):
    solver = eval(python, vars(solvers))
    given = re.findall(r"--solver-option (\w+)=(\S+)", options)
    assert made(name, given) == solver
    X, y = (part[:80] for part in PROBLEMS["breast_cancer"]())
    kernel, loss = Kernel("rbf", gamma=0.05), "squared_hinge"
    if name == "irwls":
        problem = Problem(X, y, 0.1, "hinge", "free", kernel=kernel)
    elif name == "active_set":
        problem = Problem(X, y, 0.1, loss, "penalized")
    else:
        problem = Problem(X, y, 0.1, loss, "penalized", kernel=kernel)
    assert solve(problem, solver, tol=0.5).status == "solved"
