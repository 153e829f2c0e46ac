"""A request that a worker's API has no word for: said before any call, and another worker answers where one can."""

from __future__ import annotations

import pytest

WORKERS = """
[[workers]]
name = "alpha"
description = "Speaks Anthropic's API."
model = "m-alpha"
base_url = "{url}"
quirks = {{ api = "anthropic" }}
[[workers]]
name = "beta"
description = "Speaks chat completions."
model = "m-beta"
base_url = "{url}"
"""
STRANGE = [{"role": "user", "content": "x"}, {"role": "function", "name": "f", "content": "y"}]


@pytest.fixture(scope="module")
def gateway(make_gateway):
    return make_gateway(workers=WORKERS)


def test_a_refusal_of_ours_is_no_call(gateway, upstream):
    answer = gateway.chat(messages=STRANGE, model="alpha")
    assert answer.status_code == 400
    assert "messages[1].role: this worker knows no such role" in answer.json()["error"]["message"]
    record = gateway.record(answer)
    assert record["calls"] == [] and upstream.calls == []
    assert (record["outcome"]["status"], record["outcome"]["calls"]) == ("rejected", 0)


def test_another_worker_answers_and_the_intended_one_stays_on_record(gateway, upstream):
    answer = gateway.chat(messages=STRANGE)
    assert (answer.status_code, answer.headers["x-pointsman-worker"]) == (200, "beta")
    record = gateway.record(answer)
    assert record["decision"]["chosen"] == "alpha" and record["outcome"]["worker"] == "beta"
    assert [call["attempt"] for call in record["calls"]] == [1]


def test_a_substitute_that_cannot_does_not_hide_the_first_failure(gateway, upstream, fake):
    upstream.script("m-beta", fake.reply({"error": {"message": "down"}}, 500))
    answer = gateway.chat("beta please", messages=[*STRANGE, {"role": "user", "content": "beta"}])
    assert answer.status_code == 502 and answer.json()["error"]["code"] == "server"
    assert {call["worker"] for call in gateway.record(answer)["calls"]} == {"beta"}
