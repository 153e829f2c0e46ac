"""A seeded log, a configuration and an environment for the dashboard, as a person would have them."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import streamlit.config
from streamlit.testing.v1 import AppTest

from dashboard.shared import shared

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def log(empty, database_url, seeding):
    """300 decisions, the newest of them a minute old."""
    empty()
    return seeding.seed(database_url, until=datetime.now(UTC) - timedelta(minutes=1), number=300)


@pytest.fixture(autouse=True)
def nothing_shared():
    """Each test is a server of its own: what one read is not shown to the next."""
    shared.clear()


@pytest.fixture
def configure(tmp_path, monkeypatch, seeding):
    """Writes a configuration and points the environment at it; returns the file."""
    streamlit.config.set_option("server.address", "127.0.0.1")

    def write(database: str, extra: str = "", port: int = 1) -> Path:
        file = tmp_path / "pointsman.toml"
        file.write_text(f'[database]\nurl = "{database}"\n{extra}\n{seeding.CONFIG}')
        monkeypatch.setenv("POINTSMAN_HOME", str(tmp_path))
        monkeypatch.setenv("POINTSMAN_CONFIG", str(file))
        monkeypatch.setenv("POINTSMAN_PORT", str(port))
        return file

    yield write
    streamlit.config.set_option("server.address", None)


@pytest.fixture
def app():
    """The whole app: access, then its first page, the overview."""
    return AppTest.from_file(str(ROOT / "dashboard" / "app.py"), default_timeout=20)


# AppTest shows the first run of an app with `st.navigation` and nothing of its reruns: pages that are
# interacted with run by themselves.


@pytest.fixture
def overview_app():
    script = "from dashboard.views import overview\noverview.page()\n"
    return AppTest.from_string(script, default_timeout=20)


@pytest.fixture
def decisions_app():
    script = "from dashboard.views import decisions\ndecisions.page()\n"
    return AppTest.from_string(script, default_timeout=20)


@pytest.fixture
def page_of():
    """One page by itself, by the name of its module."""

    def made(view: str) -> AppTest:
        return AppTest.from_string(f"from dashboard.views import {view}\n{view}.page()\n", default_timeout=20)

    return made


@pytest.fixture
def gateway():
    """A double of the gateway on loopback: keeps what it was sent, answers as it was told."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            server.seen.append((self.path, dict(self.headers), json.loads(body)))
            self.send_response(server.status)
            self.end_headers()
            self.wfile.write(server.reply)

        def log_message(self, *_):
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.seen, server.status, server.reply = [], 200, b'{"id": "f-1"}'
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()
