"""The flywheel's page: what a turn waits for, its story, starting and stopping it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from sqlalchemy import delete, select

from pointsman.flywheel.rule import Information
from pointsman.flywheel.store import LinkRecord, last_turn, locked, open_turn, write
from pointsman.identity import ensure_project
from pointsman.tables import METADATA


@pytest.fixture(scope="module")
def emptied(empty):
    empty()


@pytest.fixture
def project(emptied, engine):
    with engine.begin() as connection:
        for table in ("flywheel_turn", "job", "actor_log"):
            connection.execute(delete(METADATA.tables[table]))
        return ensure_project(connection)


@pytest.fixture
def page(page_of, configure, project, database_url):
    configure(database_url)
    return page_of("flywheel")


def opened(engine, project, *links):
    now = datetime.now(UTC)
    with engine.begin() as connection:
        turn = open_turn(connection, project, "propose", "ana", "700 rows", Information(700, 0, 0.0), "e", None, now)
        for link in links:
            turn = turn.with_link(link)
        write(connection, turn)
    return turn


def test_without_a_turn_it_says_what_one_waits_for_and_a_person_may_force_it(page, engine, project):
    page.run()
    assert not page.exception
    assert any("600 are wanted before a turn pays" in caption.value for caption in page.caption)
    start = next(button for button in page.button if button.label == "Start a turn")
    assert start.disabled
    page.checkbox(key="turn-force").check().run()
    next(button for button in page.button if button.label == "Start a turn").click().run()
    assert not page.exception
    with engine.connect() as connection:
        turn = last_turn(connection, project)
    assert turn is not None and turn.state == "running" and "asked for it" in turn.opened_because
    assert any("is open; the worker takes it on" in done.value for done in page.success)


def test_the_story_is_told_link_by_link_and_texts_are_no_markup(page, engine, project):
    now = datetime.now(UTC).isoformat()
    turn = opened(
        engine, project,
        LinkRecord("labels", "done", now, ("0199aaaa-0000-7000-8000-000000000000",), now, None, {"requests": 700}),
        LinkRecord("evaluate", "refused", now, (), now, "no router pays: <b>x</b> **y**", {"mine": {"value": 0.5}}),
    )  # fmt: skip
    page.run()
    assert not page.exception
    labels = [line.label for line in page.expander]
    assert "labels: done" in labels[0] and "evaluate: refused" in labels[1]
    told = next(text.value for text in page.markdown if "no router pays" in text.value)
    assert "**y**" not in told and "<b>x</b>" not in told
    assert any(code.value == turn.id for code in page.code)


def test_stopping_wants_a_reason_and_leaves_a_record(page, engine, project):
    turn = opened(engine, project)
    page.run()
    stop = next(button for button in page.button if button.label == "Stop the turn")
    stop.click().run()
    assert any("Say why" in warning.value for warning in page.warning)
    page.text_input(key="stop-turn-reason").input("not now")
    next(button for button in page.button if button.label == "Stop the turn").click().run()
    with engine.begin() as connection:
        found = locked(connection, turn.id)
        records = connection.execute(select(METADATA.tables["actor_log"].c.action)).scalars().all()
    assert found is not None and (found.state, found.reason) == ("stopped", "not now")
    assert "turn_stop" in records
