"""Faults that were reported of other gateways, on the way of a request: each tried here, with the right value."""

from __future__ import annotations

import json
import time

import httpx
import pytest

from pointsman.config.load import load_text
from pointsman.errors import ConfigError

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def test_a_stall_is_the_workers_though_the_client_lost_its_patience(make_gateway, upstream, fake):
    """A worker's silence that ends with the client leaving must not hide an outage."""
    gateway = make_gateway("[router]\nchain = ['default']\n[timeouts]\nfirst_token = 30\n")
    upstream.script("m-alpha", fake.stream(fake.ROLE, ending="hang"))
    with pytest.raises(httpx.ReadTimeout):
        gateway.client.post(
            "/v1/chat/completions",
            json={"model": "alpha", "stream": True, "messages": [{"role": "user", "content": "x"}]},
            timeout=5.4,
        )
    upstream.wait_left(upstream.calls[0])
    (identity,) = gateway.state.recent._entries
    record = gateway.record(identity)
    assert (record["outcome"]["status"], record["outcome"]["client_closed"]) == ("client_cancelled", True)
    assert record["outcome"]["reason"].startswith("the client left after 5.")
    assert record["calls"][0]["fault"] == "stalled"


@pytest.mark.parametrize("shown", [False, True], ids=["before content", "after content"])
def test_without_fallbacks_an_error_in_a_stream_is_one_call(gateway, upstream, fake, shown):
    begun = [fake.ROLE, fake.event(fake.delta(content="a"))] if shown else [fake.ROLE]
    broken = fake.event({"error": {"message": "gone", "code": 500}})
    upstream.script("m-alpha", fake.stream([*begun, broken]))
    answer = gateway.chat("x", stream=True, metadata={"pointsman": {"disable_fallbacks": True}})
    assert len(upstream.calls) == 1
    assert answer.status_code == (200 if shown else 502)
    assert gateway.record(answer)["outcome"]["status"] == ("truncated" if shown else "upstream_error")
    assert "[DONE]" not in answer.text


def test_a_stream_whose_only_choice_has_another_index(gateway, upstream, running, fake):
    chunks = [fake.delta(1, content="c"), fake.delta(1, content="d"), fake.delta(1, finish="stop")]
    upstream.script("m-alpha", fake.stream([*(fake.event(chunk) for chunk in chunks), fake.DONE]))
    with gateway.streaming() as answer:
        got = [json.loads(data) for data in running.events(answer)[:-1]]
    assert [choice["index"] for chunk in got for choice in chunk["choices"]] == [1, 1, 1]
    record = gateway.record(answer)
    assert (record["calls"][0]["completion"], record["outcome"]["status"]) == ("cd", "ok")


def test_choices_of_null_are_no_end(gateway, upstream, running, fake):
    odd = {**fake.delta(), "choices": None}
    parts = [odd, fake.delta(content="a"), odd, fake.delta(finish="stop")]
    upstream.script("m-alpha", fake.stream([*(fake.event(part) for part in parts), fake.DONE]))
    with gateway.streaming() as answer:
        assert running.events(answer)[-1] == "[DONE]"
    record = gateway.record(answer)
    assert (record["calls"][0]["completion"], record["outcome"]["status"]) == ("a", "ok")


@pytest.mark.parametrize("streamed", [True, False])
def test_an_empty_body_is_no_answer(gateway, upstream, fake, streamed):
    upstream.script("m-alpha", fake.stream(b"") if streamed else fake.reply(b""))
    answer = gateway.chat("x", stream=streamed)
    assert answer.headers["x-pointsman-worker"] == "beta"
    assert gateway.record(answer)["calls"][0]["fault"] == "malformed"


ROUTER = """
[router]
chain = ["harness", "default"]
model = "m-router"
base_url = "{url}"
default = "beta"
[exploration]
epsilon = 0
"""


def test_an_image_alone_is_routed_to_a_worker_that_sees(make_gateway, upstream, shared_upstream, fake):
    """The router LLM gets a text, whatever a message is made of, and a worker without eyes is never offered."""
    workers = "".join(
        f'[[workers]]\nname = "{name}"\ndescription = "{name}"\nmodel = "m-{name}"\nbase_url = "{{url}}"\n'
        f"capabilities = {capabilities}\n"
        for name, capabilities in (("blind", []), ("alpha", ["images"]), ("beta", ["images"]))
    )
    gateway = make_gateway(ROUTER.format(url=shared_upstream.url), workers)
    upstream.script("m-router", fake.reply(fake.completion("[[ ## option ## ]]\nA")))
    answer = gateway.chat([IMAGE])
    assert answer.status_code == 200
    record = gateway.record(answer)
    assert record["decision"]["eligible"] == {"blind": "no_images", "alpha": None, "beta": None}
    assert record["decision"]["router_kind"] == "harness"
    (asked,) = upstream.of("m-router")
    assert all(isinstance(message["content"], str) for message in asked.json["messages"])
    assert upstream.calls[-1].json["messages"][0]["content"] == [IMAGE]


def test_several_parts_of_text_all_reach_the_router(make_gateway, upstream, shared_upstream, fake):
    gateway = make_gateway(ROUTER.format(url=shared_upstream.url))
    upstream.script("m-router", fake.reply(fake.completion("[[ ## option ## ]]\nA")))
    gateway.chat([{"type": "text", "text": part} for part in ("first", "second", "third")])
    asked = upstream.of("m-router")[0].json["messages"][-1]["content"]
    assert '"first\\nsecond\\nthird"' in asked


@pytest.mark.parametrize(
    ("section", "key"),
    [("[log]\nstore_text = 'true'", "log.store_text"), ("[cache]\nenabled = 'yes'", "cache.enabled"),
     ("[gateway]\nworkers = '2'", "gateway.workers"), ("[exploration]\nepsilon = '0.1'", "exploration.epsilon")],
)  # fmt: skip
def test_a_value_of_another_type_is_said_at_the_start(section, key):
    worker = '[[workers]]\nname = "a"\ndescription = "d"\nmodel = "m"\nbase_url = "http://127.0.0.1:1"\n'
    with pytest.raises(ConfigError, match=rf"^pointsman\.toml: {key}: "):
        load_text(f"{section}\n{worker}")


def test_a_client_that_merges_chunks_by_hand_gets_the_answer(gateway, upstream, fake):
    """As chat front ends do it: lines, `data: `, JSON, the first choice's delta."""
    upstream.script("m-alpha", fake.stream([b": warming up\n\n", fake.words("Hel", "lo", " 🌍")]))
    said, finish, ids = "", None, set()
    with gateway.streaming() as answer:
        for line in answer.iter_lines():
            if not line.startswith("data: ") or line == "data: [DONE]":
                assert line in ("", ": warming up", "data: [DONE]")
                continue
            chunk = json.loads(line[6:])
            assert chunk["object"] == "chat.completion.chunk" and chunk["created"] and chunk["model"]
            ids.add(chunk["id"])
            delta = chunk["choices"][0]["delta"]
            said += delta.get("content") or ""
            finish = chunk["choices"][0].get("finish_reason") or finish
    assert (said, finish, len(ids)) == ("Hello 🌍", "stop", 1)


def test_prompts_that_do_not_fit_never_open_the_breaker(make_gateway, upstream, fake):
    gateway = make_gateway("[router]\nchain = ['default']\ndefault = 'alpha'\n[breaker]\nfailures = 2\n")
    upstream.script("m-alpha", fake.reply({"error": {"message": "prompt is too long", "code": "x"}}, 400))
    for _ in range(50):
        assert gateway.chat("x", model="alpha").status_code == 400
    assert gateway.state.breaker.healthy("alpha") and gateway.state.breaker.open_workers() == []


def test_a_substitute_with_a_smaller_window_is_never_asked(gateway, upstream, fake):
    """A prompt of about 10,000 tokens: gamma has room for 3,000."""
    for model in ("m-alpha", "m-beta"):
        upstream.script(model, fake.reply({"error": {"message": "down"}}, 500))
    answer = gateway.chat("word " * 8_000)
    assert answer.status_code == 502 and answer.json()["error"]["code"] == "server"
    assert {call.json["model"] for call in upstream.calls} == {"m-alpha", "m-beta"}
    assert gateway.record(answer)["decision"]["eligible"]["gamma"] == "context_window"


def test_a_price_that_is_taken_out_is_unknown_from_then_on(make_gateway, upstream):
    gateway = make_gateway()
    assert gateway.record(gateway.chat("x", model="alpha"))["calls"][0]["cost"] is not None
    text = gateway.file.read_text()
    gateway.file.write_text(text.replace("price = { input = 2, cached_input = 1, output = 10 }\n", "", 1))
    admin = {"authorization": f"Bearer {gateway.key(scopes=('admin',))}", "content-type": "application/json"}
    assert gateway.client.post("/v1/reload", content="{}", headers=admin).status_code == 200
    call = gateway.record(gateway.chat("x", model="alpha"))["calls"][0]
    assert call["cost"] is None and call["price_hash"] is None and call["input_tokens"] == 10


def test_a_deadline_ends_the_call_upstream(gateway, upstream, fake):
    upstream.script("m-alpha", fake.hang)
    began = time.monotonic()
    answer = gateway.chat("x", metadata={"pointsman": {"deadline": 0.4}})
    assert answer.status_code == 504 and time.monotonic() - began < 5
    assert upstream.wait_left(upstream.calls[0]) - began < 5
