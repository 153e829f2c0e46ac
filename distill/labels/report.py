"""What is odd about the data that labels are made of, in numbers: told before anything is trained on it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from distill.arrays import Floats
from distill.labels.estimate import task_numbers
from distill.labels.evidence import Evidence
from pointsman.hashing import text_hash
from pointsman.statistics.input_mix import LEAST, input_mix_test
from pointsman.statistics.overlap import effective_sample_size

FEW = 20
"""Answers of a worker on a task below which an average of 0 says nothing."""


def data_report(evidence: Evidence, points: Floats, seed: int) -> dict[str, Any]:
    """Counts by source, duplicates, dead cells, ties, rerun agreement, propensities, drift."""
    values, weights = evidence.matrices()
    texts = Counter(text_hash(one.text) for one in evidence.asked)
    in_time = np.argsort([one.moment.timestamp() for one in evidence.asked], kind="stable")
    return {
        "requests": len(evidence.asked),
        "answers": len(evidence.values),
        "by_origin": dict(Counter(one.origin for one in evidence.asked)),
        "by_source": dict(Counter(evidence.sources)),
        "full_rows": int((weights > 0).all(axis=1).sum()),
        "left_out": dict(evidence.left_out),
        "duplicate_texts": sum(count - 1 for count in texts.values()),
        "answers_by_worker": {
            arm.worker: int(count) for arm, count in zip(evidence.arms, (weights > 0).sum(axis=0), strict=True)
        },
        "mean_by_worker": _means(evidence, values),
        "all_zero": _all_zero(evidence, values),
        "ties": _ties(values),
        "reruns": _reruns(evidence.reruns),
        "propensities": _propensities(evidence),
        "drift": _drift(points[in_time], seed),
    }


def _means(evidence: Evidence, values: Floats) -> dict[str, float]:
    return {
        arm.worker: round(float(np.nanmean(values[:, k])), 4)
        for k, arm in enumerate(evidence.arms)
        if np.isfinite(values[:, k]).any()
    }


def _all_zero(evidence: Evidence, values: Floats) -> list[dict[str, Any]]:
    """Workers that never earned anything on a task: often the form of the answer, not the worker."""
    names, numbers = task_numbers(evidence.asked)
    found = []
    for number, task in enumerate(names):
        rows = values[numbers == number]
        for k, arm in enumerate(evidence.arms):
            known = rows[:, k][np.isfinite(rows[:, k])]
            if len(known) >= FEW and not known.any():
                found.append({"task": task, "worker": arm.worker, "answers": len(known)})
    return found


def _ties(values: Floats) -> dict[str, float | int]:
    """Of the rows in which all workers are known: in how many all earned the same, and several the most."""
    full = values[np.isfinite(values).all(axis=1)]
    if not len(full):
        return {"full_rows": 0}
    best = (full == full.max(axis=1, keepdims=True)).sum(axis=1)
    return {
        "full_rows": len(full),
        "all_alike": round(float((best == full.shape[1]).mean()), 4),
        "several_best": round(float((best > 1).mean()), 4),
        "nobody_right": round(float((full.max(axis=1) == 0).mean()), 4),
    }


def _reruns(pairs: Floats) -> dict[str, float | int]:
    if not len(pairs):
        return {"pairs": 0}
    return {"pairs": len(pairs), "agreement": round(float((np.abs(pairs[:, 0] - pairs[:, 1]) < 0.5).mean()), 4)}


def _propensities(evidence: Evidence) -> dict[str, Any]:
    """Of drawn decisions: the least probability, and what the draws are worth for each worker's mean."""
    drawn = evidence.drawn
    if not drawn.any():
        return {"drawn": 0}
    p, columns = evidence.propensities[drawn], evidence.columns[drawn]
    worth = {arm.worker: round(effective_sample_size(1 / p[columns == k]), 1) for k, arm in enumerate(evidence.arms)}
    return {
        "drawn": int(drawn.sum()),
        "least": round(float(p.min()), 5),
        "rare": round(float((p < 0.1).mean()), 4),
        "effective_by_worker": worth,
    }


def _drift(points: Floats, seed: int) -> dict[str, Any]:
    """Whether the later half of the requests can be told from the earlier half."""
    middle = len(points) // 2
    if middle < LEAST:
        return {"tested": False}
    rows = points.astype(np.float64)
    found = input_mix_test(rows[:middle], rows[middle:], np.random.default_rng([seed, 7]))
    return {
        "tested": True, "auc": round(found.auc, 4), "p_value": round(found.p_value, 5), "changed": found.changed
    }  # fmt: skip
