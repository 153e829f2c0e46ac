"""The whole record of a decision: its keys and values, as the gateway will return it."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import psycopg
import pytest

from pointsman.database.copy import copy_rows
from pointsman.database.engine import psycopg_url
from pointsman.ids import content_id, id_at
from pointsman.queries import decision_record

UNTIL = datetime(2026, 6, 15, 12, tzinfo=UTC)
KEYS = {
    "decision", "request", "calls", "outcome", "outcomes", "feedback", "router_version", "cards", "prices",
    "children",
}  # fmt: skip


@pytest.fixture(scope="module")
def seeded(empty, database_url, seeding):
    empty()
    return seeding.seed(database_url, until=UNTIL, number=40)


def insert(url, table, *rows):
    with psycopg.connect(psycopg_url(url)) as connection:
        copy_rows(connection, table, rows)


def test_the_record_is_json_with_the_promised_keys(engine, seeded, seeding):
    decision = seeded.decisions[-1]
    record = decision_record(engine, seeded.project, decision["id"])
    assert set(record) == KEYS
    assert json.loads(json.dumps(record)) == record
    assert record["decision"]["id"] == decision["id"]
    assert record["decision"]["probabilities"] == decision["probabilities"]
    assert record["decision"]["router_cost"] == "0.000021"
    assert datetime.fromisoformat(record["decision"]["decided_at"]) == decision["decided_at"]
    assert record["decision"]["decided_at"].endswith("+00:00")
    assert record["request"]["text"] == seeding.HOSTILE
    assert record["outcome"]["status"] == "ok"
    assert record["outcomes"] == record["children"] == []
    assert record["router_version"]["kind"] == "harness"
    assert record["router_version"]["parent_id"] is None


def test_calls_stand_in_the_order_of_attempts(engine, seeded):
    record = decision_record(engine, seeded.project, seeded.decisions[-1]["id"])
    assert [(call["attempt"], call["status"]) for call in record["calls"]] == [(1, "error"), (2, "ok")]
    assert record["calls"][1]["worker"] == record["outcome"]["worker"]


def test_cards_are_those_of_eligible_workers_in_the_order_shown(engine, seeded):
    record = decision_record(engine, seeded.project, seeded.decisions[-1]["id"])
    cards = {worker.name: worker.card for worker in seeded.pool.workers}
    assert list(record["cards"].items()) == [(name, cards[name]) for name in ("brook", "cinder", "atlas")]
    assert record["decision"]["eligible"]["dune"] == "the request has no image"
    assert record["prices"]["atlas"]["output"] == "15"
    assert set(record["prices"]) == {"atlas", "brook"}


def test_an_amendment_keeps_the_first_word_on_record(engine, seeded):
    record = decision_record(engine, seeded.project, seeded.decisions[20]["id"])
    first, second = record["feedback"]
    assert second["amends"] == first["id"]
    assert second["value"] is not first["value"]


def test_children_are_nested_by_parent(engine, database_url, seeded):
    parent = seeded.decisions[5]
    below = [id_at(UNTIL, bytes([number]) * 10) for number in (1, 2, 3)]
    common = {key: parent[key] for key in ("project_id", "request_id", "decided_at", "eligible")}
    insert(
        database_url,
        "decision",
        {**common, "id": below[0], "parent_id": parent["id"], "kind": "role"},
        {**common, "id": below[1], "parent_id": parent["id"], "kind": "vote"},
        {**common, "id": below[2], "parent_id": below[0], "kind": "stop"},
    )
    children = decision_record(engine, seeded.project, parent["id"])["children"]
    assert [child["decision"]["id"] for child in children] == below[:2]
    assert [child["decision"]["kind"] for child in children[0]["children"]] == ["stop"]
    assert children[1]["children"] == []


def test_full_information_rows_have_an_outcome_per_call(engine, database_url, seeded):
    decision, calls = id_at(UNTIL, b"full-infos"), [id_at(UNTIL, bytes([9, n]) * 5) for n in (1, 2)]
    common = {"project_id": seeded.project, "decision_id": decision}
    insert(
        database_url,
        "decision",
        {
            "id": decision,
            "project_id": seeded.project,
            "request_id": content_id("r"),
            "origin": "replay",
            "decided_at": UNTIL,
            "eligible": {"atlas": None, "brook": None},
        },
    )
    for call, worker, score in zip(calls, ("atlas", "brook"), (1.0, 0.25), strict=True):
        insert(
            database_url,
            "call",
            {"id": call, **common, "worker": worker, "status": "ok", "started_at": UNTIL},
        )
        insert(
            database_url,
            "outcome",
            {"id": call, **common, "call_id": call, "origin": "replay", "status": "ok", "worker": worker,
             "score": score, "ended_at": UNTIL},
        )  # fmt: skip
    record = decision_record(engine, seeded.project, decision)
    assert record["outcome"] is None
    assert [(row["call_id"], row["score"]) for row in record["outcomes"]] == [(calls[0], 1.0), (calls[1], 0.25)]
    assert record["request"] is None
    assert record["cards"] == {}


def test_feedback_on_the_episode_belongs_to_the_decision(engine, database_url, seeded):
    decision = seeded.decisions[9]
    identity = id_at(UNTIL, b"an-episode")
    insert(
        database_url,
        "feedback",
        {"id": identity, "project_id": seeded.project, "episode_id": decision["episode_id"],
         "metric": "thumbs", "value": True, "created_at": UNTIL},
    )  # fmt: skip
    record = decision_record(engine, seeded.project, decision["id"])
    assert [row["id"] for row in record["feedback"] if row["metric"] == "thumbs"] == [identity]


@pytest.mark.parametrize("identity", ["", "x", "00000000-0000-7000-8000-000000000000", "'; drop table call"])
def test_an_unknown_decision_is_none(engine, seeded, identity):
    assert decision_record(engine, seeded.project, identity) is None


def test_another_projects_decision_is_none(engine, seeded):
    decision = seeded.decisions[0]["id"]
    assert decision_record(engine, content_id("test-project", "other"), decision) is None
    assert decision_record(engine, None, decision)["decision"]["id"] == decision
