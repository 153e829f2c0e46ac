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

HELP = """Import what was recorded elsewhere: a file of logs, or a data set's folder.

Everything becomes rows of origin `replay`: it is no traffic, and has no
propensity.

FILE with --format becomes rows as its lines are read:

  openai-jsonl  requests and answers as OpenAI's API has them, a pair a
                line; batch files and fine-tuning files too
  scores        what each model scored on each question (RouterBench and
                the like), a row per answer or a column per model
  litellm, langfuse, tensorzero
                their exports (docs/howto/import.md has the columns)

FILE is .jsonl, .csv, .tsv, .json (a list) or .parquet; all but Parquet
also .gz. --map FILE says which columns hold what where they differ. A
line that cannot be taken is kept with its number and the reason in a
file of rejects, and stops no other. What the file lacks is said at the
end. Importing again adds nothing.

FOLDER holds `queries` and `outcomes`, each as .parquet or .jsonl, and may
hold `models.json`:

  queries   needs id, text; may have task, split, asked_at, and others
  outcomes  needs query_id, model, score (0 to 1); may have response,
            input_tokens, output_tokens, cost (USD), latency_ms, repeat
  models    {name: {input_price, output_price, model, size, description}}
            with prices in USD per million tokens

The whole folder is checked first: a fault is reported with file, row and
column, and nothing is written. Then the numbers (each worker's mean
score, best single worker, oracle, random choice) are computed from the
files and from the database, and compared.

Examples:
  pointsman import requests.jsonl --format openai-jsonl --dry-run
  pointsman import observations.jsonl --format langfuse \\
      --scores scores.jsonl --metric helpful
  pointsman import routerbench.csv --format scores --name routerbench
  pointsman import data/llmrouter9
  pointsman import data/routerarena2 --serve 8795 --write-config new.toml

Exit codes: 0 done; 1 lines were rejected, or the database does not agree
with the folder's files; 2 a mistake in what was given.
"""


def import_command(
    path: Annotated[Path, typer.Argument(metavar="FILE|FOLDER", help="What to import.", show_default=False)],
    form: Annotated[
        str | None, typer.Option("--format", metavar="FORMAT", help="What FILE is: see above.", show_default=False)
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="The data set's name in the log. Default: that of FILE or FOLDER.")
    ] = None,
    project: Annotated[str, typer.Option("--project", help="The project it belongs to.")] = DEFAULT_PROJECT,
    learn: Annotated[
        bool,
        typer.Option(
            "--learn/--no-learn", help="Whether anything may be learned from it; --no-learn: replay only, for good."
        ),
    ] = True,
    map_file: Annotated[
        Path | None, typer.Option("--map", metavar="FILE", help="Where the columns stand (TOML or JSON).")
    ] = None,
    scores: Annotated[
        Path | None, typer.Option("--scores", metavar="FILE", help="Scores that stand in a file of their own.")
    ] = None,
    metric: Annotated[str | None, typer.Option("--metric", help="Which of the metrics in --scores.")] = None,
    rejects: Annotated[
        Path | None,
        typer.Option("--rejects", metavar="FILE", help="Where rejected lines go. Default: HOME/imports/NAME.jsonl"),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="FILE: read it, say what it holds, write nothing.")
    ] = False,
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
    if not path.is_dir():
        from pointsman.commands.import_file import FileImport, import_file

        _refuse({"--serve": serve, "--write-config": write_config}, f"{path} is no folder")
        rejected = import_file(
            FileImport(path, form, name, project, learn, map_file, scores, metric, rejects, dry_run), config, json=json
        )
        if rejected:
            raise typer.Exit(DISAGREES)
        return
    given = {"--format": form, "--map": map_file, "--scores": scores, "--metric": metric, "--rejects": rejects}
    _refuse({**given, "--dry-run": dry_run}, f"{path} is a folder")
    _folder(path, name, project, learn, serve, write_config, config, json=json)


def _folder(
    folder: Path,
    name: str | None,
    project: str,
    learn: bool,
    serve: int | None,
    write_config: Path | None,
    config: Path | None,
    *,
    json: bool,
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


def _refuse(options: dict[str, object], why: str) -> None:
    """Ends with a message where one of the options was given."""
    for option, value in options.items():
        if value:
            show_error(UserError(f"{option}: not for this import: {why}"))
            raise typer.Exit(USER_ERROR)


def _check_free(file: Path | None) -> None:
    if file is not None and file.exists():
        raise UserError(f"{file}: exists already; move it away or name another file")


def _write(file: Path, content: str) -> None:
    try:
        file.write_text(content, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{file}: cannot be written: {error.strerror}") from None
