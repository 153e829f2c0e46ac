"""`pointsman export labels` and `export router`: beside the exports of the log, in the same group."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from pointsman.commands.asking import DEFAULT_PROJECT, Project
from pointsman.commands.options import ConfigFile, Json, opened
from pointsman.commands.output import out, print_json, say
from pointsman.errors import UserError

if TYPE_CHECKING:
    from pointsman.config import Config, Settings
    from pointsman.jobs.files import ArtifactStore

GROUP = "export"
LABELS_HELP = """A label set: a file for each part, its manifest, a card.

Example: pointsman export labels 0198c2f1 shop-labels --form parquet
"""
ROUTER_HELP = """A trained router: safetensors, JSON, a model card.

One whose backbone was tuned has an adapter for PEFT too.
The card names the data by hash, what the newest `pointsman evaluate` found, with
intervals, and the workers whose outputs were used; --licence says under which
terms they stand.

Example: pointsman export router 7f3a91c2 shop-router \\
  --licence "small=Apache-2.0" --licence "large=provider's terms of 2026-05"
"""
Licence = Annotated[
    list[str] | None,
    typer.Option("--licence", metavar="WORKER=TEXT", help="A worker's licence or terms; repeatable."),
]
Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="A new folder.", show_default=False)]


def register(app: typer.Typer) -> None:
    """Adds the commands to the group `export`."""
    group = next(info.typer_instance for info in app.registered_groups if info.name == GROUP)
    assert group is not None
    group.command("labels", help=LABELS_HELP)(labels_command)
    group.command("router", help=ROUTER_HELP)(router_command)


def labels_command(
    label_set: Annotated[str, typer.Argument(metavar="SET", help="Its id, or how it begins.", show_default=False)],
    folder: Folder,
    form: Annotated[str, typer.Option("--form", help="jsonl or parquet.")] = "jsonl",
    licence: Licence = None,
    project: Project = DEFAULT_PROJECT,
    json: Json = False,
    config: ConfigFile = None,
) -> None:
    from distill.jobs.found import find_labels, read_labels
    from distill.outlet.label_sets import export_labels
    from pointsman.commands.database import log_database
    from pointsman.identity import find_project

    if form not in ("jsonl", "parquet"):
        raise UserError(f"--form: expected jsonl or parquet, got {form!r}")
    settings, read = opened(config)
    with log_database(settings, read) as engine, engine.connect() as connection:
        project_id = find_project(connection, project)
        row = find_labels(connection, project_id, label_set)
        stored = read_labels(connection, _files(settings, read), project_id, label_set)
        written = export_labels(
            connection, stored, row.data_hash, folder, form=cast(Literal["jsonl", "parquet"], form),
            redact=read.log.redact if read else (), stated=_stated(licence),
        )  # fmt: skip
    if json:
        print_json({"folder": str(folder), "label_set": stored.id, **written})
    else:
        said = ", ".join(f"{name.replace('_', ' ')} {number}" for name, number in written.items())
        say(out(), f"{folder}: {said}")


def router_command(
    version: Annotated[str, typer.Argument(metavar="VERSION", help="Its id, or how it begins.", show_default=False)],
    folder: Folder,
    licence: Licence = None,
    project: Project = DEFAULT_PROJECT,
    json: Json = False,
    config: ConfigFile = None,
) -> None:
    from distill.outlet.routers import export_router
    from pointsman.commands.database import log_database
    from pointsman.identity import find_project
    from pointsman.promotion.versions import find_version

    settings, read = opened(config)
    with log_database(settings, read) as engine, engine.connect() as connection:
        project_id = find_project(connection, project)
        found = find_version(connection, version)
        done = export_router(connection, _files(settings, read), project_id, found, folder, _stated(licence))
    if json:
        told = {"folder": str(folder), "router_version": found.id, "files": list(done.files)}
        print_json({**told, "measured": done.measured, "sourced": done.sourced})
        return
    say(out(), f"{folder}: {', '.join(done.files)}")
    if not done.measured:
        say(out(), "nothing was measured of it: `pointsman evaluate` first, and the card will say what", "yellow")


def _files(settings: Settings, config: Config | None) -> ArtifactStore:
    from pointsman.jobs.files import artifact_store

    return artifact_store(settings, config.jobs.artifacts if config else None)


def _stated(licence: list[str] | None) -> dict[str, str]:
    pairs = [text.partition("=") for text in licence or ()]
    if wrong := [name for name, mark, text in pairs if not (name and mark and text)]:
        raise UserError(f"--licence: expected WORKER=TEXT, got {wrong[0]!r}")
    return {name: text for name, _, text in pairs}
