"""A gate's episodes from the log, in order of assignment, each with its utility as it was known when it closed.

The row of an episode is its first decision in which the routers' picks differed and an arm was drawn. It closes
`deadline` seconds after that decision's outcome (after a while, where none ever came). Its utility is the mean of
the rewards of the episode's decisions from there on, as far as they had ended and were known by then; where nothing
was known, the timeout's value stands for it. Everything here is a function of the log and the gate's terms, so that
anybody can compute it again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Table, not_, select
from sqlalchemy.dialects.postgresql import distinct_on

from pointsman.promotion.guards import Guards
from pointsman.promotion.register import GATE_ROW
from pointsman.queries.scope import DECISION, FEEDBACK, OUTCOME, REQUEST
from pointsman.rewards.compute import word_of
from pointsman.rewards.reward import Ended, reward
from pointsman.rewards.spec import RewardSpec
from pointsman.rewards.words import Word, standing
from pointsman.tables import METADATA
from pointsman.words import GateArm

JUDGE_SCORE: Table = METADATA.tables["judge_score"]
LOST = timedelta(minutes=15)
"""An outcome that has not come so long after its decision never will; ours: above the longest default timeout."""


@dataclass(frozen=True)
class Drawn:
    """A decision in which an arm was drawn, and its outcome where there is one."""

    decision: UUID
    episode: UUID
    arm: GateArm
    rho: float
    chosen: str
    assigned_at: datetime
    outcome: Any

    def closes(self, deadline: timedelta) -> datetime:
        ended: datetime = self.outcome.ended_at if self.outcome is not None else self.assigned_at + LOST
        return ended + deadline


@dataclass(frozen=True)
class Closed:
    """A row of a gate that may be taken. `known` is false where the timeout's value stands for its utility.

    `keys` asked in the episode, or said a word on it.
    """

    drawn: Drawn
    utility: float
    known: bool
    observed: Mapping[str, float]
    keys: tuple[str, ...]
    closed_at: datetime


@dataclass(frozen=True)
class Rules:
    """What turns an episode into a number; all of it stands in the gate's row."""

    spec: RewardSpec
    deadline: timedelta
    timeout_value: float
    guards: Guards
    judge: str | None = None


def waiting(connection: Connection, gate: Any, limit: int) -> list[Drawn]:
    """Episodes of the gate that it has not taken yet, in order of assignment."""
    taken = select(GATE_ROW.c.seq).where(
        GATE_ROW.c.gate_id == gate.id, GATE_ROW.c.episode_id == DECISION.c.episode_id
    )  # fmt: skip
    return _drawn(connection, gate, not_(taken.exists()), limit)


def taken(connection: Connection, gate: Any, decisions: Sequence[UUID]) -> dict[UUID, Drawn]:
    """Those of these decisions that are still in the log."""
    found = _drawn(connection, gate, DECISION.c.id.in_(decisions), len(decisions))
    return {one.decision: one for one in found}


def closed(connection: Connection, project: UUID, drawn: Sequence[Drawn], rules: Rules, now: datetime) -> list[Closed]:
    """The leading ones that have closed by `now`, in their order."""
    ready: list[Drawn] = []
    for one in drawn:
        if one.closes(rules.deadline) > now:
            break
        ready.append(one)
    if not ready:
        return []
    log = _Log.read(connection, project, ready, rules.judge)
    return [_close(one, log, rules) for one in ready]


def _drawn(connection: Connection, gate: Any, condition: Any, limit: int) -> list[Drawn]:
    d, o = DECISION.c, OUTCOME.c
    first = (
        select(d.id, d.episode_id, d.chosen, d.decided_at, d.shadow_picks)
        .where(
            d.gate_id == gate.id,
            d.project_id == gate.project_id,
            d.origin == "traffic",
            d.explored.is_(False),
            d.forced.is_(None),
            d.episode_id.is_not(None),
            condition,
        )
        .ext(distinct_on(d.episode_id))
        .order_by(d.episode_id, d.id)
        .subquery()
    )
    joined = first.outerjoin(OUTCOME, o.id == first.c.id)
    columns = (first, o.id.label("outcome_id"), o.status, o.worker, o.ended_at, o.cost, o.latency_ms)
    rows = connection.execute(select(*columns).select_from(joined).order_by(first.c.id).limit(limit))
    return [_one(row) for row in rows]


def _one(row: Any) -> Drawn:
    drawn = row.shadow_picks["gate"]
    outcome = row if row.outcome_id is not None else None
    return Drawn(row.id, row.episode_id, drawn["arm"], drawn["rho"], row.chosen, row.decided_at, outcome)


def _close(one: Drawn, log: _Log, rules: Rules) -> Closed:
    at = one.closes(rules.deadline)
    values = [value for value in log.rewards(one, rules, at) if value is not None]
    observed = rules.guards.observed(one.outcome, one.chosen) if one.arm == "candidate" else {}
    utility = sum(values) / len(values) if values else rules.timeout_value
    return Closed(one, utility, bool(values), observed, log.keys(one, at), at)


@dataclass(frozen=True)
class _Log:
    """What belongs to some episodes: decisions with their outcomes, words, judge's scores."""

    turns: Mapping[UUID, list[Any]]
    words: Mapping[UUID, list[Word]]
    judged: Mapping[tuple[UUID, str], tuple[float, datetime]]

    @classmethod
    def read(cls, connection: Connection, project: UUID, drawn: Sequence[Drawn], judge: str | None) -> _Log:
        turns = _turns(connection, [one.episode for one in drawn])
        decisions = [turn.id for several in turns.values() for turn in several]
        words = _words(connection, project, list(turns), decisions)
        return cls(turns, words, _judged(connection, decisions, judge))

    def rewards(self, one: Drawn, rules: Rules, at: datetime) -> list[float | None]:
        """Of the episode's decisions from its row on that had ended by `at`, from what was known then."""
        spoken = self.words.get(one.episode, [])
        return [
            reward(self._ended(turn, at), standing([*spoken, *self.words.get(turn.id, [])], at), rules.spec).value
            for turn in self._until(one, at)
        ]

    def keys(self, one: Drawn, at: datetime) -> tuple[str, ...]:
        """Of those who asked, and of those who had their say by then."""
        turns = self._until(one, at)
        words = [word for place in (one.episode, *(turn.id for turn in turns)) for word in self.words.get(place, ())]
        asked = {str(turn.key_id) for turn in turns if turn.key_id is not None}
        return tuple(sorted(asked | {word.key for word in words if word.key is not None and word.given_at <= at}))

    def _until(self, one: Drawn, at: datetime) -> list[Any]:
        return [turn for turn in self.turns.get(one.episode, ()) if turn.id >= one.decision and turn.ended_at <= at]

    def _ended(self, turn: Any, at: datetime) -> Ended:
        judged = self.judged.get((turn.id, turn.worker)) if turn.worker else None
        return Ended(
            status=turn.status,
            arm=turn.chosen,
            worker=turn.worker,
            ended_at=turn.ended_at,
            score=turn.score,
            judge=judged[0] if judged is not None and judged[1] <= at else None,
            cost=turn.cost,
            seconds=None if turn.latency_ms is None else turn.latency_ms / 1000,
        )


def _turns(connection: Connection, episodes: Sequence[UUID]) -> dict[UUID, list[Any]]:
    """Every traffic decision of these episodes that had an arm, with its outcome, in their order."""
    d, o, r = DECISION.c, OUTCOME.c, REQUEST.c
    columns = (d.id, d.episode_id, d.chosen, r.key_id, o.status, o.worker, o.ended_at, o.cost, o.latency_ms, o.score)
    query = (
        select(*columns)
        .select_from(DECISION.join(OUTCOME, o.id == d.id).outerjoin(REQUEST, r.id == d.request_id))
        .where(
            d.episode_id.in_(episodes),
            d.origin == "traffic",
            d.kind == "route",
            d.probabilities.is_not(None),
            d.parent_id.is_(None),
        )
        .order_by(d.id)
    )
    found: dict[UUID, list[Any]] = defaultdict(list)
    for row in connection.execute(query):
        found[row.episode_id].append(row)
    return found


def _words(
    connection: Connection, project: UUID, episodes: Sequence[UUID], decisions: Sequence[UUID]
) -> dict[UUID, list[Word]]:
    """By decision, or by episode where a word was given to all of it; of this project alone."""
    f = FEEDBACK.c
    found: dict[UUID, list[Word]] = defaultdict(list)
    direct = select(FEEDBACK).where(f.project_id == project, f.decision_id.in_(decisions))
    of_all = select(FEEDBACK).where(f.project_id == project, f.decision_id.is_(None), f.episode_id.in_(episodes))
    for query in (direct, of_all):
        for row in connection.execute(query):
            found[row.decision_id or row.episode_id].append(word_of(row))
    return found


def _judged(
    connection: Connection, decisions: Sequence[UUID], judge: str | None
) -> dict[tuple[UUID, str], tuple[float, datetime]]:
    if judge is None:
        return {}
    j = JUDGE_SCORE.c
    query = select(j.decision_id, j.worker, j.score, j.created_at).where(
        j.judge_hash == judge, j.decision_id.in_(decisions), j.score.is_not(None)
    )
    return {(row.decision_id, row.worker): (row.score, row.created_at) for row in connection.execute(query)}
