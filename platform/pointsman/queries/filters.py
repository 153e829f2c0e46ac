"""What the list of decisions can be narrowed by, and each filter as a condition on the log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    String,
    and_,
    cast,
    exists,
    false,
    func,
    literal,
    literal_column,
    or_,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB

from pointsman.queries.scope import (
    DECISION,
    FEEDBACK,
    OUTCOME,
    REQUEST,
    REQUEST_LEAD,
    in_time,
    of_project,
    standing,
)
from pointsman.tables import METADATA
from pointsman.words import Forced, Origin, OutcomeStatus, Pattern, RouterKind

KEY = METADATA.tables["api_key"]
REWARD = METADATA.tables["reward"]
SEARCHED: ColumnElement[str] = literal_column("to_tsvector('simple', left(request.text, 8000))")
"""The indexed expression of `ix_request_search`, in the same words, or the index is not used."""


@dataclass(frozen=True)
class DecisionFilter:
    """All that are given must hold. `search` is in web-search form: words, "a phrase", -not, or.

    `forced` is a reason, or True for any and False for none. Latencies are milliseconds. `key` is the beginning of
    an API key as it is shown, or its id. Rewards are under any spec. `disagreement`: a router that was asked beside
    the one that served chose another worker.
    """

    search: str | None = None
    worker: str | None = None
    pattern: Pattern | None = None
    router_kind: RouterKind | None = None
    status: OutcomeStatus | None = None
    explored: bool | None = None
    forced: Forced | bool | None = None
    episode_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    min_latency_ms: float | None = None
    max_latency_ms: float | None = None
    feedback: bool | None = None
    min_reward: float | None = None
    max_reward: float | None = None
    tag: str | None = None
    key: str | None = None
    disagreement: bool | None = None
    origin: Origin | None = "traffic"

    @property
    def needs_outcome(self) -> bool:
        return (self.status, self.min_latency_ms, self.max_latency_ms) != (None, None, None)

    @property
    def by_words(self) -> bool:
        """Whether it has a condition that an index on requests answers."""
        return bool(self.search and self.search.strip()) or self.tag is not None

    @property
    def needs_request(self) -> bool:
        return self.by_words or self.key is not None


def conditions(filters: DecisionFilter, project: str | None) -> Iterator[ColumnElement[bool]]:
    """The conditions on `decision`, and on `outcome` and `request` where the filter needs them joined."""
    d = DECISION.c
    yield of_project(DECISION, project)
    yield in_time(d.id, filters.since, filters.until)
    if filters.origin is not None:
        yield d.origin == filters.origin
    yield d.parent_id.is_(None)  # a team's tree is one line, its root's
    if filters.worker is not None:
        yield d.chosen == filters.worker
    if filters.pattern is not None:
        yield d.pattern == filters.pattern
    if filters.router_kind is not None:
        yield d.router_kind == filters.router_kind
    if filters.explored is not None:
        yield d.explored.is_(filters.explored)
    if filters.forced is not None:
        yield _forced(filters.forced)
    if filters.episode_id is not None:
        yield _same_id(d.episode_id, filters.episode_id)
    if filters.feedback is not None:
        yield _has_feedback() if filters.feedback else ~_has_feedback()
    if filters.disagreement is not None:
        yield _disagreed() if filters.disagreement else ~_disagreed()
    if (filters.min_reward, filters.max_reward) != (None, None):
        yield _rewarded(filters.min_reward, filters.max_reward)
    yield from _on_outcome(filters)
    yield from on_request(filters, project)


def _forced(wanted: Forced | bool) -> ColumnElement[bool]:
    column = DECISION.c.forced
    if isinstance(wanted, bool):
        return column.is_not(None) if wanted else column.is_(None)
    return column == wanted


def _same_id(column: ColumnElement[UUID], text_id: str) -> ColumnElement[bool]:
    try:
        return column == UUID(text_id)
    except ValueError:
        return false()


def _has_feedback() -> ColumnElement[bool]:
    d, f = DECISION.c, FEEDBACK.c
    own = exists(select(f.id).where(f.decision_id == d.id, f.project_id == d.project_id, standing()))
    of_episode = exists(
        select(f.id).where(
            f.episode_id == d.episode_id,
            f.decision_id.is_(None),
            f.project_id == d.project_id,
            standing(),
        )
    )
    return or_(own, of_episode)


def _disagreed() -> ColumnElement[bool]:
    """`shadow_picks` is NULL where one router alone was asked."""
    d = DECISION.c
    picks = func.jsonb_array_elements(d.shadow_picks["picks"]).table_valued("value").render_derived()
    worker = cast(picks.c.value, JSONB)["worker"].astext
    return d.shadow_picks.is_not(None) & exists(select(literal(1)).select_from(picks).where(worker != d.chosen))


def _rewarded(low: float | None, high: float | None) -> ColumnElement[bool]:
    r, d = REWARD.c, DECISION.c
    within = [r.value >= low] if low is not None else []
    within += [r.value <= high] if high is not None else []
    return exists(select(r.outcome_id).where(r.decision_id == d.id, r.project_id == d.project_id, *within))


def _on_outcome(filters: DecisionFilter) -> Iterator[ColumnElement[bool]]:
    o = OUTCOME.c
    if filters.needs_outcome:
        yield in_time(o.id, filters.since, filters.until)
    if filters.status is not None:
        yield o.status == filters.status
    if filters.min_latency_ms is not None:
        yield o.latency_ms >= filters.min_latency_ms
    if filters.max_latency_ms is not None:
        yield o.latency_ms <= filters.max_latency_ms


def on_request(filters: DecisionFilter, project: str | None) -> Iterator[ColumnElement[bool]]:
    """The conditions on `request` alone."""
    if not filters.needs_request:
        return
    earliest = filters.since - REQUEST_LEAD if filters.since else None
    yield and_(of_project(REQUEST, project), in_time(REQUEST.c.id, earliest, filters.until))
    if filters.search and filters.search.strip():
        yield SEARCHED.bool_op("@@")(func.websearch_to_tsquery("simple", filters.search))
    if filters.tag is not None:
        yield REQUEST.c.tags.contains([filters.tag])
    if filters.key is not None:
        named = or_(
            KEY.c.prefix.startswith(filters.key, autoescape=True), cast(KEY.c.id, String) == filters.key.lower()
        )
        yield REQUEST.c.key_id.in_(select(KEY.c.id).where(named, of_project(KEY, project)))
