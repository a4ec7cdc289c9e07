"""How several classes are told apart, by name. Imports nothing slow."""

# With a decision for each pair of classes; all; what decision values may be about.
PAIRED = ("ovo", "dag")
SCHEMES = ("ovr", *PAIRED)
SHAPES = ("ovr", "ovo")
# With one decision: of two classes, or the value that a regression predicts.
REGRESSION = "regression"
SINGLE = ("binary", REGRESSION)


def n_decisions(scheme: str, c: int) -> int | None:
    """How many decisions c classes need; None where there is no such scheme."""
    known = {"binary": 1, REGRESSION: 1, "ovr": c} | dict.fromkeys(
        PAIRED, c * (c - 1) // 2
    )
    return known.get(scheme)
