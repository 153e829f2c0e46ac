"""A page of decisions as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from pointsman.commands.output import cell, milliseconds, say, shortened, table, usd, visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from pointsman.queries import DecisionLine, DecisionsPage

WIDE = 150
"""Columns of a terminal from which on there is room for a table with whole ids."""
ASK_LENGTH = 70


def show_page(console: Console, page: DecisionsPage) -> None:
    """A table on a wide terminal, else two lines for each decision, so that an id is never broken."""
    if not page.rows:
        say(console, "no such decision is in the log")
    elif console.width >= WIDE:
        console.print(_table(page))
    else:
        for line in page.rows:
            _two_lines(console, line)


def _table(page: DecisionsPage) -> Table:
    numbers = ("p", "took", "cost")
    shown = table("when (UTC)", "id", "request", "worker", *numbers, "outcome", "feedback", right=numbers)
    shown.columns[1].no_wrap = True
    for line in page.rows:
        shown.add_row(
            cell(f"{line.decided_at:%m-%d %H:%M:%S}"),
            cell(line.id),
            cell(shortened(line.ask, ASK_LENGTH)),
            cell(worker_words(line)),
            cell(None if line.propensity is None else f"{line.propensity:.2f}"),
            cell(milliseconds(line.latency_ms)),
            cell(usd(line.cost)),
            cell(line.outcome or "none yet", outcome_style(line)),
            cell(feedback_words(line)),
        )
    return shown


def _two_lines(console: Console, line: DecisionLine) -> None:
    head = Text(f"{line.decided_at:%m-%d %H:%M:%S}  ")
    head.append(worker_words(line), style="bold")
    head.append("" if line.propensity is None else f"  p {line.propensity:.2f}")
    head.append(f"  {line.outcome or 'none yet'}", style=outcome_style(line))
    for part in (milliseconds(line.latency_ms), usd(line.cost), feedback_words(line)):
        head.append(f"  {part}" if part else "")
    console.print(head, soft_wrap=True)
    ask = shortened(line.ask, max(20, console.width - len(line.id) - 4)) or "(text not stored)"
    say(console, f"  {line.id}  {visible(ask)}", "dim")


def outcome_style(line: DecisionLine) -> str:
    """Green for a good end, red for any other, yellow where there is none yet."""
    return {"ok": "green", None: "yellow"}.get(line.outcome, "red")


def feedback_words(line: DecisionLine) -> str:
    """The standing feedback, such as `correct yes, score 0.8`."""
    return ", ".join(visible(f"{word.metric} {value_words(word.value)}".strip()) for word in line.feedback)


def worker_words(line: DecisionLine) -> str:
    """The chosen worker, how it came to it, and who answered where that was another."""
    words = line.chosen or "none"
    if line.explored:
        words += " (explored)"
    elif line.forced:
        words += f" ({line.forced})"
    if line.answered and line.answered != line.chosen:
        words += f" → {line.answered}"
    return words


def value_words(value: object) -> str:
    """A feedback's value as people say it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)
