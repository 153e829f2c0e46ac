"""Audits: all eligible workers answer requests of the log, so that routers can be compared on them exactly.

`audit_log` takes requests from the log, `audit_live` those that the gateway drew while it served. Both send a
request's text only where its owner let it be learned from (`drawn`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from sqlalchemy import Engine

from pointsman.config import Config
from pointsman.pool import Pool
from pointsman.probing import runs
from pointsman.probing.asking import Asked, Asks, Nobody, Watch
from pointsman.probing.drawn import Drawn, Reader, draw_from_log, draw_live
from pointsman.probing.judging import JudgedRows
from pointsman.probing.probe import Terms, ask_under


@dataclass(frozen=True)
class Audited:
    """What was drawn, what could not be asked again and why, what came of the rest, and what a judge did with it."""

    drawn: Drawn
    asked: Asked = field(default_factory=Asked)
    judged: JudgedRows | None = None


async def audit_log(
    number: int,
    *,
    config: Config,
    asks: Asks,
    engine: Engine,
    read: Reader,
    project_id: str,
    name: str,
    seed: int = 1,
    terms: Terms | None = None,
    watch: Watch | None = None,
    now: datetime | None = None,
) -> Audited:
    """Asks all eligible workers `number` requests of the log. `name` names the run, which goes on under it."""
    moment = now or datetime.now(UTC)
    run = runs.begin(engine, project_id, "log", name, {"number": number, "seed": seed}, moment)
    pool = Pool.of(config)
    with engine.connect() as connection:
        drawn = draw_from_log(
            connection,
            pool,
            read,
            project_id=project_id,
            number=number,
            since=_oldest(config, moment),
            until=run.started_at,
            seed=seed,
            repeat_share=config.audit.repeat_share,
        )
    asked = await ask_under(run, drawn.subjects, pool, asks, engine, terms or Terms(), watch or Nobody())
    return Audited(drawn, asked)


async def audit_live(
    *,
    config: Config,
    asks: Asks,
    engine: Engine,
    read: Reader,
    project_id: str,
    terms: Terms | None = None,
    watch: Watch | None = None,
    now: datetime | None = None,
) -> Audited:
    """Asks what the gateway has drawn and nobody has asked yet, as far as the day's budget reaches.

    What the budget does not reach waits for the next day. The order is random and the same for all, so that which
    requests are asked first has nothing to do with what they are.
    """
    moment = now or datetime.now(UTC)
    run = runs.begin(engine, project_id, "live", live_name(moment), {}, moment)
    pool, terms = Pool.of(config), terms or Terms()
    left = max(config.audit.budget - run.counted, Decimal(0))
    budget = left if terms.budget is None else min(left, terms.budget)
    with engine.connect() as connection:
        drawn = draw_live(
            connection,
            pool,
            read,
            project_id=project_id,
            since=_oldest(config, moment),
            until=moment,
            repeat_share=config.audit.repeat_share,
        )
    terms = replace(terms, budget=budget)
    return Audited(drawn, await ask_under(run, drawn.subjects, pool, asks, engine, terms, watch or Nobody()))


def live_name(now: datetime) -> str:
    """The run of a day, which has one budget."""
    return f"live-{now:%Y-%m-%d}"


def _oldest(config: Config, now: datetime) -> datetime:
    """Nothing past its retention is read, whether it has been deleted yet or not."""
    return now - timedelta(days=config.log.retention)
