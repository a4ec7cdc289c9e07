"""Prints what the package and an extra or a group of it need, a line each.

    python -m tests.dependencies test
    python -m tests.dependencies --only release    # without what the package needs

So `make` installs it while the core is compiled, with a pip that knows no groups.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def needed(settings: dict, name: str) -> Iterator[str]:
    """Packages of a group or an extra, and of those of ours that it names."""
    project = settings["project"]
    lists = project["optional-dependencies"] | settings["dependency-groups"]
    for line in lists[name]:
        if isinstance(line, dict):
            yield from needed(settings, line["include-group"])
        elif own := re.fullmatch(rf"{project['name']}\[(.*)\]", line):
            for other in own[1].split(","):
                yield from needed(settings, other.strip())
        else:
            yield line


def main(*words: str) -> None:
    """Print a line for each."""
    settings = tomllib.loads(PROJECT.read_text("utf-8"))
    own = [] if "--only" in words else settings["project"]["dependencies"]
    print(*own, *needed(settings, words[-1]), sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
