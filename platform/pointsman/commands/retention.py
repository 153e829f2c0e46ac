"""`pointsman retention`: which months of the log are older than it is kept, and dropping them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pointsman.commands.options import DATA, ConfigFile, Json, opened
from pointsman.commands.output import cell, out, print_json, say, table

if TYPE_CHECKING:
    from rich.console import Console
    from sqlalchemy import Engine

    from pointsman.database.sizes import PartitionSize

DEFAULT_DAYS = 90
MEGA = 1_000_000
HELP = """Say which months of the log are older than it is kept; drop them.

Without --drop nothing is changed.

A month goes as a whole, when its last row is older than \\[log] retention
days: dropping takes milliseconds and leaves nothing to vacuum. Of rows
that no month took, old traffic is deleted; what was imported from long
ago stays. The shipper does the same every ten minutes while the gateway
runs; this shows it beforehand, and is for those who want it at a time of
their own.

Examples:
  pointsman retention
  pointsman retention --days 30 --json
  pointsman retention --drop
"""


@dataclass(frozen=True)
class Plan:
    """`going` are the partitions whose every row is older than `cutoff`, `staying` the others."""

    days: int
    cutoff: datetime
    going: list[PartitionSize]
    staying: list[PartitionSize]


def retention_command(
    days: Annotated[int | None, typer.Option("--days", min=1, help="Days to keep. Default: [log] retention.")] = None,
    drop: Annotated[bool, typer.Option("--drop", help="Drop them. Without it, only say so.")] = False,
    json: Json = False,
    config: ConfigFile = None,
) -> None:
    from pointsman.commands.database import log_database

    settings, read = opened(config)
    kept = days or (read.log.retention if read else DEFAULT_DAYS)
    now = datetime.now(UTC)
    with log_database(settings, read) as engine:
        made = plan(engine, now, kept)
        dropped = _drop(engine, now, kept) if drop else None
    if json:
        print_json(as_json(made, dropped))
    else:
        _show(out(), made, dropped)


def register(app: typer.Typer) -> None:
    """Adds the command `retention`."""
    app.command("retention", help=HELP, rich_help_panel=DATA)(retention_command)


def plan(engine: Engine, now: datetime, days: int) -> Plan:
    """What retention would do at `now`."""
    from pointsman.database.partitions import expired
    from pointsman.database.sizes import partition_sizes

    cutoff = now - timedelta(days=days)
    with engine.connect() as connection:
        names = set(expired(connection, cutoff))
        sizes = partition_sizes(connection)
    return Plan(days, cutoff, [s for s in sizes if s.name in names], [s for s in sizes if s.name not in names])


def as_json(made: Plan, dropped: list[str] | None) -> dict[str, Any]:
    """The plan, and what was dropped (null: nothing was asked to be)."""

    def one(size: PartitionSize) -> dict[str, Any]:
        return {"name": size.name, "rows": size.rows, "bytes": size.bytes, "until": size.until}

    return {
        "days": made.days,
        "cutoff": made.cutoff,
        "going": [one(size) for size in made.going],
        "staying": [one(size) for size in made.staying],
        "dropped": dropped,
    }


def _drop(engine: Engine, now: datetime, days: int) -> list[str]:
    import psycopg

    from pointsman.errors import StoreError
    from pointsman.journal.housekeeping import drop_expired

    address = engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    try:
        with psycopg.connect(address, autocommit=True, options="-c timezone=UTC") as connection:
            return drop_expired(engine, connection, now, days)
    except psycopg.errors.LockNotAvailable:
        raise StoreError("old rows are in use by a long read or write; try again later") from None


def _show(console: Console, made: Plan, dropped: list[str] | None) -> None:
    say(console, f"kept: {made.days} days, so rows from {made.cutoff:%Y-%m-%d %H:%M} UTC on")
    numbers = ("rows (about)", "MB")
    shown = table("partition", "until (UTC)", *numbers, "", right=numbers)
    for size, word in [*((s, "goes") for s in made.going), *((s, "stays") for s in made.staying)]:
        until = f"{size.until:%Y-%m-%d}" if size.until else None
        megabytes = f"{size.bytes / MEGA:.1f}"
        shown.add_row(cell(size.name), cell(until), cell(size.rows), cell(megabytes), cell(word))
    console.print(shown)
    if dropped is None:
        freed = sum(size.bytes for size in made.going) / MEGA
        say(console, f"{len(made.going)} partitions, {freed:.1f} MB, would go; --drop drops them")
    else:
        say(console, f"dropped {len(dropped)} partitions")
        for name in sorted({size.name for size in made.going} - set(dropped)):
            say(console, f"{name} is in use by a long read: try again later", "yellow")
