"""``--type``: the estimators of each kind of machine, and which options it has."""

import argparse
import inspect
from typing import Any, NamedTuple

from sklearn.model_selection import KFold, StratifiedKFold

import widemargin
from widemargin.estimators.regressor import LOSSES
from widemargin.losses.pointwise import LOSSES as MARGIN_LOSSES
from widemargin.solvers.auto import SOLVERS
from widemargin.solvers.driver.contract import Solver


class Machine(NamedTuple):
    """A kind of machine: names of its estimators, its losses, and what it has.

    Attributes
    ----------
    linear, kernel : str
        Estimators of linear machines, and with kernels.
    linear_search, search : str or None
        Those that choose C, where there are any.
    losses : tuple of str
    has : tuple of str
        Options that not every kind has.
    """

    linear: str
    kernel: str
    linear_search: str | None
    search: str | None
    losses: tuple[str, ...]
    has: tuple[str, ...]


_WITH_C = ("C", "cv", "loss", "intercept", "solver", "rank", "report")
_WITH_NU = ("nu", "solver", "rank", "report")
_OF_CLASSES = (
    "class_weight",
    "multi_class",
    "decision_shape",
    "break_ties",
    "probability",
    "budget",
    "method",
    "norm",
    "certify",
)
MACHINES = {
    "classify": Machine(
        "LinearSVC",
        "SVC",
        "LinearSVCCV",
        "SVCCV",
        tuple(MARGIN_LOSSES),
        (*_WITH_C, *_OF_CLASSES),
    ),
    "regress": Machine(
        "LinearSVR",
        "SVR",
        "LinearSVRCV",
        "SVRCV",
        tuple(LOSSES),
        (*_WITH_C, "epsilon"),
    ),
    "one-class": Machine("OneClassSVM", "OneClassSVM", None, None, (), _WITH_NU),
    "nu": Machine(
        "NuSVC",
        "NuSVC",
        None,
        None,
        (),
        (*_WITH_NU, "class_weight", "decision_shape", "break_ties", "probability"),
    ),
    "nu-regress": Machine("NuSVR", "NuSVR", None, None, (), (*_WITH_NU, "C")),
}
# Kinds whose linear machines have a kernel, too: their data are held in memory.
KERNEL_ONLY = tuple(k for k, one in MACHINES.items() if one.linear == one.kernel)
# What options are that were not given.
_DEFAULTS = {"intercept": "auto", "solver": "auto", "certify": "approximate"}
# Parameters of estimators whose options have other names.
_RENAMED = {"jobs": "n_jobs", "decision_shape": "decision_function_shape"}


def check_type(options: argparse.Namespace) -> None:
    """Refuse what only other machines have."""
    asked = options.type
    machine = MACHINES[asked]
    if options.cv is not None and "cv" not in machine.has:
        kinds = " or ".join(k for k, one in MACHINES.items() if "cv" in one.has)
        raise ValueError(
            f"--cv chooses C, of --type {kinds}: --type {asked} has nu, which "
            f"GridSearchCV of scikit-learn chooses for {machine.kernel}"
        )
    for name in dict.fromkeys(name for one in MACHINES.values() for name in one.has):
        given = getattr(options, name)
        # 0.0 is given, though it equals False.
        unsaid = given is None or given is False or given == _DEFAULTS.get(name)
        if not unsaid and name not in machine.has:
            kinds = " or ".join(k for k, one in MACHINES.items() if name in one.has)
            said = f"{'-' if name == 'C' else '--'}{name.replace('_', '-')}"
            raise ValueError(f"{said} is of --type {kinds}, found --type {asked}")
    if options.loss is not None and options.loss not in machine.losses:
        raise ValueError(
            f"--type {asked} needs --loss {' or '.join(machine.losses)}, "
            f"found --loss {options.loss}"
        )


def is_linear(options: argparse.Namespace) -> bool:
    """Whether the estimator is that of linear machines."""
    solver = SOLVERS.get(options.solver)
    return options.kernel == "linear" and not (solver and solver.for_kernels)


def estimator(options: argparse.Namespace, solver: str | Solver, **others: Any) -> Any:
    """The estimator that the options ask for, with what was given for its parameters.

    ``others`` are parameters whose values are not those of options.
    """
    given: dict[str, Any] = {
        _RENAMED.get(name, name): value
        for name, value in vars(options).items()
        if value is not None and value is not False
    }
    given |= {"solver": solver, "checkpoint": None}
    if options.type == "classify" and given.pop("probability", False):
        given["calibrate"] = "sigmoid"
    if options.cv is not None:
        given |= _grid(given) | _judging(options)
    kind = getattr(widemargin, _name(options))
    has = inspect.signature(kind).parameters
    return kind(**{name: given[name] for name in has if name in given} | others)


def _name(options: argparse.Namespace) -> str:
    """The name of the estimator."""
    if options.budget is not None:
        return "BudgetSVC"
    machine, linear = MACHINES[options.type], is_linear(options)
    search = machine.linear_search if linear else machine.search
    if options.cv is not None and search:
        return search
    return machine.linear if linear else machine.kernel


def _grid(given: dict[str, Any]) -> dict[str, Any]:
    """Values of C, and of gamma and epsilon where there are several."""
    Cs = given.get("C", 10)
    grid = {"Cs": [Cs] if isinstance(Cs, float) else Cs}
    for name in ("gamma", "epsilon"):
        if isinstance(given.get(name), list):
            grid[f"{name}s"] = given.pop(name)
    return grid


def _judging(options: argparse.Namespace) -> dict[str, Any]:
    """What a search compares its points by: folds, shuffled with a seed, and scores."""
    cv, seed = options.cv, options.cv_seed
    if seed is not None:
        kind = KFold if options.type == "regress" else StratifiedKFold
        cv = kind(cv, shuffle=True, random_state=seed)
    return {"cv": cv, "scoring": options.scoring}
