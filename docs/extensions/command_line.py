"""The directive ``command-line``: the commands and their options, from the parser."""

import argparse
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import ExtensionMetadata

from widemargin.cli import options

PROGRAM = "widemargin"


class CommandLine(SphinxDirective):
    """A section for each command, with what it takes and its examples."""

    def run(self) -> list[nodes.Node]:
        """Parse what the parser says as reStructuredText."""
        lines: list[str] = []
        for action in options._parser()._actions:
            if isinstance(action, argparse._SubParsersAction):
                for name, command in action.choices.items():
                    lines += section(name, command)
        section_node = nodes.section()
        self.state.nested_parse(
            StringList(lines, "command line"), 0, section_node, match_titles=True
        )
        return section_node.children


def section(name: str, command: argparse.ArgumentParser) -> Iterator[str]:
    """The lines of one command."""
    title = f"{PROGRAM} {name}"
    yield from ("", title, "-" * len(title), "", str(command.description), "")
    yield from (f".. program:: {title}", "", ".. code-block:: text", "")
    yield f"   {PROGRAM} {name} {usage(command)}"
    for group in command._action_groups:
        shown = [a for a in group._group_actions if a.help != argparse.SUPPRESS]
        for action in shown:
            yield from entry(action)
    yield ""
    heading, *rest = (command.epilog or "").splitlines()
    yield from (f"{heading.partition(',')[0].rstrip(':').capitalize()}:", "")
    yield from (".. code-block:: text", "", *(f"   {line}" for line in rest), "")


def usage(command: argparse.ArgumentParser) -> str:
    """The positional arguments, as they are called."""
    found = [word(a) for a in command._actions if not a.option_strings]
    return " ".join([*found, "[OPTIONS]"])


def entry(action: argparse.Action) -> Iterator[str]:
    """One argument, and its help."""
    names = action.option_strings or [word(action)]
    value = f" {word(action)}" if action.option_strings and action.nargs != 0 else ""
    help_text = (action.help or "") % Values(vars(action))
    yield from ("", f".. option:: {', '.join(f'{name}{value}' for name in names)}", "")
    if action.choices:
        yield from (f"   One of {', '.join(f'``{c}``' for c in action.choices)}.", "")
    yield f"   {escaped(help_text)}"


def word(action: argparse.Action) -> str:
    """What stands for the value of an argument."""
    name = action.metavar or action.dest.upper()
    return str(name if isinstance(name, str) else " ".join(name))


def escaped(text: str) -> str:
    """Plain text: no character of it is markup, and tcp:// is no link."""
    return "".join(f"\\{c}" if c in "\\*`_|<>:" else c for c in text)


class Values(dict[str, Any]):
    """What ``%(name)s`` in a help text stands for."""

    def __missing__(self, name: str) -> str:
        return PROGRAM if name == "prog" else ""


def setup(app: Any) -> ExtensionMetadata:
    """Tell Sphinx."""
    app.add_directive("command-line", CommandLine)
    return {"parallel_read_safe": True}
