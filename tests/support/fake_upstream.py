"""A scripted upstream on loopback: raw HTTP/1.1, so that a test says every byte, pause and reset of a worker.

`script(model, *behaviours)` says what the next calls for a provider model meet; the last behaviour
repeats. Without a script a chat is answered with "ok", and embeddings with one vector per input. `calls`
is what arrived, with when each caller left.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

Behaviour = Callable[["Call"], Awaitable[None]]


@dataclass
class Call:
    """One request as it arrived, and the way to answer it."""

    path: str
    headers: dict[str, str]
    body: bytes
    writer: asyncio.StreamWriter
    port: int
    arrived: float = field(default_factory=time.monotonic)
    left: float | None = None

    @property
    def json(self) -> Any:
        return json.loads(self.body, parse_int=lambda digits: int(digits) if len(digits) < 1000 else digits)

    async def head(self, status: int, headers: dict[str, str]) -> None:
        lines = [f"HTTP/1.1 {status} X", *(f"{name}: {value}" for name, value in headers.items())]
        self.writer.write("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n")
        await self.writer.drain()

    async def chunk(self, data: bytes) -> None:
        if data:
            self.writer.write(b"%x\r\n%b\r\n" % (len(data), data))
            await self.writer.drain()

    async def end(self) -> None:
        self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()

    def reset(self) -> None:
        """Closes with RST, as a killed process behind a load balancer does."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


class Upstream:
    """The server, in a thread of its own."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.scripts: dict[str, list[Behaviour]] = {}
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._ready.wait(5)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def script(self, model: str, *behaviours: Behaviour) -> None:
        self.scripts[model] = list(behaviours)

    def clear(self) -> None:
        self.calls.clear()
        self.scripts.clear()

    def of(self, model: str) -> list[Call]:
        return [call for call in self.calls if call.json.get("model") == model]

    def wait_left(self, call: Call, seconds: float = 3.0) -> float:
        """When the caller of a call closed its connection."""
        until = time.monotonic() + seconds
        while call.left is None and time.monotonic() < until:
            time.sleep(0.01)
        assert call.left is not None, "the caller never left"
        return call.left

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0, limit=2**26))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            begun: bytes | None = b""
            while begun is not None:
                begun = await self._serve_one(begun, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _serve_one(
        self, begun: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bytes | None:
        """Answers one request, of which `begun` was read; what was read of the next, None when the caller is gone."""
        try:
            head = begun + await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return None
        first, *lines = head.decode("latin-1").split("\r\n")[:-2]
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        call = Call(first.split(" ")[1], headers, body, writer, writer.get_extra_info("peername")[1])
        self.calls.append(call)
        scripts = self.scripts.get(
            call.json.get("model"), [vectors if call.path.endswith("/embeddings") else text("ok")]
        )
        behaviour = scripts.pop(0) if len(scripts) > 1 else scripts[0]
        work = asyncio.ensure_future(behaviour(call))
        watch = asyncio.ensure_future(reader.read(1))
        await asyncio.wait({work, watch}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done() and (watch.exception() or watch.result() == b""):
            call.left = time.monotonic()
            work.cancel()
        await asyncio.wait({work})
        if not work.cancelled() and isinstance(work.exception(), ConnectionError):
            call.left = time.monotonic()  # noticed by writing
        if writer.is_closing():
            watch.cancel()
            return None
        if not watch.done():
            watch.cancel()
            await asyncio.wait({watch})
        return b"" if watch.cancelled() else watch.result() or None


def completion(content: str | None = "ok", **extra: Any) -> dict[str, Any]:
    """A chat completion; `message` and `usage` may be given."""
    message = {"role": "assistant", "content": content, **extra.pop("message", {})}
    return {
        "id": extra.pop("id", "chatcmpl-1"),
        "object": "chat.completion",
        "created": 1,
        "model": "provider-model",
        "choices": [
            {"index": 0, "message": message, "finish_reason": extra.pop("finish", "stop"), **extra.pop("choice", {})}
        ],
        "usage": extra.pop("usage", {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}),
        **extra,
    }


def delta(index: int = 0, finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """One chunk of a stream with one choice."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "provider-model",
        "choices": [{"index": index, "delta": fields, "finish_reason": finish}],
    }


def usage_chunk(prompt: int = 10, output: int = 5, **details: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output, **details}
    return {**delta(), "choices": [], "usage": usage}


def event(data: Any) -> bytes:
    """A chunk as one event."""
    text_ = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return b"data: " + text_.encode() + b"\n\n"


ROLE = event(delta(role="assistant", content=""))
DONE = b"data: [DONE]\n\n"


def words(*parts: str) -> bytes:
    """A whole stream that says `parts`."""
    events = [ROLE, *(event(delta(content=part)) for part in parts), event(delta(finish="stop"))]
    return b"".join([*events, event(usage_chunk()), DONE])


def text(content: str) -> Behaviour:
    """Says `content`, as JSON or as a stream, whichever was asked for."""

    async def behave(call: Call) -> None:
        if call.json.get("stream"):
            await stream(words(*content))(call)
        else:
            await reply(completion(content))(call)

    return behave


def reply(content: Any, status: int = 200, headers: dict[str, str] | None = None, *, after: float = 0.0) -> Behaviour:
    """A JSON answer (`bytes` as they are)."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()

    async def behave(call: Call) -> None:
        await asyncio.sleep(after)
        await call.head(
            status, {"content-type": "application/json", "content-length": str(len(body)), **(headers or {})}
        )
        call.writer.write(body)
        await call.writer.drain()

    return behave


def stream(
    data: bytes | Sequence[bytes], *, pause: float = 0.0, ending: str = "end", media: str = "text/event-stream"
) -> Behaviour:
    """An event stream in the pieces given, then its `ending`: end, reset, cut (no last chunk) or hang."""
    pieces = [data] if isinstance(data, bytes) else list(data)

    async def behave(call: Call) -> None:
        await call.head(200, {"content-type": media, "transfer-encoding": "chunked"})
        for piece in pieces:
            await call.chunk(piece)
            if pause:
                await asyncio.sleep(pause)
        if ending == "end":
            await call.end()
        elif ending == "reset":
            await asyncio.sleep(0.05)
            call.reset()
        elif ending == "cut":
            call.writer.close()
        else:
            await asyncio.sleep(60)

    return behave


async def vectors(call: Call) -> None:
    """One vector per input, as `/v1/embeddings` answers."""
    given = call.json["input"]
    count = len(given) if isinstance(given, list) else 1
    data = [{"object": "embedding", "index": n, "embedding": [0.5, n]} for n in range(count)]
    usage = {"prompt_tokens": 7 * count, "total_tokens": 7 * count}
    await reply({"object": "list", "data": data, "model": "embedder", "usage": usage})(call)


async def reset(call: Call) -> None:
    """Closes the connection with RST, without a byte."""
    call.reset()


async def hang(call: Call) -> None:
    """Never answers."""
    await asyncio.sleep(60)
