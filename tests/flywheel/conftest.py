"""A log without a gateway, and jobs that a test ends by hand."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from psycopg.types.json import Jsonb
from sqlalchemy import Engine, text

from pointsman.actions.actor import Actor
from pointsman.identity import ensure_project


def _load(name: str) -> Any:
    """A module of tests/support, loaded by path: tests are no package."""
    full = f"pointsman_tests_{name}"
    if full not in sys.modules:
        file = Path(__file__).parent.parent / "support" / f"{name}.py"
        spec = importlib.util.spec_from_file_location(full, file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[full] = module  # dataclasses look their module up by name
        spec.loader.exec_module(module)
    return sys.modules[full]


@pytest.fixture
def project(engine: Engine) -> str:
    """A log without rows, with the default project; its id."""
    _load("gate_log").clear(engine)
    with engine.begin() as connection:
        return ensure_project(connection)


@pytest.fixture
def synthetic(engine: Engine, project: str) -> Callable[..., Any]:
    """`synthetic(more)`: an empty log with two router versions; `more` is added to the configuration."""

    def make(more: str = "") -> Any:
        _load("gate_log").clear(engine)
        with engine.begin() as connection:
            assert ensure_project(connection) == project
        return _load("gate_log").Synthetic(engine, project, more)

    return make


@pytest.fixture
def ana() -> Actor:
    return Actor("ana", "operator")


@pytest.fixture
def end(engine: Engine) -> Callable[..., None]:
    """`end(job, state, result, reason)`: the job's row as a worker leaves it."""

    def to(job: str, state: str = "done", result: Any = None, reason: str | None = None, cost: float = 0) -> None:
        given = {"id": job, "state": state, "reason": reason, "cost": cost, "result": None}
        change = text(
            "UPDATE job SET state = :state, reason = :reason, cost = :cost, ended_at = now(),"
            " result = CAST(:result AS jsonb) WHERE id = :id"
        )
        if result is not None:
            given["result"] = Jsonb(result)
        with engine.begin() as connection:
            assert connection.execute(change, given).rowcount == 1

    return to


@pytest.fixture
def quick() -> str:
    """A section of a configuration: a turn pays early."""
    return "[flywheel]\nrows = 10\nshadow_rows = 20\n"


@pytest.fixture
def drive(synthetic: Callable[..., Any], end: Callable[..., None], quick: str) -> Callable[..., Any]:
    """`drive(more)`: an open turn; `more` is added to the configuration's `[flywheel]`."""
    made = _load("turn_drive")
    return lambda more="": made.Drive(synthetic(quick + more), end)
