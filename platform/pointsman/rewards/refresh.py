"""Keeps rewards up with the log: what has come in, what has closed, what got a word or a judge's score since.

A look finds the decisions that need computing and computes those alone; nobody needs to know what they are from. What
comes very late (a journal that waited for Postgres, an audit of an old request, recorded answers) is found by a sweep
over everything that is kept, once an hour. A spec that is new, which is what a changed one is, begins with a sweep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Engine, Select, Table, and_, func, or_, select, union
from sqlalchemy.dialects.postgresql import insert

from pointsman.config import Config
from pointsman.config.model import LogConfig
from pointsman.ids import lowest_id
from pointsman.judge.judging import JudgeSpec
from pointsman.pool import Pool
from pointsman.queries.scope import DECISION, FEEDBACK, OUTCOME, in_time
from pointsman.rewards.compute import BATCH, JUDGE_SCORE, compute_decisions, learnable
from pointsman.rewards.reward import FAILED
from pointsman.rewards.spec import RewardSpec
from pointsman.rewards.store import REWARD
from pointsman.tables import METADATA

MARK: Table = METADATA.tables["reward_mark"]
OVERLAP = timedelta(minutes=10)
"""A row may reach Postgres so long after its id was made, or its moment; what is later waits for a sweep."""
SWEEP = timedelta(hours=1)
PAGE = 20_000


@dataclass(frozen=True)
class Refreshed:
    """What a look did: decisions that it computed, rewards that are new or have changed."""

    decisions: int = 0
    written: int = 0


@dataclass(frozen=True)
class Need:
    """Which decisions need computing under a spec. `since`: what came before is known; `oldest`: what is kept."""

    spec: RewardSpec
    now: datetime
    since: datetime
    oldest: datetime
    judge: str | None = None

    @classmethod
    def of(
        cls,
        connection: Connection,
        spec: RewardSpec,
        now: datetime,
        kept: timedelta,
        judge: str | None = None,
        *,
        overlap: timedelta | None = OVERLAP,
    ) -> Need:
        """`overlap`: how long before the last look it looks again; None: at everything that is kept."""
        mark, oldest = read_mark(connection, spec), now - kept
        since = oldest if mark is None or overlap is None else max(mark.seen_until - overlap, oldest)
        return cls(spec, now, since, oldest, judge)

    def decisions(self) -> Select[Any]:
        """Their ids, in order."""
        parts = [self._new(), self._closing(), self._spoken(), self._spoken_of_episode()]
        if self.judge is not None:
            parts.append(self._judged())
        ids = union(*parts).subquery()
        return select(ids.c.id).order_by(ids.c.id)

    def _new(self) -> Select[Any]:
        """Outcomes without a reward; those that were given up and have ended after all."""
        d, o, r = DECISION.c, OUTCOME.c, REWARD.c
        mine = and_(r.spec_hash == self.spec.hash, r.outcome_id == o.id)
        joined = OUTCOME.join(DECISION, d.id == o.decision_id).outerjoin(REWARD, mine)
        failed = and_(o.status.in_(FAILED), r.reason.is_distinct_from(o.status))
        missing = or_(r.outcome_id.is_(None), r.worker.is_distinct_from(o.worker), failed)
        return select(d.id).select_from(joined).where(learnable(), in_time(o.id, self.since, None), missing)

    def _closing(self) -> Select[Any]:
        o, r = OUTCOME.c, REWARD.c
        joined = REWARD.join(OUTCOME, o.id == r.outcome_id)
        due = o.ended_at <= self.now - timedelta(seconds=self.spec.deadline)
        return select(r.decision_id.label("id")).select_from(joined).where(
            r.spec_hash == self.spec.hash, ~r.closed, r.origin == "traffic", in_time(o.id, self.oldest, None), due
        )  # fmt: skip

    def _spoken(self) -> Select[Any]:
        f = FEEDBACK.c
        return select(f.decision_id.label("id")).where(
            in_time(f.id, self.since, None), f.decision_id.is_not(None), in_time(f.decision_id, self.oldest, None)
        )  # fmt: skip

    def _spoken_of_episode(self) -> Select[Any]:
        d, f = DECISION.c, FEEDBACK.c
        joined = FEEDBACK.join(DECISION, and_(d.episode_id == f.episode_id, d.project_id == f.project_id))
        return select(d.id).select_from(joined).where(
            in_time(f.id, self.since, None), f.decision_id.is_(None), in_time(d.id, self.oldest, None)
        )  # fmt: skip

    def _judged(self) -> Select[Any]:
        j = JUDGE_SCORE.c
        return select(j.decision_id.label("id")).where(j.judge_hash == self.judge, j.created_at >= self.since)


def refresh(
    engine: Engine,
    spec: RewardSpec,
    now: datetime,
    *,
    kept: timedelta,
    judge: str | None = None,
    sweep: bool = False,
    progress: Callable[[int], None] = lambda done: None,
) -> Refreshed:
    """Computes what needs it, of all projects, a transaction for each batch; `kept` is how long the log is kept.

    Two at once do the same work twice and write the same. `progress` is told of the decisions done, and may raise.
    """
    with engine.connect() as connection:
        swept = sweep or read_mark(connection, spec) is None
        need = Need.of(connection, spec, now, kept, judge, overlap=None if swept else OVERLAP)
    decisions = written = 0
    for ids in _batches(engine, need):
        with engine.begin() as connection:
            done = compute_decisions(connection, spec, ids, now=now, judge=judge)
        decisions, written = decisions + done.decisions, written + done.written
        progress(decisions)
    with engine.begin() as connection:
        _set_mark(connection, spec, now, swept)
    return Refreshed(decisions, written)


def judge_of(config: Config | None) -> str | None:
    """The hash of the judge whose scores count."""
    spec = None if config is None else JudgeSpec.of(config, Pool.of(config))
    return None if spec is None else spec.hash


def kept(config: Config | None) -> timedelta:
    """How far back the log goes."""
    return timedelta(days=(config.log if config is not None else LogConfig()).retention)


def waiting(connection: Connection, need: Need, limit: int) -> int:
    """How many decisions need computing, counted up to `limit`."""
    some = need.decisions().limit(limit).subquery()
    return int(connection.scalar(select(func.count()).select_from(some)) or 0)


def sweep_due(connection: Connection, spec: RewardSpec, now: datetime) -> bool:
    """Whether the log is to be looked through: once an hour, and for a spec that is new, if there is a log."""
    mark = read_mark(connection, spec)
    if mark is not None and now - mark.swept_at < SWEEP:
        return False
    return connection.scalar(select(OUTCOME.c.id).limit(1)) is not None


def read_mark(connection: Connection, spec: RewardSpec) -> Any | None:
    return connection.execute(select(MARK).where(MARK.c.spec_hash == spec.hash)).first()


def _batches(engine: Engine, need: Need) -> Iterator[Sequence[UUID]]:
    after = UUID(lowest_id(need.oldest))
    while True:
        with engine.connect() as connection:
            found = need.decisions().subquery()
            page = select(found.c.id).where(found.c.id > after).order_by(found.c.id).limit(PAGE)
            ids = list(connection.execute(page).scalars())
        if not ids:
            return
        for start in range(0, len(ids), BATCH):
            yield ids[start : start + BATCH]
        after = ids[-1]


def _set_mark(connection: Connection, spec: RewardSpec, now: datetime, swept: bool) -> None:
    made = insert(MARK).values(spec_hash=spec.hash, seen_until=now, swept_at=now)
    changed: dict[str, Any] = {"seen_until": func.greatest(MARK.c.seen_until, now)}
    if swept:
        changed["swept_at"] = func.greatest(MARK.c.swept_at, now)
    connection.execute(made.on_conflict_do_update(index_elements=["spec_hash"], set_=changed))
