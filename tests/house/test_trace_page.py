"""The page on traces names all columns that solvers have, and no others."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from widemargin import SVC, BudgetSVC, EnclosingBall, LinearSVC, NuSVC
from widemargin.solution import _NUMBERS
from widemargin.solvers import (
    IRWLS,
    ActiveSet,
    AugmentedLagrangian,
    CoordinateDescent,
    CoreVector,
    FrankWolfe,
    InteriorPoint,
)
from widemargin.solvers.linear import active_set

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "trace.md"
X, Y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
ASVM = LinearSVC(intercept="penalized", solver=ActiveSet(mode="asvm"))
PUBLISHED = InteriorPoint(mode="damped")
# Fits that between them have all columns.
FITS = [
    ASVM,
    LinearSVC(solver=ActiveSet()),
    LinearSVC(loss="hinge", solver=AugmentedLagrangian()),
    LinearSVC(loss="hinge", solver=CoordinateDescent()),
    LinearSVC(solver=InteriorPoint()),
    LinearSVC(loss="hinge", solver=PUBLISHED),
    LinearSVC(solver="batch"),
    SVC(solver="batch", kernel="sigmoid"),
    SVC(solver=IRWLS()),
    SVC(solver=IRWLS(inner="published")),
    SVC(loss="squared_hinge", solver=FrankWolfe()),
    SVC(loss="squared_hinge", solver=CoreVector()),
    BudgetSVC(method="norm", norm="l1", budget=5),
    NuSVC(nu=0.2, solver="irwls"),
    EnclosingBall(C=0.05),
]


def columns_of(machine):
    """The columns of the solver's own that a fit has."""
    seen = []
    if isinstance(machine, EnclosingBall):  # which keeps no trace
        machine.set_params(callback=lambda step: seen.append(step))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        machine.fit(X, Y)
    steps = seen or machine.solution_.trace
    return {key for step in steps for key in step.details}


def told():
    """Names in the tables' columns that name columns, by table."""
    tables = re.split(r"^## ", PAGE.read_text(), flags=re.M)[1:4]
    shared, _, own = ([line for line in t.splitlines() if "|" in line] for t in tables)
    names = [re.findall(r"`(\w+)`", line.split("|")[1]) for line in shared]
    others = [re.findall(r"`(\w+)`", line.split("|")[2]) for line in own]
    return {x for some in names for x in some}, {x for some in others for x in some}


def test_columns_of_all_solvers_are_explained():
    assert told()[0] == set(_NUMBERS)


def test_columns_of_one_solver_are_explained_and_exist(monkeypatch):
    monkeypatch.setattr(active_set, "SAMPLE_ROWS", 10)  # so few rows begin with some
    monkeypatch.setattr(active_set, "SAMPLE_PER_COLUMN", 1)
    found = set().union(*(columns_of(machine) for machine in FITS))
    assert found == told()[1]


OBJECTS = [f for f in FITS if not isinstance(getattr(f, "solver", ""), str)]


@pytest.mark.parametrize("machine", OBJECTS)
def test_a_solver_explains_its_columns(machine):
    words = type(machine.solver).__doc__
    assert [x for x in columns_of(machine) if f"``{x}``" not in words] == []
