"""`pointsman jobs kinds` and `start`: what there is, and its parameters from the dataclass that defines them."""

from __future__ import annotations

import json as json_text
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pointsman.commands.database import log_database
from pointsman.commands.jobs_text import as_json, show_estimate
from pointsman.commands.options import ConfigFile, Json, opened
from pointsman.commands.output import cell, notes, out, print_json, say, table
from pointsman.errors import UserError

if TYPE_CHECKING:
    from pointsman.jobs.kinds import JobKind

START_HELP = """Start a job, and print its id.

What it will probably take is printed first. An unfinished job under the
same --dedupe key of the same project is returned in place of a new one.

Examples:
  pointsman jobs start self-test
  pointsman jobs start self-test --set steps=50 --set load=hash --watch
  pointsman jobs start retention --params '{"days": 30}' --priority 10
  ID=$(pointsman jobs start self-test)          the id alone goes to standard output
"""


def kinds_command(
    name: Annotated[
        str | None, typer.Argument(metavar="[KIND]", help="Show this kind's parameters.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    from pointsman.jobs.kinds import KINDS, kind_of

    kinds = list(KINDS.values()) if name is None else [kind_of(name)]
    if json:
        print_json([_described(kind) for kind in kinds])
        return
    for kind in kinds:
        say(out(), f"{kind.name}  {kind.summary}", "bold" if name else "")
        needs = f"; needs pip install 'pointsman[{kind.extra}]'" if kind.extra else ""
        say(out(), f"    queue {kind.queue}{needs}", "dim")
    if name is not None:
        _show_options(kinds[0])


def start_command(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="From `pointsman jobs kinds`.")],
    params: Annotated[
        str | None, typer.Option("--params", metavar="JSON", help="Parameters, a JSON object.", show_default=False)
    ] = None,
    given: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="One parameter. Repeatable.", show_default=False),
    ] = None,
    project: Annotated[str, typer.Option("--project", help="Its project; made where there is none.")] = "default",
    priority: Annotated[int, typer.Option("--priority", help="Higher runs first; from -1000 to 1000.")] = 0,
    budget: Annotated[
        str | None, typer.Option("--budget", metavar="USD", help="The most it may spend.", show_default=False)
    ] = None,
    dedupe: Annotated[
        str | None, typer.Option("--dedupe", metavar="KEY", help="One unfinished job a key.", show_default=False)
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Stay until it ends.")] = False,
    json: Json = False,
    config: ConfigFile = None,
) -> None:
    from pointsman.commands.jobs_watch import watch_job
    from pointsman.identity import ensure_project
    from pointsman.jobs.facts import read_facts
    from pointsman.jobs.kinds import estimate
    from pointsman.jobs.store import Jobs

    raw = read_params(kind, params, given or ())
    limit = read_budget(budget)
    settings, read = opened(config)
    with log_database(settings, read) as engine:
        show_estimate(estimate(kind, raw, read_facts(engine, len(read.workers) if read else 0)))
        with engine.begin() as connection:
            project_id = ensure_project(connection, project)
        job = Jobs(engine).start(
            kind, raw, project_id=project_id, asked_by="command line", budget=limit, dedupe_key=dedupe,
            priority=priority,
        )  # fmt: skip
        if watch:
            watch_job(Jobs(engine), job.id, as_json_value=json)
            return
    if json:
        print_json(as_json(job))
        return
    typer.echo(job.id)
    say(notes(), f"queued; `pointsman jobs watch {job.id}` follows it", "dim")


def read_params(kind: str, text: str | None, given: Sequence[str]) -> dict[str, Any]:
    """`--params` and, over it, each `--set`; checked as the job's own parameters are."""
    from pointsman.jobs.kinds import kind_of, parse_params
    from pointsman.jobs.params import from_text

    cls = kind_of(kind).params
    raw = _object(text)
    for pair in given:
        name, equals, value = pair.partition("=")
        if not equals:
            raise UserError(f"--set: expected KEY=VALUE, got {pair!r}")
        raw[name.strip().replace("-", "_")] = from_text(cls, name.strip().replace("-", "_"), value)
    parse_params(kind, raw)
    return raw


def read_budget(text: str | None) -> Decimal | None:
    """An amount of USD."""
    try:
        amount = None if text is None else Decimal(text.removeprefix("$"))
    except InvalidOperation:
        amount = Decimal("NaN")
    if amount is not None and not amount.is_finite():
        raise UserError(f"--budget: expected an amount of USD, such as 5 or 0.50, got {text!r}")
    return amount


def _object(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        value = json_text.loads(text)
    except ValueError as error:
        raise UserError(f"--params: not JSON: {error}") from None
    if not isinstance(value, dict):
        raise UserError(f"--params: expected a JSON object, got {text[:60]!r}")
    return value


def _described(kind: JobKind) -> dict[str, Any]:
    from dataclasses import asdict

    from pointsman.jobs.params import options

    return {
        "kind": kind.name,
        "summary": kind.summary,
        "queue": kind.queue,
        "stages": kind.stages,
        "extra": kind.extra,
        "params": [asdict(one) for one in options(kind.params)],
    }


def _show_options(kind: JobKind) -> None:
    from pointsman.jobs.params import options

    shown = table("parameter", "expects", "default", "meaning")
    for one in options(kind.params):
        default = "required" if one.required else json_text.dumps(one.default, default=list)
        shown.add_row(cell(one.name), cell(one.type), cell(default), cell(one.help))
    out().print(shown)
