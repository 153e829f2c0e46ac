"""What the distillery adds to the command line: `labels`, `train`, `evolve`, `evaluate`, `router-server`.

The first four start a job and, unless `--job` is given, run it here to its end; their options are the fields of the
job's parameters (`pointsman.jobs.learning`), read from there.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pointsman.commands.options import ConfigFile
from pointsman.jobs.kind import JobKind
from pointsman.jobs.learning import LEARNING
from pointsman.jobs.params import Option, from_text, options

if TYPE_CHECKING:
    from pointsman.config import Settings

PANEL = "Learn"
_EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "labels": (
        "pointsman labels",
        "pointsman labels --origins replay --run llmrouter9 --split given",
        "pointsman labels --toy --encoder text",
    ),
    "train": (
        "pointsman train --labels 0198c2f1",
        "pointsman train --labels 0198c2f1 --kind learned --backbone minilm",
    ),
    "evolve": (
        "pointsman evolve --router 7f3a91c2 --labels 0198c2f1",
        "pointsman evolve --episodes sandbox --world 7 --generations 20",
    ),
    "evaluate": ("pointsman evaluate --labels 0198c2f1", "pointsman evaluate --labels 0198c2f1 --routers 7f3a91c2"),
}
_FIRST_LINES: Mapping[str, str] = {
    "labels": "Make a label set of the log: how good each worker would be for each request, and how sure that is.",
    "train": "Train a router on a label set, and write it as a candidate. Nothing serves by itself.",
    "evolve": "Search on from a learned router by evolution, on the reward of whole episodes.",
    "evaluate": "Compare routers on rows that no training saw: values, gaps, intervals, ablations, plots.",
}


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    for kind in LEARNING:
        app.command(kind.name, help=_help(kind), rich_help_panel=PANEL)(_command(kind))
    app.command("router-server", rich_help_panel="Run")(router_server_command)


def router_server_command(config: ConfigFile = None) -> None:
    """Serve learned routers to the gateways of this machine, until Ctrl-C.

    Listens on `router.sock` in the data folder. Gateways whose learned version serves ask it, and go on down their
    chain while it is away. What serves is loaded at the start, other versions when first asked for.

    Example: pointsman router-server
    """
    from distill.server.models import Models
    from distill.server.serve import run
    from harness.routing.learned import socket_of
    from pointsman.commands.database import log_database
    from pointsman.commands.options import opened
    from pointsman.commands.output import notes, say
    from pointsman.jobs.files import artifact_store
    from pointsman.logs import configure_logging

    configure_logging()
    settings, read = opened(config)
    files = artifact_store(settings, read.jobs.artifacts if read is not None else None)
    with log_database(settings, read) as engine:
        models = Models(engine, files, settings.home / "cache" / "routers")
        loaded = models.preload()
        socket = socket_of(settings.home)
        say(notes(), f"{len(loaded)} learned versions are loaded; listening on {socket}", "dim")
        run(socket, models.scores)


def _help(kind: JobKind) -> str:
    examples = "\n".join(f"  {line}" for line in _EXAMPLES[kind.name])
    return (
        f"{_FIRST_LINES[kind.name]}\n\nRuns here to its end; with --job a worker does, and `pointsman jobs` follows it."
        f"\n\nExamples:\n{examples}\n\nExit codes: 0 done; 1 it failed; 2 a mistake in what was given."
    )


def _command(kind: JobKind) -> Callable[..., None]:
    """A command whose options are the kind's parameters, and the four that all share."""
    found = options(kind.params)

    def command(**given: Any) -> None:
        shared = {name: given.pop(name) for name in ("project", "job", "json", "config")}
        raw = {name: _raw(kind, name, value) for name, value in given.items() if value is not None}
        _start(kind, raw, **shared)

    named = [_parameter(one) for one in found]
    command.__signature__ = inspect.Signature([*named, *_SHARED])  # type: ignore[attr-defined]
    command.__name__ = f"{kind.name}_command"
    return command


def _raw(kind: JobKind, name: str, value: Any) -> Any:
    return value if isinstance(value, bool) else from_text(kind.params, name, value)


def _parameter(one: Option) -> inspect.Parameter:
    """One option. Its text is checked where a job's parameters are."""
    flag = one.type.startswith("true or false")
    kind = bool if flag else str
    words = f"{one.help}; expects {one.type}" if not flag else one.help
    told = "" if one.required or one.default in (None, ()) else f" (default: {_shown(one.default)})"
    name = one.name.replace("_", "-")
    declared = f"--{name}/--no-{name}" if flag else f"--{name}"
    metavar = None if flag else "TEXT" if one.choices is None else "WORD"
    option = typer.Option(declared, help=words[:1].upper() + words[1:] + told, metavar=metavar, show_default=False)
    annotation = Annotated[kind if one.required else kind | None, option]  # type: ignore[valid-type]
    default = inspect.Parameter.empty if one.required else None
    return inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _shown(value: Any) -> str:
    return (
        ",".join(value) if isinstance(value, tuple) else str(value).lower() if isinstance(value, bool) else str(value)
    )


def _shared() -> list[inspect.Parameter]:
    from pointsman.commands.asking import DEFAULT_PROJECT, AsJob, Project
    from pointsman.commands.options import Json

    kinds: tuple[tuple[str, Any, Any], ...] = (
        ("project", Project, DEFAULT_PROJECT),
        ("job", AsJob, False),
        ("json", Json, False),
        ("config", ConfigFile, None),
    )
    return [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
        for name, annotation, default in kinds
    ]


_SHARED = _shared()


def _start(kind: JobKind, raw: dict[str, Any], project: str, job: bool, json: bool, config: Path | None) -> None:
    from pointsman.commands.asking import start_job
    from pointsman.commands.database import log_database
    from pointsman.commands.options import opened
    from pointsman.identity import ensure_project
    from pointsman.jobs.kinds import parse_params
    from pointsman.jobs.store import Jobs

    settings, read = opened(config)
    parse_params(kind.name, raw)
    if job and read is not None:
        start_job(settings, read, kind.name, raw, project, None)
        return
    with log_database(settings, read) as engine:
        with engine.begin() as connection:
            project_id = ensure_project(connection, project)
        jobs = Jobs(engine)
        begun = jobs.start(kind.name, raw, project_id=project_id, asked_by="command line")
        if job:
            typer.echo(begun.id)
            return
        _run_here(jobs, settings, begun.id, engine.url.render_as_string(hide_password=False), json=json)


def _run_here(jobs: Any, settings: Settings, job_id: str, url: str, *, json: bool) -> None:
    """Runs the job in a child of this process, and tells how it goes. Ctrl-C cancels it."""
    import threading

    from distill.telling import lines
    from pointsman.commands.edge import FAILED
    from pointsman.commands.output import notes, out, print_json, say
    from pointsman.jobs.runner import Runner
    from pointsman.jobs.workplace import Workplace, new_owner

    runner = Runner(Workplace.read(settings, database_url=url), new_owner())
    thread = threading.Thread(target=runner.run, args=(job_id,), daemon=True)
    thread.start()
    said = 0
    try:
        while thread.is_alive():
            thread.join(0.5)
            for line in jobs.logs(job_id)[said:]:
                say(notes(), line.message, "dim")
                said += 1
    except KeyboardInterrupt:
        jobs.cancel(job_id)
        thread.join()
    runner.close()
    ended = jobs.get(job_id)
    if ended.state != "done":
        say(notes(), f"{ended.state}: {ended.reason}", "red")
        raise typer.Exit(FAILED)
    if json:
        print_json({"job": job_id, **(ended.result or {})})
        return
    for line in lines(ended.result or {}):
        say(out(), line)
