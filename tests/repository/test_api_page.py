"""docs/api.md says what the code does: endpoints, hints, error codes and metrics are those that exist."""

from __future__ import annotations

import re
from pathlib import Path

from harness.gateway.feedback import BOOLEAN_METRICS, UNIT_METRICS, WORD_METRICS
from harness.gateway.hints import NAMES
from harness.gateway.surfaces.served import SURFACES
from pointsman.errors import UpstreamFault
from pointsman.words import members

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "api.md").read_text()
GATEWAY = ROOT / "harness" / "gateway"
TOLD_OTHERWISE = {"rate_limited", "context_exceeded", "bad_request"}  # faults that have a status of their own


def section(name: str) -> str:
    return PAGE.partition(f"\n## {name}\n")[2].partition("\n## ")[0]


def first_column(name: str) -> set[str]:
    rows = [line.split("|")[1] for line in section(name).split("\n") if line.startswith("| `")]
    return {word for row in rows for word in re.findall(r"`([^`]+)`", row)}


def test_endpoints() -> None:
    routes = set(re.findall(r'Route\("([^"]+)"', (GATEWAY / "management.py").read_text())) | set(SURFACES)
    told = {word.split(" ")[1] for word in first_column("Endpoints")}
    assert told == {route.replace(":path", "") for route in routes}


def test_hints() -> None:
    assert first_column("Hints") == set(NAMES)


def test_metrics() -> None:
    assert first_column("Feedback") - {"metric"} == BOOLEAN_METRICS | UNIT_METRICS | WORD_METRICS


def test_error_codes() -> None:
    sources = "".join(file.read_text() for file in GATEWAY.rglob("*.py"))
    made = set(re.findall(r'code="([a-z_]+)"', sources)) | {"head_timeout", "head_too_large"}
    faults = set(members(UpstreamFault)) - TOLD_OTHERWISE
    told = set(re.findall(r"`([a-z_]+)`", section("Errors").partition("|---|")[2]))
    assert made | faults == told - {"rejected"}
