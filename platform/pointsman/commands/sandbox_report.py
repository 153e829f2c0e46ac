"""What `pointsman sandbox` prints of a drive and of a world, as tables or in JSON's values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.padding import Padding
from rich.text import Text

from pointsman.commands.output import cell, notes, out, say, table

if TYPE_CHECKING:
    from pointsman.sandbox.drive import DriveReport
    from pointsman.sandbox.world import CardKind


def report_json(done: DriveReport) -> dict[str, Any]:
    """The driver's report in JSON's values."""
    return {
        "requests": done.requests,
        "ok": done.ok,
        "failed": dict(done.failed),
        "correct": done.correct,
        "interval": list(done.interval) if done.interval else None,
        "picks_by_worker": dict(done.picks_by_worker),
        "feedback": dict(done.feedback),
        "seconds": done.seconds,
    }


def world_json(seed: int, cards: CardKind) -> dict[str, Any]:
    """What anyone may know of a world, in JSON's values."""
    from pointsman.sandbox.world import World

    world = World(seed)
    described = world.cards(cards)
    return {
        "seed": seed,
        "cards": cards,
        "default": world.default,
        "workers": [
            {
                "name": worker.name,
                "price": {"input": f"{worker.price_input:f}", "output": f"{worker.price_output:f}"},
                "context_window": worker.context_window,
                "capabilities": list(worker.capabilities),
                "tags": list(worker.tags),
                "card": described[worker.name],
            }
            for worker in world.workers
        ],
        "mix": dict(world.mix),
    }


def show_report(done: DriveReport) -> None:
    console = out()
    say(console, f"{done.ok} of {done.requests} answered in {done.seconds:.1f} s", "" if not done.failed else "yellow")
    for status, count in sorted(done.failed.items()):
        say(console, f"  {count} failed: {status}", "red")
    if done.correct is not None and done.interval is not None:
        low, high = done.interval
        say(console, f"right answers {done.correct:.1%} (95% interval {low:.1%} to {high:.1%})")
    shown = table("worker", "answered", "share", right=("answered", "share"))
    for worker, count in sorted(done.picks_by_worker.items(), key=lambda item: (-item[1], item[0])):
        shown.add_row(cell(worker), cell(count), cell(f"{count / done.ok:.1%}"))
    if done.ok:
        console.print(shown)
    if done.feedback:
        words = ", ".join(f"{count} with {status}" for status, count in sorted(done.feedback.items()))
        say(console, f"feedback: {sum(done.feedback.values())} given ({words})")
    say(notes(), "a simulation: these figures say nothing about real LLMs", "dim")


def show_world(world: dict[str, Any]) -> None:
    console = out()
    say(console, f"world {world['seed']}, cards {world['cards']}; the default worker is {world['default']}", "bold")
    for worker in world["workers"]:
        price = worker["price"]
        say(console, "")
        say(console, worker["name"], "bold")
        say(
            console,
            f"  ${price['input']} in, ${price['output']} out per million tokens; window {worker['context_window']:,}; "
            + ", ".join(worker["capabilities"]),
            "dim",
        )
        console.print(Padding(Text(worker["card"]), (0, 0, 0, 2)))
    say(console, "")
    mix = sorted(world["mix"].items(), key=lambda item: -item[1])
    say(console, "traffic: " + ", ".join(f"{family} {share:.0%}" for family, share in mix))
