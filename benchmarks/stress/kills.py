"""3. `kill -9` of the gateway at random moments, 100 times, while 50 callers stream and repeat what broke off.

A repeat carries the `Idempotency-Key` of the first try, and goes on until it is answered, beside the
caller's next ask. Nothing that a caller was told may be missing or double in the log, every decision has
to end within 60 s of the last start, and no half line may be left. `ok_twice` counts asks with two
outcomes `ok`: the first answer was logged, and the kill came before its last byte or its key was kept. A
key that a killed gateway held is free after half a minute, so with kills every few seconds a repeat may be
cut again and again; `never_answered` are those still without an answer a minute after the last kill.
"""

from __future__ import annotations

import asyncio
import math
import os
import signal
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import psycopg

from benchmarks.common.ledger import await_shipped
from benchmarks.stress.client import Ask, payload
from benchmarks.stress.load import Load
from benchmarks.stress.scene import Stage, stage
from benchmarks.stress.verdict import Size, Verdict, quantile
from pointsman.database.engine import psycopg_url

CALLERS = 50
START_SECONDS = 30.0
REPEAT_SECONDS = 60.0
PLAY = {"pause": 0.05, "pieces": 10, "gap": 0.02}


@dataclass
class Callers:
    """Who ask, and repeat. `unanswered` are numbers that no repeat got an answer for."""

    load: Load
    repeats: set[asyncio.Task[None]] = field(default_factory=set)
    unanswered: list[int] = field(default_factory=list)
    ended: float = math.inf  # when the last kill was over

    async def run(self) -> None:
        await asyncio.gather(*(self._caller() for _ in range(CALLERS)))
        while self.repeats:
            await asyncio.wait(set(self.repeats))

    async def _caller(self) -> None:
        client = self.load.client()
        while not self.load.stopping:
            number = next(self.load.numbers)
            body = payload(number, stream=True, play=PLAY)
            if not (await self._try(client, number, body)).whole:
                task = asyncio.create_task(self._repeat(number, body))
                self.repeats.add(task)
                task.add_done_callback(self.repeats.discard)
                await asyncio.sleep(0.05)
        client.close()

    async def _try(self, client: Any, number: int, body: bytes) -> Ask:
        ask = Ask(number, True)
        self.load.asks.append(ask)
        return await client.send(ask, body, {"idempotency-key": f"ask-{number}"})  # type: ignore[no-any-return]

    async def _repeat(self, number: int, body: bytes) -> None:
        client = self.load.client()
        while time.monotonic() < self.ended + REPEAT_SECONDS:
            await asyncio.sleep(0.3)
            ask = await self._try(client, number, body)
            if ask.whole:
                break
            await asyncio.sleep(min(ask.retry_after or 0, 5))
        else:
            self.unanswered.append(number)
        client.close()


def run(size: Size) -> dict[str, Any]:
    verdict = Verdict()
    rounds = int(size.of(100, 4))
    with stage() as at:
        callers = Callers(Load(at.url, rng=size.rng()))
        back = asyncio.run(_kill(at, callers, rounds))
        asks = callers.load.asks
        began = time.monotonic()
        await_shipped(at.database_url, at.served.home / "journal", 90)
        settled = time.monotonic() - began
        found = at.settle(asks, repeated=True)
        twice = _ok_twice(at.database_url)
        rejected = (at.served.home / "journal" / "rejected.log").exists()
    verdict.matched(found)
    verdict.at_most("all_ended_s", settled, 60)
    verdict.is_("half_rows", rejected, False)
    verdict.is_("never_answered", len(callers.unanswered), 0)
    told = sum(ask.decision is not None for ask in asks)
    cut = sum(ask.decision is not None and ask.status == 200 and not ask.whole for ask in asks)
    conflicts = sum(ask.status == 409 for ask in asks)
    verdict.note(rounds=rounds, tries=len(asks), told=told, cut_in_the_middle=cut, repeats_met_409=conflicts)
    verdict.note(ok_twice=twice, back_p50_s=quantile(back, 0.5), back_worst_s=max(back))
    return verdict.as_dict()


async def _kill(at: Stage, callers: Callers, rounds: int) -> list[float]:
    """Seconds from each kill until as many asks as there are callers were answered again."""
    back: list[float] = []
    load = callers.load
    task = asyncio.create_task(callers.run())
    for _ in range(rounds):
        await asyncio.sleep(load.rng.uniform(0, 2))
        (victim,) = at.gateways()
        whole = sum(ask.whole for ask in load.asks)
        os.kill(victim, signal.SIGKILL)
        began = time.monotonic()
        while sum(ask.whole for ask in load.asks) <= whole + CALLERS:
            if time.monotonic() - began > START_SECONDS:
                raise SystemExit("the gateway did not serve again")
            await asyncio.sleep(0.02)
        back.append(time.monotonic() - began)
    load.stop()
    callers.ended = time.monotonic()
    await task
    return back


def _ok_twice(url: str) -> int:
    query = (
        "SELECT split_part(left(r.text, 40), ' ', 2) FROM outcome o"
        " JOIN decision d ON d.id = o.decision_id JOIN request r ON r.id = d.request_id WHERE o.status = 'ok'"
    )
    with psycopg.connect(psycopg_url(url)) as connection:
        times = Counter(row[0] for row in connection.execute(query))
    return sum(count - 1 for count in times.values())
