"""The sums of a range of traffic, the same for a stored hour and for the edges of an overview.

Parameters: `low` and `high`, ids between which the decisions lie (an outcome has its decision's id, hence the same
range); `project`, or NULL for all. A team's tree counts once, by its root, which has the cost of all and chose no
worker. The logarithmic scale of `SPREAD` has steps of 7%: a percentile read from it is within 3.5% of the exact one.
"""

from __future__ import annotations

from math import exp, log

STEP = 0.07
"""ln of the scale's ratio, nearly: bucket = floor(ln(ms)/STEP)."""
LEAST = 0.001  # milliseconds; less counts as this

TRAFFIC = """
WITH d AS (
    SELECT d.id, d.project_id, d.request_id, d.kind, d.decided_at, d.router_kind, d.forced, d.turn, d.explored,
        d.router_cost, CASE WHEN d.kind = 'pattern' THEN NULL ELSE d.chosen END AS chosen,
        CASE WHEN d.kind = 'route' AND d.forced IS NULL AND d.propensity > 0 THEN d.propensity END AS drawn_at
    FROM decision d
    WHERE d.origin = 'traffic' AND d.parent_id IS NULL AND d.id >= CAST(:low AS uuid) AND d.id < CAST(:high AS uuid)
        AND (CAST(:project AS uuid) IS NULL OR d.project_id = CAST(:project AS uuid))
)
SELECT d.project_id, date_bin('1 hour', d.decided_at, TIMESTAMPTZ '2000-01-03 00:00:00+00') AS hour,
    coalesce(d.chosen, '') AS worker, coalesce(d.router_kind, '') AS router_kind,
    coalesce(o.status, '') AS status, coalesce(d.forced, '') AS forced,
    count(*) AS decisions,
    count(*) FILTER (WHERE o.status = 'ok' AND coalesce(o.worker, d.chosen) = d.chosen) AS own_ok,
    count(*) FILTER (WHERE d.turn = 0) AS begun,
    count(*) FILTER (WHERE d.explored) AS explored,
    count(*) FILTER (WHERE o.status IS NOT NULL AND o.cost IS NULL AND coalesce(o.calls, 1) > 0) AS unknown_cost,
    coalesce(sum(o.cost), 0) AS cost,
    coalesce(sum(coalesce(d.router_cost, 0) + coalesce(below.router_cost, 0)), 0) AS router_cost,
    count(*) FILTER (WHERE d.drawn_at IS NOT NULL AND o.cost IS NOT NULL) AS drawn,
    coalesce(sum(o.cost) FILTER (WHERE d.drawn_at IS NOT NULL), 0)::float AS drawn_cost,
    coalesce(sum(1 / d.drawn_at) FILTER (WHERE o.cost IS NOT NULL), 0) AS weight,
    coalesce(sum(o.cost::float / d.drawn_at), 0) AS weight_cost
FROM d
LEFT JOIN outcome o ON o.id = d.id AND o.id >= CAST(:low AS uuid) AND o.id < CAST(:high AS uuid)
LEFT JOIN LATERAL (
    SELECT sum(c.router_cost) AS router_cost FROM decision c
    WHERE d.kind = 'pattern' AND c.request_id = d.request_id AND c.parent_id IS NOT NULL AND c.id > d.id
) below ON true
GROUP BY 1, 2, 3, 4, 5, 6
"""

SPREAD = """
WITH d AS (
    SELECT d.id, d.project_id, CASE WHEN d.kind = 'pattern' THEN NULL ELSE d.chosen END AS chosen
    FROM decision d
    WHERE d.origin = 'traffic' AND d.parent_id IS NULL AND d.id >= CAST(:low AS uuid) AND d.id < CAST(:high AS uuid)
        AND (CAST(:project AS uuid) IS NULL OR d.project_id = CAST(:project AS uuid))
)
SELECT d.project_id, coalesce(d.chosen, '') AS worker, v.measure,
    floor(ln(greatest(v.ms, 0.001)) / 0.07)::int AS bucket, count(*) AS n
FROM d
JOIN outcome o ON o.id = d.id AND o.id >= CAST(:low AS uuid) AND o.id < CAST(:high AS uuid)
CROSS JOIN LATERAL (VALUES ('latency', o.latency_ms), ('overhead', o.overhead_ms)) AS v(measure, ms)
WHERE v.ms IS NOT NULL
GROUP BY 1, 2, 3, 4
"""

SHARES = """
SELECT d.project_id, d.pattern, coalesce(CAST(d.router_version_id AS text), '') AS version, count(*) AS n
FROM decision d
WHERE d.origin = 'traffic' AND d.parent_id IS NULL AND d.id >= CAST(:low AS uuid) AND d.id < CAST(:high AS uuid)
    AND (CAST(:project AS uuid) IS NULL OR d.project_id = CAST(:project AS uuid))
GROUP BY 1, 2, 3
"""

WORDS = """
WITH traffic AS (
    SELECT d.id, d.project_id, d.episode_id, coalesce(o.worker, d.chosen, '') AS worker
    FROM decision d LEFT JOIN outcome o ON o.id = d.id AND o.id >= CAST(:low AS uuid) AND o.id < CAST(:high AS uuid)
    WHERE d.origin = 'traffic' AND d.parent_id IS NULL AND d.id >= CAST(:low AS uuid) AND d.id < CAST(:high AS uuid)
        AND (CAST(:project AS uuid) IS NULL OR d.project_id = CAST(:project AS uuid))
), said AS (
    SELECT t.worker, f.* FROM traffic t JOIN feedback f ON f.decision_id = t.id AND f.project_id = t.project_id
    UNION ALL
    SELECT t.worker, f.* FROM traffic t JOIN feedback f
        ON f.episode_id = t.episode_id AND f.decision_id IS NULL AND f.project_id = t.project_id
)
SELECT s.project_id, s.worker, s.metric, count(*) AS n,
    count(*) FILTER (WHERE s.value = 'true'::jsonb) AS yes,
    count(*) FILTER (WHERE jsonb_typeof(s.value) = 'boolean') AS said,
    count(*) FILTER (WHERE jsonb_typeof(s.value) = 'number') AS numbers,
    coalesce(sum(CASE WHEN jsonb_typeof(s.value) = 'number' THEN CAST(s.value AS float) END), 0) AS total
FROM said s
WHERE NOT s.retracted
    AND NOT EXISTS (SELECT FROM feedback l WHERE l.amends = s.id AND l.project_id = s.project_id)
GROUP BY 1, 2, 3
"""


def bucket_of(ms: float) -> int:
    """The bucket of a value, as `SPREAD` computes it."""
    return int(log(max(ms, LEAST)) // STEP)


def middle(bucket: int) -> float:
    """The value, in ms, that stands for a bucket: its geometric middle."""
    return exp((bucket + 0.5) * STEP)
