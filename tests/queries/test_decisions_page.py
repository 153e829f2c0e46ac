"""The list of decisions: paging by key, every filter against Python's own filtering, other projects."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from pointsman.database.copy import copy_rows
from pointsman.database.engine import psycopg_url
from pointsman.errors import UserError
from pointsman.ids import id_at
from pointsman.queries import (
    DecisionFilter,
    Word,
    decisions_page,
    episode_decisions,
    find_decision,
    worker_names,
)

UNTIL = datetime(2026, 6, 15, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def other(empty, database_url, seeding):
    empty()
    return seeding.seed(database_url, until=UNTIL, number=40, project="other", rng_seed=9)


@pytest.fixture(scope="module")
def seeded(other, database_url, seeding):
    return seeding.seed(database_url, until=UNTIL, number=300)


def ids(engine, seeded, **filters):
    page = decisions_page(engine, seeded.project, DecisionFilter(**filters), limit=500)
    return [row.id for row in page.rows]


def expected(seeded, keep):
    return [row["id"] for row in reversed(seeded.decisions) if keep(row)]


def test_pages_give_every_decision_once_newest_first(engine, seeded):
    seen, cursor = [], None
    while True:
        page = decisions_page(engine, seeded.project, DecisionFilter(), before=cursor, limit=37)
        seen += [row.id for row in page.rows]
        cursor = page.older
        if cursor is None:
            break
    assert seen == expected(seeded, lambda row: True)


def test_a_page_that_ends_exactly_has_no_older_one(engine, seeded):
    page = decisions_page(engine, seeded.project, DecisionFilter(), limit=300)
    assert (len(page.rows), page.older) == (300, None)


def test_rows_that_arrive_meanwhile_shift_nothing(engine, seeded, other):
    first = decisions_page(engine, None, DecisionFilter(), limit=10)
    second = decisions_page(engine, None, DecisionFilter(), before=first.older, limit=10)
    assert max(row.id for row in second.rows) < min(row.id for row in first.rows)


def test_a_cursor_that_is_no_id_is_refused(engine, seeded):
    with pytest.raises(UserError, match="before: expected the id of a decision, got 'x'"):
        decisions_page(engine, seeded.project, DecisionFilter(), before="x")


def test_a_row_shows_what_was_logged(engine, seeded, seeding):
    row = decisions_page(engine, seeded.project, DecisionFilter(), limit=1).rows[0]
    decision = seeded.decisions[-1]
    outcome = seeded.outcomes[decision["id"]]
    assert row.id == decision["id"]
    assert row.ask == seeding.HOSTILE
    assert (row.chosen, row.answered) == (decision["chosen"], outcome["worker"])
    assert row.chosen != row.answered
    assert row.decided_at == decision["decided_at"]
    assert row.propensity == decision["propensity"]
    assert row.cost == outcome["cost"]
    assert (row.explored, row.forced, row.outcome) == (True, None, "ok")
    assert row.feedback == (Word("correct", seeded.rows["feedback"][-1]["value"]),)


def test_filters_on_the_decision(engine, seeded):
    assert ids(engine, seeded, worker="atlas") == expected(seeded, lambda r: r["chosen"] == "atlas")
    assert ids(engine, seeded, router_kind="rule") == expected(seeded, lambda r: r["router_kind"] == "rule")
    assert ids(engine, seeded, explored=True) == expected(seeded, lambda r: r["explored"])
    assert ids(engine, seeded, explored=False) == expected(seeded, lambda r: not r["explored"])
    assert ids(engine, seeded, forced=True) == expected(seeded, lambda r: r["forced"])
    assert ids(engine, seeded, forced=False) == expected(seeded, lambda r: not r["forced"])
    assert ids(engine, seeded, forced="direct") == expected(seeded, lambda r: r["forced"] == "direct")
    assert ids(engine, seeded, forced="sticky") == []
    assert ids(engine, seeded, origin="replay") == []


def test_filters_on_the_outcome(engine, seeded):
    outcomes = seeded.outcomes
    assert ids(engine, seeded, status="timeout") == expected(seeded, lambda r: outcomes[r["id"]]["status"] == "timeout")
    slow = ids(engine, seeded, min_latency_ms=700, max_latency_ms=1500)
    assert slow == expected(seeded, lambda r: 700 <= outcomes[r["id"]]["latency_ms"] <= 1500)
    assert 0 < len(slow) < 300


def test_filter_by_time_and_episode(engine, seeded):
    since, until = UNTIL - timedelta(days=3), UNTIL - timedelta(days=2)
    assert ids(engine, seeded, since=since, until=until) == expected(seeded, lambda r: since <= r["decided_at"] < until)
    episode = seeded.decisions[10]["episode_id"]
    assert ids(engine, seeded, episode_id=episode) == expected(seeded, lambda r: r["episode_id"] == episode)
    assert ids(engine, seeded, episode_id="not an id") == []


def test_filter_by_feedback(engine, seeded):
    has = {row["decision_id"] for row in seeded.rows["feedback"]}
    assert ids(engine, seeded, feedback=True) == expected(seeded, lambda r: r["id"] in has)
    assert ids(engine, seeded, feedback=False) == expected(seeded, lambda r: r["id"] not in has)


@pytest.mark.parametrize(
    ("search", "keep"),
    [
        ("sonnet", lambda text: "sonnet" in text),
        ('"list in Python"', lambda text: "list in Python" in text),
        ("sums or letter", lambda text: "sums" in text or "letter" in text),
        ("question -sums", lambda text: "Question" in text and "sums" not in text),
        ("onerror", lambda text: "onerror" in text),
        ("nowhere", lambda text: False),
        ("' OR 1=1; -- &|!()", lambda text: False),
    ],
)
def test_text_search(engine, seeded, search, keep):
    requests = seeded.requests
    assert ids(engine, seeded, search=search) == expected(seeded, lambda row: keep(requests[row["request_id"]]["text"]))


def test_filters_hold_together(engine, seeded):
    found = ids(engine, seeded, search="sonnet", worker="brook", status="ok", explored=False)
    assert found == expected(
        seeded,
        lambda r: (
            r["chosen"] == "brook"
            and not r["explored"]
            and seeded.outcomes[r["id"]]["status"] == "ok"
            and "sonnet" in seeded.requests[r["request_id"]]["text"]
        ),
    )
    assert found


def test_another_projects_rows_are_never_listed(engine, seeded, other):
    mine = set(ids(engine, seeded))
    theirs = {row["id"] for row in other.decisions}
    assert len(mine) == 300
    assert not mine & theirs
    assert len(decisions_page(engine, None, DecisionFilter(), limit=500).rows) == 340


def test_another_project_cannot_take_a_word_back(engine, seeded, other, database_url):
    mine = seeded.rows["feedback"][-1]
    theirs = {
        "id": id_at(UNTIL, b"impostor-x"), "project_id": other.project, "metric": "correct", "value": None,
        "amends": mine["id"], "retracted": True, "created_at": UNTIL,
    }  # fmt: skip
    with psycopg.connect(psycopg_url(database_url)) as connection:
        assert copy_rows(connection, "feedback", [theirs]) == 1
    row = decisions_page(engine, seeded.project, DecisionFilter(), limit=1).rows[0]
    assert row.feedback == (Word("correct", mine["value"]),)


def test_an_episode_oldest_first(engine, seeded, other):
    episode = seeded.decisions[30]["episode_id"]
    rows = episode_decisions(engine, seeded.project, episode)
    assert [row.id for row in rows] == [r["id"] for r in seeded.decisions if r["episode_id"] == episode]
    assert len(rows) == 3
    assert episode_decisions(engine, other.project, episode) == ()
    assert episode_decisions(engine, None, "' or true") == ()


def test_a_completion_id_names_its_decision_in_its_own_project_only(engine, seeded, other):
    call = seeded.rows["call"][7]
    assert find_decision(engine, seeded.project, call["completion_id"]) == call["decision_id"]
    assert find_decision(engine, None, call["completion_id"]) == call["decision_id"]
    assert find_decision(engine, other.project, call["completion_id"]) is None


def test_worker_names(engine, seeded):
    assert worker_names(engine) == ("atlas", "brook", "cinder", "dune")
