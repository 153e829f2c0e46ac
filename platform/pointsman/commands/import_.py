"""`pointsman import`: a recorded data set into the log, its numbers, and its models as replay workers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from pointsman.commands.import_report import as_json, show_report
from pointsman.config import Config, Settings, load_config
from pointsman.database.engine import make_engine
from pointsman.database.open import database_url
from pointsman.errors import UserError
from pointsman.identity import DEFAULT_PROJECT, ensure_project
from pointsman.replay import survey, workers
from pointsman.replay.configuration import pool_toml
from pointsman.replay.load import ImportReport, import_folder
from pointsman.replay.summary import differences, full_information_summary

DISAGREES = 1
USER_ERROR = 2
REPLAY_PORT_OFFSET = 4  # after gateway, dashboard, sandbox and broker

HELP = """Import recorded queries and outcomes as full-information rows (origin `replay`).

FOLDER holds `queries` and `outcomes`, each as .parquet or .jsonl, and may hold `models.json`:

\b
  queries   needs id, text; may have task, split, asked_at, and others
  outcomes  needs query_id, model, score (0 to 1); may have response,
            input_tokens, output_tokens, cost (USD), latency_ms, repeat
  models    {name: {input_price, output_price, model, size, description}}
            with prices in USD per million tokens

The whole folder is checked first: a fault is reported with file, row and column, and nothing is
written. Importing a data set again adds nothing. Then the numbers (each worker's mean score, best
single worker, oracle, random choice) are computed from the files and from the database, and compared.

\b
Examples:
  pointsman import data/llmrouter9
  pointsman import data/routerarena2 --no-learn --json
  pointsman import data/routerarena2 --serve 8795 --write-config new.toml
  pointsman serve --config new.toml      (in another terminal)

Exit codes: 0 done; 1 the database does not agree with the files; 2 a mistake in what was given.
"""


def import_command(
    folder: Annotated[Path, typer.Argument(help="The data set's folder.", show_default=False)],
    name: Annotated[
        str | None, typer.Option("--name", help="The data set's name in the log. Default: the folder's name.")
    ] = None,
    project: Annotated[str, typer.Option("--project", help="The project it belongs to.")] = DEFAULT_PROJECT,
    learn: Annotated[
        bool,
        typer.Option(
            "--learn/--no-learn", help="Whether anything may be learned from it; --no-learn: replay only, for good."
        ),
    ] = True,
    serve: Annotated[
        int | None,
        typer.Option("--serve", metavar="PORT", min=1, max=65535, help="Then serve the models on 127.0.0.1:PORT."),
    ] = None,
    write_config: Annotated[
        Path | None,
        typer.Option("--write-config", metavar="FILE", help="Write a pointsman.toml with the models as workers."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object in place of tables.")] = False,
    config: Annotated[Path | None, typer.Option("--config", help="The configuration file (for its database).")] = None,
) -> None:
    out, notes = Console(), Console(stderr=True)
    try:
        settings = Settings.read(config=config)
        known = load_config(settings.config_file) if config or settings.config_file.exists() else None
        dataset = name or folder.resolve().name
        _check_free(write_config)
        report, unequal = _import(settings, known, folder, dataset, project, learn, notes)
        if write_config is not None:
            port = serve or settings.port + REPLAY_PORT_OFFSET
            _write(write_config, pool_toml(report.pool.workers, port, dataset=dataset))
            notes.print(f"wrote {write_config}: replay workers at http://127.0.0.1:{port}/v1", soft_wrap=True)
    except UserError as error:
        notes.print(str(error), style="red", soft_wrap=True, markup=False, highlight=False)
        raise typer.Exit(USER_ERROR) from None
    if json:
        typer.echo(msgspec.json.encode(as_json(report, unequal)).decode())
    else:
        show_report(out, report, unequal)
    if unequal:
        raise typer.Exit(DISAGREES)
    if serve is not None:
        notes.print(f"serving {len(report.pool.workers)} replay workers on http://127.0.0.1:{serve}/v1; Ctrl-C ends")
        workers.serve(folder, "127.0.0.1", serve)


def register(app: typer.Typer) -> None:
    """Adds the command `import`."""
    app.command("import", help=HELP)(import_command)


def _check_free(file: Path | None) -> None:
    if file is not None and file.exists():
        raise UserError(f"{file}: exists already; move it away or name another file")


def _write(file: Path, content: str) -> None:
    try:
        file.write_text(content, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{file}: cannot be written: {error.strerror}") from None


def _import(
    settings: Settings, known: Config | None, folder: Path, dataset: str, project: str, learn: bool, notes: Console
) -> tuple[ImportReport, list[str]]:
    """Imports, and compares the database with the files."""
    with database_url(settings, known) as url:
        engine = make_engine(url, application="pointsman-import")
        try:
            with engine.begin() as connection:
                project_id = ensure_project(connection, project)
            with _progress(notes) as on_progress:
                report = import_folder(
                    url, folder, project_id=project_id, name=dataset, learn=learn, on_progress=on_progress
                )
            summary = full_information_summary(engine, project_id, dataset)
        finally:
            engine.dispose()
    return report, differences(report.numbers, summary)


@contextmanager
def _progress(notes: Console) -> Iterator[survey.OnProgress]:
    """A bar for each phase, on a terminal only."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal) as bars:
        tasks = {phase: bars.add_task(phase, total=None, start=False) for phase in ("checking", "outcomes", "queries")}

        def show(progress: survey.Progress) -> None:
            task = tasks[progress.phase]
            bars.start_task(task)
            bars.update(task, completed=progress.done, total=progress.total)

        yield show
