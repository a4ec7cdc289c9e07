"""``widemargin completion``: a script that lets a shell complete what is typed."""

import argparse
from typing import Any

from widemargin.cli.output import SOLVED, say

_BASH = """\
_widemargin() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
  local words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="{commands}"
  else
    case "${{COMP_WORDS[1]}} $before" in
{values}
      *) case "${{COMP_WORDS[1]}}" in
{options}
      esac ;;
    esac
  fi
  case "$before" in {choosing}) ;; *)
    [[ "$word" != -* && "$COMP_CWORD" -gt 1 ]] && words="" ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _widemargin widemargin
"""
_ZSH = "autoload -Uz bashcompinit && bashcompinit\n"


def run(options: argparse.Namespace) -> int:
    """Print the script."""
    from widemargin.cli.options import commands

    script = _script(commands())
    say(_ZSH + script if options.shell == "zsh" else script)
    return SOLVED


def _script(commands: dict[str, Any]) -> str:
    """The function of bash, from the parsers of the commands."""
    options, values, choosing = [], [], set()
    for name, parser in commands.items():
        actions = [a for a in parser.listed() if a.option_strings]
        words = " ".join(word for a in actions for word in a.option_strings)
        options.append(f'        {name}) words="{words}" ;;')
        for action in (a for a in actions if a.choices):
            given = "|".join(f'"{name} {word}"' for word in action.option_strings)
            found = " ".join(map(str, action.choices))
            values.append(f'      {given}) words="{found}" ;;')
            choosing |= set(action.option_strings)
    return _BASH.format(
        commands=" ".join(commands),
        options="\n".join(options),
        values="\n".join(values),
        choosing="|".join(sorted(choosing)),
    )
