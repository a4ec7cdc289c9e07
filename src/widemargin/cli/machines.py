"""``--type``: the estimators of each kind of machine, and which options it has."""

import argparse
from typing import Any, NamedTuple

import widemargin
from widemargin.estimators.regressor import LOSSES
from widemargin.kernels.table import PARAMETERS
from widemargin.losses.pointwise import LOSSES as MARGIN_LOSSES
from widemargin.solvers.auto import SOLVERS
from widemargin.solvers.driver.contract import Solver


class Machine(NamedTuple):
    """A kind of machine: names of its estimators, and of its losses.

    Attributes
    ----------
    linear, kernel, linear_search, search : str
        Estimators: of linear machines, with kernels, and those that choose C.
    losses : tuple of str
    only : tuple of str
        Options that no other kind has.
    """

    linear: str
    kernel: str
    linear_search: str = ""
    search: str = ""
    losses: tuple[str, ...] = ()
    only: tuple[str, ...] = ()


_OF_CLASSES = (
    "class_weight",
    "multi_class",
    "decision_shape",
    "break_ties",
    "probability",
    "budget",
    "method",
    "norm",
)
MACHINES = {
    "classify": Machine(
        "LinearSVC",
        "SVC",
        "LinearSVCCV",
        "SVCCV",
        losses=tuple(MARGIN_LOSSES),
        only=_OF_CLASSES,
    ),
    "regress": Machine(
        "LinearSVR",
        "SVR",
        "LinearSVRCV",
        "SVRCV",
        losses=tuple(LOSSES),
        only=("epsilon",),
    ),
}
# Kinds whose estimators are looked up, but not yet trained from here.
_OTHERS = {"one-class": "OneClassSVM", "nu": "NuSVC"}


def check_type(options: argparse.Namespace) -> None:
    """Refuse a machine that is not there, and what another one has."""
    asked = options.type
    if asked not in MACHINES:
        estimator = _OTHERS[asked]
        in_python = f"; in Python it is {estimator}" * hasattr(widemargin, estimator)
        raise ValueError(
            f"--type {asked} is not there: expected {' or '.join(MACHINES)}{in_python}"
        )
    for kind, machine in MACHINES.items():
        for name in machine.only if kind != asked else ():
            given = getattr(options, name)
            if given is not None and given is not False:  # 0.0 is given
                said = name.replace("_", "-")
                raise ValueError(f"--{said} is of --type {kind}, found --type {asked}")
    losses = MACHINES[asked].losses
    if options.loss is not None and options.loss not in losses:
        raise ValueError(
            f"--type {asked} needs --loss {' or '.join(losses)}, "
            f"found --loss {options.loss}"
        )
    if asked == "regress" and options.certify == "exact":
        raise ValueError("--certify exact is of --type classify, found --type regress")
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
        return search(options)(**own, **_grid(options, own))
    if is_linear(options):
        return widemargin.LinearSVR(C=options.C, **own, **others)
    rank = {"rank": options.rank, "approximation": options.approximation}
    return widemargin.SVR(C=options.C, **own, **rank, **others)


def _grid(options: argparse.Namespace, own: dict[str, Any]) -> dict[str, Any]:
    """Folds and values of C and gamma; takes several of gamma out of the others."""
    Cs = 10 if options.C is None else options.C
    grid = {"cv": options.cv, "Cs": [Cs] if isinstance(Cs, float) else Cs}
    if isinstance(own.get("gamma"), list):
        grid["gammas"] = own.pop("gamma")
    return grid
