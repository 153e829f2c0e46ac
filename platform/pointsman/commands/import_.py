"""`pointsman import`: a recorded data set into the log, its numbers, and its models as replay workers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pointsman.commands.edge import USER_ERROR, show_error
from pointsman.commands.options import DATA, ConfigFile, Json, opened
from pointsman.commands.output import notes, out, print_json, say
from pointsman.errors import UserError

DEFAULT_PROJECT = "default"
DISAGREES = 1
REPLAY_PORT_OFFSET = 4  # after gateway, dashboard, sandbox and broker

HELP = """Import recorded queries and outcomes as full-information rows (origin
`replay`).

FOLDER holds `queries` and `outcomes`, each as .parquet or .jsonl, and may
hold `models.json`:

  queries   needs id, text; may have task, split, asked_at, and others
  outcomes  needs query_id, model, score (0 to 1); may have response,
            input_tokens, output_tokens, cost (USD), latency_ms, repeat
  models    {name: {input_price, output_price, model, size, description}}
            with prices in USD per million tokens

The whole folder is checked first: a fault is reported with file, row and
column, and nothing is written. Importing a data set again adds nothing.
Then the numbers (each worker's mean score, best single worker, oracle,
random choice) are computed from the files and from the database, and
compared.

Examples:
  pointsman import data/llmrouter9
  pointsman import data/routerarena2 --no-learn --json
  pointsman import data/routerarena2 --serve 8795 --write-config new.toml
  pointsman serve --config new.toml      (in another terminal)

Exit codes: 0 done; 1 the database does not agree with the files; 2 a
mistake in what was given.
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
    json: Json = False,
    config: ConfigFile = None,
) -> None:
    from pointsman.commands.import_report import as_json, show_report
    from pointsman.commands.import_run import import_and_compare
    from pointsman.replay import workers
    from pointsman.replay.configuration import pool_toml

    try:
        settings, known = opened(config)
        dataset = name or folder.resolve().name
        _check_free(write_config)
        report, unequal = import_and_compare(settings, known, folder, dataset, project, learn, notes())
        if write_config is not None:
            port = serve or settings.port + REPLAY_PORT_OFFSET
            _write(write_config, pool_toml(report.pool.workers, port, dataset=dataset))
            say(notes(), f"wrote {write_config}: replay workers at http://127.0.0.1:{port}/v1")
    except UserError as error:
        show_error(error)
        raise typer.Exit(USER_ERROR) from None
    if json:
        print_json(as_json(report, unequal))
    else:
        show_report(out(), report, unequal)
    if unequal:
        raise typer.Exit(DISAGREES)
    if serve is not None:
        say(notes(), f"serving {len(report.pool.workers)} replay workers on http://127.0.0.1:{serve}/v1; Ctrl-C ends")
        workers.serve(folder, "127.0.0.1", serve)


def register(app: typer.Typer) -> None:
    """Adds the command `import`."""
    app.command("import", help=HELP, rich_help_panel=DATA)(import_command)


def _check_free(file: Path | None) -> None:
    if file is not None and file.exists():
        raise UserError(f"{file}: exists already; move it away or name another file")


def _write(file: Path, content: str) -> None:
    try:
        file.write_text(content, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{file}: cannot be written: {error.strerror}") from None
