"""Every page, whatever the log holds: nothing, one row, texts of any size and script, or no database at all."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

PAGES = ("overview", "decisions", "episodes", "review", "workers", "routers", "flywheel", "jobs", "data_sets")
HUGE = "word " * 200_000
TEXTS = (
    HUGE,
    "مرحبا بالعالم، كيف حالك؟ שלום עולם",
    "👩‍👩‍👧‍👦 🏳️‍🌈 ́̈",
    "\u202egnirts desrever\u202c \u0000".replace("\u0000", "�"),
)


@pytest.mark.parametrize("view", PAGES)
def test_without_a_database_the_page_says_so(view, page_of, configure, tmp_path):
    configure(f"postgresql://nobody@/none?host={tmp_path}")
    page = page_of(view).run()
    assert not page.exception
    assert [error.value for error in page.error] == ["The database does not answer."]


@pytest.fixture(scope="module")
def nothing(empty, database_url):
    empty()
    return database_url


@pytest.mark.parametrize("view", PAGES)
def test_an_empty_log_is_explained(view, page_of, configure, nothing):
    configure(nothing)
    page = page_of(view).run()
    assert not page.exception
    assert page.error == [] and (page.info or page.caption)


@pytest.fixture(scope="module")
def odd(empty, database_url, engine, seeding):
    """Four decisions an hour apart, of far away time zones, with texts that are hard to show."""
    empty()
    log = seeding.seed(database_url, until=datetime.now(UTC), number=4, spread=timedelta(hours=4))
    with engine.begin() as connection:
        for row, words in zip(log.rows["request"], TEXTS, strict=True):
            connection.execute(text("UPDATE request SET text = :text WHERE id = :id"), {"text": words, "id": row["id"]})
        connection.execute(text("UPDATE call SET completion = :text WHERE status = 'ok'"), {"text": TEXTS[1]})
    return log


@pytest.mark.parametrize("view", PAGES)
def test_odd_texts_are_shown(view, page_of, configure, odd, database_url):
    configure(database_url)
    page = page_of(view).run()
    assert not page.exception
    assert page.error == []


@pytest.mark.parametrize("position", range(4))
def test_a_decision_and_its_episode_with_an_odd_text(position, page_of, configure, odd, database_url):
    configure(database_url)
    row = odd.decisions[position]
    for view, parameter, wanted in (("decisions", "decision", row["id"]), ("episodes", "episode", row["episode_id"])):
        page = page_of(view)
        page.query_params[parameter] = wanted
        page.run()
        assert not page.exception
        shown = [item.value for item in (*page.code, *page.text)]
        assert any(TEXTS[position][:20_000].strip() in value for value in shown)


@pytest.mark.parametrize("view", PAGES)
def test_a_project_with_one_row(view, page_of, configure, odd, engine, database_url, seeding):
    one = seeding.seed(database_url, until=datetime.now(UTC), number=1, project=f"one {view}")
    configure(database_url, f'[dashboard]\nprojects = ["one {view}"]')
    page = page_of(view).run()
    assert not page.exception
    assert page.error == []
    assert one.decisions
