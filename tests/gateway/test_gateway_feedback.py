"""Feedback: what fits, what it is about, once by its key, amended and taken back."""

from __future__ import annotations

import time
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from pointsman.ids import id_at, new_id


def feedback(gateway, **fields):
    headers = fields.pop("headers", None)
    return gateway.client.post("/v1/feedback", json=fields, headers=headers)


@pytest.fixture
def answer(gateway, upstream):
    return gateway.chat(f"hello {uuid.uuid4()}")


def decision_of(answer):
    return answer.headers["x-pointsman-decision-id"]


@pytest.mark.parametrize(
    ("metric", "value", "message"),
    [
        ("correct", True, None),
        ("correct", 1, "value: the metric 'correct' is true or false"),
        ("correct", None, "value: the metric 'correct' is true or false"),
        ("thumbs", "up", "value: the metric 'thumbs' is true or false"),
        ("score", 0, None),
        ("score", 0.75, None),
        ("score", 1.01, "value: the metric 'score' is a number from 0 to 1"),
        ("rating", True, "value: the metric 'rating' is a number from 0 to 1"),
        ("quality", "0.5", "value: the metric 'quality' is a number from 0 to 1"),
        ("latency_felt", 12.5, None),
        ("own_flag", False, None),
        ("own", "text", "value: expected true, false or a finite number"),
        ("own", None, "value: expected true, false or a finite number"),
        ("", 1, "value: expected true, false or a finite number"),
        ("comment", None, "the metric 'comment' expects comment, demonstration or better_worker"),
        ("x" * 201, 1, "metric: too long"),
    ],
)
def test_a_value_must_fit_its_metric(gateway, answer, metric, value, message):
    given = feedback(gateway, decision_id=decision_of(answer), metric=metric, value=value)
    if message is None:
        assert given.status_code == 200
        rows = gateway.record(answer)["feedback"]
        assert [(row["metric"], row["value"]) for row in rows] == [(metric, value)]
    else:
        assert given.status_code == 422
        assert given.json()["error"]["message"] == message


SOME_ID = b"01a2285f-b4cf-707b-b85e-2a9d313660b1"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"\xff", 400),
        (b"[]", 422),
        (b'{"comment":"x"}', 422),
        (b'{"decision_id":"nonsense","comment":"x"}', 422),
        (b'{"decision_id":"%s","episode_id":"e","comment":"x"}' % SOME_ID, 422),
        (b'{"decision_id":"%s","comment":5}' % SOME_ID, 422),
        (b'{"decision_id":"%s","comment":"x","surprise":1}' % SOME_ID, 422),
        (b'{"decision_id":"%s","retract":true}' % SOME_ID, 422),
        (b'{"decision_id":"%s","comment":"x","amends":"no"}' % SOME_ID, 422),
        (b'{"decision_id":"%s","demonstration":%s}' % (SOME_ID, b"[" * 5000 + b"]" * 5000), 400),
        (b'{"decision_id":"%s","metric":"score","value":NaN}' % SOME_ID, 400),
        (b'{"decision_id":"%s","comment":"\\ud83d"}' % SOME_ID, 400),
    ],
)
def test_bad_feedback(gateway, body, status):
    given = gateway.client.post("/v1/feedback", content=body, headers={"content-type": "application/json"})
    assert given.status_code == status, given.text
    assert set(given.json()["error"]) == {"message", "type", "param", "code"}


def test_feedback_is_on_record_at_once_and_after_shipping(gateway, answer):
    demonstration = {"role": "assistant", "content": "a\x00b"}
    given = feedback(
        gateway,
        decision_id=decision_of(answer).upper(),
        comment="so so",
        rater="ann",
        better_worker="beta",
        demonstration=demonstration,
    )
    assert given.json() | {"id": 0} == {"id": 0, "decision_id": decision_of(answer), "episode_id": None, "joined": True}
    for record in (gateway.client.get(f"/v1/decisions/{decision_of(answer)}").json(), gateway.record(answer)):
        row = record["feedback"][0]
        assert (row["comment"], row["rater"], row["better_worker"], row["source"]) == ("so so", "ann", "beta", "person")
    assert row["demonstration"]["content"] == "a\ufffdb"


def test_feedback_by_completion_id(gateway, upstream, fake):
    identity = f"chatcmpl-{uuid.uuid4()}"
    upstream.script("m-alpha", fake.reply(fake.completion("x", id=identity)))
    answer = gateway.chat("x")
    assert answer.json()["id"] == identity
    here = feedback(gateway, completion_id=identity, metric="correct", value=True)
    assert here.json()["decision_id"] == decision_of(answer)
    gateway.record(answer)
    gateway.state.recent._by_completion.clear()
    stored = feedback(gateway, completion_id=identity, metric="correct", value=True)
    assert (stored.status_code, stored.json()["decision_id"]) == (200, decision_of(answer))
    unknown = feedback(gateway, completion_id="chatcmpl-unknown", metric="correct", value=True)
    assert (unknown.status_code, unknown.json()["joined"]) == (202, False)


def test_feedback_by_episode(gateway, answer):
    name = f"case-{uuid.uuid4()}"
    named = gateway.chat("x", headers={"x-pointsman-episode-id": name})
    own = answer.headers["x-pointsman-episode-id"]
    for given, episode in ((name, named.headers["x-pointsman-episode-id"]), (own, own)):
        said = feedback(gateway, episode_id=given, metric="resolved", value=True)
        assert (said.status_code, said.json()["episode_id"]) == (200, episode)
    gateway.record(named)
    assert gateway.record(named)["feedback"][0]["metric"] == "resolved"
    other = gateway.key(project="feedback-other", scopes=("feedback",))
    foreign = feedback(
        gateway, episode_id=own, metric="resolved", value=True, headers={"authorization": f"Bearer {other}"}
    )
    assert foreign.status_code == 202 and foreign.json()["episode_id"] != own


def test_young_unknown_ids_are_accepted_and_old_ones_are_not(gateway):
    began = time.monotonic()
    young = feedback(gateway, decision_id=new_id(), metric="correct", value=True)
    assert (young.status_code, young.json()["joined"]) == (202, False)
    assert 1.5 < time.monotonic() - began < 8
    old = id_at(datetime.now(UTC) - timedelta(minutes=11))
    strange = [old, id_at(datetime.now(UTC) + timedelta(days=999)), "f" * 8 + "-ffff-ffff-ffff-" + "f" * 12]
    for identity in strange:
        assert feedback(gateway, decision_id=identity, metric="correct", value=True).status_code == 404
        assert gateway.client.get(f"/v1/decisions/{identity}").status_code == 404
    assert feedback(gateway, episode_id=old, metric="resolved", value=True).status_code == 404


def test_the_same_idempotency_key_is_one_feedback(gateway, answer):
    key = str(uuid.uuid4())
    first = feedback(gateway, decision_id=decision_of(answer), metric="correct", value=True, idempotency_key=key)
    again = feedback(
        gateway, decision_id=decision_of(answer), metric="correct", value=True, headers={"idempotency-key": key}
    )
    assert first.json()["id"] == again.json()["id"]
    assert len(gateway.record(answer)["feedback"]) == 1
    other = gateway.key(project="idempotent", scopes=("serve", "feedback"))
    headers = {"authorization": f"Bearer {other}"}
    theirs = gateway.chat("x", headers=headers)
    said = feedback(
        gateway, decision_id=decision_of(theirs), metric="correct", value=True, idempotency_key=key, headers=headers
    )
    assert said.json()["id"] != first.json()["id"]


def test_amend_and_retract(gateway, answer):
    first = feedback(gateway, decision_id=decision_of(answer), metric="score", value=0.1).json()["id"]
    second = feedback(gateway, decision_id=decision_of(answer), metric="score", value=0.9, amends=first).json()["id"]
    third = feedback(gateway, decision_id=decision_of(answer), metric="score", amends=second, retract=True)
    assert third.status_code == 200
    rows = gateway.record(answer)["feedback"]
    assert [(row["amends"], row["retracted"]) for row in rows] == [(None, False), (first, False), (second, True)]
