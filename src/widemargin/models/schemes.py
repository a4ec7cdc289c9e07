"""What decisions tell apart, or estimate, by name. Imports nothing slow."""

# With a decision for each pair of classes; all; what decision values may be about.
PAIRED = ("ovo", "dag")
SCHEMES = ("ovr", *PAIRED)
SHAPES = ("ovr", "ovo")
# A number for each row, no class; and whether a row is like the training rows.
REGRESSION, ONE_CLASS = "regression", "one_class"
# With one decision, whose values have no column.
SINGLE = ("binary", REGRESSION, ONE_CLASS)


def n_decisions(scheme: str, c: int) -> int | None:
    """How many decisions c classes need; None where there is no such scheme."""
    known = {"ovr": c} | dict.fromkeys(PAIRED, c * (c - 1) // 2)
    return (known | dict.fromkeys(SINGLE, 1)).get(scheme)


def n_classes_allowed(scheme: str, c: int) -> bool:
    """Whether a scheme may have c classes."""
    if scheme == REGRESSION:
        return c == 0
    return c == 2 if scheme in SINGLE else c >= 2
