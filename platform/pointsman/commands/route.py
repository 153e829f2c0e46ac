"""`pointsman route`: what the router would decide for a text, without calling a worker."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from pointsman.commands.client import GatewayClient
from pointsman.commands.options import ASKING, ConfigFile, Json, opened
from pointsman.commands.output import cell, milliseconds, out, print_json, say, table, usd
from pointsman.errors import UserError

HELP = """Show which worker a text would go to, and why, without calling it.

The decision is logged as a dry run and never learned from. Expected costs
assume the output that the gateway assumes; they are forecasts, not bills.
TEXT may be - to read it from standard input.

Examples:
  pointsman route "What is 17% of 230 euros?"
  pointsman route - --tag customer < letter.txt
  pointsman route "Sort these: 3, 1, 2" --json
"""


def route_command(
    text: Annotated[str, typer.Argument(help="The request's text, or - for standard input.", show_default=False)],
    model: Annotated[str, typer.Option("--model", help="pointsman, or a worker's name.")] = "pointsman",
    tag: Annotated[
        list[str] | None, typer.Option("--tag", help="A tag of the request, for rules. Repeatable.", show_default=False)
    ] = None,
    json: Json = False,
    config: ConfigFile = None,
) -> None:
    ask = sys.stdin.read() if text == "-" else text
    if not ask.strip():
        raise UserError("TEXT: expected a text to route, got nothing")
    client = GatewayClient.of(*opened(config))
    decided = client.post("/v1/route", request_body(ask, model, tag or [])).content
    if json:
        print_json(decided)
    else:
        _show(decided)


def register(app: typer.Typer) -> None:
    """Adds the command `route`."""
    app.command("route", help=HELP, rich_help_panel=ASKING)(route_command)


def request_body(text: str, model: str, tags: list[str]) -> dict[str, Any]:
    """The chat request that is asked about."""
    body: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": text}]}
    if tags:
        body["metadata"] = {"pointsman": {"tags": tags}}
    return body


def _show(decided: dict[str, Any]) -> None:
    console = out()
    say(console, f"{decided['worker']}  ({reason(decided)})", "bold")
    numbers = ("score", "probability", "expected cost", "latency")
    shown = table("worker", *numbers, "why not", right=numbers)
    scores, probabilities = decided.get("scores") or {}, decided.get("probabilities") or {}
    expected = decided.get("expected") or {}
    eligible = decided.get("eligible") or {}
    for worker in sorted(eligible, key=lambda name: (eligible[name] is not None, -probabilities.get(name, 0.0), name)):
        score, probability, forecast = scores.get(worker), probabilities.get(worker), expected.get(worker) or {}
        style = "bold green" if worker == decided["worker"] else "dim" if eligible[worker] else ""
        shown.add_row(
            cell(worker, style),
            cell(None if score is None else f"{score:.3f}", style),
            cell(None if probability is None else f"{probability:.1%}", style),
            cell(usd(forecast.get("cost_usd")), style),
            cell(milliseconds(forecast.get("latency_ms")), style),
            cell(eligible[worker] or "", style),
        )
    console.print(shown)
    say(console, f"router {router_words(decided.get('router'))}, decision {decided['decision_id']} (dry run)", "dim")


def reason(decided: dict[str, Any]) -> str:
    """Why this worker, in a few words."""
    if decided.get("forced"):
        return f"no choice: {decided['forced']}"
    if decided.get("explored"):
        return "explored: drawn at random, not the router's pick"
    if failed := decided.get("fail_open"):
        return f"after a router failed: {', '.join(map(str, failed))}"
    return "the router's pick"


def router_words(router: Any) -> str:
    """A router's kind or version, however the gateway says it."""
    if isinstance(router, dict):
        return " ".join(str(value) for value in router.values() if value is not None)
    return str(router) if router else "none"
