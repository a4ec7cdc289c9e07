"""Checks of parameters, with one form of message; an object, and what it has."""

import difflib
import functools
import math
import re
import textwrap
import types
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, NoReturn


def is_integer(value: Any) -> bool:
    """Whether a value is an integer; True and False are none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def meant(word: str, known: Iterable[str]) -> str:
    """The known word that is most like one, or means the same; "" where none does."""
    words, low = list(known), word.lower()
    if (same := _ELSEWHERE.get(low.replace("-", "_"))) in words:
        return str(same)
    starts = [w for w in words if w.startswith(low) or low.startswith(w)]
    if len(starts) == 1 and min(len(low), len(starts[0])) > 2:
        return starts[0]
    if near := difflib.get_close_matches(word, words, n=1, cutoff=0.7):
        return near[0]
    # Short words with two letters exchanged, such as rfb, are below any useful cutoff.
    return next((w for w in words if sorted(w) == sorted(word)), "")


# What other programs and books call it.
_ELSEWHERE = {
    "gaussian": "rbf",
    "radial": "rbf",
    "squared_exponential": "rbf",
    "polynomial": "poly",
    "tanh": "sigmoid",
    "laplace": "laplacian",
    "l1": "hinge",
    "l2": "squared_hinge",
    "one_vs_rest": "ovr",
    "one_vs_one": "ovo",
}


class Checker:
    """Refuses bad parameters of one owner, a class or function named in the message."""

    def __init__(self, owner: str) -> None:
        self._owner = owner

    def refuse(self, name: str, expected: str, value: Any) -> NoReturn:
        """Raise ValueError, or TypeError for a value that is no number or string."""
        kind: type[ValueError | TypeError] = ValueError
        found = repr(value)
        if not isinstance(value, str | Real):  # arrays take many lines
            kind, found = TypeError, textwrap.shorten(found, 80, placeholder=" …")
        raise kind(self._message(name, f"be {expected}", found))

    def refuse_part(
        self, name: str, expected: str, found: str, hint: str = ""
    ) -> NoReturn:
        """Raise ValueError for something in a parameter: it must ``expected``."""
        raise ValueError(self._message(name, expected, found) + hint)

    def refuse_class(self, name: str, expected: str, value: type) -> NoReturn:
        """Raise TypeError for a class in the place of its object."""
        kind = value.__name__
        message = self._message(name, f"be {expected}", f"the class {kind}")
        raise TypeError(f"{message[:-1]}: write {kind}().")

    def refuse_model(self, name: str, expected: str, value: Any) -> NoReturn:
        """Raise TypeError for what is no model; says where a pipeline has it."""
        kind = type(value)
        is_other = kind.__module__.startswith("sklearn.svm")  # of the same names
        found = f"{'sklearn.svm.' * is_other}{kind.__name__}"
        message = self._message(name, f"be {expected}", found)
        if hasattr(value, "named_steps"):  # scikit-learn's, which need not be imported
            message += (
                " Give its last step, pipeline[-1], whose X is "
                "pipeline[:-1].transform(X)."
            )
        if hasattr(value, "refit"):  # a search of scikit-learn's
            message += " Give its best_estimator_."
        if hasattr(value, "calibrated_classifiers_"):
            message += (
                " A search has probabilities that are saved with it: "
                "SVCCV(calibrate='sigmoid')."
            )
        raise TypeError(message)

    def _message(self, name: str, expected: str, found: str) -> str:
        return (
            f"The {name!r} parameter of {self._owner} must {expected}. "
            f"Got {found} instead."
        )

    def positive(
        self,
        name: str,
        value: Any,
        expected: str = "",
        *,
        most: float = math.inf,
        optional: bool = False,
    ) -> None:
        """Refuse what is no float in (0, most], nor None if that is an option.

        ``expected`` takes the place of these words, where other values are allowed too.
        """
        if optional and value is None:
            return
        if type(value) is float and 0.0 < value <= most and value < math.inf:
            return  # without a look at abstract classes, which takes longer
        number = isinstance(value, Real) and not isinstance(value, bool)
        if not (number and 0 < value <= most and math.isfinite(value)):
            end = "inf)" if most == math.inf else f"{most:g}]"
            words = f"a float in the range (0, {end}" + _or_none(optional)
            self.refuse(name, expected or words, value)

    def count(
        self,
        name: str,
        value: Any,
        unit: str = "",
        *,
        least: int = 1,
        optional: bool = False,
    ) -> None:
        """Refuse what is no int in [least, inf), nor None if that is an option."""
        if optional and value is None:
            return
        if type(value) is int and value >= least:
            return
        if not (is_integer(value) and value >= least):
            words = f"an int in the range [{least}, inf){unit}"
            self.refuse(name, words + _or_none(optional), value)

    def memory_limit(self, value: Any, *, least: int = 1) -> None:
        """Refuse what is no number of bytes in [least, inf), nor None."""
        unit = ", in bytes (1 << 30 is a GiB),"
        self.count("memory_limit", value, unit, least=least, optional=True)

    def choice(
        self, name: str, value: Any, choices: tuple[Any, ...], where: str = ""
    ) -> None:
        """Refuse what is not among the choices, which are those ``where`` it says."""
        if type(value) is str and value in choices:
            return
        single = isinstance(value, Hashable)  # an array compares to an array
        if not (single and any(value is one or value == one for one in choices)):
            words = f"one of {', '.join(map(repr, choices))}{where}"
            if isinstance(value, str):
                near = meant(value, (one for one in choices if isinstance(one, str)))
                words += f" (did you mean {near!r}?)" * bool(near)
            self.refuse(name, words, value)


# What `Checker` says, up to what was expected.
_HEAD = re.compile(r"(The '\w+' parameter) of (\w+)((?:\.fit)?) must ")


@contextmanager
def refused_by(owner: str, *others: str) -> Iterator[None]:
    """Let what ``others`` refuse here be refused as a parameter of ``owner``."""
    try:
        yield
    except (TypeError, ValueError) as error:
        head = _HEAD.match(text := str(error))
        if head is None or head[2] not in others:
            raise
        said = f"{head[1]} of {owner}{head[3]} must {text[head.end() :]}"
        raise type(error)(said) from None


class Conditional:
    """A method that an object has where its class allows it.

    ``allow`` raises an AttributeError, which is heard as it is, unlike that of
    `available_if` of scikit-learn.
    """

    def __init__(
        self, method: Callable[..., Any], allow: Callable[[Any], None]
    ) -> None:
        self._method, self._allow = method, allow
        functools.update_wrapper(self, method)  # type: ignore[arg-type]

    def __get__(self, one: Any, owner: type | None = None) -> Any:
        if one is None:
            return self._method
        self._allow(one)
        return types.MethodType(self._method, one)


def spelled(value: Any) -> str:
    """An entry in a sentence: NaN has one spelling, whoever is asked for its own."""
    text = str(value)
    return "NaN" if text == "nan" else text


def in_one_line(one: Any, **facts: Any) -> str:
    """Repr of an object by facts about it, where its fields are arrays."""
    said = (f"{name}={value!r}" for name, value in facts.items())
    return f"{type(one).__name__}({', '.join(said)})"


def _or_none(optional: bool) -> str:
    return " or None" if optional else ""
