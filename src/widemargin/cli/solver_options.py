"""The solver that ``--solver`` and ``--solver-option NAME=VALUE`` ask for."""

import dataclasses
import types
from collections.abc import Iterable
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from widemargin.solvers.auto import SOLVERS
from widemargin.solvers.driver.contract import Solver

_TRUTH = {"true": True, "false": False}
# What a text stands for, and how the texts are called, by the types of options.
_READ: dict[Any, Any] = {
    bool: _TRUTH.__getitem__,
    int: int,
    float: float,
    types.NoneType: {"none": None}.__getitem__,
    str: str,
}
_CALLED = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    types.NoneType: "none",
    str: "a word",
}


def made(name: str, given: Iterable[tuple[str, str]]) -> str | Solver:
    """The solver with these options, or its name where there are none.

    Parameters
    ----------
    name : str
        "auto", "batch", or a key of `SOLVERS`.
    given : iterable of (name, value)
        Fields of its class, and texts for them.

    Returns
    -------
    str or Solver

    Raises
    ------
    ValueError
        No solver is named, it has no such option, an option is given twice, or its
        value is none that it takes.
    """
    texts: dict[str, str] = {}
    for key, text in given:
        if key in texts:
            raise ValueError(f"--solver-option {key} is given twice")
        texts[key] = text
    if not texts:
        return name
    if name == "auto":
        raise ValueError("--solver-option needs --solver NAME, found --solver auto")
    if name not in SOLVERS:
        raise ValueError(f"--solver {name} has no options")
    kind: Any = SOLVERS[name]
    names = [field.name for field in dataclasses.fields(kind)]
    for key in texts:
        if key not in names:
            there = f"it has {', '.join(names)}" if names else "it has none"
            raise ValueError(
                f"--solver-option {key}: {name} has no such option; {there}"
            )
    hints = get_type_hints(kind)
    solver: Solver = kind(**{k: _read(k, text, hints[k]) for k, text in texts.items()})
    return solver


def _read(key: str, text: str, hint: Any) -> Any:
    """The value of an option, of the first type of its annotation that has it."""
    kinds = sorted(_alternatives(hint), key=lambda kind: kind is str)
    for kind in kinds:
        try:
            return _value(kind, text)
        except (KeyError, ValueError):
            continue
    expected = [word for kind in kinds for word in _words(kind)]
    raise ValueError(
        f"--solver-option {key}: expected {' or '.join(expected)}, found {text!r}"
    )


def _alternatives(hint: Any) -> list[Any]:
    """The types of an annotation, without functions, which no text can be."""
    if get_origin(hint) in (Union, types.UnionType):
        return [kind for part in get_args(hint) for kind in _alternatives(part)]
    return [hint] if hint in _READ or get_origin(hint) is Literal else []


def _value(kind: Any, text: str) -> Any:
    """The value of a type that a text is; KeyError or ValueError if it is none."""
    if get_origin(kind) is Literal:
        return {word: word for word in get_args(kind)}[text]
    return _READ[kind](text)


def _words(kind: Any) -> tuple[str, ...]:
    """What values of a type are called."""
    return get_args(kind) or (_CALLED[kind],)
