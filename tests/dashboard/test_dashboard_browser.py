"""The dashboard in headless Chromium: both pages, one decision, and a hostile prompt that stays text."""

from __future__ import annotations

import time
from contextlib import suppress

from playwright.sync_api import TimeoutError as PlaywrightTimeout
from playwright.sync_api import expect

PATIENCE = 120_000  # milliseconds


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
