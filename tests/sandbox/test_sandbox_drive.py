"""The traffic driver against the sandbox's own server, and against a gateway's double that keeps what it got."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager

import aiohttp
import pytest
import uvicorn

from pointsman.sandbox.drive import drive, wilson
from pointsman.sandbox.serve import serving
from pointsman.sandbox.server import app
from pointsman.sandbox.tasks import tasks
from pointsman.sandbox.truth import routing_accuracy
from pointsman.sandbox.world import World

SEED = 2


class Gateway:
    """Answers as one worker with the gateway's headers; fails every tenth request; keeps feedback."""

    def __init__(self, worker):
        self.worker, self.feedback, self.bodies, self._inner = worker, [], [], app(SEED, latency_scale=0)

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan" or scope["path"] != "/v1/feedback":
            await (self._chat if scope["type"] == "http" else self._inner)(scope, receive, send)
            return
        self.feedback.append(json.loads((await receive())["body"]))
        await send({"type": "http.response.start", "status": 202, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    async def _chat(self, scope, receive, send):
        body = json.loads((await receive())["body"])
        self.bodies.append(body | {"authorization": dict(scope["headers"]).get(b"authorization")})
        number = len(self.bodies)
        if number % 10 == 0:
            await send({"type": "http.response.start", "status": 503, "headers": []})
            await send({"type": "http.response.body", "body": b"{}"})
            return
        names = [(b"x-pointsman-worker", self.worker.encode()), (b"x-pointsman-decision-id", f"d-{number}".encode())]

        async def named(message):
            if message["type"] == "http.response.start":
                message = message | {"headers": [*message["headers"], *names]}
            await send(message)

        whole = json.dumps(body | {"model": self.worker}).encode()
        sent = False

        async def given():
            nonlocal sent
            if sent:
                return await receive()
            sent = True
            return {"type": "http.request", "body": whole, "more_body": False}

        await self._inner(scope, given, named)


@contextmanager
def running(application):
    server = uvicorn.Server(uvicorn.Config(application, port=0, log_level="warning", access_log=False))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        threading.Event().wait(0.005)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/v1"
    finally:
        server.should_exit = True
        thread.join(10)


async def test_a_drive_sends_what_a_client_would_and_gives_feedback():
    worker = World(SEED).names[0]
    gateway, steps = Gateway(worker), []
    with running(gateway) as url:
        report = await drive(
            url, 100, SEED, api_key="k-1", concurrency=4, feedback_share=0.5, on_progress=lambda *at: steps.append(at)
        )
    assert (report.requests, report.ok, report.failed) == (100, 90, {"503": 10})
    assert steps == [(done, 100) for done in range(1, 101)]
    assert report.picks_by_worker == {worker: 90}
    assert 25 <= report.feedback["202"] <= 65
    assert report.interval[0] < report.correct < report.interval[1]
    assert routing_accuracy(SEED, report.picks) < 0.5
    exam = {task.prompt: task for task in tasks(SEED, "train", 100)}
    assert {body["messages"][0]["content"] for body in gateway.bodies} == set(exam)
    for body in gateway.bodies:
        assert body.keys() - {"stream", "stream_options"} == {"model", "messages", "authorization"}
        assert body["model"] == "pointsman"
        assert body["authorization"] == b"Bearer k-1"
    streamed = [body for body in gateway.bodies if body.get("stream")]
    assert 30 <= len(streamed) <= 70
    correct = {item.decision_id: item.correct for item in report.sent if item.feedback_status == 202}
    assert len(gateway.feedback) == len(correct)
    for row in gateway.feedback:
        assert row == {
            "decision_id": row["decision_id"],
            "metric": "correct",
            "value": correct[row["decision_id"]],
            "source": "verifier",
            "idempotency_key": f"sandbox-drive-{row['decision_id']}",
        }
    assert {True, False} == {row["value"] for row in gateway.feedback}


async def test_a_drive_repeats_by_its_seed_and_without_a_gateway_gives_no_feedback():
    worker = World(SEED).names[1]
    with serving(SEED) as url:
        first = await drive(f"{url}/v1", 60, SEED, model=worker, split="held_out")
        again = await drive(f"{url}/v1", 60, SEED, model=worker, split="held_out", concurrency=1)
    outcomes = [sorted((item.task.id, item.correct, item.streamed) for item in r.sent) for r in (first, again)]
    assert outcomes[0] == outcomes[1]
    assert first.ok == 60
    assert set(first.feedback) == {"no decision id"}
    assert first.picks == []


async def test_a_drive_survives_faults_and_counts_them():
    worker = World(SEED).names[0]
    with serving(SEED) as url:
        for kind in ("cut", "malformed", "error_midstream"):
            async with aiohttp.ClientSession(url) as session:
                await session.delete("/faults")
                await session.post("/faults", json={"worker": worker, "fault": kind})
            report = await drive(f"{url}/v1", 10, SEED, model=worker, stream_share=1)
            assert report.ok == 0
            assert sum(report.failed.values()) == 10
            assert report.correct is None
        refused = await drive("http://127.0.0.1:9/v1", 3, SEED)
    assert refused.failed == {"ClientConnectorError": 3}


@pytest.mark.parametrize(
    ("right", "trials", "low", "high"), [(0, 10, 0, 0.2775), (5, 10, 0.2366, 0.7634), (81, 263, 0.2553, 0.3662)]
)
def test_wilson(right, trials, low, high):
    """The third is Newcombe's (1998) worked example."""
    assert wilson(right, trials) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize("kind", ["reset", "cut"])
async def test_connections_break_under_any_asgi_server(kind):
    worker = World(SEED).names[0]
    with running(app(SEED, latency_scale=0)) as url:
        async with aiohttp.ClientSession() as session:
            async with session.post(f"{url[:-3]}/faults", json={"worker": worker, "fault": kind}) as response:
                assert response.status == 201
            for stream in (False, True):
                body = {"model": worker, "messages": [{"role": "user", "content": "hi"}], "stream": stream}
                with pytest.raises(aiohttp.ClientPayloadError):
                    async with session.post(f"{url}/chat/completions", json=body) as response:
                        await response.read()
