"""What the command line asks for: options of all papers, and how to add others."""

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar


def asked(default, about, kind=None):
    """A field of an `Options` that the command line has, too, as ``--name``."""
    kind = kind or type(default)
    return field(default=default, metadata={"help": about, "type": kind})


@dataclass(frozen=True)
class Options:
    """How much to run.

    Attributes
    ----------
    folder : Path, the data sets
    quick : bool, little of everything: shows that all works, measures nothing
    QUICK : what other fields are in a quick run
    """

    folder: Path
    quick: bool = False
    QUICK: ClassVar[dict[str, Any]] = {"repeat": 1}

    @classmethod
    def add_to(cls, parser):
        """Add what the paper asks for to a command line."""
        for option in fields(cls):
            if option.metadata:
                parser.add_argument(
                    f"--{option.name}", default=option.default, **option.metadata
                )

    @classmethod
    def of(cls, given):
        """Those that a command line gave."""
        names = [option.name for option in fields(cls) if option.metadata]
        values = {name: getattr(given, name) for name in names}
        if given.quick:
            values |= {k: v for k, v in cls.QUICK.items() if k in values}
        return cls(given.data, given.quick, **values)

    def found(self, label, read, say):
        """What ``read()`` returns; None, and a line that says so, if it has no data."""
        try:
            return read()
        except FileNotFoundError as error:
            return say(f"{label} is skipped: {error}.")
