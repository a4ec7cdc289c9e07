"""The command here that does what options of LIBSVM or LIBLINEAR ask for."""

import re
import shlex
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import PurePath

from widemargin.cli.foreign import explained

_LETTER = re.compile(r"-([A-Za-z])(-?[\d.]*(?:e-?\d+)?)\Z")
_OURS = "Ch"  # our own letters: -C has a value, -h is help without one
_SHRINKING = re.compile(r"-h [01]\b")
_ALONE = "qR"  # letters of theirs that have no value
_OF_LIBLINEAR, _OF_LIBSVM = set("BRM"), set("tdgrhb")
_NAMES = {"c": "-C", "d": "--degree", "g": "--gamma", "r": "--coef0", "n": "--nu"}
# -t: the kernel, and letters of its numbers; others are ignored there, refused here.
_KERNELS = {"0": (None, ""), "1": ("poly", "dgr"), "2": ("rbf", "g")}
_KERNELS["3"] = "sigmoid", "gr"
# -s: the machine, and letters of what it has.
_TYPES = {"0": (None, "cbwv"), "1": ("nu", "bn"), "2": ("one-class", "n")}
_TYPES |= {"3": ("regress", "cpv"), "4": ("nu-regress", "cn")}
_ANY = "stemqh"
_LINEAR = {  # -s of LIBLINEAR
    "1": (),
    "2": (),
    "3": ("--loss", "hinge"),
    "11": ("--type", "regress", "--loss", "squared_epsilon_insensitive"),
    "12": ("--type", "regress", "--loss", "squared_epsilon_insensitive"),
    "13": ("--type", "regress"),
}
_SCHEMES = {"0": "ovr", "1": "ovo"}
_LIBLINEAR = "scpeBRMwvq"
# What is left out, or does more than there.
_REMARKS = {
    "e": "-e has no counterpart: --tol is the relative duality gap to reach",
    "m": "-m has no counterpart: --memory-limit bounds all that training takes",
    "v": "--cv keeps the model, too",
}
_MODELS = (".wm", ".model")


def looks_foreign(words: Sequence[str]) -> bool:
    """Whether a word is a letter of theirs; not where help is asked for."""
    if {"-h", "--help"} & set(words) and not _SHRINKING.search(" ".join(words)):
        return False
    return any((found := _LETTER.match(x)) and found[1] not in _OURS for x in words)


def translated(words: Sequence[str], flags: Iterable[str]) -> str | None:
    """What to write for all options of theirs; None where there are none.

    ``words`` begin with the name of the command; ``flags`` are our options without a
    value.
    """
    command, *rest = words or ("",)
    theirs, ours, files = _sorted(rest, set(flags))
    if not theirs or command not in ("train", "predict"):
        return None
    typed = list(dict.fromkeys(f"-{letter[0]}" for letter, _ in theirs))
    if len(typed) > 1 and not ours:
        with suppress(KeyError):  # what has no counterpart
            made = (_training if command == "train" else _prediction)(theirs, files)
            line = shlex.join(["widemargin", command, *made])
            remarks = "".join(f"; {_REMARKS[x]}" for x, _ in theirs if x in _REMARKS)
            return f"{', '.join(typed)} of {_origin(theirs)}: write `{line}`{remarks}"
    said = [one for word in typed if (one := explained(word))]
    return "; ".join(said) if len(said) == len(typed) else None


def _sorted(
    words: Sequence[str], flags: set[str]
) -> tuple[list[tuple[str, str]], list[str], list[str]]:
    """Their options with values (weights as w and the label), ours, and files."""
    theirs: list[tuple[str, str]] = []
    ours: list[str] = []
    files: list[str] = []
    left = iter(words)
    for word in left:
        found = _LETTER.match(word)
        if found and (found[1] not in _OURS or word == "-h"):
            letter, value = found.groups()
            if letter == "w":
                theirs.append((f"w{value}", next(left, "")))
            else:
                value = value or ("" if letter in _ALONE else next(left, ""))
                theirs.append((letter, value))
        elif word.startswith("-") and word != "-":
            alone = "=" in word or word in flags or (found and found[2])
            ours += [word] if alone else [word, next(left, "")]
        else:
            files.append(word)
    return theirs, ours, files


def _origin(theirs: Sequence[tuple[str, str]]) -> str:
    """Whose options they are, if the letters tell."""
    letters = {letter for letter, _ in theirs}
    if letters & _OF_LIBSVM:
        return "LIBSVM"
    kind = dict(theirs).get("s", "")
    linear = letters & _OF_LIBLINEAR or kind not in ("", *_TYPES)
    return "LIBLINEAR" if linear else "LIBSVM"


def _prediction(theirs: Sequence[tuple[str, str]], files: list[str]) -> list[str]:
    """TEST MODEL OUT there, MODEL TEST --output OUT here."""
    given = dict(theirs)
    _refuse(given, "bq")
    test, model, *out = [*files, *("DATA", "MODEL")[len(files) :]]
    if test.endswith(_MODELS) and not model.endswith(_MODELS):
        test, model = model, test
    chances = ["--probability"] if given.get("b") == "1" else []
    return [model, test, *(["--output", out[0]] if out else []), *chances]


def _training(theirs: Sequence[tuple[str, str]], files: list[str]) -> list[str]:
    """DATA MODEL and our options."""
    given = dict(theirs)
    data, *others = files or ["DATA"]
    model = PurePath(others[0] if others else PurePath(data).name)
    made, used = (_linear if _origin(theirs) == "LIBLINEAR" else _kernel)(given)
    made += [
        x for c in used if c in _NAMES and c in given for x in (_NAMES[c], given[c])
    ]
    if "v" in given:
        made += ["--cv", given["v"], *([] if "c" in given else ["-C", "1"])]
    factors = [f"{x[1:]}:{value}" for x, value in theirs if x[0] == "w"]
    if factors:
        made += ["--class-weight", ",".join(factors)]
    return [data, str(model.with_suffix(".wm")), *made]


def _kernel(given: dict[str, str]) -> tuple[list[str], str]:
    """What -s, -t, -p and -b of svm-train are here; letters of what else it uses."""
    kind, used = _TYPES[given.get("s", "0")]
    kernel, numbers = _KERNELS[given.get("t", "2")]
    _refuse(given, used + "dgrcnp" + _ANY)  # unused letters of numbers are ignored
    made = ["--type", kind] if kind else []
    if kernel is None:
        made += ["--loss", "hinge", "--multi-class", "ovo"] * (kind is None)
    else:
        made += ["--kernel", kernel]
        made += [] if "g" in given else ["--gamma", "auto"]
    if kind == "regress" and ("p" in given or kernel is None):
        made += ["--epsilon", given.get("p", "0.1")]
    return made + ["--probability"] * (given.get("b") == "1"), used + numbers


def _linear(given: dict[str, str]) -> tuple[list[str], str]:
    """What -s, -p, -B, -R and -M of train are here; letters of what else it uses."""
    _refuse(given, _LIBLINEAR)
    made = list(_LINEAR[given.get("s", "1")])
    if "regress" in made:
        made += ["--epsilon", given.get("p", "0.1")]
    bias = {"-1": "none", "1": "penalized"}[given.get("B", "-1")]
    made += ["--intercept", "free" if "R" in given and bias != "none" else bias]
    made += ["--multi-class", _SCHEMES[given["M"]]] if "M" in given else []
    return made, "c"


def _refuse(given: Iterable[str], known: str) -> None:
    """Give up on a letter that has no counterpart with the others."""
    if any(letter[0] not in known for letter in given):
        raise KeyError
