"""Keywords that do not exist here, and what to write instead."""

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, NoReturn, Self

from sklearn.base import ClassifierMixin

PROBABILITIES = (
    "probabilities come from calibrate='sigmoid' of SVCCV and LinearSVCCV, or from "
    "sklearn.calibration.CalibratedClassifierCV(ensemble=False)"
)
_KERNELS = "SVC, SVR, NuSVC, NuSVR and OneClassSVM have kernels"
_SILENT = (
    "a search is silent; time_limit bounds it, and scores_ and path_ tell of every fit"
)
_RANKS = "SVC, SVR, NuSVC, NuSVR and OneClassSVM have it"
_OF_EXACT = "SVC has it, with a rank"
# What searches add: they choose among machines without a rank.
_WITH_RANK = "; GridSearchCV of scikit-learn searches with a rank"
OF_SEARCHES = dict.fromkeys(("rank", "approximation", "certify", "polish"), _WITH_RANK)
ADVICE = {
    "approximation": _RANKS,
    "cache_size": "leave it out; memory_limit, in bytes, bounds the kernel values that "
    "are kept (200 MB are memory_limit=200 << 20)",
    "callback": _SILENT,
    "certify": _OF_EXACT,
    "checkpoint": "leave it out; nothing is kept here of a run that was killed",
    "class_weight": "sample_weight of fit weighs the rows",
    "coef0": _KERNELS,
    "degree": _KERNELS,
    "dual": "leave it out; solver chooses the method, and every answer has a primal "
    "and a dual point",
    "estimator": "leave it out; it takes none, and a search has a machine of its own",
    "epsilon": "SVR and LinearSVR have it",
    "fit_intercept": "write intercept='none' for fit_intercept=False, else leave it "
    "out",
    "gamma": _KERNELS,
    "intercept_scaling": "leave it out where it is 1; write intercept='free' where it "
    "was made large to leave the intercept out of the penalty",
    "kernel": _KERNELS,
    "param_grid": "SVCCV, LinearSVCCV, SVRCV and LinearSVRCV choose among Cs, those "
    "with a kernel among gammas, those of numbers among epsilons",
    "n_splits": "searches (SVCCV, LinearSVCCV, SVRCV, LinearSVRCV) have cv=3 for three "
    "folds",
    "nu": "NuSVC, NuSVR and OneClassSVM have it",
    "penalty": "leave it out; the penalty is half the square of the norm of w (l2)",
    "polish": _OF_EXACT,
    "probability": f"leave it out; {PROBABILITIES}",
    "rank": _RANKS,
    "solver": "leave it out; it has a method of its own",
    "shrinking": "leave it out; the answer is certified whatever rows a solver skips",
    "verbose": _SILENT,
}
# The same where there is no kernel, and where there are no classes.
_LINEAR = {"cache_size": "leave it out; a machine without a kernel keeps no values"}
_WITHOUT_CLASSES = {"probability": "leave it out; only classifiers have probabilities"}


class Absent:
    """A method of scikit-learn's that a class has not, and what takes its place."""

    def __init__(self, instead: str) -> None:
        self._instead = instead

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, one: Any, owner: type | None = None) -> NoReturn:
        kind = "" if owner is None else owner.__name__
        raise AttributeError(
            f"{kind!r} object has no attribute {self._name!r}: {self._instead}."
        )


class AdvisingMixin:
    """Answers keywords that it or its `fit` has not with what to write instead."""

    # What a class adds to the advice on some of them.
    _advice_too: ClassVar[dict[str, str]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = _advising(cls.__init__)  # type: ignore[method-assign]
        if "fit" in vars(cls):
            cls.fit = _naming(vars(cls)["fit"])  # type: ignore[attr-defined]

    def set_params(self, **params: Any) -> Self:
        """Set parameters: see `sklearn.base.BaseEstimator`.

        Parameters
        ----------
        **params : the parameters, by name

        Returns
        -------
        self

        Raises
        ------
        ValueError
            There is no parameter of that name.
        """
        if (said := _advice(type(self), _names(type(self)), params)) is not None:
            raise ValueError(said)
        base: Any = super()
        base.set_params(**params)
        return self


def _advising(init: Callable[..., None]) -> Callable[..., None]:
    """The constructor, which names what takes the place of a keyword."""
    names = _names(init)

    @functools.wraps(init)
    def advised(self: Any, *args: Any, **params: Any) -> None:
        said = _advice(type(self), names, params)
        if said is not None:
            raise TypeError(said)
        init(self, *args, **params)

    return advised


def _naming(fit: Callable[..., Any]) -> Callable[..., Any]:
    """A `fit` that names its own class where a keyword is unknown or missing."""
    known = inspect.signature(fit).parameters
    takes_all = any(one.kind is one.VAR_KEYWORD for one in known.values())
    required = [
        name
        for name, one in known.items()
        if name != "self"
        and one.kind is one.POSITIONAL_OR_KEYWORD
        and one.default is one.empty
    ]

    @functools.wraps(fit)
    def naming(self: Any, *args: Any, **given: Any) -> Any:
        owner = type(self).__name__
        for name in given:
            if not takes_all and name not in known:
                hint = f": write {owner}({name}=...).fit(...)"
                hint *= name in _names(type(self))
                raise TypeError(f"{owner}.fit has no argument {name!r}{hint}.")
        missing = [name for name in required[len(args) :] if name not in given]
        if missing:  # in Python's words, which name the class that has the method
            said = f"missing {len(missing)} required positional argument"
            said += f"{'s' * (len(missing) > 1)}: {' and '.join(map(repr, missing))}"
            raise TypeError(f"{owner}.fit() {said}")
        return fit(self, *args, **given)

    return naming


def _names(init: Callable[..., Any]) -> list[str]:
    """The keywords that a constructor, or a class, takes."""
    known = inspect.signature(init).parameters
    return [name for name in known if name not in ("self", "params")]


def _instead(kind: type[AdvisingMixin], names: list[str], name: str) -> str:
    """What to write in a class in the place of a keyword of scikit-learn."""
    if "kernel" not in names and name in _LINEAR:
        return _LINEAR[name]
    if not issubclass(kind, ClassifierMixin) and name in _WITHOUT_CLASSES:
        return _WITHOUT_CLASSES[name]
    return ADVICE[name] + kind._advice_too.get(name, "")


def _advice(
    kind: type[AdvisingMixin], names: list[str], given: Iterable[str]
) -> str | None:
    """What to say about keywords that only scikit-learn has, and slips."""
    owner, said = kind.__name__, []
    for name in given:
        if name in names or "__" in name:
            continue
        if name in ADVICE:
            said.append(f"{name!r}: {_instead(kind, names, name)}.")
            continue
        same = [one for one in names if one.lower() == name.lower()]
        if near := same or difflib.get_close_matches(name, names, n=1):
            said.append(f"{name!r} (did you mean {near[0]!r}?).")
    return " ".join(f"{owner} has no parameter {one}" for one in said) or None
