"""The dashboard in headless Chromium: both pages, one decision, and a hostile prompt that stays text."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

import pytest
from playwright.sync_api import TimeoutError as PlaywrightTimeout
from playwright.sync_api import expect, sync_playwright

from dashboard import launch
from pointsman.config import Settings, load_config

ROOT = Path(__file__).parents[2]
CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
]  # fmt: skip
PATIENCE = 30_000  # milliseconds
expect.set_options(timeout=PATIENCE)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


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
def served(configure, log, database_url):
    """The dashboard as `pointsman dashboard` starts it, on a free port; its URL."""
    configure(database_url, f"[sandbox]\nseed = 1\n[dashboard]\nport = {free_port()}")
    settings = Settings.read()
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


@pytest.fixture
def tab():
    if not CHROMIUM.exists():
        pytest.fail(f"{CHROMIUM} is missing: apt-get install chromium (Debian package `chromium`)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1280, "height": 2000})
        page.set_default_timeout(PATIENCE)
        yield page
        browser.close()


def open_first_row(page) -> None:
    """Select the table's first row: its box is left, below the header.

    The table is a canvas, drawn some time after its frame is in the page; a click before that is lost, and a
    person would click again.
    """
    heading = page.get_by_role("heading", name="Decision", exact=True)
    deadline = time.monotonic() + PATIENCE / 1000
    while not heading.is_visible() and time.monotonic() < deadline:
        page.locator(".dvn-scroller").first.click(position={"x": 16, "y": 52})
        with suppress(PlaywrightTimeout):
            heading.wait_for(state="visible", timeout=4_000)
    expect(heading).to_be_visible()


def test_a_person_looks_at_overview_and_at_one_decision(served, tab, log, seeding):
    dialogs, strangers = [], []
    tab.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    tab.on("request", lambda request: strangers.append(request.url) if "tracker" in request.url else None)

    newest = log.decisions[-1]["id"]
    # A permanent link must work as a server's very first visit.
    tab.goto(f"{served}/decisions?decision={newest}")
    expect(tab.get_by_role("heading", name="Decision", exact=True)).to_be_visible(timeout=PATIENCE)
    expect(tab.get_by_text(seeding.HOSTILE, exact=True).first).to_be_visible()

    tab.goto(served)
    expect(tab.get_by_role("heading", name="Overview")).to_be_visible(timeout=PATIENCE)
    expect(tab.get_by_text("Simulated workers: this pool is the sandbox")).to_be_visible()
    tab.get_by_text("All", exact=True).click()
    expect(tab.get_by_test_id("stMetricValue").first).to_have_text("300")
    expect(tab.get_by_label("Decisions over time, stacked by the worker chosen", exact=True)).to_be_visible()
    expect(tab.get_by_role("heading", name="Workers")).to_be_visible()

    tab.get_by_role("link", name="Decisions").click()
    expect(tab.get_by_role("heading", name="Decisions")).to_be_visible()
    open_first_row(tab)
    assert f"decision={newest}" in tab.url

    expect(tab.get_by_text(seeding.HOSTILE, exact=True).first).to_be_visible()
    expect(tab.get_by_text("<b>Answer</b> to question 299")).to_be_visible()
    expect(tab.get_by_text("parse status: repaired")).to_be_visible()
    expect(tab.get_by_role("button", name="Give feedback")).to_be_visible()
    assert tab.locator("img[src='x'], img[src*='tracker']").count() == 0
    assert (dialogs, strangers) == ([], [])
