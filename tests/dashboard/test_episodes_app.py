"""The episodes page: conversations by their newest turn, one of them turn by turn, and texts that stay texts."""

from __future__ import annotations

import pytest


@pytest.fixture
def page(page_of, configure, log, database_url):
    configure(database_url)
    return page_of("episodes")


def ids(page):
    return list(page.dataframe[0].value["Id"])


def newest_first(log):
    return list(dict.fromkeys(row["episode_id"] for row in reversed(log.decisions)))


def test_every_episode_is_listed_once_newest_turn_first(page, log):
    page.run()
    assert not page.exception
    first = ids(page)
    page.button(key="older-episodes").click().run()
    assert first + ids(page) == newest_first(log)
    assert page.button(key="older-episodes").disabled
    table = page.dataframe[0].value.set_index("Id")
    assert set(table["Decisions"]) == {3}


def test_one_episode_is_read_turn_by_turn(page, log, seeding):
    episode = log.decisions[-1]["episode_id"]
    page.query_params["episode"] = episode
    page.run()
    assert not page.exception
    texts = [item.value for item in page.text]
    turns = [row for row in log.decisions if row["episode_id"] == episode]
    asks = [log.requests[row["request_id"]]["text"] for row in turns]
    assert [text for text in texts if text in asks] == asks
    assert seeding.HOSTILE in texts
    assert "<b>Answer</b> to question 299" in texts  # of the fallback: the first call failed
    assert next(item.value for item in page.metric if item.label == "Decisions") == "3"


def test_why_opens_the_decision(page, log):
    page.query_params["episode"] = log.decisions[-1]["episode_id"]
    page.run()
    newest = log.decisions[-1]["id"]
    page.button(key=f"why-{newest}").click().run()
    assert page.query_params["decision"] == newest


@pytest.mark.parametrize("wanted", ["00000000-0000-7000-8000-000000000000", "<b>no</b>"])
def test_an_unknown_episode_is_said_to_be_unknown(page, wanted):
    page.query_params["episode"] = wanted
    page.run()
    assert [error.value for error in page.error] == ["There is no such episode."]
    assert page.text[0].value == wanted
