"""Where a command ends: expected errors become a readable message on stderr and an exit code.

    0    done
    1    it could not be done now: no gateway, no database, a check that failed
    2    a mistake in what was given: arguments, configuration, an id that is not there
    130  Ctrl-C

A traceback means a fault in Pointsman itself.
"""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from pointsman.commands.output import notes
from pointsman.errors import BrokenInvariant, ConfigError, PointsmanError, UserError

FAILED = 1
USER_ERROR = 2


class CommandGroup(TyperGroup):
    """The group of all commands: the one place that knows which error ends with which code."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenInvariant:
            raise
        except PointsmanError as error:
            show_error(error)
            raise typer.Exit(USER_ERROR if isinstance(error, UserError) else FAILED) from None


class ListsByDefault(TyperGroup):
    """A group whose command `list` is meant where none is named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in ("--help", "-h")):
            args = ["list", *args]
        return super().parse_args(ctx, args)


def show_error(error: PointsmanError) -> None:
    """The message as it is, in red on a terminal; a configuration's faults a line each."""
    console = notes()
    if isinstance(error, ConfigError):
        for problem in error.problems:
            console.print(problem, style="red", soft_wrap=True, markup=False, highlight=False)
        return
    console.print(str(error), style="red", soft_wrap=True, markup=False, highlight=False)
