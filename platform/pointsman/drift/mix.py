"""Are today's requests like those that were learned from? A classifier two-sample test on the words of requests.

The reference are the first episodes since the router that serves was put there, the others the newest; one request
of each episode. Features are words hashed into a few columns: enough to notice another mix, and no text is kept.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from zlib import crc32

import numpy as np
from sqlalchemy import Connection, and_, select
from sqlalchemy.dialects.postgresql import distinct_on

from pointsman.drift.alarms import About, raise_alarm
from pointsman.drift.state import keep
from pointsman.queries.scope import DECISION, REQUEST, in_time
from pointsman.statistics.arrays import Floats
from pointsman.statistics.input_mix import LEAST, MixTest, input_mix_test

COLUMNS = 64
EPISODES = 500
ALPHA = 0.001
"""Of one look; it is looked at again and again, so a false alarm comes once in about a thousand looks."""
_WORD = re.compile(r"\w+")


def watch_mix(
    connection: Connection, project: str, since: datetime, now: datetime, rng: np.random.Generator
) -> MixTest | None:
    """None where there are too few episodes to compare. An alarm says that estimates from the log extrapolate."""
    reference, recent = _texts(connection, project, since)
    if min(len(reference), len(recent)) < LEAST:
        return None
    found = input_mix_test(features(reference), features(recent), rng, ALPHA)
    state = {"auc": found.auc, "p_value": found.p_value, "reference": len(reference), "recent": len(recent)}
    alarm = None
    if found.changed:
        message = (
            f"the newest {len(recent)} requests differ from the first {len(reference)} since {since:%Y-%m-%d} "
            f"(told apart with AUC {found.auc:.2f}): estimates from the log extrapolate"
        )
        alarm = raise_alarm(connection, project, "input_mix", message, now, About(), state)
    keep(connection, project, "input_mix", "", state, now, alarm_id=alarm)
    return found


def features(texts: Sequence[str]) -> Floats:
    """Signed hashed words, each row of length 1, and the length of the text: [n, COLUMNS + 1]."""
    table = np.zeros((len(texts), COLUMNS + 1))
    for n, text in enumerate(texts):
        for word in _WORD.findall(text.lower()[:2_000]):
            mark = crc32(word.encode())
            table[n, mark % COLUMNS] += 1 if mark & 0x80000000 else -1
        table[n, :COLUMNS] /= max(float(np.linalg.norm(table[n, :COLUMNS])), 1.0)
        table[n, COLUMNS] = np.log1p(len(text)) / 10
    return table


def _texts(connection: Connection, project: str, since: datetime) -> tuple[list[str], list[str]]:
    """The first request of each episode: the first and the newest episodes, none in both."""
    d, r = DECISION.c, REQUEST.c
    joined = DECISION.join(REQUEST, and_(r.id == d.request_id, r.learn, r.text.is_not(None)))
    first = (
        select(d.id, r.text)
        .select_from(joined)
        .where(d.project_id == project, d.origin == "traffic", d.parent_id.is_(None), in_time(d.id, since, None))
        .ext(distinct_on(d.episode_id))
        .order_by(d.episode_id, d.id)
        .subquery()
    )
    oldest = connection.execute(select(first).order_by(first.c.id).limit(EPISODES)).all()
    newest = connection.execute(select(first).order_by(first.c.id.desc()).limit(EPISODES)).all()
    if len(oldest) < EPISODES:  # few in all: the halves
        middle = len(oldest) // 2
        return [row.text for row in oldest[:middle]], [row.text for row in oldest[middle:]]
    seen = {row.id for row in oldest}
    return [row.text for row in oldest], [row.text for row in newest if row.id not in seen]
