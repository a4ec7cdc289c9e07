"""Short options of svm-train, train and svm-predict, and what they are called here."""

import re

# LIBSVM's and LIBLINEAR's, by letter. Letters of widemargin, such as -C, are not here.
_CALLED = {
    "s": "the machine is --type (classify, nu, one-class, regress, nu-regress for -s 0 "
    "to 4); LIBLINEAR's -s is --loss, with --intercept",
    "t": "write --kernel linear, poly, rbf or sigmoid for -t 0, 1, 2 or 3",
    "c": "write -C",
    "g": "write --gamma",
    "d": "write --degree",
    "r": "write --coef0",
    "n": "write --nu, with --type nu, one-class or nu-regress",
    "p": "write --epsilon, with --type regress",
    "e": "write --tol, which is the relative duality gap to reach, not a tolerance of "
    "the gradient",
    "m": "write --memory-limit, such as 500M; -m is in MB",
    "v": "write --cv K, which also chooses C and keeps the best model; --test measures "
    "the errors of one",
    "b": "write --probability, without a 1; predict has it too",
    "w": "write --class-weight LABEL:FACTOR,...",
    "B": "write --intercept penalized for -B 1, and --intercept none without -B",
    "h": "leave it out; the answer is certified whatever rows a solver skips",
    "q": "there is nothing to quiet: progress goes to a terminal only",
    "M": "write --multi-class ovr or ovo",
    "R": "write --intercept free",
}
_WITH_VALUE = re.compile(r"-([A-Za-z])-?[\d.]*(?:e-?\d+)?\Z")


def explained(word: str) -> str | None:
    """What a short option of LIBSVM is called here; None if it is none of these."""
    found = _WITH_VALUE.match(word.replace("-wi", "-w"))
    said = _CALLED.get(found[1]) if found else None
    return None if said is None or found is None else f"-{found[1]} of LIBSVM: {said}"
