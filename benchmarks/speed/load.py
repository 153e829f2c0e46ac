"""A closed-loop load on raw sockets: C connections, each sends its next request when its answer has ended.

It reads answers far enough to know where they end (Content-Length, or chunked), checks the status,
and counts events. Times are of `perf_counter`, in seconds.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field


@dataclass
class Load:
    """What a run saw. `latencies` has one entry per request, in seconds."""

    latencies: list[float] = field(default_factory=list)
    events: int = 0
    failed: int = 0
    seconds: float = 0.0


def request_bytes(port: int, body: bytes, key: str | None) -> bytes:
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"
    if key:
        head += f"authorization: Bearer {key}\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


async def run_load(port: int, body: bytes, *, concurrency: int, requests: int, key: str | None = None) -> Load:
    load = Load()
    payload = request_bytes(port, body, key)
    left = requests
    began = time.perf_counter()

    async def client() -> None:
        nonlocal left
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
        while left > 0:
            left -= 1
            start = time.perf_counter()
            writer.write(payload)
            await _read_answer(reader, load)
            load.latencies.append(time.perf_counter() - start)
        writer.close()

    await asyncio.gather(*(client() for _ in range(concurrency)))
    load.seconds = time.perf_counter() - began
    return load


async def _read_answer(reader: asyncio.StreamReader, load: Load) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    if not head.startswith(b"http/1.1 200"):
        load.failed += 1
    if b"content-length:" in head:
        length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
        body = await reader.readexactly(length)
        if b'"choices"' not in body:
            load.failed += 1
        return
    whole = b""
    while not whole.endswith(b"0\r\n\r\n"):
        part = await reader.read(1 << 18)
        if not part:
            load.failed += 1
            return
        load.events += part.count(b"data: ")
        whole = (whole + part)[-16:]
