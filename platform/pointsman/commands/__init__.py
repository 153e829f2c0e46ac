"""The command line: `pointsman COMMAND`, each command a module with `register(app)`.

Rooms above add commands through the entry-point group `pointsman.commands`. Modules here import
little when they are loaded, and what a command needs when it runs, so that `--help` is quick.
"""

from __future__ import annotations


def main() -> None:
    """The script `pointsman`."""
    from pointsman.commands.app import build_app

    build_app()(prog_name="pointsman")


__all__ = ["main"]
