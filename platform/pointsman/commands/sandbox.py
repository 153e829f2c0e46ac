"""`pointsman sandbox`: the simulated workers, traffic for them, and what is known of a world."""

from __future__ import annotations

import json as json_text
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pointsman.commands.client import GatewayClient
from pointsman.commands.edge import FAILED
from pointsman.commands.options import RUNNING, ConfigFile, Json, opened
from pointsman.commands.output import notes, print_json, say
from pointsman.errors import UserError

if TYPE_CHECKING:
    from pointsman.config import Config

HELP = """Try Pointsman on simulated workers: no key, no GPU, no network.

A world is a function of its seed: workers, prices, cards, tasks. What it
measures is Pointsman, not LLMs.

Examples:
  pointsman sandbox show --seed 3
  pointsman sandbox serve --seed 3
  pointsman sandbox drive --requests 200
"""
SERVE_HELP = """Serve a world's workers and the stand-in router LLM, OpenAI-compatible,
until Ctrl-C."""
DRIVE_HELP = """Send a world's tasks to the gateway, check the answers, and give feedback.

Examples:
  pointsman sandbox drive --requests 1000 --seed 3
  pointsman sandbox drive --base-url http://127.0.0.1:8792/v1 --model NAME

Exit codes: 0 every request was answered; 1 some were not.
"""
SHOW_HELP = """Show a world's workers as anyone may know them: prices, windows, cards.
Their skills stay hidden."""

TASKS_HELP = """Print a world's tasks with their verifiers, one JSON object a line, for
`pointsman probe`.

Example:
  pointsman sandbox tasks --split train --n 200 > tasks.jsonl
"""

Seed = Annotated[
    int | None,
    typer.Option("--seed", min=0, help="The world. Default: \\[sandbox] seed of the configuration, else 1."),
]


def serve_command(
    seed: Seed = None,
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int | None, typer.Option("--port", min=1, max=65535, help="Default: the gateway's port + 2.")
    ] = None,
    latency_scale: Annotated[
        float, typer.Option("--latency-scale", min=0, help="1: as slow as real workers; 0: at once.")
    ] = 0.1,
    config: ConfigFile = None,
) -> None:
    from pointsman.sandbox.serve import run

    settings, read = opened(config)
    world, at = seed_of(seed, read), port or settings.sandbox_port
    check_port(host, at)
    say(notes(), f"serving world {world} (a simulation) on http://{host}:{at}/v1; Ctrl-C ends")
    run(world, host, at, latency_scale)


def drive_command(
    requests: Annotated[int, typer.Option("--requests", "-n", min=1, help="How many.")] = 100,
    seed: Seed = None,
    concurrency: Annotated[int, typer.Option("--concurrency", min=1, max=512, help="At a time.")] = 8,
    stream_share: Annotated[float, typer.Option("--stream-share", min=0, max=1, help="Asked as streams.")] = 0.5,
    feedback_share: Annotated[
        float | None,
        typer.Option("--feedback-share", min=0, max=1, help="Given feedback. Default: \\[sandbox] feedback, else 0.5."),
    ] = None,
    split: Annotated[
        Literal["train", "validation", "held_out"], typer.Option("--split", help="Which wordings are asked.")
    ] = "train",
    model: Annotated[str, typer.Option("--model", help="pointsman, or a worker's name.")] = "pointsman",
    base_url: Annotated[
        str | None, typer.Option("--base-url", metavar="URL", help="Ends in /v1. Default: the local gateway.")
    ] = None,
    api_key_env: Annotated[
        str | None, typer.Option("--api-key-env", metavar="NAME", help="The variable with the key for --base-url.")
    ] = None,
    json: Json = False,
    config: ConfigFile = None,
) -> None:
    import asyncio

    from pointsman.commands.sandbox_report import report_json, show_report
    from pointsman.sandbox.drive import drive

    settings, read = opened(config)
    address, key = base_url, settings.secret(api_key_env)
    if address is None:
        gateway = GatewayClient.of(settings, read)
        gateway.get("/readyz")  # says so before the first of many requests fails
        address, key = f"{gateway.address}/v1", key or gateway.key
    share = feedback_share if feedback_share is not None else read.sandbox.feedback if read and read.sandbox else 0.5
    with _progress(requests) as on_progress:
        done = asyncio.run(
            drive(
                address,
                requests,
                seed_of(seed, read),
                api_key=key,
                concurrency=concurrency,
                stream_share=stream_share,
                feedback_share=share,
                split=split,
                model=model,
                on_progress=on_progress,
            )
        )
    if json:
        print_json(report_json(done))
    else:
        show_report(done)
    if done.ok < done.requests:
        raise typer.Exit(FAILED)


def show_command(
    seed: Seed = None,
    cards: Annotated[
        Literal["world", "truthful", "nonsense", "false"],
        typer.Option("--cards", help="world: one or two workers are described wrongly."),
    ] = "world",
    json: Json = False,
    config: ConfigFile = None,
) -> None:
    from pointsman.commands.sandbox_report import show_world, world_json

    _, read = opened(config)
    world = world_json(seed_of(seed, read), cards)
    if json:
        print_json(world)
    else:
        show_world(world)


def tasks_command(
    split: Annotated[
        Literal["train", "validation", "held_out"], typer.Option("--split", help="Which wordings are asked.")
    ] = "train",
    n: Annotated[int, typer.Option("--n", "-n", min=1, help="How many.")] = 100,
    seed: Seed = None,
    config: ConfigFile = None,
) -> None:
    from pointsman.sandbox.tasks import tasks

    _, read = opened(config)
    for task in tasks(seed_of(seed, read), split, n):
        line = {"id": task.id, "prompt": task.prompt, "verifier": task.verifier, "task": task.family, "split": split}
        typer.echo(json_text.dumps(line, ensure_ascii=False))


def register(app: typer.Typer) -> None:
    """Adds `sandbox serve`, `sandbox drive`, `sandbox show` and `sandbox tasks`."""
    group = typer.Typer(help=HELP, no_args_is_help=True)
    group.command("serve", help=SERVE_HELP)(serve_command)
    group.command("drive", help=DRIVE_HELP)(drive_command)
    group.command("show", help=SHOW_HELP)(show_command)
    group.command("tasks", help=TASKS_HELP)(tasks_command)
    app.add_typer(group, name="sandbox", rich_help_panel=RUNNING)


def check_port(host: str, port: int) -> None:
    """Raises `UserError` where the server could not listen."""
    import errno
    import socket

    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError as error:
        why = "address already in use" if error.errno == errno.EADDRINUSE else str(error.strerror).lower()
        raise UserError(f"cannot listen on {host}:{port} ({why}); --port names another port") from None


def seed_of(given: int | None, config: Config | None) -> int:
    """The flag, else the configuration's sandbox, else world 1."""
    if given is not None:
        return given
    return config.sandbox.seed if config and config.sandbox else 1


@contextmanager
def _progress(requests: int) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr, on a terminal only."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = notes()
    columns = (TextColumn("driving"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        task = bars.add_task("driving", total=requests)
        yield lambda sent, total: bars.update(task, completed=sent, total=total)
