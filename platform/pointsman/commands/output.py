"""What commands print: one JSON value on stdout with `--json`, else tables; notes go to stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from rich.table import Table

NOTHING = "–"
"""What a table shows for a value that is not known. Unknown is never 0."""


def out() -> Console:
    """The console of results."""
    return Console(highlight=False)


def notes() -> Console:
    """The console of everything that is no result: progress, hints, errors."""
    return Console(stderr=True, highlight=False)


def say(console: Console, line: str, style: str = "") -> None:
    """One line as it is: no markup, never broken."""
    console.print(Text(line, style=style), soft_wrap=True)


def print_json(value: Any) -> None:
    """Exactly one JSON value on stdout."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2).decode() + "\n")
    sys.stdout.flush()


def table(*columns: str, right: Iterable[str] = (), title: str | None = None) -> Table:
    """A table whose cells are plain text; columns named in `right` are set to the right."""
    from rich.box import ROUNDED
    from rich.table import Table

    made = Table(box=ROUNDED, highlight=False, title=title, title_justify="left", header_style="bold")
    to_the_right = set(right)
    for column in columns:
        made.add_column(column, justify="right" if column in to_the_right else "left", overflow="fold")
    return made


def cell(value: object, style: str = "") -> Text:
    """A value as a cell; None is a dash. Text from a log is never read as markup."""
    return Text(NOTHING if value is None else visible(str(value)), style=style)


def usd(amount: object) -> str | None:
    """An amount of USD: cents from a dollar on, below it the first three digits that count; None: unknown."""
    if amount is None:
        return None
    exact = Decimal(str(amount))
    if exact == 0 or abs(exact) >= 1:
        return f"${exact:.2f}"
    places = 2 - exact.adjusted()  # the power of ten of the first digit that counts
    return f"${exact:.{places}f}"


def milliseconds(value: float | None) -> str | None:
    """`840 ms`, `2.4 s`."""
    if value is None:
        return None
    return f"{value:.0f} ms" if value < 1000 else f"{value / 1000:.1f} s"


def shortened(text: str | None, length: int) -> str | None:
    """The beginning of a text, on one line."""
    if text is None:
        return None
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1] + "…"


def visible(text: str) -> str:
    """`text` with control characters shown, so that a logged text cannot move a terminal's cursor."""
    return "".join(
        character if character.isprintable() or character == "\n" else f"\\x{ord(character):02x}" for character in text
    )
