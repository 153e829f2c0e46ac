"""A sandbox, a real gateway in front of it, and candidates: versions of the prompted router with other cards."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, insert

from harness.routing.prompted import PromptedRouter
from harness.routing.template import default_template
from pointsman.actions.actor import Actor
from pointsman.config import Config
from pointsman.identity import DEFAULT_PROJECT_ID, ensure_project
from pointsman.promotion.process import Progress, process_gate
from pointsman.promotion.serving import announce
from pointsman.promotion.versions import ROUTER_VERSION
from pointsman.sandbox.drive import DriveReport, drive
from pointsman.sandbox.serve import serving
from pointsman.sandbox.setup import toml_text
from pointsman.sandbox.world import CardKind, World

SEED = 7
ANA = Actor("ana", "operator")
PROJECT = DEFAULT_PROJECT_ID
GATE = """
[reward.default]
quality = ["feedback"]
deadline = {deadline}
[gate]
alpha = 0.02
ramp = [[0, 0.5]]
max_errors = 0.3
max_latency = 60
max_cost = 10
"""


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


class Live:
    """A gateway over a sandbox world, and what a gate's life needs around it."""

    def __init__(self, gateway: Any, world: World) -> None:
        self.gateway = gateway
        self.world = world
        self.engine: Engine = gateway.engine
        self.config: Config = gateway.config

    def router(self, cards: Mapping[str, str], **changed: Any) -> PromptedRouter:
        """The prompted router of the configuration, with these cards."""
        section = self.config.router
        fields: dict[str, Any] = {"model": section.model, "base_url": section.base_url, "scoring": section.scoring}

        async def nobody(body: dict[str, Any]) -> dict[str, Any]:
            raise AssertionError("it only names a version")

        return PromptedRouter(default_template(), nobody, cards=cards, deadline=1.5, **{**fields, **changed})

    def version(self, cards: Mapping[str, str], state: str = "candidate", **changed: Any) -> str:
        """A version with these cards in the log, as a search leaves it; its id."""
        version = self.router(cards, **changed).version
        values = {
            "id": version.id, "kind": version.kind, "artifact_hash": version.artifact_hash,
            "config": dict(version.config), "state": state, "created_at": datetime.now(UTC),
        }  # fmt: skip
        with self.engine.begin() as connection:
            connection.execute(insert(ROUTER_VERSION).values(values))
            announce(connection, "a candidate")
        return version.id

    def cards(self, kind: CardKind) -> dict[str, str]:
        return dict(self.world.cards(kind))

    def begin(self) -> None:
        """The gateway takes what the database says."""
        self.gateway.refresh()

    def drive(self, requests: int, *, feedback: float = 1.0, key: str | None = None, **more: Any) -> DriveReport:
        done = asyncio.run(
            drive(
                f"{self.gateway.url}/v1", requests, self.world.seed, feedback_share=feedback, stream_share=0.0,
                concurrency=8, api_key=key, **more,
            )
        )  # fmt: skip
        assert done.ok == requests, done.failed
        self.gateway.ship()
        return done

    def look(self, gate: str, later: float = 10.0) -> Progress:
        """One look at a gate, as of some seconds from now: everything has closed by then."""
        now = datetime.now(UTC) + timedelta(seconds=later)
        progress = process_gate(self.engine, gate, now, settle=timedelta(0))
        assert progress is not None
        return progress

    def state(self, version: str) -> str:
        return str(self.gateway.sql("SELECT state FROM router_version WHERE id = :id", id=version)[0].state)

    @property
    def served(self) -> str:
        """The version that serves the default project in this gateway."""
        return str(self.gateway.state.generation.serving(PROJECT).chain.routers[0].version.id)


@pytest.fixture(scope="session")
def sandbox() -> Iterator[str]:
    with serving(SEED) as url:
        yield url


@pytest.fixture(scope="module")
def live_gateways(
    sandbox: str, engine: Engine, database_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Live]]:
    """`live_gateways(cards, more)`: a fresh log, and a gateway whose file has these cards; the one before stops."""
    running, made = _load("running_gateway"), []

    def make(cards: CardKind = "nonsense", *, deadline: int = 1, epsilon: float = 0.05, more: str = "") -> Live:
        while made:
            made.pop().close()
        _load("gate_log").clear(engine)
        toml = toml_text(SEED, int(sandbox.rsplit(":", 1)[1]), cards)
        toml = toml.replace("epsilon = 0.05", f"epsilon = {epsilon}\nseed = 3") + GATE.format(deadline=deadline) + more
        made.append(running.RunningGateway(toml, tmp_path_factory.mktemp("home"), database_url, {}))
        return Live(made[-1], World(SEED))

    yield make
    while made:
        made.pop().close()


@pytest.fixture
def live(live_gateways: Callable[..., Live]) -> Callable[..., Live]:
    return live_gateways


@pytest.fixture
def project(engine: Engine) -> str:
    """A log without rows, with the default project; its id."""
    _load("gate_log").clear(engine)
    with engine.begin() as connection:
        return ensure_project(connection)


@pytest.fixture
def ana() -> Actor:
    return ANA


@pytest.fixture
def synthetic(engine: Engine, project: str) -> Callable[..., Any]:
    """`synthetic(more)`: an empty log with two router versions; `more` is added to the configuration."""
    made = _load("gate_log").Synthetic
    return lambda more="": made(engine, project, more)
