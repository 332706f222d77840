"""`python -m explorer`: reads the arguments, runs the command, and turns whatever a person did wrong into one line.

Must not know: what a command does.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from explorer.cli.parser import PROGRAM, build_parser
from explorer.spec import SpecError

FIELD_OPTIONS = {"edits": "--edit", "switches": "--switch", "figure": "", "bridge": "", "": ""}


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 0 done, 1 a check that does not hold, 2 a mistake in what was asked."""
    asked = build_parser().parse_args(arguments)
    from explorer.cli.commands import COMMANDS, CommandError
    from explorer.limits import TROUBLE

    if TROUBLE:
        return _say(asked.command, [TROUBLE])
    try:
        return COMMANDS[asked.command](asked)
    except SpecError as error:
        return _say(asked.command, [_named(name, message) for name, message in error.errors.items()])
    except CommandError as error:
        return _say(asked.command, [str(error)])
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if type(error).__name__ != "CheckpointError":
            raise
        return _say(asked.command, [str(error)])


def _named(name: str, message: str) -> str:
    """The message with the option it is about."""
    field, _, number = name.partition(".")
    option = FIELD_OPTIONS.get(field, f"--{field.replace('_', '-')}")
    return f"{option}{f' number {int(number) + 1}' if number.isdigit() else ''}: {message}" if option else message


def _say(command: str, messages: list[str]) -> int:
    for message in messages:
        print(f"{PROGRAM} {command}: {' '.join(message.split())}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
