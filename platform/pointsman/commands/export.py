"""`pointsman export decisions|outcomes|calls|feedback`: the log as JSONL, CSV or Parquet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from pointsman.commands.options import DATA, ConfigFile, Json, opened
from pointsman.commands.output import out, print_json, say
from pointsman.errors import UserError

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from pointsman.outlet.reading import Selection
    from pointsman.outlet.subjects import SubjectName
    from pointsman.outlet.writing import Written

HELP = """Write what the log holds to a file that other tools read.

  decisions  each choice with its request, whole probability vector and end
  outcomes   how each decision, or call of a full-information row, ended
  calls      each request to a provider
  feedback   later words, amendments and retractions included

FILE ends in .jsonl, .csv (both also .gz) or .parquet, which says what it
becomes; it appears when it is whole. Texts leave redacted, by today's
\\[log] redact too. docs/data-model.md says what each column means.

Examples:
  pointsman export decisions november.parquet --since 2026-11-01 \\
      --until 2026-12-01 --learnable
  pointsman export outcomes outcomes.csv --project shop --origin traffic
  pointsman export decisions shapes.jsonl.gz --no-text
"""

Since = Annotated[str | None, typer.Option("--since", metavar="TIME", help="From this time on (ISO 8601, UTC).")]
Until = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Before this time.")]


def log_command(name: SubjectName) -> Callable[..., None]:
    """The command that exports one subject of the log."""

    def command(
        file: Annotated[Path, typer.Argument(metavar="FILE", help="What to write.", show_default=False)],
        project: Annotated[
            str | None, typer.Option("--project", help="Only this project's rows. Default: all projects.")
        ] = None,
        since: Since = None,
        until: Until = None,
        origin: Annotated[
            list[str] | None, typer.Option("--origin", help="traffic, replay, probe, …; several times. Default: all.")
        ] = None,
        worker: Annotated[str | None, typer.Option("--worker", help="Only rows of this worker.")] = None,
        learnable: Annotated[bool, typer.Option("--learnable", help="Without what may not be learned from.")] = False,
        texts: Annotated[bool, typer.Option("--text/--no-text", help="Whether what people wrote goes along.")] = True,
        force: Annotated[bool, typer.Option("--force", help="Replace FILE.")] = False,
        json: Json = False,
        config: ConfigFile = None,
    ) -> None:
        from pointsman.commands.database import log_database
        from pointsman.outlet.export import export
        from pointsman.outlet.writing import form_of

        form_of(file)
        settings, read = opened(config)
        with log_database(settings, read) as engine:
            chosen = selection(engine, project, since, until, origin, worker, learnable=learnable, texts=texts)
            redact = read.log.redact if read else ()
            written = export(engine, name, chosen, file, redact=redact, replace=force)
        show(written, json=json)

    return command


def register(app: typer.Typer) -> None:
    """Adds the commands `export decisions` and so on."""
    group = typer.Typer(help=HELP, no_args_is_help=True)
    for name, says in (
        ("decisions", "Each choice with its request and its end."),
        ("outcomes", "How each decision, or call of a full-information row, ended."),
        ("calls", "Each request to a provider."),
        ("feedback", "Later words, amendments and retractions included."),
    ):
        group.command(name, help=says)(log_command(cast("SubjectName", name)))
    app.add_typer(group, name="export", rich_help_panel=DATA)


def selection(
    engine: Engine,
    project: str | None,
    since: str | None,
    until: str | None,
    origin: list[str] | None,
    worker: str | None,
    *,
    learnable: bool,
    texts: bool,
) -> Selection:
    """The arguments, checked."""
    from pointsman.identity import find_project
    from pointsman.outlet.reading import Selection
    from pointsman.words import Origin, members

    if unknown := [word for word in origin or () if word not in members(Origin)]:
        raise UserError(f"--origin: expected one of {', '.join(members(Origin))}, got {unknown[0]!r}")
    with engine.connect() as connection:
        project_id = find_project(connection, project) if project else None
    return Selection(
        project_id=project_id,
        since=moment("--since", since),
        until=moment("--until", until),
        origins=cast("tuple[Origin, ...]", tuple(origin or ())),
        worker=worker,
        learnable=learnable,
        texts=texts,
    )


def moment(option: str, text: str | None) -> datetime | None:
    """An ISO 8601 time, UTC where it names no zone."""
    if text is None:
        return None
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        raise UserError(f"{option}: expected a time such as 2026-11-01 or 2026-11-01T12:00, got {text!r}") from None
    return read.astimezone(UTC) if read.tzinfo else read.replace(tzinfo=UTC)


def show(written: Written, *, json: bool) -> None:
    """What was written: rows, bytes, hash."""
    if json:
        print_json(asdict(written) | {"file": str(written.file)})
    else:
        say(out(), f"{written.file}: {written.rows} rows, {written.bytes} bytes, sha256 {written.sha256}")
