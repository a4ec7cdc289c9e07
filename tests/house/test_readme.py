"""What the README and the documentation show is what happens."""

import bz2
import doctest
import functools
import itertools
import re
import shutil
from pathlib import Path

import dask.distributed
import pytest
from sklearn.datasets import load_breast_cancer

from tests.cases.problems import PROBLEMS
from widemargin import Kernel, Problem, solve
from widemargin.cli import main
from widemargin.losses import BudgetL1
from widemargin.solvers.linear import rules

ROOT = Path(__file__).parents[2]
PAGES = [
    "README.md",
    *(str(page.relative_to(ROOT)) for page in sorted((ROOT / "docs").rglob("*.md"))),
]
LONG = "docs/guides/budgets.md"  # four seconds


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder with the data of the examples, as if in the repository.

    Clusters have their workers in this process: to start others takes some seconds.
    """
    alone = functools.partial(dask.distributed.LocalCluster, processes=False)
    monkeypatch.setattr(dask.distributed, "LocalCluster", alone)
    shutil.copytree(ROOT / "examples" / "data", tmp_path / "examples" / "data")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=pytest.mark.full) if p == LONG else p for p in PAGES],
)
def test_python_examples(here, page):
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    failed, _ = doctest.testfile(str(ROOT / page), False, optionflags=flags)
    assert failed == 0
    left = {path.name for path in here.iterdir()} - {"examples"}
    assert all(name.endswith(".wm") for name in left)  # which git ignores


def test_the_readme_is_short():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 100


def test_the_guide_says_when_the_next_solver_begins():
    text = (ROOT / "docs/guides/linear_solvers.md").read_text(encoding="utf-8")
    for problem, visits, sweeps in [
        (f"hinge, up to {rules.WIDE:,} columns", rules.MOST_UPDATES, rules.MOST_SWEEPS),
        ("hinge, more columns", rules.WIDE_UPDATES, rules.WIDE_SWEEPS),
    ]:
        assert f"| {problem} | {visits:,.0f} | {sweeps:,} |" in text
    most = rules.DENSE_UPDATES * rules.WIDE
    assert f"| squared hinge | a fifth of the columns, at most {most:.0f} | |" in text
    for visits in (
        f"{rules.MOST_UPDATES:.0f}, or {rules.FACTOR_UPDATES:.0f} f",
        f"{rules.SQUARED_FACTOR_UPDATES:.0f} f over the square root of r",
        f"{rules.SQUARED_UPDATES:.0f}, or {rules.SPARSE_UPDATES:.0f} times the root",
    ):
        assert visits in text
    ends = f"after {rules.LEAST_SWEEPS} sweeps, and `active_set` after "
    assert f"{ends}{rules.LEAST_SQUARED_SWEEPS}," in text


def thinned(folder, rows):
    """Leave the first rows of each set in a folder."""
    for path in folder.glob("*.bz2"):
        with bz2.open(path, "rt") as file:
            few = list(itertools.islice(file, rows))
        with bz2.open(path, "wt") as file:
            file.writelines(few)


@pytest.mark.parametrize("rows", [2000, pytest.param(None, marks=pytest.mark.full)])
def test_commands_of_the_readme(here, rows):
    """The indented commands, in their order, on Adult: as they are, or on few rows."""
    pages = "README.md", "docs/tutorial/tour.md", "docs/tutorial/command_line.md"
    texts = [(ROOT / page).read_text(encoding="utf-8") for page in pages]
    found = [re.findall(r"^    widemargin (.*)$", t, re.MULTILINE) for t in texts]
    assert all(len(c) >= n for c, n in zip(found, (2, 1, 6), strict=True))
    commands = [command for commands in found for command in commands]
    if rows:
        thinned(here / "examples" / "data", rows)
        commands = [re.sub(r"--rows \d+", f"--rows {rows}", c) for c in commands]
    for command in commands:
        command, *_ = command.split(" > ")
        assert main(command.split()) == 0
    for made in ("rbf.wm", "adult.wm", "adult.html", "adult.onnx"):
        assert (here / made).stat().st_size > 100


def test_commands_of_the_tutorial(here, capsys):
    """The page makes tumors.csv in Python, and trains on it in a shell."""
    table = load_breast_cancer(as_frame=True).frame
    table["diagnosis"] = table.pop("target").map({0: "malignant", 1: "benign"})
    table.to_csv("tumors.csv", index=False)
    text = (ROOT / "docs/tutorial/from_csv.md").read_text(encoding="utf-8")
    commands = re.findall(r"^    widemargin (.*)$", text, re.MULTILINE)
    assert [c.split()[0] for c in commands] == [
        "train",
        "inspect",
        "predict",
        "convert",
    ]
    for command in commands:
        assert main(command.split()) == 0
    assert capsys.readouterr().out.count("malignant") > 100


GUIDES = "\n".join(page.read_text("utf-8") for page in (ROOT / "docs/guides").glob("*"))


@pytest.mark.parametrize(
    "command", re.findall(r"^    widemargin (train examples/.*)$", GUIDES, re.MULTILINE)
)
def test_commands_of_the_guides(here, capsys, command):
    """On few rows; a rule of a paper may end a run above the gap."""
    thinned(here / "examples" / "data", 300)
    status = main(command.split())
    assert status == 0 or ("epsilon" in command and status == 1)
    solver = command.split("--solver ")[1].split()[0]
    assert f" by {solver}, as asked." in capsys.readouterr().out


def test_the_guides_show_every_published_method():
    for words in (
        "mode=asvm",
        "mode=published",
        "inner=published",
        "core_vector",
        "step=toward",
        "step=away",
    ):
        assert re.search(f"^    widemargin train .*{words}", GUIDES, re.MULTILINE)


def test_the_solver_of_the_contributing_notes():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    names = {"__name__": "contributing"}
    exec(re.search(r"```python\n(.*?)```", text, re.DOTALL)[1], names)
    X, y = PROBLEMS["breast_cancer"]()
    solver = names["GradientAscent"](step=10.0)
    found = solve(Problem(X, y, 0.01, intercept="penalized"), solver, tol=0.01)
    assert found.status == "solved"
    with pytest.raises(ValueError, match="without a free intercept only"):
        solve(Problem(X, y), solver)
    example = re.search(r"```pycon\n(.*?)```", text, re.DOTALL)[1]
    trial = doctest.DocTestParser().get_doctest(example, names, "example", None, None)
    assert doctest.DocTestRunner().run(trial).failed == 0


def test_the_norm_of_the_contributing_notes():
    """It is solved, certified, and is the norm of one largest loss."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    names = {"__name__": "contributing"}
    exec(re.findall(r"```python\n(.*?)```", text, re.DOTALL)[1], names)
    X, y = PROBLEMS["noise"]()
    X, y = X[:60], y[:60]
    options = {"kernel": Kernel("rbf", gamma=0.5), "C": 3.0}
    found = solve(Problem(X, y, norm=names["Largest"](), **options), tol=1e-6)
    same = solve(Problem(X, y, norm=BudgetL1(budget=1), **options), tol=1e-6)
    assert found.status == same.status == "solved"
    primal = same.certificate.primal
    assert found.certificate.primal == pytest.approx(primal, rel=1e-5)
