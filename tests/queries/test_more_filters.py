"""Filters that need more than a decision's own columns: tag, key, reward, and routers that disagree."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from sqlalchemy import text

from pointsman.ids import new_id
from pointsman.queries import DecisionFilter, decisions_page
from pointsman.queries.sets import filter_json, filter_of

PICKS = '{"picks": [{"part": "serving", "worker": "CHOSEN"}, {"part": "shadow", "worker": "OTHER"}]}'
ASSIGN = {
    3: ("UPDATE request SET tags = '{mathematics,hard}' WHERE id = :request", None),
    5: ("UPDATE decision SET pattern = 'trinity' WHERE id = :id", None),
    7: ("UPDATE decision SET shadow_picks = CAST(:picks AS jsonb) WHERE id = :id", "dune"),
    8: ("UPDATE decision SET shadow_picks = CAST(:picks AS jsonb) WHERE id = :id", None),
}


@pytest.fixture(scope="module")
def small(empty, database_url, engine, seeding):
    """Twelve decisions by position; 3 has tags, 5 a pattern, 7 a shadow that disagrees, 8 one that agrees, 4 a key,
    9 and 10 rewards of 0.2 and 0.9."""
    empty()
    log = seeding.seed(database_url, until=datetime.now(UTC), number=12)
    key = new_id()
    with engine.begin() as connection:
        for position, (statement, other) in ASSIGN.items():
            row = log.decisions[position]
            picks = PICKS.replace("CHOSEN", row["chosen"]).replace("OTHER", other or row["chosen"])
            values = {"id": row["id"], "request": row["request_id"], "picks": picks}
            wanted = {name: value for name, value in values.items() if f":{name}" in statement}
            connection.execute(text(statement), wanted)
        connection.execute(
            text(
                "INSERT INTO api_key (id, project_id, hash, prefix, scopes, created_at)"
                " VALUES (:id, :project, 'h', 'pm_abc', '{serve}', now())"
            ),
            {"id": key, "project": log.project},
        )
        connection.execute(
            text("UPDATE request SET key_id = :key WHERE id = :id"),
            {"key": key, "id": log.decisions[4]["request_id"]},
        )
        for position, value in ((9, 0.2), (10, 0.9)):
            connection.execute(
                text(
                    "INSERT INTO reward (spec_hash, outcome_id, project_id, decision_id, origin, value, terms,"
                    " computed_at) VALUES ('s', :id, :project, :id, 'traffic', :value, '{}', now())"
                ),
                {"id": log.decisions[position]["id"], "project": log.project, "value": value},
            )
    return log, key


@pytest.mark.parametrize(
    ("conditions", "positions"),
    [
        ({"tag": "hard"}, [3]),
        ({"tag": "har"}, []),
        ({"pattern": "trinity"}, [5]),
        ({"disagreement": True}, [7]),
        ({"disagreement": False, "tag": "hard"}, [3]),
        ({"key": "pm_a"}, [4]),
        ({"key": "pm_%"}, []),  # no pattern of SQL
        ({"min_reward": 0.5}, [10]),
        ({"max_reward": 0.5}, [9]),
        ({"min_reward": 0.0, "max_reward": 1.0}, [10, 9]),
        ({"search": "question", "tag": "mathematics"}, [3]),
    ],
)
def test_what_each_lets_through(small, engine, conditions, positions):
    log, _ = small
    found = decisions_page(engine, log.project, DecisionFilter(**conditions))
    assert [row.id for row in found.rows] == [log.decisions[position]["id"] for position in positions]


def test_a_key_by_its_id_and_never_another_projects(small, engine):
    log, key = small
    assert len(decisions_page(engine, log.project, DecisionFilter(key=key)).rows) == 1
    assert decisions_page(engine, new_id(), DecisionFilter(key=key)).rows == ()


def test_those_that_do_not_disagree_are_all_the_others(small, engine):
    log, _ = small
    assert len(decisions_page(engine, log.project, DecisionFilter(disagreement=False)).rows) == 11


def test_a_saved_filter_comes_back_as_it_was():
    wanted = DecisionFilter(tag="hard", min_reward=0.5, disagreement=True, since=datetime(2026, 1, 2, tzinfo=UTC))
    assert filter_of(filter_json(wanted)) == wanted


def test_words_that_are_common_and_never_together_find_nothing_and_settings_stay(small, engine, monkeypatch):
    log, _ = small
    both = DecisionFilter(search="question nowhere")
    assert decisions_page(engine, log.project, both).rows == ()
    monkeypatch.setattr("pointsman.queries.decisions.FEW", 3)  # more are found: the other way to the same page
    found = decisions_page(engine, log.project, DecisionFilter(search="question"))
    asks = [log.requests[row["request_id"]]["text"] for row in reversed(log.decisions)]
    assert [row.ask for row in found.rows] == [ask for ask in asks if ask.lower().startswith("question")]
    with engine.connect() as connection:
        assert connection.execute(text("SHOW enable_seqscan")).scalar_one() == "on"
