"""9. Slow clients: 500 sockets that send a head at 1 B/s, 200 that read a flood at 10 B/s, 50 that send half a body.

Meanwhile callers ask as they did before, and should get 80% of what they got. The slow must be cut within
15 s (half a second more is allowed for timers and for the accepting): heads and half bodies by their
limits, readers by the gap limit, here 10 s. The readers never leave by themselves, so the gateway has to
let go of them and of their descriptors alone: `descriptors_held` is what it still has beyond those of before,
5 s after everyone else has gone. `buffered_mb_per_stream` is how much the gateway grew over the readers in
the 4 s before the callers come, in which every buffer fills.
"""

from __future__ import annotations

import asyncio
import math
import socket
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import psycopg

from benchmarks.stress.client import payload, request_bytes
from benchmarks.stress.load import Load
from benchmarks.stress.scene import Stage, descriptors, rss_mb, stage, wait_until
from benchmarks.stress.verdict import Size, Verdict
from pointsman.database.engine import psycopg_url

CALLERS = 64
CUT, SLACK = 15.0, 0.5
HOLD = 20.0
FILL = 4.0
FLOOD = {"pause": 0.0, "pieces": 8_000, "size": 2_000}
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow: "
HALF = request_bytes(b"x" * 1_000)[:-900]
SLOW = "the client took no byte within the gap limit"


@dataclass
class Crowd:
    """The slow: how long each was held, infinite where it still is."""

    url: str
    hold: float = HOLD
    heads: list[float] = field(default_factory=list)
    halves: list[float] = field(default_factory=list)
    sockets: list[socket.socket] = field(default_factory=list)

    async def slow_head(self) -> None:
        reader, writer = await asyncio.open_connection(*self._address())
        began = time.monotonic()
        writer.write(HEAD)
        cut = asyncio.ensure_future(_closed(reader))
        while time.monotonic() - began < self.hold and not cut.done():
            writer.write(b"a")
            await asyncio.wait({cut}, timeout=1)
        self.heads.append(time.monotonic() - began if cut.done() else math.inf)
        cut.cancel()
        writer.transport.abort()

    async def half_body(self) -> None:
        reader, writer = await asyncio.open_connection(*self._address())
        began = time.monotonic()
        writer.write(HALF)
        cut = asyncio.ensure_future(_closed(reader))
        await asyncio.wait({cut}, timeout=self.hold)
        self.halves.append(time.monotonic() - began if cut.done() else math.inf)
        cut.cancel()
        writer.transport.abort()

    async def slow_reader(self, number: int) -> None:
        """Reads 10 B a second as long as the crowd stays; its socket is closed with the others."""
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        sock.setblocking(False)
        self.sockets.append(sock)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(sock, self._address())
        await loop.sock_sendall(sock, request_bytes(payload(number, stream=True, play=FLOOD)))
        until = time.monotonic() + self.hold
        while time.monotonic() < until:
            await asyncio.sleep(1)
            try:
                sock.recv(10)
            except BlockingIOError:
                continue
            except OSError:
                return

    def close(self) -> None:
        for sock in self.sockets:
            sock.close()

    def _address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        assert parts.hostname and parts.port
        return parts.hostname, parts.port


async def _closed(reader: asyncio.StreamReader) -> None:
    """Returns when the other side has closed."""
    try:
        while await reader.read(4_096):
            pass
    except ConnectionError:
        pass


def run(size: Size) -> dict[str, Any]:
    verdict = Verdict()
    with stage("[timeouts]\ngap = 10\n", pause=0.02) as at:
        (pid,) = at.gateways()
        load = Load(at.url, rng=size.rng())
        asyncio.run(load.closed(CALLERS, 1))
        before = asyncio.run(_rps(load, size.of(10, 2)))
        baseline, memory = descriptors(pid, at.upstream), rss_mb(pid)
        crowd = Crowd(at.url)
        meanwhile, peak, most = asyncio.run(_crowded(at, load, crowd, size))
        wait_until(lambda: descriptors(pid, at.upstream) <= baseline, 5)
        held = max(descriptors(pid, at.upstream) - baseline, 0)
        crowd.close()
        found = at.settle(load.asks)
        readers = reader_seconds(at.database_url)
    verdict.at_least("rps_kept", meanwhile / before, 0.8)
    verdict.at_most("heads_cut_s", max(crowd.heads), CUT + SLACK)
    verdict.at_most("half_bodies_cut_s", max(crowd.halves), CUT + SLACK)
    verdict.is_("readers_cut", len(readers), len(crowd.sockets))
    verdict.at_most("readers_cut_s", max(readers, default=math.nan), CUT + SLACK)
    verdict.at_most("buffered_mb_per_stream", (peak - memory) / len(crowd.sockets), 1)
    verdict.is_("descriptors_held", held, 0)
    verdict.is_("not_whole", sum(not ask.whole for ask in load.asks), 0)
    verdict.matched(found)
    verdict.note(rps_before=before, rps_meanwhile=meanwhile, descriptors_before=baseline, descriptors_most=most)
    return verdict.as_dict()


async def _rps(load: Load, seconds: float) -> float:
    before, began = len(load.asks), time.monotonic()
    await load.closed(CALLERS, seconds)
    return (len(load.asks) - before) / (time.monotonic() - began)


async def _crowded(at: Stage, load: Load, crowd: Crowd, size: Size) -> tuple[float, float, int]:
    """The callers' asks a second among the slow; the gateway's memory and descriptors at their most."""
    (pid,) = at.gateways()
    slow = [
        *(crowd.slow_head() for _ in range(int(size.of(500, 100)))),
        *(crowd.half_body() for _ in range(int(size.of(50, 20)))),
        *(crowd.slow_reader(next(load.numbers)) for _ in range(int(size.of(200, 40)))),
    ]
    held = asyncio.gather(*slow)
    await asyncio.sleep(FILL)
    peak, most = rss_mb(pid), descriptors(pid, at.upstream)
    rps = await _rps(load, CUT - FILL)
    await held
    return rps, peak, most


def reader_seconds(url: str) -> list[float]:
    """How long the gateway stood by each client that took nothing."""
    with psycopg.connect(psycopg_url(url)) as connection:
        rows = connection.execute("SELECT latency_ms FROM outcome WHERE reason = %s", [SLOW]).fetchall()
    return [row[0] / 1000 for row in rows]
