"""The rewards of a time range or of some decisions, computed from the log and written where they are new or changed.

Decisions are read in batches, each with all its outcomes, words and judge's scores, since the rewards of a
full-information row depend on one another. Running it again writes nothing; after late feedback it writes what
changed, while the value that a row closed with stays.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Table, and_, or_, select

from pointsman.queries.scope import DECISION, FEEDBACK, OUTCOME, in_time, of_project
from pointsman.rewards.reward import Ended, Reward, reward, rewards_of_row
from pointsman.rewards.spec import RewardSpec
from pointsman.rewards.store import save_rewards, save_spec
from pointsman.rewards.words import Word, standing
from pointsman.tables import METADATA
from pointsman.words import Origin

JUDGE_SCORE: Table = METADATA.tables["judge_score"]
FULL_INFORMATION: tuple[Origin, ...] = ("audit", "probe", "replay")
BATCH = 500
_COLUMNS = tuple(DECISION.c[name] for name in ("id", "origin", "kind", "chosen", "episode_id", "project_id"))


@dataclass(frozen=True)
class Window:
    """Decisions made from `since` on and before `until`; None leaves that side open."""

    since: datetime | None = None
    until: datetime | None = None


@dataclass
class Computed:
    """What a run did. `unknown` counts the rewards that are NULL, by reason; `poor` those of failures."""

    decisions: int = 0
    rewards: int = 0
    known: int = 0
    written: int = 0
    unknown: Counter[str] = field(default_factory=Counter)
    poor: Counter[str] = field(default_factory=Counter)

    def count(self, rewards: Iterable[Reward]) -> None:
        for one in rewards:
            self.rewards += 1
            self.known += one.value is not None
            if one.reason is not None:
                (self.unknown if one.value is None else self.poor)[one.reason] += 1


@dataclass(frozen=True)
class _Batch:
    """Decisions with what belongs to them, by decision."""

    decisions: Sequence[Any]
    outcomes: dict[UUID, list[Any]]
    words: dict[UUID, list[Word]]
    judged: dict[tuple[UUID, object], tuple[float, datetime]]  # by decision, and call or worker


def compute_rewards(
    connection: Connection,
    spec: RewardSpec,
    window: Window,
    *,
    now: datetime,
    project: str | None = None,
    judge: str | None = None,
    batch: int = BATCH,
) -> Computed:
    """Computes and writes. `judge` is the hash of the judge whose scores count; None: no judge's do.

    Everything happens in the caller's transaction.
    """
    save_spec(connection, spec, now)
    done = Computed()
    for decisions in _pages(connection, window, project, batch):
        _compute(connection, spec, decisions, now, judge, done)
    return done


def compute_decisions(
    connection: Connection, spec: RewardSpec, ids: Sequence[UUID], *, now: datetime, judge: str | None = None
) -> Computed:
    """The same for these decisions, a batch of them; those that never had an arm are left out."""
    save_spec(connection, spec, now)
    done = Computed()
    query = select(*_COLUMNS).where(learnable(), DECISION.c.id.in_(ids)).order_by(DECISION.c.id)
    _compute(connection, spec, connection.execute(query).all(), now, judge, done)
    return done


def learnable() -> ColumnElement[bool]:
    """Decisions that have rewards: traffic that was refused, or answered from a cache, was never decided and has no
    arm to give one to. A team's tree has one, its root's."""
    d = DECISION.c
    drawn = and_(d.origin == "traffic", d.probabilities.is_not(None), d.parent_id.is_(None))
    return or_(d.origin.in_(FULL_INFORMATION), drawn)


def _compute(
    connection: Connection, spec: RewardSpec, decisions: Sequence[Any], now: datetime, judge: str | None, done: Computed
) -> None:
    part = _filled(connection, decisions, judge)
    rows: list[dict[str, Any]] = []
    for decision in part.decisions:
        outcomes = part.outcomes.get(decision.id, [])
        made = _rewards(decision, outcomes, part, spec)
        done.count(made)
        for outcome, one in zip(outcomes, made, strict=True):
            closing = _closing(decision, outcome, part, spec) if _has_closed(decision, outcome, spec, now) else None
            rows.append(_row(spec, decision, outcome, one, closing, now))
    done.decisions += len(part.decisions)
    done.written += save_rewards(connection, rows)


def _rewards(decision: Any, outcomes: Sequence[Any], part: _Batch, spec: RewardSpec) -> list[Reward]:
    """Of one decision's outcomes, from all that is known by now."""
    ended = [_ended(decision, outcome, part, None) for outcome in outcomes]
    if decision.origin in FULL_INFORMATION:
        return rewards_of_row(ended, spec)
    words = standing(part.words.get(decision.id, ()))
    return [_of_arm(decision, reward(one, words, spec)) for one in ended]


def _of_arm(decision: Any, made: Reward) -> Reward:
    """A team's answer is its pattern's reward, and says nothing of the skill of the worker that had the last word."""
    return replace(made, skill=None) if decision.kind == "pattern" else made


def _closing(decision: Any, outcome: Any, part: _Batch, spec: RewardSpec) -> Reward:
    """The reward from what was known when the row closed."""
    at = outcome.ended_at + timedelta(seconds=spec.deadline)
    return reward(_ended(decision, outcome, part, at), standing(part.words.get(decision.id, ()), at), spec)


def _has_closed(decision: Any, outcome: Any, spec: RewardSpec, now: datetime) -> bool:
    """Full-information rows never close: no gate reads them, and a judge may come later."""
    return decision.origin not in FULL_INFORMATION and now >= outcome.ended_at + timedelta(seconds=spec.deadline)


def _ended(decision: Any, outcome: Any, part: _Batch, at: datetime | None) -> Ended:
    full = outcome.call_id is not None
    # A pattern is no worker: whoever answered did so as its team, and took nobody's place.
    intended = outcome.worker if full or decision.kind == "pattern" else decision.chosen
    judged = part.judged.get((decision.id, outcome.call_id if full else outcome.worker))
    return Ended(
        status=outcome.status,
        arm=intended,
        worker=outcome.worker,
        ended_at=outcome.ended_at,
        score=outcome.score,
        judge=judged[0] if judged is not None and (at is None or judged[1] <= at) else None,
        cost=outcome.cost,
        seconds=None if outcome.latency_ms is None else outcome.latency_ms / 1000,
    )


def _row(
    spec: RewardSpec, decision: Any, outcome: Any, made: Reward, closing: Reward | None, now: datetime
) -> dict[str, Any]:
    full = outcome.call_id is not None
    return {
        "spec_hash": spec.hash,
        "outcome_id": outcome.id,
        "project_id": outcome.project_id,
        "decision_id": decision.id,
        "call_id": outcome.call_id,
        "origin": decision.origin,
        "arm": outcome.worker if full else decision.chosen,
        "worker": outcome.worker,
        "value": made.value,
        "skill": made.skill,
        "source": made.source,
        "reason": made.reason,
        "terms": made.terms.to_json(),
        "closed": closing is not None,
        "closed_value": closing.value if closing is not None else None,
        "computed_at": now,
    }


def _pages(connection: Connection, window: Window, project: str | None, size: int) -> Iterator[Sequence[Any]]:
    d = DECISION.c
    after: UUID | None = None
    while True:
        query = select(*_COLUMNS).where(
            learnable(), of_project(DECISION, project), in_time(d.id, window.since, window.until)
        )
        if after is not None:
            query = query.where(d.id > after)
        decisions = connection.execute(query.order_by(d.id).limit(size)).all()
        if not decisions:
            return
        after = decisions[-1].id
        yield decisions


def _filled(connection: Connection, decisions: Sequence[Any], judge: str | None) -> _Batch:
    ids = [decision.id for decision in decisions]
    outcomes: dict[UUID, list[Any]] = defaultdict(list)
    found = select(OUTCOME).where(OUTCOME.c.decision_id.in_(ids)).order_by(OUTCOME.c.id)
    for outcome in connection.execute(found):
        outcomes[outcome.decision_id].append(outcome)
    judged: dict[tuple[UUID, object], tuple[float, datetime]] = {}
    if judge is not None:
        j = JUDGE_SCORE.c
        known = and_(j.judge_hash == judge, j.decision_id.in_(ids), j.score.is_not(None))
        for row in connection.execute(select(JUDGE_SCORE).where(known)):
            judged[row.decision_id, row.call_id] = judged[row.decision_id, row.worker] = (row.score, row.created_at)
    return _Batch(decisions, outcomes, _words(connection, decisions), judged)


def _words(connection: Connection, decisions: Sequence[Any]) -> dict[UUID, list[Word]]:
    """Words by decision. One that was given to an episode is of all its decisions; projects never mix."""
    traffic = [decision for decision in decisions if decision.origin not in FULL_INFORMATION]
    f = FEEDBACK.c
    by_target: dict[tuple[UUID, UUID], list[Word]] = defaultdict(list)
    episodes = {decision.episode_id for decision in traffic if decision.episode_id is not None}
    direct = select(FEEDBACK).where(f.decision_id.in_([decision.id for decision in traffic]))
    of_episode = select(FEEDBACK).where(f.decision_id.is_(None), f.episode_id.in_(episodes))
    for query in (direct, of_episode):
        for row in connection.execute(query):
            by_target[row.project_id, row.decision_id or row.episode_id].append(word_of(row))
    return {
        decision.id: by_target.get((decision.project_id, decision.id), [])
        + by_target.get((decision.project_id, decision.episode_id), [])
        for decision in traffic
    }


def word_of(row: Any) -> Word:
    """A row of `feedback`."""
    return Word(
        id=str(row.id),
        metric=row.metric,
        value=row.value,
        source=row.source,
        given_at=row.created_at,
        rater=row.rater,
        key=str(row.key_id) if row.key_id else None,
        amends=str(row.amends) if row.amends else None,
        retracted=row.retracted,
    )
