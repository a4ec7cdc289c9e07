"""Command line: train, predict, inspect, convert and generate.

Results go to standard output, progress and errors to standard error. Exit status: 0 for
a solved problem, 1 for an answer that is usable but not as good as asked or that Ctrl-C
ended, whatever its gap, 2 for bad usage or bad input, which one line explains, 130
after Ctrl-C before there was a model or while it was tested or reported on, 141 when
standard output was closed before all was said.
"""

import importlib
from collections.abc import Sequence

from widemargin.cli.options import parse
from widemargin.cli.output import BAD_INPUT, CLOSED, describe, note


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status."""
    try:
        return _run(arguments)
    except BrokenPipeError:
        return CLOSED
    except (ValueError, TypeError, ImportError) as error:
        note(str(error))
    except OSError as error:
        note(describe(error))
    except MemoryError as error:
        note(f"out of memory: {error}" if str(error) else "out of memory")
    return BAD_INPUT


def _run(arguments: Sequence[str] | None) -> int:
    """Import the module of a command, no other, and run it."""
    options = parse(arguments)
    module = importlib.import_module(f"widemargin.cli.{options.command}")
    status: int = module.run(options)
    return status
