"""`pointsman feedback`: a later word on a decision, through the gateway like any client's."""

from __future__ import annotations

from math import isfinite
from typing import Annotated, Any

import typer

from pointsman.commands.client import GatewayClient
from pointsman.commands.options import ASKING, ConfigFile, Json, opened
from pointsman.commands.output import out, print_json, say
from pointsman.errors import UserError

HELP = """Say how an answer was.

ID is the x-pointsman-decision-id header of an answer, or the id of its
completion; with --episode it is an episode's, and the word counts for all
its decisions.

Examples:
  pointsman feedback 0198c5a2-3f10-7c1e-9a53-0242ac120002 --value true
  pointsman feedback chatcmpl-8f2 --metric score --value 0.8 --comment "right, but long"
  pointsman feedback 0198c5a2-3f10-7c1e-9a53-0242ac120002 --better-worker large
"""


def feedback_command(
    identity: Annotated[str, typer.Argument(metavar="ID", help="Of a decision, a completion or an episode.")],
    metric: Annotated[
        str | None,
        typer.Option(
            "--metric", help="correct, helpful, score, rating, or one of yours. Default: correct, or what fits."
        ),
    ] = None,
    value: Annotated[str | None, typer.Option("--value", help="true, false, or a number.")] = None,
    comment: Annotated[str | None, typer.Option("--comment", help="In words.")] = None,
    better_worker: Annotated[str | None, typer.Option("--better-worker", help="Who should have answered.")] = None,
    source: Annotated[str, typer.Option("--source", help="Who says so: person, verifier, or another.")] = "person",
    rater: Annotated[str | None, typer.Option("--rater", help="The person's name or number.")] = None,
    episode: Annotated[bool, typer.Option("--episode", help="ID is an episode's.")] = False,
    json: Json = False,
    config: ConfigFile = None,
) -> None:
    word = feedback_body(identity, metric, value, comment, better_worker, episode=episode)
    word |= {"source": source} | ({"rater": rater} if rater else {})
    reply = GatewayClient.of(*opened(config)).post("/v1/feedback", word)
    if json:
        print_json(reply.content)
    elif reply.content.get("joined", True):
        say(out(), f"logged: {word['metric']} (feedback {reply.content.get('id')})")
    else:
        say(out(), f"accepted; it is joined when the decision's row arrives (feedback {reply.content.get('id')})")


def register(app: typer.Typer) -> None:
    """Adds the command `feedback`."""
    app.command("feedback", help=HELP, rich_help_panel=ASKING)(feedback_command)


def feedback_body(
    identity: str,
    metric: str | None,
    value: str | None,
    comment: str | None,
    better_worker: str | None,
    *,
    episode: bool = False,
) -> dict[str, Any]:
    """The body of `POST /v1/feedback`; what is not given stays out."""
    from pointsman.ids import is_uuid

    if (value, comment, better_worker) == (None, None, None):
        raise UserError("nothing to say: expected --value, --comment or --better-worker")
    target = "episode_id" if episode else "decision_id" if is_uuid(identity) else "completion_id"
    body: dict[str, Any] = {target: identity, "metric": metric or _metric(value, better_worker)}
    if value is not None:
        body["value"] = read_value(value)
    if comment is not None:
        body["comment"] = comment
    if better_worker is not None:
        body["better_worker"] = better_worker
    return body


def read_value(text: str) -> bool | float:
    """true, false (also yes and no), or a finite number."""
    word = text.strip().lower()
    if word in ("true", "yes"):
        return True
    if word in ("false", "no"):
        return False
    try:
        number = float(word)
    except ValueError:
        number = float("nan")
    if not isfinite(number):
        raise UserError(f"--value: expected true, false or a number, got {text!r}")
    return number


def _metric(value: str | None, better_worker: str | None) -> str:
    """The metric that fits what was given."""
    if value is not None:
        return "correct" if isinstance(read_value(value), bool) else "score"
    return "better_worker" if better_worker is not None else "comment"
