"""The response cache at the gateway: opt-in, marked, free, never learned from, and a project's own."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def caching(make_gateway):
    return make_gateway(more="[cache]\nenabled = true\n")


def test_a_repeat_at_temperature_0_calls_nobody_and_is_marked(caching, upstream, fake) -> None:
    upstream.script("m-alpha", fake.text("once"))
    first, again = (caching.chat("same words", temperature=0) for _ in range(2))
    assert first.json() == again.json()
    assert len(upstream.calls) == 1
    assert "x-pointsman-cached" not in first.headers
    assert again.headers["x-pointsman-cached"] == "true"
    assert again.headers["x-pointsman-worker"] == "alpha"
    record = caching.record(again)
    assert record["decision"]["flags"] == ["cached", f"answer_of:{first.headers['x-pointsman-decision-id']}"]
    assert record["decision"]["probabilities"] is None
    assert record["request"]["learn"] is False
    assert record["calls"] == []
    outcome = record["outcome"]
    assert (outcome["status"], outcome["worker"], float(outcome["cost"])) == ("ok", "alpha", 0.0)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"temperature": 0.7},
        {"temperature": 0, "stream": True},
        {"temperature": 0, "store": False},
        {"temperature": 0, "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]},
    ],
    ids=["no temperature", "warm", "stream", "not stored", "tools"],
)
def test_what_is_never_answered_from_it(caching, upstream, fields) -> None:
    for _ in range(2):
        answer = caching.chat("never twice", **fields)
        assert answer.status_code == 200
        assert "x-pointsman-cached" not in answer.headers
    assert len(upstream.calls) == 2


def test_another_restriction_or_project_is_another_key(caching, upstream) -> None:
    caching.chat("mine", temperature=0)
    hint = {"metadata": {"pointsman": {"excluded_workers": ["alpha"]}}}
    elsewhere = caching.chat("mine", temperature=0, **hint)
    assert elsewhere.headers["x-pointsman-worker"] != "alpha"
    other = caching.key(project="cache-other")
    answer = caching.chat("mine", temperature=0, headers={"authorization": f"Bearer {other}"})
    assert "x-pointsman-cached" not in answer.headers


def test_it_is_off_unless_configured(gateway, upstream) -> None:
    for _ in range(2):
        assert "x-pointsman-cached" not in gateway.chat("plain", temperature=0).headers
    assert len(upstream.calls) == 2
