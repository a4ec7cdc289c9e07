"""``--type``: the estimators of each kind of machine, and which options it has."""

import argparse
from typing import Any, NamedTuple

from sklearn.model_selection import KFold, StratifiedKFold

import widemargin
from widemargin.estimators.regressor import LOSSES
from widemargin.kernels.table import PARAMETERS
from widemargin.losses.pointwise import LOSSES as MARGIN_LOSSES
from widemargin.solvers.auto import SOLVERS
from widemargin.solvers.driver.contract import Solver


class Machine(NamedTuple):
    """A kind of machine: names of its estimators, its losses, and what it has.

    Attributes
    ----------
    linear, kernel : str
        Estimators of linear machines, and with kernels.
    linear_search, search : str
        Those that choose C.
    losses : tuple of str
    has : tuple of str
        Options that not every kind has.
    """

    linear: str
    kernel: str
    linear_search: str
    search: str
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
    "one-class": Machine("OneClassSVM", "OneClassSVM", "", "", (), _WITH_NU),
    "nu": Machine(
        "NuSVC",
        "NuSVC",
        "",
        "",
        (),
        (*_WITH_NU, "class_weight", "decision_shape", "break_ties", "probability"),
    ),
    "nu-regress": Machine("NuSVR", "NuSVR", "", "", (), (*_WITH_NU, "C")),
}
# Kinds whose linear machines have a kernel, too: their data are held in memory.
KERNEL_ONLY = tuple(k for k, one in MACHINES.items() if one.linear == one.kernel)
# What options are that were not given.
_DEFAULTS = {"intercept": "auto", "solver": "auto", "certify": "approximate"}


def check_type(options: argparse.Namespace) -> None:
    """Refuse a machine that is not there, and what only others have."""
    asked = options.type
    machine = MACHINES[asked]
    if not hasattr(widemargin, machine.kernel):
        there = [k for k, one in MACHINES.items() if hasattr(widemargin, one.kernel)]
        raise ValueError(f"--type {asked} is not there: expected {' or '.join(there)}")
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
    if options.cv is not None and search(options) is None:
        raise ValueError(f"--cv is not there with --type {asked}")


def is_linear(options: argparse.Namespace) -> bool:
    """Whether the estimator is that of linear machines."""
    solver = SOLVERS.get(options.solver)
    return options.kernel == "linear" and not (solver and solver.for_kernels)


def search(options: argparse.Namespace) -> Any:
    """The estimator that chooses C; None where there is none."""
    machine = MACHINES[options.type]
    name = machine.linear_search if is_linear(options) else machine.search
    return getattr(widemargin, name, None)


def regressor(options: argparse.Namespace, solver: str | Solver, **others: Any) -> Any:
    """The regressor that the options ask for, or one that chooses its C."""
    own: dict[str, Any] = {
        "loss": options.loss,
        "epsilon": options.epsilon,
        "intercept": options.intercept,
        "tol": options.tol,
        "max_iter": options.max_iter,
        "time_limit": options.time_limit,
        "memory_limit": options.memory_limit,
        "n_jobs": options.jobs,
    }
    if not is_linear(options):
        own["kernel"] = options.kernel
        for name in PARAMETERS.get(options.kernel, ()):
            own[name] = getattr(options, name)
    own = {name: value for name, value in own.items() if value is not None}
    own["solver"] = solver
    if options.cv is not None:
        grid = _grid(options, own)
        return search(options)(**own, **grid)
    if is_linear(options):
        return widemargin.LinearSVR(C=options.C, **own, **others)
    rank = {"rank": options.rank, "approximation": options.approximation}
    return widemargin.SVR(C=options.C, **own, **rank, **others)


def of_nu(options: argparse.Namespace, solver: str | Solver, **others: Any) -> Any:
    """The machine with nu in the place of C, or of epsilon."""
    own: dict[str, Any] = {
        "nu": options.nu,
        "class_weight": options.class_weight,
        "decision_function_shape": options.decision_shape,
        "break_ties": options.break_ties or None,
        "probability": options.probability or None,
        "max_iter": options.max_iter,
        "time_limit": options.time_limit,
        "memory_limit": options.memory_limit,
        "n_jobs": options.jobs,
        "C": options.C if "C" in MACHINES[options.type].has else None,
        "rank": options.rank,
    } | others
    for name in PARAMETERS.get(options.kernel, ()):
        own[name] = getattr(options, name)
    own = {name: value for name, value in own.items() if value is not None}
    kind = getattr(widemargin, MACHINES[options.type].kernel)
    own |= {"approximation": options.approximation, "solver": solver}
    return kind(kernel=options.kernel, tol=options.tol, **own)


def _grid(options: argparse.Namespace, own: dict[str, Any]) -> dict[str, Any]:
    """Folds and values of C; takes several of gamma and epsilon out of the others."""
    Cs = 10 if options.C is None else options.C
    grid = {"Cs": [Cs] if isinstance(Cs, float) else Cs, **judging(options)}
    for name in ("gamma", "epsilon"):
        if isinstance(own.get(name), list):
            grid[f"{name}s"] = own.pop(name)
    return grid


def judging(options: argparse.Namespace) -> dict[str, Any]:
    """What a search compares its points by: folds, shuffled with a seed, and scores."""
    cv, seed = options.cv, options.cv_seed
    if seed is not None:
        kind = KFold if options.type == "regress" else StratifiedKFold
        cv = kind(cv, shuffle=True, random_state=seed)
    return {"cv": cv, "scoring": options.scoring}
