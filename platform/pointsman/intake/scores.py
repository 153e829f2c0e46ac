"""Scores that a system keeps in a file of their own (Langfuse's scores, TensorZero's feedback), by what they are of.

Held in memory: about 150 bytes each. Where one thing has several scores of the metric, the last of the file counts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from pointsman.errors import UserError
from pointsman.intake.lines import Fault, read_lines
from pointsman.intake.record import Record
from pointsman.intake.values import Unreadable, Values, read_score

_FIELDS = {
    "target": ("observation_id", "observationId", "target_id", "inference_id", "request_id", "trace_id", "traceId",
               "episode_id", "session_id"),
    "metric": ("name", "metric_name", "metric"),
    "value": ("value", "score"),
}  # fmt: skip


@dataclass
class Scores:
    """`by_target` {id of a row, a trace or a conversation: score}; `unused` says why others could not be taken."""

    by_target: dict[str, float] = field(default_factory=dict)
    unused: Counter[str] = field(default_factory=Counter)

    def of(self, record: Record) -> float | None:
        """The score of the row itself, else of its trace, else of its conversation."""
        for target in (record.query, record.trace, record.episode):
            if target is not None and (score := self.by_target.get(target)) is not None:
                return score
        return None


def read_scores(file: Path, metric: str | None) -> Scores:
    """The scores of one metric. `UserError` where the file has several and none was named."""
    scores, metrics = Scores(), Counter[str]()
    for line in read_lines(file):
        if isinstance(line, Fault):
            scores.unused["not a row"] += 1
            continue
        values = Values(line.values, _FIELDS)
        name = str(values.get("metric") or "score")
        metrics[name] += 1
        if metric is not None and name != metric:
            continue
        target, value = values.get("target"), values.get("value")
        if target is None or value is None:
            scores.unused["no id or no value"] += 1
            continue
        try:
            scores.by_target[str(target)] = read_score(value)
        except Unreadable:
            scores.unused["no number from 0 to 1, no truth value"] += 1
    if metric is None and len(metrics) > 1:
        raise UserError(f"{file}: holds the metrics {', '.join(sorted(metrics))}; name one with --metric")
    if metric is not None and metric not in metrics:
        raise UserError(f"{file}: no metric {metric!r}; it holds {', '.join(sorted(metrics)) or 'none'}")
    return scores
