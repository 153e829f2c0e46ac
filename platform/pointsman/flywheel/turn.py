"""One look at a turn: what has ended is concluded, what comes next is started.

All of a look is one transaction under the turn's lock, so two processes that look at once do it once. A job is started
in a transaction of its own, before the turn's row says so; it carries a key made of turn and link, by which the next
look finds it where a crash came between the two.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, Engine, select

from pointsman.actions.actor import Actor, record, require
from pointsman.actions.gates import stop_gate
from pointsman.actions.routers import shadow
from pointsman.config import Config
from pointsman.errors import UserError
from pointsman.flywheel import waits
from pointsman.flywheel.links import JOB_LINKS, Conclusion, JobLink, Order
from pointsman.flywheel.store import LinkRecord, Turn, locked, turn_of, write
from pointsman.jobs.kinds import kind_of
from pointsman.jobs.store import Jobs
from pointsman.jobs.view import JobView
from pointsman.promotion.versions import versions_of
from pointsman.tables import JobRow
from pointsman.words import LinkState, TurnState

_jobs = JobRow.__table__  # type: ignore[attr-defined]
NAMES = (*(link.name for link in JOB_LINKS), "shadow", "canary")
"""All links, in their order."""


def advance(engine: Engine, turn_id: str, config: Config, now: datetime) -> Turn | None:
    """Takes the turn as far as it goes without waiting; None where another process has it or it has ended."""
    with engine.begin() as connection:
        turn = locked(connection, turn_id)
        if turn is None or turn.state not in ("running", "proposed"):
            return None
        before = None
        while turn != before and turn.ended_at is None:
            before = turn
            turn = _step(engine, connection, turn, config, now)
        write(connection, turn)
        if turn.ended_at is not None:
            detail = {"state": turn.state, "candidate": turn.candidate_id}
            record(connection, waits.THE_FLYWHEEL, turn.project_id, "turn_end", now, subject=turn.id,
                   reason=turn.reason, detail=detail)  # fmt: skip
        return turn


def stop(engine: Engine, actor: Actor, project: str, turn_id: str, now: datetime, *, reason: str | None = None) -> Turn:
    """Ends a turn: its jobs are cancelled, its gate stops; what serves serves on."""
    require(actor, "operator", "stop a turn of the flywheel")
    with engine.begin() as connection:
        found = turn_of(connection, project, turn_id)
        turn = locked(connection, found.id)
        if turn is None:
            raise UserError(f"turn {turn_id} is being looked at just now; try again")
        if turn.ended_at is not None:
            raise UserError(f"turn {turn_id} is {turn.state} already")
        told = reason or f"stopped by {actor.name}"
        if turn.gate_id is not None:
            stop_gate(connection, actor, project, turn.gate_id, now, reason=told)
        elif _is_shadow(connection, turn.facts.get("candidate")):
            shadow(connection, actor, project, turn.facts["candidate"], now, on=False)
        running = [link for link in turn.links if link.state == "running"]
        for link in running:
            turn = turn.with_link(replace(link, state="refused", reason=told, ended_at=now.isoformat()))
        turn = replace(turn, state="stopped", reason=told, ended_at=now)
        write(connection, turn)
        record(connection, actor, project, "turn_stop", now, subject=turn.id, reason=reason)
    for link in running:
        for job in link.jobs:
            Jobs(engine).cancel(job)
    return turn


def _is_shadow(connection: Connection, version: str | None) -> bool:
    return version is not None and versions_of(connection, [version])[version].state == "shadow"


def _step(engine: Engine, connection: Connection, turn: Turn, config: Config, now: datetime) -> Turn:
    link = turn.links[-1] if turn.links else None
    if link is None or link.state != "running":
        return _begin(engine, connection, turn, config, now, NAMES[len(turn.links)])
    if link.name == "shadow":
        seen = waits.look_at_shadow(connection, turn, link, config, now)
        if isinstance(seen, Conclusion):
            return _conclude(turn, link, seen, now)
        return turn.with_link(replace(link, numbers=seen))
    if link.name == "canary":
        return _canary(connection, turn, link, config, now)
    return _jobs_of(engine, turn, link, now)


def _begin(engine: Engine, connection: Connection, turn: Turn, config: Config, now: datetime, name: str) -> Turn:
    fresh = LinkRecord(name, "running", now.isoformat())
    if name == "shadow":
        begun = waits.begin_shadow(connection, turn, config, now)
        if isinstance(begun, str):
            return _conclude(turn, fresh, Conclusion("skipped", begun), now)
        return turn.with_link(replace(fresh, numbers=begun))
    if name == "canary":
        return turn.with_link(fresh)
    link = _link(name)
    orders = link.orders(turn, config.flywheel)
    if isinstance(orders, str):
        return _conclude(turn, fresh, Conclusion("skipped", orders), now)
    try:
        jobs = tuple(_start(engine, turn, name, number, order) for number, order in enumerate(orders))
    except UserError as error:
        return _conclude(turn, fresh, Conclusion("failed", str(error), ends="failed"), now)
    return turn.with_link(replace(fresh, jobs=jobs))


def _start(engine: Engine, turn: Turn, name: str, number: int, order: Order) -> str:
    key = f"flywheel/{turn.id}/{name}/{number}"
    with engine.connect() as connection:
        c = _jobs.c
        query = select(c.id).where(c.project_id == turn.project_id, c.dedupe_key == key).order_by(c.id.desc()).limit(1)
        found = connection.scalar(query)
    if found is not None:
        return str(found)
    kind_of(order.kind)
    left = None if turn.budget is None or not order.paid else max(turn.budget - turn.cost, Decimal(0))
    job = Jobs(engine).start(
        order.kind, dict(order.params), project_id=turn.project_id, asked_by=waits.THE_FLYWHEEL.name,
        budget=left, dedupe_key=key,
    )  # fmt: skip
    return job.id


def _jobs_of(engine: Engine, turn: Turn, link: LinkRecord, now: datetime) -> Turn:
    """A link whose jobs run: concluded when the last of them has ended."""
    reader = Jobs(engine)
    jobs = [reader.get(job) for job in link.jobs]
    cost = str(sum((job.cost for job in jobs), Decimal(0)))
    if any(not job.finished for job in jobs):
        return turn.with_link(replace(link, cost=cost))
    kind, ended = _link(link.name), replace(link, cost=cost)
    done = [job for job in jobs if job.state == "done"]
    if any(job.state == "cancelled" for job in jobs):
        return _conclude(turn, ended, Conclusion("refused", "a person cancelled its job", ends="stopped"), now)
    if done:
        found = kind.conclude(turn, done)
        whys = [*filter(None, [found.reason]), *(_told(job) for job in jobs if job.state != "done")]
        return _conclude(turn, ended, replace(found, reason="; ".join(whys) or None), now)
    why = "; ".join(_told(job) for job in jobs)
    skipped = all(job.state == "skipped" for job in jobs)
    ends: TurnState | None = None if kind.optional else ("refused" if skipped else "failed")
    return _conclude(turn, ended, Conclusion("skipped" if skipped else "failed", why, ends=ends), now)


def _canary(connection: Connection, turn: Turn, link: LinkRecord, config: Config, now: datetime) -> Turn:
    if turn.gate_id is None:
        if (why := waits.busy(connection, turn)) is not None:
            return turn.with_link(replace(link, reason=why))
        try:
            gate = waits.begin_canary(connection, turn, config, now)
        except UserError as error:
            return _conclude(turn, link, Conclusion("refused", str(error), ends="refused"), now)
        return replace(turn.with_link(replace(link, reason=None)), gate_id=gate)
    state, reason, numbers = waits.look_at_canary(connection, turn)
    seen = replace(link, numbers=numbers, reason=reason)
    if state in ("running", "proposed"):
        return replace(turn.with_link(seen), state=state, reason=reason if state == "proposed" else None)
    how: LinkState = "done" if state == "promoted" else "refused"
    return _conclude(turn, seen, Conclusion(how, reason, numbers, ends=state), now)


def _conclude(turn: Turn, link: LinkRecord, found: Conclusion, now: datetime) -> Turn:
    numbers: dict[str, Any] = dict(found.numbers) or link.numbers
    ended = replace(link, state=found.state, reason=found.reason, numbers=numbers, ended_at=now.isoformat())
    facts = turn.facts | dict(found.facts)
    told = replace(turn.with_link(ended), facts=facts, candidate_id=facts.get("candidate"))
    if found.ends is None:
        return told
    at = "" if found.ends == "promoted" else f"{link.name}: "
    return replace(told, state=found.ends, reason=f"{at}{found.reason}", ended_at=now)


def _link(name: str) -> JobLink:
    return next(link for link in JOB_LINKS if link.name == name)


def _told(job: JobView) -> str:
    method = f" {job.params['method']}" if job.params.get("kind") == "classic" else ""
    return f"{job.kind}{method} {job.state}: {job.reason or 'no reason was given'}"
