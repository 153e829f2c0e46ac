"""Every fault on demand, as a client of the sandbox's server meets it."""

from __future__ import annotations

import asyncio
import json
import time

import aiohttp
import pytest

from pointsman.sandbox.faults import FAULTS
from pointsman.sandbox.world import World

WORLD = World(1)
WORKER = WORLD.names[0]
ASK = [{"role": "user", "content": "What is 17 times 23?"}]


@pytest.mark.parametrize("kind", ["400", "401", "429", "500", "502", "503"])
async def test_statuses_on_demand(http, kind):
    await http.fault(kind)
    for stream in (False, True):
        status, body, _ = await http.chat(stream=stream)
        assert status == int(kind)
        assert "a fault on demand" in body["error"]["message"]


@pytest.mark.parametrize(("given", "sent"), [(None, "1"), (7, "7"), ("0.5", "0.5"),
    ("Wed, 21 Oct 2099 07:28:00 GMT", "Wed, 21 Oct 2099 07:28:00 GMT")])  # fmt: skip
async def test_retry_after_is_sent_as_given(http, given, sent):
    await http.fault("429", retry_after=given)
    _, _, headers = await http.chat()
    assert headers["retry-after"] == sent


async def test_a_context_fault_is_a_refusal(http):
    await http.fault("context")
    status, body, _ = await http.chat()
    assert (status, body["error"]["code"]) == (400, "context_length_exceeded")


@pytest.mark.parametrize("stream", [False, True])
async def test_a_reset_is_a_real_one(base, http, stream):
    """Over a bare socket: the peer's RST, no byte of an answer."""
    await http.fault("reset")
    host, port = base.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    body = json.dumps({"model": WORKER, "messages": ASK, "stream": stream}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    with pytest.raises(ConnectionResetError):
        await reader.read()
    writer.close()
    assert (await http.journal())[-1]["status"] == "reset"


async def test_a_cut_stream_has_content_and_no_end(http):
    await http.fault("cut")
    got = b""
    with pytest.raises(aiohttp.ClientPayloadError):
        async with http.post(
            "/v1/chat/completions", json={"model": WORKER, "messages": ASK, "stream": True}
        ) as response:
            assert response.status == 200
            async for piece in response.content.iter_any():
                got += piece
    deltas = [json.loads(event)["choices"][0]["delta"] for event in http.events(got)]
    assert deltas[1]["content"]
    assert b"[DONE]" not in got


async def test_a_cut_body_stops_short(http):
    await http.fault("cut")
    with pytest.raises(aiohttp.ClientPayloadError):
        await http.raw_chat()


async def test_malformed(http):
    await http.fault("malformed")
    status, raw = await http.raw_chat()
    assert status == 200
    assert not http.is_json(raw)
    _, raw = await http.raw_chat(stream=True)
    *good, bad = http.events(raw)
    assert json.loads(good[1])["choices"][0]["delta"]["content"]
    assert not http.is_json(bad)


async def test_an_error_with_status_200(http):
    await http.fault("error_200")
    status, body, _ = await http.chat()
    assert (status, body["error"]["type"]) == (200, "overloaded_error")
    assert "choices" not in body
    status, raw = await http.raw_chat(stream=True)
    assert status == 200
    assert [json.loads(event)["error"]["type"] for event in http.events(raw)] == ["overloaded_error"]


async def test_an_error_in_the_middle_of_a_stream(http):
    await http.fault("error_midstream")
    _, raw = await http.raw_chat(stream=True)
    *content, error = map(json.loads, http.events(raw))
    assert content[-1]["choices"][0]["delta"]["content"]
    assert error["error"]["type"] == "server_error"


async def test_no_usage(http):
    await http.fault("no_usage")
    _, body, _ = await http.chat()
    assert "usage" not in body
    _, raw = await http.raw_chat(stream=True, stream_options={"include_usage": True})
    assert b"usage" not in raw
    assert http.events(raw)[-1] == "[DONE]"


async def test_empty(http):
    await http.fault("empty")
    _, body, _ = await http.chat()
    assert body["choices"] == []
    _, raw = await http.raw_chat(stream=True)
    assert [json.loads(event)["choices"][0]["delta"] for event in http.events(raw)[:-1]] == [{}]


async def test_slow_and_stalled(http):
    await http.fault("slow", seconds=0.2, count=1)
    started = time.monotonic()
    assert (await http.chat())[0] == 200
    assert time.monotonic() - started >= 0.2
    await http.fault("stall")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await http.raw_chat(stream=True)
    for _ in range(50):
        statuses = [entry["status"] for entry in await http.journal()]
        if statuses == ["ok", "cancelled"]:
            break
        await asyncio.sleep(0.02)
    assert statuses == ["ok", "cancelled"]


async def test_every_fault_can_be_put_in_force_and_ended(http):
    for kind in FAULTS:
        status, body = await http.fault(kind)
        assert (status, body["fault"]) == (201, kind)
    await http.fault("500", worker="stand-in-router")
    async with http.delete("/faults", params={"worker": WORKER}) as response:
        assert [f["worker"] for f in (await response.json())["faults"]] == ["stand-in-router"]
    assert (await http.chat())[0] == 200
    assert (await http.chat(model="stand-in-router"))[0] == 500
    await http.delete("/faults")
    async with http.get("/faults") as response:
        assert await response.json() == {"faults": []}
    assert (await http.chat(model="stand-in-router"))[0] == 200


async def test_a_count_and_a_share_of_calls(http):
    await http.fault("500", count=2)
    assert [(await http.chat())[0] for _ in range(4)] == [500, 500, 200, 200]
    await http.fault("503", worker="*", share=0.3)
    statuses = [(await http.chat(model=WORLD.names[-1]))[0] for _ in range(200)]
    assert set(statuses) == {200, 503}
    assert 30 <= statuses.count(503) <= 90
    assert (await http.chat(model="stand-in-router"))[0] == 200


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"worker": "nobody"}, "worker: expected one of"),
        ({"fault": "explode"}, "fault: expected one of"),
        ({"count": 0}, "count: expected a whole number from 1, got 0"),
        ({"share": -1}, "share: expected a number from 0, got -1"),
        ({"seconds": "2"}, "seconds: expected a number from 0, got '2'"),
        ({"often": True}, "often: no such key"),
    ],
)
async def test_a_fault_that_says_nothing_is_refused(http, options, message):
    status, body = await http.fault("500", **options)
    assert status == 400
    assert message in body["error"]["message"]
