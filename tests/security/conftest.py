"""The gateway's fixtures, for what is tried against a running one: those of tests/gateway."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def _load() -> Any:
    file = ROOT / "tests" / "gateway" / "conftest.py"
    spec = importlib.util.spec_from_file_location("pointsman_tests_gateway_fixtures", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


_fixtures = _load()
fake, running, shared_upstream, upstream, make_gateway, gateway = (
    getattr(_fixtures, name) for name in ("fake", "running", "shared_upstream", "upstream", "make_gateway", "gateway")
)


@pytest.fixture(scope="session")
def sources() -> dict[str, str]:
    """Every module of ours that runs, by its path in the repository."""
    rooms = ("platform", "harness", "distill", "dashboard")
    return {
        str(file.relative_to(ROOT)): file.read_text(encoding="utf-8")
        for room in rooms
        for file in sorted((ROOT / room).rglob("*.py"))
    }
