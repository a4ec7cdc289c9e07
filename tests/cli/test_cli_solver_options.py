"""`--solver-option NAME=VALUE`: the options of solvers on the command line."""

import dataclasses
from typing import Any

import pytest

from tests.cases.cli import folder_with_data, refused
from widemargin.cli import main
from widemargin.cli.solver_options import made
from widemargin.solvers import (
    IRWLS,
    ActiveSet,
    CoordinateDescent,
    CoreVector,
    FrankWolfe,
    InteriorPoint,
)
from widemargin.solvers.auto import SOLVERS


@pytest.fixture
def here(tmp_path, monkeypatch):
    return folder_with_data(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("given", "solver"),
    [
        ("mode=asvm max_safeguards=7", ActiveSet(mode="asvm", max_safeguards=7)),
        ("begin_with=none", ActiveSet(begin_with=None)),
        (
            "mode=damped reduction=one_sided balanced=false max_active=0.5 beta=2",
            InteriorPoint(
                mode="damped",
                reduction="one_sided",
                balanced=False,
                max_active=0.5,
                beta=2.0,
            ),
        ),
        ("reduction=none pcg_steps=3", InteriorPoint(reduction=None, pcg_steps=3)),
        (
            "shrinking=false random_state=4",
            CoordinateDescent(shrinking=False, random_state=4),
        ),
        (
            "inner=guarded selection=random carry=0 working_set=40",
            IRWLS(inner="guarded", selection="random", carry=0.0, working_set=40),
        ),
        ("working_set=none", IRWLS()),
        (
            "step=away sample=59 balanced=true tries=7 epsilon=1e-6 first_points=pair",
            FrankWolfe(
                step="away",
                sample=59,
                balanced=True,
                tries=7,
                epsilon=1e-6,
                first_points="pair",
            ),
        ),
        (
            "first_points=9 first_weights=solved",
            FrankWolfe(first_points=9, first_weights="solved"),
        ),
        ("sample=59 epsilon=1e-6", CoreVector(sample=59, epsilon=1e-6)),
    ],
)
def test_values_are_of_the_types_of_the_options(given, solver):
    pairs = [tuple(pair.split("=")) for pair in given.split()]
    found = made(solver.name, pairs)
    assert found == solver
    for name, _ in pairs:
        assert type(getattr(found, name)) is type(getattr(solver, name))


def cases() -> list[Any]:
    return [(n, f.name) for n, s in SOLVERS.items() for f in dataclasses.fields(s)]


@pytest.mark.parametrize(("name", "option"), cases())
def test_every_option_of_every_solver_is_there(name, option):
    """By its default, as Python prints it."""
    default = getattr(SOLVERS[name](), option)
    text = str(default)
    text = text if isinstance(default, str) else text.lower()
    assert made(name, [(option, text)]) == SOLVERS[name]()
    with pytest.raises(ValueError, match=f"{option}.* (Got|found) '?-1") as refusal:
        made(name, [(option, "-1")])
    assert str(refusal.value).count("\n") == 0


def test_the_solver_runs_with_them(here, capsys):
    """Twenty working sets of four rows are not enough; ASVM has no free intercept."""
    command = ["train", "train.svm", "m.wm", "--kernel", "rbf", "--gamma", "0.05"]
    few = ["--solver", "irwls", "--max-iter", "20", "--solver-option"]
    assert main([*command, *few, "working_set=400"]) == 0
    assert main([*command, *few, "working_set=4"]) == 1
    assert " by irwls, as asked." in capsys.readouterr().out
    linear = ["train", "three.svm", "m.wm", "--solver", "active_set"]
    assert main([*linear, "--solver-option", "mode=asvm"]) == 0
    capsys.readouterr()
    free = ["--intercept", "free", "--solver-option", "mode=asvm"]
    message = refused(capsys, *linear, *free)
    assert "has no free intercept" in message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("auto carry=0", "--solver-option needs --solver NAME, found --solver auto"),
        (
            "active_set carry=0",
            "--solver-option carry: active_set has no such option; it has mode, "
            "max_safeguards, begin_with",
        ),
        ("budget x=1", "budget has no such option; it has none"),
        ("irwls carry", "expected NAME=VALUE, found 'carry'"),
        ("irwls carry=", "expected NAME=VALUE, found 'carry='"),
        ("irwls carry=half", "carry: expected a number, found 'half'"),
        ("irwls carry=1", "must be a float in the range [0, 1). Got 1.0 instead."),
        ("irwls carry=0 carry=0", "--solver-option carry is given twice"),
        ("irwls inner=pair", "must be one of 'pairs', 'irwls', 'published'"),
        ("core_vector sample=1.5", "expected a whole number or none, found '1.5'"),
        ("core_vector balanced=1", "expected true or false, found '1'"),
        ("core_vector tries=7", "must be 1 where sample or epsilon is None"),
        ("core_vector first_points=far", "an int in the range [1, inf) or 'pair'"),
        (
            "interior_point reduction=all",
            "expected auto or omega or one_sided or none, found 'all'",
        ),
        ("active_set max_safeguards=3", "must be 50 with mode='newton'"),
    ],
)
def test_options_that_are_refused(here, capsys, options, message):
    solver, *given = options.split()
    told = [word for pair in given for word in ("--solver-option", pair)]
    assert message in refused(
        capsys, "train", "train.svm", "m.wm", "--solver", solver, *told
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            "frank_wolfe",
            "--solver frank_wolfe needs --loss squared_hinge; for the hinge use "
            "--solver irwls.",
        ),
        (
            "core_vector --loss squared_hinge --intercept free --cv 2",
            "--solver core_vector needs --intercept penalized or none; with a free one "
            "use --solver irwls.",
        ),
        (
            "augmented_lagrangian",
            "--solver augmented_lagrangian solves the hinge loss only: use --solver "
            "auto or --loss hinge. Got 'squared_hinge' instead.",
        ),
        (
            "active_set --solver-option mode=asvm --intercept free",
            "--solver active_set --solver-option mode=asvm has no free intercept (its "
            "dual has no equality). Use --solver-option mode=newton, or --intercept "
            "penalized.",
        ),
        (
            "core_vector --type regress",
            "--solver core_vector solves classification problems only: use --solver "
            "irwls.",
        ),
    ],
)
def test_what_a_solver_does_not_take_is_told_in_options(here, capsys, options, message):
    command = ["train", "train.svm", "m.wm", "--solver", *options.split()]
    assert refused(capsys, *command) == f"widemargin: train.svm: {message}\n"


def test_the_help_tells_of_them(capsys):
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    assert "--solver-option NAME=VALUE" in capsys.readouterr().out
