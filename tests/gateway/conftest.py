"""The gateway's request path end to end: a scripted upstream, the real gateway, and its rows from Postgres."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


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


SETTINGS = """
[router]
chain = ["rule", "default"]
default = "alpha"
[[router.rules]]
worker = "beta"
words = ["beta"]
[timeouts]
connect = 1
first_token = 0.6
gap = 0.5
total = 1.5
[retries]
attempts = 3
max_retry_after = 0.3
backoff = 0.01
[breaker]
failures = 100000
[exploration]
epsilon = 0
seed = 1
"""
WORKERS = """
[[workers]]
name = "alpha"
description = "Alpha: knows much."
model = "m-alpha"
base_url = "{url}"
api_key_env = "ALPHA_KEY"
price = {{ input = 2, cached_input = 1, output = 10 }}
context_window = 100000
capabilities = ["tools", "images", "json_schema", "logprobs", "audio"]
[[workers]]
name = "beta"
description = "Beta: knows less."
model = "m-beta"
base_url = "{url}"
price = {{ input = 1, output = 3 }}
context_window = 200000
capabilities = ["tools", "json_schema"]
[[workers]]
name = "gamma"
description = "Gamma: small, without a price."
model = "m-gamma"
base_url = "{url}"
context_window = 3000
"""


@pytest.fixture(scope="session")
def fake() -> Any:
    """The module tests/support/fake_upstream.py: behaviours and what they are made of."""
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


@pytest.fixture(scope="module")
def make_gateway(
    running: Any, shared_upstream: Any, database_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Any]]:
    """`make_gateway(settings, workers)`: a gateway with a home of its own; all stop at the module's end.

    Keyword arguments in upper case are variables of its environment.
    """
    made: list[Any] = []

    def make(settings: str = SETTINGS, workers: str = WORKERS, *, more: str = "", **variables: str) -> Any:
        toml = settings + more + workers.format(url=shared_upstream.url)
        environment = {"ALPHA_KEY": "canary-worker-key-7Q", **variables}
        made.append(running.RunningGateway(toml, tmp_path_factory.mktemp("home"), database_url, environment))
        return made[-1]

    yield make
    for gateway in made:
        if gateway.thread.is_alive():
            gateway.close()


@pytest.fixture(scope="module")
def gateway(make_gateway: Callable[..., Any]) -> Any:
    """A gateway over alpha, beta and gamma that its module shares."""
    return make_gateway()
