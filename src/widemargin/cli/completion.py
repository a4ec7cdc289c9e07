"""``widemargin completion``: a script that lets a shell complete what is typed."""

import argparse
from collections.abc import Iterable
from typing import Any

from widemargin.cli import values
from widemargin.cli.output import SOLVED, say
from widemargin.kernels.table import GAMMAS

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
    options, chosen, choosing = [], [], set()
    for name, parser in commands.items():
        actions = [a for a in parser.listed() if a.option_strings]
        words = " ".join(word for a in actions for word in a.option_strings)
        options.append(f'        {name}) words="{words}" ;;')
        for action in actions:
            if found := " ".join(map(str, _words_of(action))):
                given = "|".join(f'"{name} {word}"' for word in action.option_strings)
                chosen.append(f'      {given}) words="{found}" ;;')
                choosing |= set(action.option_strings)
    return _BASH.format(
        commands=" ".join(commands),
        options="\n".join(options),
        values="\n".join(chosen),
        choosing="|".join(sorted(choosing)),
    )


def _words_of(action: Any) -> Iterable[Any]:
    """The words that an option takes; of solvers, which are slow to import, too."""
    from widemargin.solvers.auto import NAMES

    return action.choices or {values.solver: NAMES, values.gammas: GAMMAS}.get(
        action.type, ()
    )
