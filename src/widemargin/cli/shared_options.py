"""The arguments that several commands have."""

from typing import Any

from widemargin.cli import values

FORMATS = (
    "svmlight text (- for standard input), .csv, .npy, .parquet, or a folder of the "
    "last two"
)
GUESS = "0 if an index is 0, else 1"


def add_memory_limit(command: Any, words: str) -> None:
    """The memory that a command keeps to."""
    command.add_argument(
        "--memory-limit", type=values.size, metavar="SIZE", help=f"bytes {words}"
    )


def add_json(command: Any) -> None:
    """Output for programs."""
    command.add_argument("--json", action="store_true", help="print one JSON object")


def add_reading(command: Any, base: str) -> None:
    """How files are read."""
    command.add_argument(
        "--index-base",
        type=values.index_base,
        metavar="{auto,0,1}",
        help=f"first index of the svmlight file ({base})",
    )
    command.add_argument(
        "--jobs", type=values.count, metavar="N", help="threads (all cores)"
    )
