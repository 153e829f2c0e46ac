"""Fixtures of the command line's tests: a home of one's own, the runner, and servers on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from typer.testing import CliRunner

from pointsman.commands.app import build_app
from pointsman.commands.providers import PROVIDERS

WORKERS = """
[[workers]]
name = "small"
description = "Short questions."
model = "small-1"
base_url = "http://127.0.0.1:9/v1"
price = { input = 0.1, output = 0.4 }
context_window = 8192
capabilities = ["tools"]

[[workers]]
name = "large"
description = "Hard questions."
model = "large-1"
base_url = "http://127.0.0.1:9/v1"
api_key_env = "LARGE_KEY"
"""


@dataclass
class FakeServer:
    """Answers `METHOD /path` with what a test puts in `answers`: (status, content) or a function of the body."""

    answers: dict[str, object] = field(default_factory=dict)
    seen: list[tuple[str, dict[str, str], object]] = field(default_factory=list)
    port: int = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def reply(self, line: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        content = json.loads(body) if body else None
        self.seen.append((line, headers, content))
        answer = self.answers.get(line, (404, {"error": {"message": f"no {line} here"}}))
        status, found = answer(content) if callable(answer) else answer
        return status, found if isinstance(found, bytes) else json.dumps(found).encode()


@contextmanager
def _serving(fake: FakeServer):
    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, content = fake.reply(f"{self.command} {self.path}", headers, body)
            self.send_response(status)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = answer

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    fake.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def fake_server():
    """A fake server on a free port of loopback."""
    with _serving(FakeServer()) as fake:
        yield fake


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "home"
    folder.mkdir()
    folder.chmod(0o755)
    return folder


@pytest.fixture
def environment(home, tmp_path) -> dict[str, str | None]:
    """The environment of a command: this test's home and file, a closed port, no keys of providers."""
    keys = dict.fromkeys([provider.api_key_env for provider in PROVIDERS])
    return {
        **keys,
        "POINTSMAN_HOME": str(home),
        "POINTSMAN_PORT": "1",
        "POINTSMAN_CONFIG": str(tmp_path / "pointsman.toml"),
        "LARGE_KEY": None,
        "COLUMNS": "110",
        "TERM": "dumb",
    }


@pytest.fixture
def run(environment) -> Callable:
    """Runs the command line in this process; `result.stdout` and `result.stderr` are apart."""

    def invoke(*arguments: object, stdin: str | None = None, **variables: str):
        runner = CliRunner(env={**environment, **variables})
        given = [str(argument) for argument in arguments]
        return runner.invoke(build_app(plugged_in=[]), given, input=stdin, prog_name="pointsman")

    return invoke


@pytest.fixture
def config(tmp_path) -> Callable:
    """Writes this test's pointsman.toml: a head and two workers. Gives its path."""

    def write(head: str = "", workers: str = WORKERS):
        file = tmp_path / "pointsman.toml"
        file.write_text(head + workers)
        return file

    return write
