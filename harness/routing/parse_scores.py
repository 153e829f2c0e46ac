"""Parses the structured reply of a router LLM: points from 0 to 100 for every option."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.routing.found_json import objects_in
from harness.routing.names import Offered
from harness.routing.parse import parse_pick, sections, visible_text
from pointsman.words import ParseStatus

_NUMBER = re.compile(r"\s*(-?\d{1,12}(?:\.\d{1,12})?)\s*(?:%|/\s*100)?\s*")


@dataclass(frozen=True, slots=True)
class Points:
    """Scores by worker, for every worker offered, or None where the reply gave nothing to use.

    `flags`: `floored` (an option without points got 0), `pick_only` (no points at all, but a pick).
    """

    scores: dict[str, float] | None
    status: ParseStatus
    flags: tuple[str, ...] = ()


def parse_scores(reply: str | None, options: Mapping[str, str]) -> Points:
    """The points that `reply` gives to `options` (letter → worker name)."""
    text = visible_text(reply)
    if not text:
        return Points(None, "empty")
    answers = sections(text, "scores")
    offered = Offered(options)
    tables = [table for item in objects_in("\n".join(answers) or text) if (table := _table(item, offered))]
    if not tables:
        return _from_pick(reply, options)
    if any(table.scores != tables[0].scores for table in tables):
        return Points(None, "ambiguous")
    table = tables[0]
    missing = [name for name in options.values() if name not in table.scores]
    scores = {name: table.scores.get(name, 0.0) for name in options.values()}
    in_form = text == (reply or "").strip() and len(answers) == 1 and answers[0][:1] + answers[0][-1:] == "{}"
    clean = in_form and table.clean and not missing
    return Points(scores, "ok" if clean else "repaired", ("floored",) if missing else ())


@dataclass(frozen=True, slots=True)
class _Table:
    scores: dict[str, float]
    clean: bool


def _table(item: Mapping[str, Any], offered: Offered, wrapped: bool = True) -> _Table | None:
    """The points in one JSON object, or in the only object inside it; None where it holds none."""
    scores: dict[str, float] = {}
    clean = True
    for key, value in item.items():
        named, points = offered.resolve(key), _points(value)
        if len(named) != 1 or points is None:
            clean = False
            continue
        name = next(iter(named))
        clean = clean and key in offered.options and name not in scores and points == value
        scores.setdefault(name, points)
    if scores:
        return _Table(scores, clean)
    nested = [value for value in item.values() if isinstance(value, dict)]
    inner = _table(nested[0], offered, wrapped=False) if wrapped and len(nested) == 1 else None
    return _Table(inner.scores, False) if inner else None


def _points(value: Any) -> float | None:
    """A number clipped to 0..100; None for what is no finite number."""
    if isinstance(value, str):
        match = _NUMBER.fullmatch(value)
        return min(100.0, max(0.0, float(match.group(1)))) if match else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return float(min(100, max(0, value)))


def _from_pick(reply: str | None, options: Mapping[str, str]) -> Points:
    pick = parse_pick(reply, options)
    if pick.worker is None:
        return Points(None, pick.status)
    scores = {name: float(name == pick.worker) for name in options.values()}
    return Points(scores, "repaired", ("pick_only",))
