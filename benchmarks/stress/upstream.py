"""The workers of a scenario, as a process of their own: every request gets a serial and a line in a journal.

What a request meets is drawn from the fault rates given at the start, unless the request says it itself
in the field `play`: `pause` (seconds to the first byte), `pieces`, `gap` (seconds between them), `size`
(characters of a piece), `fault`, `reply` (the body, as it is). A journal line says the request's number,
the serial (as which it was answered), the model, what it met, when it began and ended, how many pieces
were sent and whether the caller left. Times are CLOCK_MONOTONIC, which other processes share.

Run by `scene.workers`, on a listening socket that it inherits.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import socket
import struct
import time
from itertools import count
from pathlib import Path
from typing import IO, Any

import uvloop

DEFAULTS: dict[str, Any] = {"pause": 0.1, "pieces": 8, "gap": 0.0, "size": 6, "hang": 30.0}
SEND_BYTES = 64 * 1024
"""What the kernel may hold of an answer: a flood then waits for its reader soon, instead of filling megabytes."""
FAULTS = ("server", "rate_limited", "reset", "hang", "error_body", "cut", "bad_json")
"""`cut` meets streams only, `bad_json` whole replies only: each request can meet six."""


class Workers:
    """What the connections share."""

    def __init__(self, journal: IO[str], settings: dict[str, Any], seed: int) -> None:
        self.settings = {**DEFAULTS, **settings}
        self.rates: dict[str, float] = self.settings.pop("faults", {})
        self.rng = random.Random(seed)
        self.serials = count(1)
        self._journal = journal

    def fault(self, *, stream: bool) -> str | None:
        drawn = self.rng.random()
        for name in FAULTS:
            if name == ("bad_json" if stream else "cut"):
                continue
            drawn -= self.rates.get(name, 0.0)
            if drawn < 0:
                return name
        return None

    def note(self, line: dict[str, Any]) -> None:
        self._journal.write(json.dumps(line) + "\n")


class Line(asyncio.Protocol):
    """One connection: requests in turn, each answered by a task that ends when the caller leaves."""

    def __init__(self, workers: Workers) -> None:
        self.workers = workers
        self.transport: asyncio.Transport
        self._buffer = b""
        self._task: asyncio.Task[None] | None = None
        self._room = asyncio.Event()
        self._room.set()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)

    def connection_lost(self, error: Exception | None) -> None:
        if self._task is not None:
            self._task.cancel()

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, end, rest = self._buffer.partition(b"\r\n\r\n")
        if not end:
            return
        fields = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:])
        size = int(fields.get(b"content-length", b"0"))
        if len(rest) >= size:
            self._buffer = rest[size:]
            self._task = asyncio.get_running_loop().create_task(self._answer(rest[:size]))

    async def _answer(self, body: bytes) -> None:
        # A hostile body may hold an integer beyond int()'s limit.
        request = json.loads(body, parse_int=lambda digits: int(digits) if len(digits) < 1000 else 0)
        play = {**self.workers.settings, **(request.get("play") or {})}
        stream = bool(request.get("stream"))
        line = {
            "serial": next(self.workers.serials),
            "number": number_in(request),
            "model": request.get("model"),
            "met": play.get("fault") or self.workers.fault(stream=stream),
            "began": time.monotonic(),
            "pieces": 0,
            "left": False,
            "whole": False,
        }
        try:
            await self._meet(line, play, stream=stream)
        except asyncio.CancelledError:
            line["left"] = True
        finally:
            line["ended"] = time.monotonic()
            self.workers.note(line)

    async def _meet(self, line: dict[str, Any], play: dict[str, Any], *, stream: bool) -> None:
        met = line["met"]
        await asyncio.sleep(play["hang"] if met == "hang" else play["pause"])
        if met == "server":
            self._whole(500, b'{"error":{"message":"the engine fell over","type":"server_error"}}')
        elif met == "rate_limited":
            self._whole(429, b'{"error":{"message":"slower"}}', b"retry-after: 1\r\n")
        elif met == "reset":
            self._reset()
        elif met == "error_body":
            self._whole(200, b'{"error":{"message":"overloaded","type":"server_error"}}')
        elif met == "bad_json":
            self._whole(200, b'{"id":"chatcmpl-0","choices":[{"message":{"content":"half')
        elif "reply" in play:
            media = b"text/event-stream" if stream else b"application/json"
            self._whole(200, play["reply"].encode(), media=media)
            line["whole"] = True
        elif stream:
            await self._stream(line, play, cut=met == "cut")
        else:
            self._whole(200, json.dumps(completion(line["serial"], play)).encode())
            line["whole"] = True

    def _whole(self, status: int, body: bytes, extra: bytes = b"", media: bytes = b"application/json") -> None:
        head = b"HTTP/1.1 %d X\r\ncontent-type: %b\r\ncontent-length: %d\r\n" % (status, media, len(body))
        self.transport.write(head + extra + b"\r\n" + body)

    def _reset(self) -> None:
        """Closes with RST, as a killed process behind a load balancer does."""
        sock = self.transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    async def _stream(self, line: dict[str, Any], play: dict[str, Any], *, cut: bool) -> None:
        self.transport.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        pieces = play["pieces"]
        piece = chunk(line["serial"], {"content": "w" * play["size"] + " "})
        event = b"data: " + json.dumps(piece).encode() + b"\n\n"
        for number in range(pieces):
            if cut and number == max(pieces // 2, 1):
                self.transport.close()
                return
            self._chunk(event)
            line["pieces"] += 1
            await asyncio.sleep(play["gap"])  # without a gap too: a flood must not starve the other calls
            await self._room.wait()
        last = {**chunk(line["serial"], {}, "stop"), "usage": usage(pieces)}
        self._chunk(b"data: " + json.dumps(last).encode() + b"\n\n")
        self._chunk(b"data: [DONE]\n\n")
        self.transport.write(b"0\r\n\r\n")
        line["whole"] = True

    def _chunk(self, data: bytes) -> None:
        self.transport.write(b"%x\r\n%b\r\n" % (len(data), data))


def number_in(request: dict[str, Any]) -> int | None:
    """The number of an ask: its last message begins `ask N `."""
    messages = request.get("messages")
    content = messages[-1].get("content") if messages else None
    words = content[:40].split(" ", 2) if isinstance(content, str) else []
    return int(words[1]) if len(words) > 1 and words[0] == "ask" and words[1].isdecimal() else None


def usage(output: int) -> dict[str, int]:
    return {"prompt_tokens": 12, "completion_tokens": output, "total_tokens": 12 + output}


def completion(serial: int, play: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "content": ("w" * play["size"] + " ") * play["pieces"]}
    head = {"id": f"chatcmpl-{serial}", "object": "chat.completion", "created": 1, "model": "mock"}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    return {**head, "choices": choices, "usage": usage(play["pieces"])}


def chunk(serial: int, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    head = {"id": f"chatcmpl-{serial}", "object": "chat.completion.chunk", "created": 1, "model": "mock"}
    return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


async def serve(listener: socket.socket, workers: Workers) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    async with await loop.create_server(lambda: Line(workers), sock=listener, backlog=4096):
        await stop.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument("--journal", type=Path, required=True)
    parser.add_argument("--settings", type=json.loads, default={})
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with given.journal.open("a", buffering=1) as journal:
        uvloop.run(serve(socket.socket(fileno=given.fd), Workers(journal, given.settings, given.seed)))


if __name__ == "__main__":
    main()
