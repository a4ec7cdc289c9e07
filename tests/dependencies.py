"""Prints what the package and an extra of it need, a line each, from pyproject.toml.

    python -m tests.dependencies test
    python -m tests.dependencies --only release    # the extra without the package

So `make` installs it while the core is compiled.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def needed(project: dict, extra: str) -> Iterator[str]:
    """Packages of an extra, and of the extras of ours that it names."""
    for line in project["optional-dependencies"][extra]:
        own = re.fullmatch(rf"{project['name']}\[(.*)\]", line)
        if own is None:
            yield line
        else:
            for other in own[1].split(","):
                yield from needed(project, other.strip())


def main(*words: str) -> None:
    """Print a line for each."""
    project = tomllib.loads(PROJECT.read_text("utf-8"))["project"]
    own = [] if "--only" in words else project["dependencies"]
    print(*own, *needed(project, words[-1]), sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
