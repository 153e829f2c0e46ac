"""A synthetic log for detectors, and a webhook on loopback."""

from __future__ import annotations

import importlib.util
import json
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

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
    made = _load("gate_log").Synthetic
    return lambda more="": made(engine, project, more)


class Webhook:
    """Keeps what is posted to it, and answers with `status`."""

    def __init__(self) -> None:
        self.status = 204
        self.posted: list[dict[str, Any]] = []
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                hook.posted.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                self.send_response(hook.status)
                self.end_headers()

            def log_message(self, *arguments: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/alarms"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    made = Webhook()
    yield made
    made.server.shutdown()
    made.server.server_close()
