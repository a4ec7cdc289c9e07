"""The command here that does what options of LIBSVM or LIBLINEAR ask for."""

import itertools
import os
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
_OF_LIBLINEAR, _OF_LIBSVM = set("BRMC"), set("tdgrhb")
_NAMES = {"c": "-C", "d": "--degree", "g": "--gamma", "r": "--coef0", "n": "--nu"}
# -t: the kernel, and letters of its numbers; others are ignored there, refused here.
_KERNELS = {"0": (None, ""), "1": ("poly", "dgr"), "2": ("rbf", "g")}
_KERNELS["3"] = "sigmoid", "gr"
# -s: the machine, and letters of what it has.
_TYPES = {"0": (None, "cbwv"), "1": ("nu", "bn"), "2": ("one-class", "n")}
_TYPES |= {"3": ("regress", "cpv"), "4": ("nu-regress", "cn")}
_ANY = "stemqhW"
_LINEAR = {  # -s of LIBLINEAR
    "1": (),
    "2": (),
    "3": ("--loss", "hinge"),
    "11": ("--type", "regress", "--loss", "squared_epsilon_insensitive"),
    "12": ("--type", "regress", "--loss", "squared_epsilon_insensitive"),
    "13": ("--type", "regress"),
}
_SHUFFLED = ("--cv-seed", "0")  # they shuffle the rows of folds
_SCHEMES = {"0": "ovr", "1": "ovo"}
_LIBLINEAR = "scpeBRMwvqWmC"
# What is not here, by the value of -s of LIBLINEAR or of -t of LIBSVM.
_LOGISTIC = "logistic regression is in sklearn.linear_model.LogisticRegression"
_ABSENT = {
    "-s 0": _LOGISTIC,
    "-s 6": _LOGISTIC,
    "-s 7": _LOGISTIC,
    "-s 4": "Crammer and Singer's machine is not here; --multi-class ovr is nearest",
    "-s 5": "an L1 penalty is in sklearn.svm.LinearSVC(penalty='l1', dual=False)",
    "-s 21": "its machine of one class is not on the command line; --type one-class is "
    "LIBSVM's",
    "-t 4": "kernel values are for Python: SVC(kernel='precomputed')",
}
# What is left out, or does more than there.
_REMARKS = {
    "e": "-e has no counterpart: --tol is the relative duality gap to reach",
    "m": "-m has no counterpart: --memory-limit bounds all that training takes",
    "v": "--cv keeps the model, too",
}
_OF_SOME = "bvw"  # options of some machines only, which others leave out
_MODELS = (".wm", ".model")


def looks_foreign(words: Sequence[str]) -> bool:
    """Whether a word is a letter of theirs; not where help is asked for."""
    if {"-h", "--help"} & set(words) and not _SHRINKING.search(" ".join(words)):
        return False
    theirs = ((found := _LETTER.match(x)) and found[1] not in _OURS for x in words)
    return any(theirs) or words[0] == "predict" or _finds_C(words)


def _finds_C(words: Sequence[str]) -> bool:
    """Whether -C has no value, as that of LIBLINEAR."""
    after = [b for a, b in itertools.pairwise(words) if a == "-C"]
    return any(re.match("-[A-Za-z]", b) or os.path.isfile(b) for b in after)


def translated(words: Sequence[str], flags: Iterable[str]) -> str | None:
    """What to write for all options of theirs; None where there are none.

    ``words`` begin with the name of the command; ``flags`` are our options without a
    value.
    """
    command, *rest = words or ("",)
    theirs, ours, files = _sorted(rest, set(flags))
    if command == "predict" and len(files) == 3 and not (theirs or ours):
        line = shlex.join(["widemargin", command, *_prediction([], files)])
        return f"expected --output before the file to write: write `{line}`"
    if not theirs or command not in ("train", "predict"):
        return None
    typed = list(dict.fromkeys(f"-{letter[0]}" for letter, _ in theirs))
    if not ours and (len(typed) > 1 or _is_clear(theirs, command)):
        with suppress(KeyError):  # what has no counterpart
            answer = _answer(command, theirs, files, _origin(theirs))
            return f"{', '.join(typed)} {answer}"
    if not ours and _is_of_both(theirs):
        with suppress(KeyError):
            both = (_answer(command, theirs, files, o) for o in ("LIBSVM", "LIBLINEAR"))
            return f"{typed[0]} {'; '.join(both)}"
    said = [one for word in typed if (one := explained(word))]
    return "; ".join(said) if len(said) == len(typed) else None


def _answer(
    command: str, theirs: Sequence[tuple[str, str]], files: list[str], origin: str
) -> str:
    """Whose the options are taken for, and the command, or what is not here."""
    if (absent := _absent(dict(theirs), origin)) is not None:
        return f"of {origin}: {absent}"
    made, remarks = _command(command, theirs, files, origin)
    line = shlex.join(["widemargin", command, *made])
    return "; ".join([f"of {origin}: write `{line}`", *remarks])


def _absent(given: dict[str, str], origin: str) -> str | None:
    """What to say of a machine or a kernel that is not here."""
    name = "t" if origin == "LIBSVM" else "s"
    return _ABSENT.get(f"-{name} {given.get(name)}")


def _is_clear(theirs: Sequence[tuple[str, str]], command: str) -> bool:
    """Whether a single option of theirs says whose it is, and with which value."""
    letter, value = theirs[0]
    if letter == "s":
        return value not in ("", *_TYPES)
    told = letter in _OF_LIBSVM | _OF_LIBLINEAR and (value or letter in "RC")
    return command == "predict" or bool(told)


def _is_of_both(theirs: Sequence[tuple[str, str]]) -> bool:
    """Whether LIBSVM and LIBLINEAR have options, which are whole, and none tells."""
    return all(
        value in _TYPES if letter == "s" else re.match(r"w-?\d", letter) and value
        for letter, value in theirs
    )


def _command(
    command: str, theirs: Sequence[tuple[str, str]], files: list[str], origin: str
) -> tuple[list[str], list[str]]:
    """Our words after the name of the command, and what is to say about some."""
    if command == "predict":
        return _prediction(theirs, files), []
    given = dict(theirs)
    remarks = [_REMARKS[x] for x, _ in theirs if x in _REMARKS]
    if origin == "LIBLINEAR":
        remarks = [said for said in remarks if said != _REMARKS["m"]]
        return _training(theirs, files, origin), remarks
    kind, used = _TYPES[given.get("s", "0")]
    left = [x for x in _OF_SOME if x not in used]
    gone = [x for x, value in theirs if x[0] in left and (x, value) != ("b", "0")]
    kept = [one for one in theirs if one[0][0] not in left]
    remarks = [said for said in remarks if said != _REMARKS["v"] or "v" not in left]
    remarks += [f"-{x} has no counterpart with --type {kind}" for x in gone]
    return _training(kept, files, origin), remarks


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
        if word == "-C" and _finds_C(words):
            theirs.append(("C", ""))
        elif found and (found[1] not in _OURS or word == "-h"):
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


def _training(
    theirs: Sequence[tuple[str, str]], files: list[str], origin: str
) -> list[str]:
    """DATA MODEL and our options."""
    given = dict(theirs)
    data, *others = files or ["DATA"]
    model = PurePath(others[0] if others else PurePath(data).name)
    made, used = (_linear if origin == "LIBLINEAR" else _kernel)(given)
    made += [
        x for c in used if c in _NAMES and c in given for x in (_NAMES[c], given[c])
    ]
    if "C" in given:
        made += ["--cv", given.get("v", "5"), *_SHUFFLED]
    elif "v" in given:
        alone = [] if "c" in given else ["-C", "1"]
        made += ["--cv", given["v"], *_SHUFFLED, *alone]
    made += ["--weight", given["W"]] if "W" in given else []
    factors = ",".join(f"{x[1:]}:{value}" for x, value in theirs if x[0] == "w")
    if factors.startswith("-"):  # else the label would be taken for an option
        made += [f"--class-weight={factors}"]
    elif factors:
        made += ["--class-weight", factors]
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
    made += ["--jobs", given["m"]] if "m" in given else []
    return made, "" if "C" in given else "c"


def _refuse(given: Iterable[str], known: str) -> None:
    """Give up on a letter that has no counterpart with the others."""
    if any(letter[0] not in known for letter in given):
        raise KeyError
