"""The sandbox's server: all workers of a world and the stand-in router LLM behind one OpenAI-compatible API.

    POST   /v1/chat/completions   JSON and server-sent events, tools, usage; every worker is a `model`
    GET    /v1/models             the workers and the router LLM, said to be simulated
    GET    /healthz
    GET, POST, DELETE /faults     faults on demand (`faults`), `?worker=` on DELETE
    GET, DELETE /journal          the calls as this side saw them (`serial`), `?after=&limit=`

A bare ASGI application; `serve` runs it. Speed measured against it says nothing about real workers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any
from urllib.parse import parse_qs

from pointsman.errors import RequestError
from pointsman.hashing import text_hash
from pointsman.sandbox import prompts, router_llm
from pointsman.sandbox.answering import Exchange, Pace, fail_early, send_stream, send_whole
from pointsman.sandbox.completions import FINGERPRINT, Completion
from pointsman.sandbox.faults import Fault, FaultBoard
from pointsman.sandbox.http import Receive, Scope, Send, error_body, header, read_object, send_json, until_disconnected
from pointsman.sandbox.roster import SandboxWorker, world_rng
from pointsman.sandbox.serial import Served, ServedCalls
from pointsman.sandbox.truth import truth
from pointsman.sandbox.worker_program import Reply, WorkerProgram
from pointsman.sandbox.world import World

DEFAULT_LATENCY_SCALE = 0.1
"""A tenth of the world's latencies: some 60 ms to the first token, so that a demonstration feels quick."""

ROUTER_SECONDS = 0.15
MAX_CHOICES = 16


class Sandbox:
    """The application's state: programs, faults, served calls."""

    def __init__(self, seed: int, *, latency_scale: float, now: Callable[[], float]) -> None:
        self.world = World(seed)
        table = truth(seed)
        self.programs = {w.name: WorkerProgram(w, seed, table.success[w.name]) for w in self.world.workers}
        self.faults = FaultBoard(self.programs, router_llm.MODEL, world_rng(seed, "faults"))
        self.calls = ServedCalls()
        self._scale = latency_scale
        self._now = now
        self._completions = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        if scope["type"] != "http":
            return
        try:
            await self._route(scope, receive, send)
        except RequestError as error:
            body = error_body(error.message, error.type, error.code, error.param)
            await send_json(send, error.status, body)

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["method"], scope["path"].rstrip("/"):
            case "POST", "/v1/chat/completions":
                await self._chat(Exchange(scope, receive, send))
            case "GET", "/v1/models":
                await send_json(send, 200, self._models())
            case "GET", "/healthz":
                await send_json(send, 200, {"status": "ok", "simulation": True, "seed": self.world.seed})
            case method, "/faults":
                await self._faults(method, scope, receive, send)
            case method, "/journal":
                await self._journal(method, scope, send)
            case method, path:
                raise RequestError(f"no such endpoint: {method} {path}", status=404)

    async def _chat(self, exchange: Exchange) -> None:
        body = await read_object(exchange.receive)
        model = body.get("model")
        if model not in self.programs and model != router_llm.MODEL:
            message = f"The model {model!r} does not exist in this sandbox."
            raise RequestError(message, status=404, code="model_not_found", param="model")
        entry = self._open(str(model), body, header(exchange.scope, "x-request-id"))
        work = asyncio.ensure_future(self._answer(exchange, str(model), body, entry))
        gone = asyncio.ensure_future(until_disconnected(exchange.receive))
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done() and entry.status == "running":
                work.cancel()
                entry.status = "cancelled"
                return
            await work
        except RequestError as error:
            entry.status = str(error.status)
            raise
        finally:
            gone.cancel()

    def _open(self, model: str, body: dict[str, Any], request_id: str | None) -> Served:
        prompt = prompts.last_user_text(prompts.messages_of(body))
        return self.calls.open(
            model,
            model=model,
            stream=body.get("stream") is True,
            started=self._now(),
            prompt_hash=text_hash(prompt),
            request_id=request_id,
        )

    async def _answer(self, exchange: Exchange, model: str, body: dict[str, Any], entry: Served) -> None:
        fault = self.faults.take(model)
        if fault:
            entry.status = "running" if fault.fault in ("stall", "slow") else fault.fault
        completion, pace = self._completed(model, body)
        if fault and await fail_early(exchange, fault, pace):
            return
        if body.get("stream") is True:
            options = body.get("stream_options")
            with_usage = isinstance(options, dict) and options.get("include_usage") is True
            await send_stream(exchange, completion, pace, fault, with_usage=with_usage)
        else:
            await send_whole(exchange, completion, pace, fault)
        entry.status = _ended(fault)

    def _completed(self, model: str, body: dict[str, Any]) -> tuple[Completion, Pace]:
        self._completions += 1
        identity = f"chatcmpl-sandbox-{self.world.seed}-{self._completions}"
        if model == router_llm.MODEL:
            return self._routed(identity, body)
        program = self.programs[model]
        _refuse_unable(program.worker, body)
        count = body.get("n") or 1
        if not isinstance(count, int) or not 1 <= count <= MAX_CHOICES:
            raise RequestError(f"n: expected 1 to {MAX_CHOICES}, got {count!r}", param="n")
        replies: list[Reply] = [program.reply(body, choice) for choice in range(count)]
        completion = Completion(identity, model, int(self._now()), replies, prompts.prompt_tokens(body))
        prompt = prompts.last_user_text(prompts.messages_of(body))
        first = program.latency(prompt, str(body.get("seed", "")))
        rest = completion.usage["completion_tokens"] / program.worker.tokens_per_second
        return completion, Pace(first * self._scale, rest * self._scale)

    def _routed(self, identity: str, body: dict[str, Any]) -> tuple[Completion, Pace]:
        limit = prompts.token_limit(body)
        whole = router_llm.reply(prompts.messages_of(body))
        answer = whole.limited(limit)
        finish: Reply = Reply(answer.text, "length" if len(answer.tokens) < len(whole.tokens) else "stop")
        top = body.get("top_logprobs") or 0
        logprobs = router_llm.openai_logprobs(answer, int(top)) if body.get("logprobs") is True else None
        completion = Completion(
            identity,
            router_llm.MODEL,
            int(self._now()),
            [finish],
            prompts.prompt_tokens(body),
            logprobs,
            len(answer.tokens),
        )
        return completion, Pace(ROUTER_SECONDS * self._scale, 0.0)

    def _models(self) -> dict[str, Any]:
        about = {"object": "model", "created": 0, "owned_by": FINGERPRINT, "simulation": True}
        entries = [{"id": name, "note": "a simulated worker, not a language model"} | about for name in self.programs]
        router = {"id": router_llm.MODEL, "note": "a stand-in for a router LLM, not a language model"} | about
        return {"object": "list", "data": [*entries, router]}

    async def _faults(self, method: str, scope: Scope, receive: Receive, send: Send) -> None:
        if method == "POST":
            fault = self.faults.add(await read_object(receive))
            await send_json(send, 201, asdict(fault))
        elif method == "DELETE":
            self.faults.clear(_query(scope).get("worker"))
            await send_json(send, 200, {"faults": [asdict(fault) for fault in self.faults.listed()]})
        elif method == "GET":
            await send_json(send, 200, {"faults": [asdict(fault) for fault in self.faults.listed()]})
        else:
            raise RequestError(f"{method} is not allowed on /faults", status=405)

    async def _journal(self, method: str, scope: Scope, send: Send) -> None:
        if method == "DELETE":
            self.calls.clear()
            await send_json(send, 200, [])
            return
        if method != "GET":
            raise RequestError(f"{method} is not allowed on /journal", status=405)
        query = _query(scope)
        try:
            after, limit = int(query.get("after", "0")), int(query.get("limit", "20000"))
        except ValueError:
            raise RequestError("after, limit: expected whole numbers") from None
        await send_json(send, 200, self.calls.listed(after=after, limit=max(0, limit)))


def app(seed: int, *, latency_scale: float = DEFAULT_LATENCY_SCALE, now: Callable[[], float] = time.time) -> Sandbox:
    """The ASGI application of a world; `latency_scale` 0 answers at once."""
    return Sandbox(seed, latency_scale=latency_scale, now=now)


def _refuse_unable(worker: SandboxWorker, body: dict[str, Any]) -> None:
    """What a provider refuses: images or tools a worker does not take, a prompt beyond its window."""
    if body.get("tools") and "tools" not in worker.capabilities:
        raise RequestError(f"{worker.name} does not support tools.", param="tools")
    if "images" not in worker.capabilities and prompts.has_images(prompts.messages_of(body)):
        raise RequestError(f"{worker.name} does not support images.", param="messages")
    tokens = prompts.prompt_tokens(body)
    if tokens > worker.context_window:
        raise RequestError(
            f"This model's maximum context length is {worker.context_window} tokens. "
            f"However, your messages resulted in {tokens} tokens.",
            code="context_length_exceeded",
            param="messages",
        )


def _ended(fault: Fault | None) -> str:
    return "ok" if fault is None or fault.fault in ("stall", "slow") else fault.fault


def _query(scope: Scope) -> dict[str, str]:
    parsed = parse_qs(bytes(scope.get("query_string", b"")).decode("latin-1"))
    return {key: values[-1] for key, values in parsed.items()}


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
