"""What the parsers of the commands say, in the words of this package."""

import argparse
import sys
import textwrap
from typing import Any, NoReturn

from widemargin.cli import values
from widemargin.cli.output import BAD_INPUT, note, say

# Letters of all choices of an option that are shown in its usage.
_SHOWN = 40


class Parser(argparse.ArgumentParser):
    """Errors in one line, with the exit status of bad usage."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and exit."""
        note(f"{message} (see {self.prog} --help)", self.prog)
        sys.exit(BAD_INPUT)

    def refuse_nothing(self, known: dict[str, Any]) -> NoReturn:
        """Say which commands there are, a line each."""
        note(f"expected a command (see {self.prog} COMMAND --help):", self.prog)
        for name, command in known.items():
            self._print_message(f"  {name:12}{command.description}\n", sys.stderr)
        sys.exit(BAD_INPUT)

    def listed(self) -> list[Any]:
        """The arguments, for those who write about them."""
        return list(self._actions)

    def _check_value(self, action: Any, value: Any) -> None:
        """Refuse what is no choice; says which one may be meant."""
        if action.choices is not None and value not in action.choices:
            words = [str(choice) for choice in action.choices]
            raise argparse.ArgumentError(action, values.refusal(str(value), words))

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print help and version; argparse would keep quiet about errors."""
        if file is sys.stdout:
            say(message)
        else:
            super()._print_message(message, file)


class Help(argparse.RawDescriptionHelpFormatter):
    """Help in the width of the terminal, but for lists and commands."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Paragraphs wrapped; those with indented lines are kept."""
        parts = text.strip("\n").split("\n\n")
        wrapped = (p if "\n  " in p else textwrap.fill(p, width) for p in parts)
        return "\n\n".join(wrapped) + "\n"

    def _metavar_formatter(self, action: argparse.Action, default_metavar: str) -> Any:
        """Many choices are in the help text: they would be one word, in two places."""
        if action.metavar is None and _has_many(action):
            return lambda size: ("NAME",) * size
        return super()._metavar_formatter(action, default_metavar)

    def _get_help_string(self, action: argparse.Action) -> str | None:
        """The help text, with many choices."""
        said = super()._get_help_string(action)
        return f"%(choices)s; {said}" if said and _has_many(action) else said


def _has_many(action: argparse.Action) -> bool:
    """Whether an option has more choices than fit in its usage."""
    named = action.option_strings and action.choices is not None
    return bool(named) and len("".join(map(str, action.choices or ()))) > _SHOWN
