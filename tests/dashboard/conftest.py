"""A seeded log, a configuration and an environment for the dashboard, as a person would have them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
import time
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

import pytest
import streamlit.config
from playwright.sync_api import expect, sync_playwright
from streamlit.testing.v1 import AppTest

from dashboard import launch
from dashboard.shared import shared
from pointsman.config import Settings, load_config

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


CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
]  # fmt: skip
PATIENCE = 120_000  # milliseconds: tells stuck from slow on a busy machine
expect.set_options(timeout=PATIENCE)


@pytest.fixture
def free_port():
    def found() -> int:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return probe.getsockname()[1]

    return found


@contextmanager
def dashboard(settings):
    """The dashboard as `pointsman dashboard` starts it; its URL."""
    config = load_config(settings.config_file)
    path = os.pathsep.join([str(ROOT), str(ROOT / "platform")])
    process = subprocess.Popen(
        launch.command(settings, config),
        env={**launch.environment(settings), "PYTHONPATH": path},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        url = launch.url(settings, config)
        wait_for(url, process)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=10)


def wait_for(url: str, process: subprocess.Popen) -> None:
    opener = build_opener(ProxyHandler({}))
    for _ in range(300):
        assert process.poll() is None, "streamlit ended at its start"
        try:
            with opener.open(f"{url}/_stcore/health", timeout=1) as answer:
                if answer.status == 200:
                    return
        except (URLError, OSError):
            time.sleep(0.1)
    pytest.fail("streamlit did not answer within 30 s")


@pytest.fixture
def served(configure, log, database_url, free_port):
    """The dashboard over the seeded log, on a free port; its URL."""
    configure(database_url, f"[sandbox]\nseed = 1\n[dashboard]\nport = {free_port()}")
    with dashboard(Settings.read()) as url:
        yield url


@pytest.fixture
def dashboard_of():
    """`dashboard_of(gateway)`: the dashboard beside a running gateway, with its configuration; its URL."""
    with ExitStack() as stack:

        def serve(gateway):
            variables = {"POINTSMAN_HOME": str(gateway.home), "POINTSMAN_CONFIG": str(gateway.file)}
            settings = Settings.read({**os.environ, **variables, "POINTSMAN_PORT": str(gateway.port)})
            return stack.enter_context(dashboard(settings))

        yield serve


@pytest.fixture
def browser_page():
    """`browser_page()`: a visit of its own, with nothing remembered."""
    if not CHROMIUM.exists():
        pytest.fail(f"{CHROMIUM} is missing: apt-get install chromium (Debian package `chromium`)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)

        def opened():
            page = browser.new_page(viewport={"width": 1280, "height": 2000})
            page.set_default_timeout(PATIENCE)
            return page

        yield opened
        browser.close()


@pytest.fixture
def tab(browser_page):
    return browser_page()


@pytest.fixture
def running_gateway(support):
    return support("running_gateway").RunningGateway


@pytest.fixture
def jobs_here(empty_database, engine, tmp_path):
    """`jobs_here(id)`: runs a job that somebody started, in this process, to its end; its view."""
    from pointsman.jobs.attempt import attempt
    from pointsman.jobs.claiming import claim
    from pointsman.jobs.context import JobContext
    from pointsman.jobs.ending import finish
    from pointsman.jobs.store import Jobs
    from pointsman.jobs.workplace import Workplace, new_owner

    settings = Settings.read({"POINTSMAN_HOME": str(tmp_path / "home")}, cwd=tmp_path)
    place = Workplace.read(settings, database_url=empty_database)

    def run(identity):
        held = claim(engine, identity, new_owner())
        assert held is not None
        with JobContext.open(place, engine, held) as context:
            end = attempt(context)
        finish(engine, end)
        return Jobs(engine).get(identity)

    run.place = place
    return run
