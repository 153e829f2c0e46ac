"""A worker that answers at once or in pieces, for load: bare ASGI on loopback, in a thread of this process."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn

Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]

WORDS = ["the", "points", "are", "set", "and", "the", "train", "goes", "on"]
USAGE = {"prompt_tokens": 12, "completion_tokens": len(WORDS), "total_tokens": 12 + len(WORDS)}


@dataclass
class Worker:
    """Pauses `pause` seconds before an answer and between its pieces; counts the requests it got."""

    pause: float = 0.02
    requests: int = 0
    url: str = ""

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        self.requests += 1
        identity = f"chatcmpl-{self.requests}"
        await asyncio.sleep(self.pause)
        if json.loads(body).get("stream"):
            await self._stream(identity, send)
        else:
            message = {"role": "assistant", "content": " ".join(WORDS)}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            await _start(send, b"application/json")
            answer = {"id": identity, "object": "chat.completion", "created": 1, "model": "mock"}
            await _body(send, json.dumps(answer | {"choices": [choice], "usage": USAGE}).encode(), more=False)

    async def _stream(self, identity: str, send: Send) -> None:
        await _start(send, b"text/event-stream")
        head = {"id": identity, "object": "chat.completion.chunk", "created": 1, "model": "mock"}
        for word in WORDS:
            choice = {"index": 0, "delta": {"content": f"{word} "}, "finish_reason": None}
            await _body(send, _event(head | {"choices": [choice]}))
            await asyncio.sleep(self.pause)
        await _body(send, _event(head | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}))
        await _body(send, _event(head | {"choices": [], "usage": USAGE}))
        await _body(send, b"data: [DONE]\n\n", more=False)


def _event(chunk: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


async def _start(send: Send, kind: bytes) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})


async def _body(send: Send, data: bytes, *, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": more})


@contextmanager
def working(pause: float = 0.02) -> Iterator[Worker]:
    """A worker that listens at `worker.url` for the length of the block."""
    worker = Worker(pause)
    listener = socket.create_server(("127.0.0.1", 0))
    worker.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    server = uvicorn.Server(uvicorn.Config(worker, loop="uvloop", http="httptools", lifespan="off", log_level="error"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    try:
        yield worker
    finally:
        server.should_exit = server.force_exit = True
        thread.join(10)


def configuration(worker: Worker, database_url: str | None = None, extra: str = "") -> str:
    """A `pointsman.toml` with two names for the worker, routed without a router LLM, explored now and then."""
    database = f'[database]\nurl = "{database_url}"\n' if database_url else ""
    entries = "".join(
        f'[[workers]]\nname = "{name}"\ndescription = "A worker of the load."\nmodel = "mock"\n'
        f'base_url = "{worker.url}/v1"\nprice = {{ input = 1, output = 2 }}\n'
        for name in ("north", "south")
    )
    return f'{database}{extra}\n[router]\nchain = ["default"]\ndefault = "north"\n{entries}'
