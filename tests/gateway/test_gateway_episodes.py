"""Episodes: given, inferred, new; and the worker that stays within a tool loop."""

from __future__ import annotations

import uuid

import pytest

HEADER = "x-pointsman-episode-id"


def opening() -> list[dict]:
    return [{"role": "system", "content": "be kind"}, {"role": "user", "content": f"hello {uuid.uuid4()}"}]


def turn(messages, answer, said="more"):
    """The conversation one turn on."""
    return [*messages, answer.json()["choices"][0]["message"], {"role": "user", "content": said}]


def tool_turn(messages, identity, result="42"):
    call = {"id": identity, "type": "function", "function": {"name": "f", "arguments": "{}"}}
    return [
        *messages,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": identity, "content": result},
    ]


def calling(fake, identity):
    call = {"id": identity, "type": "function", "function": {"name": "f", "arguments": "{}"}}
    return fake.reply(fake.completion(None, message={"tool_calls": [call]}, finish="tool_calls"))


def source(gateway, answer):
    rows = gateway.sql("SELECT source FROM episode WHERE id = :id", id=answer.headers[HEADER])
    return rows[0][0]


def test_a_conversation_is_recognised_by_its_opening(gateway, upstream):
    messages = opening()
    first = gateway.chat(messages=messages)
    second = gateway.chat(messages=turn(messages, first))
    assert second.headers[HEADER] == first.headers[HEADER]
    assert gateway.chat(messages=turn(opening(), first)).headers[HEADER] != first.headers[HEADER]
    gateway.record(second)
    assert source(gateway, first) == "new"
    record = gateway.record(second)
    assert record["decision"]["episode_id"] == record["outcome"]["episode_id"] == first.headers[HEADER]


def test_without_history_a_request_begins_an_episode(gateway, upstream):
    messages = opening()
    assert gateway.chat(messages=messages).headers[HEADER] != gateway.chat(messages=messages).headers[HEADER]


def test_a_given_episode_by_metadata_header_and_echo(gateway, upstream):
    name = f"ticket-{uuid.uuid4()}"
    first = gateway.chat("a", metadata={"pointsman": {"episode_id": name}, "mine": "1"})
    second = gateway.chat("b", headers={HEADER: name})
    third = gateway.chat("c", headers={HEADER: gateway.chat("new one").headers[HEADER]})
    own = gateway.chat("d", headers={HEADER: third.headers[HEADER]})
    assert second.headers[HEADER] == first.headers[HEADER]
    assert own.headers[HEADER] == third.headers[HEADER]
    assert upstream.calls[0].json["metadata"] == {"mine": "1"}
    gateway.record(second)
    rows = gateway.sql("SELECT source, given FROM episode WHERE id = :id", id=first.headers[HEADER])
    assert [tuple(row) for row in rows] == [("given", name)]


def test_one_name_in_two_projects_is_two_episodes(gateway, upstream):
    name = f"shared-{uuid.uuid4()}"
    keys = [gateway.key(project=f"episodes-{n}", scopes=("serve",)) for n in range(2)]
    answers = [gateway.chat("a", headers={HEADER: name, "authorization": f"Bearer {key}"}) for key in keys]
    assert len({answer.headers[HEADER] for answer in answers}) == 2
    foreign = gateway.chat("a", headers={HEADER: answers[0].headers[HEADER], "authorization": f"Bearer {keys[1]}"})
    assert foreign.headers[HEADER] not in {answer.headers[HEADER] for answer in answers}
    messages = opening()
    first = gateway.chat(messages=messages, headers={"authorization": f"Bearer {keys[0]}"})
    other = gateway.chat(messages=turn(messages, first), headers={"authorization": f"Bearer {keys[1]}"})
    assert other.headers[HEADER] != first.headers[HEADER]


def test_the_worker_stays_within_a_tool_loop(gateway, upstream, fake):
    messages = [{"role": "user", "content": f"beta {uuid.uuid4()}"}]
    identity = f"call_{uuid.uuid4()}"
    upstream.script("m-beta", calling(fake, identity), fake.text("done"))
    first = gateway.chat(messages=messages)
    assert first.headers["x-pointsman-worker"] == "beta"
    looped = tool_turn([{"role": "user", "content": "compacted: no such word"}], identity)
    second = gateway.chat(messages=looped)
    assert second.headers["x-pointsman-worker"] == "beta"
    assert second.headers[HEADER] == first.headers[HEADER]
    decision = gateway.record(second)["decision"]
    assert (decision["forced"], decision["propensity"], decision["draw"]) == ("sticky", 1, None)
    assert decision["router_version_id"] is None and decision["scores"] is None
    reminded = [*looped, {"role": "user", "content": "<system-reminder>be brief</system-reminder>"}]
    assert gateway.record(gateway.chat(messages=reminded))["decision"]["forced"] == "sticky"
    after = gateway.chat(messages=turn(looped, second, "and now?"))
    assert gateway.record(after)["decision"]["forced"] is None
    assert after.headers["x-pointsman-worker"] == "alpha"


def test_a_switch_within_a_tool_loop_is_flagged(gateway, upstream, fake):
    identity = f"call_{uuid.uuid4()}"
    messages = [{"role": "user", "content": f"beta {uuid.uuid4()}"}]
    upstream.script("m-beta", calling(fake, identity))
    gateway.chat(messages=messages)
    for hints in ({"excluded_workers": ["beta"]}, {"allowed_workers": ["gamma"]}):
        looped = tool_turn(messages, identity)
        record = gateway.record(gateway.chat(messages=looped, metadata={"pointsman": hints}))
        assert record["decision"]["flags"] == ["switched_in_tool_loop", *(["cheapest"] * 0)]
        assert record["decision"]["chosen"] != "beta"


def test_the_worker_that_answered_stays_not_the_one_intended(gateway, upstream, fake):
    identity = f"call_{uuid.uuid4()}"
    messages = opening()
    upstream.script("m-alpha", fake.reply({}, 500), fake.text("alpha"))
    upstream.script("m-beta", calling(fake, identity), fake.text("beta"))
    assert gateway.chat(messages=messages).headers["x-pointsman-worker"] == "beta"
    assert gateway.chat(messages=tool_turn(messages, identity)).headers["x-pointsman-worker"] == "beta"


def test_ids_that_a_worker_counts_do_not_join_conversations(gateway, upstream, fake):
    conversations = [[{"role": "user", "content": f"{word} {uuid.uuid4()}"}] for word in ("beta", "other")]
    upstream.script("m-beta", calling(fake, "call_0"))
    upstream.script("m-alpha", calling(fake, "call_0"))
    firsts = [gateway.chat(messages=messages) for messages in conversations]
    assert [first.headers["x-pointsman-worker"] for first in firsts] == ["beta", "alpha"]
    for messages, first in zip(conversations, firsts, strict=True):
        following = gateway.chat(messages=tool_turn(messages, "call_0"))
        assert following.headers[HEADER] == first.headers[HEADER]
        assert following.headers["x-pointsman-worker"] == first.headers["x-pointsman-worker"]
    stranger = gateway.chat(messages=tool_turn(opening(), "call_0"))
    assert stranger.headers[HEADER] not in {first.headers[HEADER] for first in firsts}


def test_tool_calls_without_ids_name_nothing(gateway, upstream, fake):
    call = {"type": "function", "function": {"name": "f", "arguments": "{}"}}
    upstream.script("m-alpha", fake.reply(fake.completion(None, message={"tool_calls": [call]})))
    first = gateway.chat(messages=opening())
    stranger = gateway.chat(messages=tool_turn(opening(), "None"))
    assert stranger.headers[HEADER] != first.headers[HEADER]
    assert gateway.record(first)["calls"][0]["tool_calls"][0]["id"] is None


@pytest.mark.parametrize("given", [True, False])
def test_after_a_restart_postgres_knows_the_episode_and_the_worker(make_gateway, upstream, fake, given):
    gateway = make_gateway()
    identity = f"call_{uuid.uuid4()}"
    messages = [{"role": "user", "content": f"beta {uuid.uuid4()}"}]
    headers = {HEADER: f"restart-{uuid.uuid4()}"} if given else {}
    upstream.script("m-beta", calling(fake, identity), fake.text("done"))
    first = gateway.chat(messages=messages, headers=headers)
    gateway.record(first)
    gateway.stop()
    gateway.start()
    second = gateway.chat(messages=tool_turn(messages, identity), headers=headers)
    assert second.headers[HEADER] == first.headers[HEADER]
    assert second.headers["x-pointsman-worker"] == "beta"
    assert gateway.record(second)["decision"]["forced"] == "sticky"
    gateway.close()


@pytest.mark.parametrize("name", ["", "x" * 201, "a\nb", 7, ["x"]])
def test_a_bad_episode_name_is_refused(gateway, upstream, name):
    answer = gateway.chat("x", metadata={"pointsman": {"episode_id": name}})
    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == "hint episode_id: expected a printable text of 1 to 200 characters"
