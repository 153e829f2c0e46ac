"""What a turn reads of the results of learning's jobs, in one place.

`evaluate` says of each router what it earned on rows that no training saw, with paired intervals against the best
single worker and against the best cheap baseline, and whether it is refused, and why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_TOLD = (
    "value",
    "low",
    "high",
    "rows",
    "gap_closed",
    "generations",
    "seconds",
    "parameters",
    "validation",
    "difference",
)


@dataclass(frozen=True)
class Found:
    """The router to go on with, None where none pays; why, and the numbers of all."""

    version: str | None
    why: str
    numbers: Mapping[str, Any] = field(default_factory=dict)


def router_numbers(result: Mapping[str, Any] | None) -> dict[str, Any]:
    """What the story tells of a training."""
    found = {key: value for key, value in (result or {}).items() if key in _TOLD}
    version = (result or {}).get("router_version")
    return found | ({"router_version": version} if version else {})


def best_candidate(result: Mapping[str, Any]) -> Found:
    """Of the routers that `evaluate` accepted the one that earned most. Its lines begin with them, in their order."""
    frame: Mapping[str, Any] = result["frame"]
    lines: list[Mapping[str, Any]] = result["comparison"]
    judged = dict(zip(result["routers"], lines, strict=False))
    numbers = {"rows": result["rows"], "best_single": frame["best_single_value"], "oracle": frame["oracle"]}
    numbers |= {str(line["router"]): line["value"] for line in lines}
    passed = {version: line for version, line in judged.items() if not line["refused"]}
    if not passed:
        whys = sorted({reason for line in judged.values() for reason in line["refused"]})
        return Found(None, "no router pays: " + ("; ".join(whys) or "none was evaluated"), numbers)
    version = max(passed, key=lambda one: (passed[one]["value"], one))
    best = passed[version]
    low, high = best["vs_best_single_interval"]
    why = f"{best['router']} earns {best['value']:.4f} on rows that no training saw"
    return Found(version, f"{why}, [{low:+.4f}, {high:+.4f}] over the best single worker", numbers)
