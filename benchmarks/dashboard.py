"""The dashboard over a million decisions, measured from outside, in Chromium.

first_paint_s   start of navigation to the overview's figures, server warm, values read anew: worst of the visits
filter_s        Apply to the end of the page's run, 95th percentile over several filters
paging_s        Older to the end of the page's run, 95th percentile
session_mb      what one more open visit adds to the server's memory
server_mb       the server's memory at the end
heavy_at_once   queries of the dashboard that ran at once while ten people opened the overview
rows            decisions in the log

Run: python benchmarks/dashboard.py [--quick] [--json] [--seed S]
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import psycopg
from common.report import run
from pages.browser import chromium, first_paint, settled, tab, until_drawn
from pages.seed import seed
from pages.server import served

from pointsman.database.embedded import embedded
from pointsman.database.engine import make_engine, psycopg_url
from pointsman.database.schema import migrate
from pointsman.rollups.fill import refresh

ROWS, QUICK_ROWS = 1_000_000, 20_000
VISITS, QUICK_VISITS = 5, 2
PEOPLE = 10
FRESH = 16.0  # seconds: longer than the dashboard keeps what it read
QUERIES = ("rivers", "taxes", "french python", "weather -north", "nothing-like-this")


def high(values: list[float]) -> float:
    """The 95th percentile."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]


def filters(page: Any, url: str, rounds: int) -> tuple[list[float], list[float]]:
    """Seconds of each filter and of each turn of the page."""
    page.goto(f"{url}/decisions")
    page.get_by_text("Page 1,").wait_for()
    page.get_by_text("Filters", exact=True).click()
    search = page.get_by_label("Search in the ask")
    search.wait_for()
    applied, turned = [], []
    for query in [*QUERIES, ""] * rounds:
        search.fill(query)
        search.press("Tab")
        applied.append(until_drawn(page, lambda: page.get_by_role("button", name="Apply").click()))
    for low in (900, 1_300, 5_000):  # one that nothing passes: the whole log is looked through
        page.get_by_label("Latency from, ms").fill(str(low))
        applied.append(until_drawn(page, lambda: page.get_by_role("button", name="Apply").click()))
    page.get_by_label("Latency from, ms").fill("")
    until_drawn(page, lambda: page.get_by_role("button", name="Apply").click())
    for _ in range(5 * rounds):
        turned.append(until_drawn(page, lambda: page.get_by_role("button", name="Older").click()))
    return applied, turned


class Watch(threading.Thread):
    """The most statements that the dashboard had running at once."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.url = url
        self.most = 0
        self.over = threading.Event()

    def run(self) -> None:
        query = (
            "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid()"
            " AND backend_type = 'client backend' AND now() - query_start > interval '20 ms'"
        )
        with psycopg.connect(psycopg_url(self.url), autocommit=True) as connection:
            while not self.over.is_set():
                row = connection.execute(query).fetchone()
                self.most = max(self.most, row[0] if row else 0)
                time.sleep(0.01)


def crowd(browser: Any, url: str, server: psutil.Process, database: str) -> tuple[float, int]:
    """(MB that each of ten visits adds, statements at once while all ten opened the overview)."""
    before = server.memory_info().rss
    watch = Watch(database)
    watch.start()
    pages = [tab(browser) for _ in range(PEOPLE)]
    for page in pages:
        page.goto(url, wait_until="commit")
    for page in pages:
        page.get_by_test_id("stMetricValue").first.wait_for(state="visible")
        settled(page)
    watch.over.set()
    watch.join(5)
    grown = (server.memory_info().rss - before) / PEOPLE / 1e6
    for page in pages:
        page.close()
    return grown, watch.most


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    rows = QUICK_ROWS if arguments.quick else ROWS
    visits = QUICK_VISITS if arguments.quick else VISITS
    with tempfile.TemporaryDirectory(prefix="pointsman-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        home.chmod(0o755)
        with embedded(home) as url:
            migrate(url)
            engine = make_engine(url, application="pointsman-benchmark")
            start = time.perf_counter()
            seed(engine, url, rows, arguments.seed)
            seeded = time.perf_counter() - start
            start = time.perf_counter()
            refresh(engine, datetime.now(UTC))
            rolled = time.perf_counter() - start
            engine.dispose()
            with served(home, url) as (address, server), chromium() as browser:
                found = _visit(browser, address, server, url, visits)
    return {**found, "seed_s": round(seeded, 1), "rollup_s": round(rolled, 1), "rows": rows}


def _visit(browser: Any, url: str, server: psutil.Process, database: str, visits: int) -> dict[str, Any]:
    page = tab(browser)
    first_paint(page, url)  # warms the server
    paints = []
    for _ in range(visits):
        page.close()
        time.sleep(FRESH)
        page = tab(browser)
        paints.append(first_paint(page, url))
    applied, turned = filters(page, url, 1 if visits == QUICK_VISITS else 3)
    page.close()
    time.sleep(FRESH)
    grown, at_once = crowd(browser, url, server, database)
    return {
        "first_paint_s": round(max(paints), 3),
        "filter_s": round(high(applied), 3),
        "paging_s": round(high(turned), 3),
        "session_mb": round(grown, 2),
        "server_mb": round(server.memory_info().rss / 1e6, 1),
        "heavy_at_once": at_once,
    }


if __name__ == "__main__":
    run(__doc__, measure, "20,000 decisions and two visits")
