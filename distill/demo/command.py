"""`pointsman demo`."""

from __future__ import annotations

import json as json_text
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pointsman.commands.options import Json
from pointsman.commands.output import notes, out, say

if TYPE_CHECKING:
    from distill.demo.chapters import Story

HELP = """Watch the flywheel turn: ten minutes, no keys, nothing scripted but the traffic.

On the sandbox (a simulation: its workers are programs): poor cards →
traffic → better cards → labels → a learned router → the gate → promotion → a
worker disappears → recovery. Every step is the code of production, in a home
of its own; open the dashboard beside it.

Examples:
  pointsman demo
  pointsman demo --seed 7 --json        the last line is one JSON object
"""
KEYS = (
    "prompted", "optimised", "learned", "oracle", "learned_vs_prompted_interval", "cpu_ratio", "promoted",
    "recovery_regret", "rows_lost", "seconds",
)  # fmt: skip


def demo_command(
    seed: Annotated[int, typer.Option("--seed", help="The sandbox's world.")] = 5,
    home: Annotated[Path | None, typer.Option("--home", help="Where its data goes. Default: a new folder.")] = None,
    port: Annotated[int, typer.Option("--port", min=1024, max=65_000, help="The gateway's; others follow.")] = 8890,
    json: Json = False,
) -> None:
    from distill.demo import chapters
    from distill.demo.stage import staged

    began = time.monotonic()
    folder = home or Path(tempfile.mkdtemp(prefix="pointsman-demo-"))
    told = notes() if json else out()
    say(told, f"The demo's data goes to {folder}; it starts what `pointsman up` starts.")
    with staged(folder, port, seed, "nonsense") as stage:
        say(told, f"Open {stage.dashboard} beside it.\n")
        story = chapters.Story(stage, lambda line: say(told, f"{time.monotonic() - began:6.0f} s  {line}"))
        for title, chapter in (
            ("1  Poor cards", chapters.poor_cards),
            ("2  Traffic", chapters.traffic),
            ("3  Better cards", chapters.better_cards),
            ("4  The flywheel turns", chapters.first_turn),
            ("5  What choosing costs", _cpu),
            ("6  A worker disappears", chapters.a_worker_leaves),
            ("7  The log", chapters.the_log),
        ):
            say(told, f"\n{title}: {(chapter.__doc__ or '').strip()}", "bold")
            chapter(story)
    figures = {key: story.figures.get(key) for key in KEYS} | story.figures
    figures["seconds"] = round(time.monotonic() - began, 1)
    if json:
        typer.echo(json_text.dumps(figures))
    else:
        _end(figures)


def register(app: typer.Typer) -> None:
    """Adds `demo`."""
    app.command("demo", help=HELP, rich_help_panel="First steps")(demo_command)


def _cpu(story: Story) -> None:
    """A learned router reads the request alone; a router LLM reads the cards, too."""
    from distill.demo.chapters import HELD_OUT
    from distill.demo.cpu import fresh, language_model_seconds, learned_seconds

    texts = fresh(story.stage, HELD_OUT)
    mine = learned_seconds(story.stage, texts, story.learned) if story.learned else None
    theirs = language_model_seconds(story.stage, texts[1:])
    story.figures |= {"learned_cpu_s": mine, "language_model_cpu_s": theirs}
    if mine is None or theirs is None:
        what = (
            "no learned router was trained" if mine is None else "`make install` converts SmolLM2-135M, and was not run"
        )
        story.tell(f"not measured: {what}")
        return
    story.figures["cpu_ratio"] = round(mine / theirs, 4)
    many = len(texts) - 1
    story.tell(f"{many} requests: {mine:.2f} s of CPU, SmolLM2-135M as router LLM {theirs:.2f} s: {mine / theirs:.3f}")


def _end(figures: dict[str, Any]) -> None:
    say(
        out(),
        "\nIn one table (held-out reward; simulated workers, so it compares routers and says nothing of real models)",
    )
    for key in ("prompted", "optimised", "learned", "oracle"):
        if figures.get(key) is not None:
            say(out(), f"  {key:<10} {figures[key]:.3f}")
    say(
        out(),
        f"  promoted by the gate: {'yes' if figures.get('promoted') else 'no'}; {figures['seconds']:.0f} s in all",
    )
