"""Silent streams are kept open by comments, or by pings for Anthropic's clients; clients' SDKs do not stumble."""

from __future__ import annotations

import anthropic
import openai
import pytest

USER = [{"role": "user", "content": "x"}]
SETTINGS = """
[gateway]
keep_alive = 0.05
[router]
chain = ["default"]
default = "alpha"
[exploration]
epsilon = 0
"""


@pytest.fixture(scope="module")
def gateway(make_gateway):
    return make_gateway(SETTINGS)


def silent(fake, first: bytes = b""):
    """Content, silence, content, silence, end."""
    so, far = fake.event(fake.delta(content="so ")), fake.event(fake.delta(content="far"))
    rest = fake.event(fake.delta(finish="stop")) + fake.event(fake.usage_chunk()) + fake.DONE
    return fake.stream([first + so, far, rest], pause=0.16)


def test_comments_stand_between_events_of_a_silent_stream(gateway, upstream, fake, running):
    upstream.script("m-alpha", silent(fake))
    answer = gateway.chat("x", stream=True)
    assert 4 <= answer.text.count(": keep-alive\n\n") <= 8
    assert running.contents(answer) == "so far"
    events = answer.text.split("\n\n")
    assert all(event.startswith(("data: ", ": keep-alive")) for event in events if event)
    assert gateway.record(answer)["outcome"]["status"] == "ok"


def test_a_stream_that_goes_on_gets_none(gateway, upstream, fake):
    upstream.script("m-alpha", fake.stream([fake.event(fake.delta(content="y"))] * 20 + [fake.DONE], pause=0.01))
    assert "keep-alive" not in gateway.chat("x", stream=True).text


def test_a_json_answer_gets_none(gateway, upstream, fake):
    upstream.script("m-alpha", fake.reply(fake.completion("late"), after=0.2))
    assert gateway.chat("x").content == gateway.chat("x").content.strip()


@pytest.mark.parametrize("first", [b"", b": hello\n\n", b"id: 7\n", b"event: message\nid: 8\n"])
def test_openais_sdk_survives(gateway, upstream, fake, first):
    """After an id its SDK fails on a comment with a blank line; so then there is none."""
    upstream.script("m-alpha", silent(fake, first))
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="anything", max_retries=0) as client:
        chunks = list(client.chat.completions.create(model="pointsman", messages=USER, stream=True))
        said = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        assert said == "so far"
        upstream.script("m-alpha", silent(fake, first))
        with client.responses.stream(model="pointsman", input="x") as stream:
            assert stream.get_final_response().output_text == "so far"


def test_anthropics_clients_get_pings(gateway, upstream, fake):
    upstream.script("m-alpha", silent(fake))
    body = {"model": "pointsman", "max_tokens": 5, "messages": USER, "stream": True}
    answer = gateway.client.post("/v1/messages", json=body)
    assert 4 <= answer.text.count('event: ping\ndata: {"type":"ping"}\n\n') <= 8
    assert "keep-alive" not in answer.text
    upstream.script("m-alpha", silent(fake))
    with (
        anthropic.Anthropic(base_url=gateway.url, api_key="anything", max_retries=0) as client,
        client.messages.stream(model="pointsman", max_tokens=5, messages=USER) as stream,
    ):
        assert stream.get_final_text() == "so far"


def test_no_comment_comes_after_an_error(gateway, upstream, fake):
    upstream.script("m-alpha", fake.stream([fake.event(fake.delta(content="so")), b"data: {oops\n\n"], pause=0.12))
    answer = gateway.chat("x", stream=True)
    assert answer.text.rstrip().split("\n\n")[-1].startswith('data: {"error"')
