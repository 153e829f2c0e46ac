"""`pointsman check --keys`: the reference of the configuration, as tables, Markdown or JSON."""

from __future__ import annotations

import sys
from dataclasses import asdict

from pointsman.commands.output import cell, out, print_json, say, table


def show_keys(*, as_json: bool, as_markdown: bool) -> None:
    """Prints every section and key."""
    from pointsman.config.reference import markdown, reference

    if as_json:
        print_json([asdict(section) for section in reference()])
        return
    if as_markdown:
        sys.stdout.write(markdown())
        return
    console = out()
    for section in reference():
        say(console, section.heading, "bold cyan")
        say(console, section.description)
        shown = table("key", "type", "default", "meaning")
        for key in section.keys:
            default = cell("required", "yellow") if key.default is None else cell(key.default or None)
            shown.add_row(cell(key.key, "bold"), cell(key.type), default, cell(key.description))
        console.print(shown)
