"""Which decisions are worth a person's look. Each rule says in [0, 1] about how much a verdict would teach:

disagreement    a router that only watched chose another worker; the less sure the choice was, the more it tells
low_confidence  the entropy of the probabilities, over its largest
bad_outcome     an outcome that is not ok, or a standing `correct: false`
reask           the same text again later in the same conversation: the first answer was not enough
random          drawn at random, for the lift of the others to be measured against
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Engine, Select, func, literal, literal_column, select, text

from pointsman.ids import lowest_id
from pointsman.queries.scope import DECISION
from pointsman.tables import METADATA
from pointsman.words import ReviewRule

ITEM = METADATA.tables["review_item"]
LOOKED_AT = 20_000
"""The newest decisions that a rule looks at, so that filling a queue of a large log takes a moment."""

_D = DECISION.alias("d")

# Fixed SQL over the alias `d`, per rule: the information, and what must hold.
_INFORMATION = {
    "disagreement": "1 - coalesce(d.propensity, 1) / 2",
    "low_confidence": """(
        SELECT -sum(v.p * ln(v.p)) / ln(greatest(count(*), 2)) FROM (
            SELECT CAST(value AS float) AS p FROM jsonb_each_text(d.probabilities)) v WHERE v.p > 0)""",
    "bad_outcome": "1.0",
    "reask": "0.8",
    "random": "0.5",
}
_HOLDS = {
    "disagreement": """jsonb_typeof(d.shadow_picks -> 'picks') = 'array' AND EXISTS (
        SELECT FROM jsonb_array_elements(d.shadow_picks -> 'picks') p
        WHERE p ->> 'worker' IS NOT NULL AND p ->> 'worker' <> d.chosen)""",
    "low_confidence": "d.forced IS NULL AND jsonb_typeof(d.probabilities) = 'object'",
    "bad_outcome": """(
        EXISTS (SELECT FROM outcome o WHERE o.id = d.id AND o.status NOT IN ('ok', 'client_cancelled'))
        OR EXISTS (
            SELECT FROM feedback f WHERE f.decision_id = d.id AND f.project_id = d.project_id AND f.metric = 'correct'
                AND f.value = CAST('false' AS jsonb) AND NOT f.retracted
                AND NOT EXISTS (SELECT FROM feedback l WHERE l.amends = f.id AND l.project_id = f.project_id)))""",
    "reask": """d.episode_id IS NOT NULL AND EXISTS (
        SELECT FROM request r JOIN decision n ON n.episode_id = d.episode_id AND n.project_id = d.project_id
            AND n.id > d.id AND n.request_id <> r.id
        JOIN request q ON q.id = n.request_id
        WHERE r.id = d.request_id AND r.text_hash = q.text_hash)""",
    "random": "true",
}


def worth_reviewing(
    engine: Engine, project: str, rule: ReviewRule, since: datetime, limit: int, *, seed: int = 0
) -> list[tuple[str, float]]:
    """Decisions since then that a rule finds and no queue has: (id, information), the most telling first."""
    with engine.connect() as connection:
        rows = connection.execute(_query(project, rule, since, limit, seed))
        return [(str(row.id), min(1.0, max(0.0, float(row.information or 0)))) for row in rows]


def _query(project: str, rule: ReviewRule, since: datetime, limit: int, seed: int) -> Select[tuple[UUID, float]]:
    queued = select(ITEM.c.id).where(ITEM.c.project_id == _D.c.project_id, ITEM.c.decision_id == _D.c.id).exists()
    newest = (
        select(_D)
        .where(
            _D.c.project_id == project, _D.c.id >= UUID(lowest_id(since)), _D.c.origin == "traffic",
            _D.c.parent_id.is_(None), _D.c.chosen.is_not(None), ~queued,
        )
        .order_by(_D.c.id.desc())
        .limit(LOOKED_AT)
        .subquery("d")
    )  # fmt: skip
    information: ColumnElement[float] = literal_column(_INFORMATION[rule]).label("information")
    found = select(newest.c.id, information).where(text(_HOLDS[rule]))
    order: list[ColumnElement[Any]]
    if rule == "random":
        order = [func.md5(func.concat(newest.c.id, literal(str(seed))))]
    else:
        order = [information.desc().nulls_last(), newest.c.id.desc()]
    return found.order_by(*order).limit(limit)
