"""Off-policy evaluation of a router on logged traffic of a label set: doubly robust, or refused with the reason.

The reward model is the set's own estimates: they are cross-fitted, so none has seen its own row (but for the share
that `own_strength` leaves, which is why labels for evaluation keep it high).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import numpy as np
from sqlalchemy import Connection, and_, select

from distill.arrays import Floats, Integers
from distill.evaluate.values import picks
from distill.labels.reading import REWARD, snapshots
from distill.labels.store import LabelSet
from pointsman.errors import NotEvaluable, UserError
from pointsman.queries.scope import DECISION
from pointsman.statistics.off_policy import LoggedChoices, deterministic, dr_difference

LEAST = 50


def read_choices(connection: Connection, labels: LabelSet, spec_hash: str) -> tuple[Integers, LoggedChoices]:
    """The test rows that are drawn traffic of the set's arms alone, with the vectors they were drawn from."""
    place = {arm.endpoint: number for number, arm in enumerate(labels.arms)}
    test = {UUID(labels.ids[row]): int(row) for row in labels.of("test") if labels.origins[row] == "traffic"}
    d, w = DECISION.c, REWARD.c
    query = (
        select(d.id, d.probabilities, d.chosen, d.pool_hash, w.value)
        .select_from(DECISION.join(REWARD, and_(w.outcome_id == d.id, w.spec_hash == spec_hash, w.value.is_not(None))))
        .where(d.id.in_(list(test)), d.forced.is_(None), d.probabilities.is_not(None))
        .order_by(d.id)
    )
    rows = connection.execute(query).all()
    pools = snapshots(connection, {row.pool_hash for row in rows if row.pool_hash is not None})
    kept: list[tuple[int, list[float], int, float]] = []
    for row in rows:
        endpoints = {name: pools.get(row.pool_hash, {}).get(name) for name in row.probabilities}
        columns = {name: place[end] for name, end in endpoints.items() if end in place}
        if len(columns) != len(row.probabilities) or row.chosen not in columns:
            continue
        vector = [0.0] * len(place)
        for name, p in row.probabilities.items():
            vector[columns[name]] = p
        kept.append((test[row.id], vector, columns[row.chosen], row.value))
    if len(kept) < LEAST:
        raise NotEvaluable(f"not evaluable; explore: {len(kept)} test rows were drawn, and {LEAST} are needed")
    vectors = np.array([one[1] for one in kept])
    choices = LoggedChoices(
        vectors / vectors.sum(axis=1, keepdims=True),
        np.array([one[2] for one in kept]),
        np.array([one[3] for one in kept]),
        [labels.episodes[one[0]] for one in kept],
    )
    return np.array([one[0] for one in kept], np.int64), choices


def against_log(
    connection: Connection, labels: LabelSet, spec_hash: str, named: Sequence[tuple[str, Floats]]
) -> list[dict[str, Any]]:
    """For each router's scores [set's rows, k]: its value minus that of what was logged, paired, or why not."""
    try:
        rows, choices = read_choices(connection, labels, spec_hash)
    except UserError as error:
        return [{"router": name, "not_evaluable": str(error)} for name, _ in named]
    lines: list[dict[str, Any]] = []
    for name, scores in named:
        target = deterministic(picks(scores[rows]), len(labels.arms))
        try:
            found = dr_difference(choices, target, choices.probabilities, labels.mean[rows].astype(np.float64))
        except NotEvaluable as error:
            lines.append({"router": name, "not_evaluable": str(error)})
            continue
        lines.append(
            {
                "router": name,
                "difference": round(found.estimate, 4),
                "interval": [round(found.low, 4), round(found.high, 4)],
                "rows": len(rows),
                "method": found.method,
            }
        )
    return lines
