"""The learned router's client: asks the router server over a unix socket, and gives up in time for the next link.

One connection per process, kept open, with many questions on it at once: a frame is a length (4 bytes, big-endian)
and JSON. A question is {"id", "version", "text", "endpoints"}, an answer {"id", "scores"} in the order of the
endpoints, null where the model knows none, or {"id", "error"}. A server that is away is asked again after a moment.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import struct
from pathlib import Path
from typing import Any

import msgspec

from harness.routing.base import Ask, RouterFailed, RouterVersion, Scored
from harness.routing.classic import UNKNOWN
from pointsman.pool import Worker
from pointsman.words import RouterKind

DEADLINE = 1.5
AWAY_SECONDS = 1.0
MOST_BYTES = 8_000_000
"""A longer frame ends the connection: neither side ever sends one."""
SOCKET = "router.sock"
_LENGTH = struct.Struct(">I")


def socket_of(home: Path) -> Path:
    """Where the router server of a data folder listens."""
    return home / SOCKET


def framed(value: Any) -> bytes:
    data = msgspec.json.encode(value)
    return _LENGTH.pack(len(data)) + data


async def read_frame(reader: asyncio.StreamReader) -> Any:
    """The next frame's JSON. Raises `ConnectionError` at the end, or where it is no frame."""
    try:
        (size,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        if size > MOST_BYTES:
            raise ConnectionError(f"a frame of {size} bytes")
        return msgspec.json.decode(await reader.readexactly(size))
    except (asyncio.IncompleteReadError, msgspec.DecodeError) as error:
        raise ConnectionError("the connection ended within a frame") from error


class LearnedRouter:
    """A version that the router server computes. Endpoints that it does not know get `UNKNOWN`."""

    kind: RouterKind = "learned"

    def __init__(self, version: RouterVersion, socket: Path, deadline: float = DEADLINE) -> None:
        self.version = version
        self.deadline = deadline
        self._wire = Wire(socket)

    async def score(self, ask: Ask, workers: tuple[Worker, ...], seed: int) -> Scored:
        """Raises `RouterFailed`: `server_away`, `server_error`, `no_known_worker`; the chain holds the deadline."""
        question = {
            "version": self.version.id, "text": ask.text, "endpoints": [worker.endpoint_hash for worker in workers]
        }  # fmt: skip
        answer = await self._wire.ask(question)
        scores = answer.get("scores")
        if not isinstance(scores, list) or len(scores) != len(workers):
            raise RouterFailed("server_error", raw_reply=str(answer.get("error"))[:200])
        known = [isinstance(score, int | float) and math.isfinite(score) for score in scores]
        if not any(known):
            raise RouterFailed("no_known_worker")
        by_worker = {
            worker.name: float(score) if good else UNKNOWN
            for worker, score, good in zip(workers, scores, known, strict=True)
        }
        return Scored(by_worker, flags=() if all(known) else ("unknown_workers",))


class Wire:
    """The connection to the server, opened when first asked, and again once it broke."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._opening: asyncio.Lock | None = None
        self._away_until = 0.0

    async def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """The answer. Raises `RouterFailed("server_away")` where nobody listens or the connection breaks."""
        loop = asyncio.get_running_loop()
        writer = self._writer
        if writer is None or writer.is_closing():
            writer = await self._open(loop)
        number = next(self._numbers)
        answer: asyncio.Future[dict[str, Any]] = loop.create_future()
        self._waiting[number] = answer
        try:
            writer.write(framed({"id": number, **question}))
            return await answer
        except ConnectionError as error:
            raise RouterFailed("server_away") from error
        finally:
            self._waiting.pop(number, None)

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
        if self._writer is not None:
            self._writer.close()

    async def _open(self, loop: asyncio.AbstractEventLoop) -> asyncio.StreamWriter:
        if loop.time() < self._away_until:
            raise RouterFailed("server_away")
        self._opening = self._opening or asyncio.Lock()
        async with self._opening:
            if self._writer is not None and not self._writer.is_closing():
                return self._writer
            try:
                reader, self._writer = await asyncio.open_unix_connection(str(self._socket))
            except OSError as error:
                self._away_until = loop.time() + AWAY_SECONDS
                raise RouterFailed("server_away") from error
            self._reading = loop.create_task(self._read(reader, self._writer))
            return self._writer

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                answer = await read_frame(reader)
                number = answer.get("id") if isinstance(answer, dict) else None
                waiting = self._waiting.get(number) if isinstance(number, int) else None
                if waiting is not None and not waiting.done():
                    waiting.set_result(answer)
        except (ConnectionError, OSError) as error:
            broken = ConnectionError(str(error))
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(broken)
        finally:
            writer.close()
            if self._writer is writer:
                self._writer = None
