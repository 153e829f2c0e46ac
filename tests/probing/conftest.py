"""Workers on loopback for probes: a scripted upstream, or a sandbox; and what a run needs around it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from pointsman.config import Config, load_text
from pointsman.identity import ensure_project
from pointsman.upstream.direct import Direct

WORKERS = """
[retries]
attempts = 2
backoff = 0.01
[timeouts]
connect = 2
first_token = 5
total = 5
[[workers]]
name = "alpha"
description = "Alpha."
model = "m-alpha"
base_url = "{url}"
price = {{ input = 100, output = 1000 }}
max_output_tokens = 100
[[workers]]
name = "beta"
description = "Beta."
model = "m-beta"
base_url = "{url}"
price = {{ input = 10, output = 100 }}
max_output_tokens = 100
[[workers]]
name = "gamma"
description = "Gamma: without a price."
model = "m-gamma"
base_url = "{url}"
[[workers]]
name = "vectors"
description = "Makes embeddings."
model = "m-vectors"
base_url = "{url}"
capabilities = ["embeddings"]
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


class Watching:
    """Keeps what a run tells; raises from `check` once `limit` answers are there."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self.seen: list[tuple[int, int | None]] = []
        self.spent = Decimal(0)

    def check(self) -> None:
        if self.limit is not None and self.seen and self.seen[-1][0] >= self.limit:
            raise InterruptedError("enough")

    def progress(self, done: int, total: int | None = None) -> None:
        self.seen.append((done, total))

    def spend(self, amount: Decimal) -> Decimal:
        self.spent += amount
        return self.spent


class Asked:
    """A configuration over the scripted upstream, its database, and shorthands to look at what was logged."""

    def __init__(self, config: Config, engine: Engine) -> None:
        self.config = config
        self.engine = engine
        with engine.begin() as connection:
            self.project = ensure_project(connection)

    def sql(self, query: str, **values: Any) -> list[Any]:
        with self.engine.connect() as connection:
            return list(connection.execute(text(query), values))

    def count(self, table: str, where: str = "true") -> int:
        return int(self.sql(f"SELECT count(*) FROM {table} WHERE {where}")[0][0])

    async def run(self, work: Callable[..., Any], *arguments: Any, config: Config | None = None, **options: Any) -> Any:
        """Runs `probe` and the like with real calls over loopback."""
        known = config or self.config
        async with Direct(known, lambda name: None) as asks:
            common = {"config": known, "asks": asks, "engine": self.engine, "project_id": self.project}
            return await work(*arguments, **common, **options)


@pytest.fixture(scope="session")
def fake() -> Any:
    """The module tests/support/fake_upstream.py."""
    return _load("fake_upstream")


@pytest.fixture(scope="session")
def running() -> Any:
    """The module tests/support/running_gateway.py."""
    return _load("running_gateway")


@pytest.fixture(scope="module")
def shared_upstream(fake: Any) -> Iterator[Any]:
    made = fake.Upstream()
    yield made
    made.close()


@pytest.fixture
def upstream(shared_upstream: Any) -> Any:
    """The scripted upstream, with no script and no call."""
    shared_upstream.clear()
    return shared_upstream


@pytest.fixture
def here(upstream: Any, engine: Engine, empty_database: str) -> Asked:
    return Asked(load_text(WORKERS.format(url=upstream.url)), engine)


@pytest.fixture
def watching() -> type[Watching]:
    return Watching
