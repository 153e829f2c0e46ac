"""Pages in headless Chromium: how long until figures are there, and until a page has drawn what was asked."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
]  # fmt: skip
PATIENCE = 120_000  # milliseconds
IDLE = "[data-testid='stApp'][data-test-script-state='notRunning']"
BUSY = "[data-testid='stApp'][data-test-script-state='running']"


@contextmanager
def chromium() -> Iterator[Any]:
    if not CHROMIUM.exists():
        raise SystemExit(f"{CHROMIUM} is missing: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        yield browser
        browser.close()


def tab(browser: Any, width: int = 1280) -> Any:
    page = browser.new_page(viewport={"width": width, "height": 2000})
    page.set_default_timeout(PATIENCE)
    return page


def first_paint(page: Any, url: str) -> float:
    """Seconds from the start of navigation until the overview's first figure is visible."""
    start = time.perf_counter()
    page.goto(url, wait_until="commit")
    page.get_by_test_id("stMetricValue").first.wait_for(state="visible")
    return time.perf_counter() - start


def settled(page: Any) -> None:
    page.wait_for_selector(IDLE)


def until_drawn(page: Any, act: Any) -> float:
    """Seconds from an action of the person until the page's script has run and ended."""
    settled(page)
    start = time.perf_counter()
    act()
    page.wait_for_selector(BUSY)
    settled(page)
    return time.perf_counter() - start
