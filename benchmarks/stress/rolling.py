"""14. Graceful stop, rolling restart: of two gateways one stops every 20 s, under 50 asks a second and long streams.

No new ask may fail, and a stream of 15 s has to finish, or to end with an error in the stream within the
grace time. A stopped process exits with 0 within 25 s, and at the end all of `serve` does, with its
journal empty. Half way the schema is expanded (a column that the running code does not know), as the
first half of an expand-and-contract migration does.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from collections import Counter
from functools import partial
from typing import Any

import psycopg

from benchmarks.common.instance import Instance, instance
from benchmarks.common.ledger import children
from benchmarks.stress.client import Ask
from benchmarks.stress.load import Load
from benchmarks.stress.oracle import match
from benchmarks.stress.scene import GATEWAY, configuration, postgres, wait_until, workers
from benchmarks.stress.verdict import Size, Verdict
from pointsman.database.engine import psycopg_url
from pointsman.journal.folder import waiting_bytes

CALLERS, RATE = 25, 50.0
LONG = 20
GRACE = 20
EXIT_SECONDS = 25.0
SETTINGS = f"[gateway]\nworkers = 2\ngrace = {GRACE}\n"


def run(size: Size) -> dict[str, Any]:
    verdict = Verdict()
    play = {"pause": 0.1, "pieces": int(size.of(150, 25)), "gap": 0.1}
    with postgres() as server, workers(pause=0.05) as upstream:
        url = server.url
        with instance(configuration(upstream, SETTINGS, database_url=url)) as served:
            load = Load(served.url, rng=size.rng())
            long = Load(served.url, play=play, rng=size.rng(), numbers=load.numbers)
            exits = asyncio.run(_roll(served, url, load, long, int(size.of(6, 2)), size.of(20, 3)))
            stopped = time.monotonic()
            last = Load(served.url, play=play, numbers=load.numbers)
            code = asyncio.run(_stop(served, last))
            took = time.monotonic() - stopped
            waiting = waiting_bytes(served.home / "journal")
            log = (served.home / "serve.log").read_text(errors="replace")
        found = match(url, upstream.lines(), [*load.asks, *long.asks, *last.asks])
    codes = re.findall(r"gateway \d ended with (-?\d+)", log)
    verdict.is_("failed_new", sum(not ask.whole for ask in load.asks), 0)
    streams = [*long.asks, *last.asks]
    verdict.is_("streams_broken_off", sum(not (ask.whole or ask.told) for ask in streams), 0)
    verdict.is_("exit_codes", sorted(set(codes)), ["0"])
    verdict.at_most("exit_s", max(exits), EXIT_SECONDS)
    verdict.is_("serve_exit_code", code, 0)
    verdict.at_most("serve_exit_s", took, EXIT_SECONDS)
    verdict.is_("journal_left_bytes", waiting, 0)
    verdict.matched(found)
    verdict.note(failed_with=_how(load.asks))
    told = sum(not ask.whole for ask in streams)
    again = sum(ask.again for ask in load.asks)
    verdict.note(stops=len(exits), asks=len(load.asks), sent_again_on_a_new_connection=again)
    verdict.note(long_streams=len(streams), ended_with_an_error_in_the_stream=told)
    return verdict.as_dict()


def _how(asks: list[Ask]) -> dict[str, int]:
    """The failures by what the caller saw: an error's code, or how the connection ended."""
    failed = [ask for ask in asks if not ask.whole]
    return dict(Counter(f"{ask.status} {ask.code}" if ask.status else str(ask.error) for ask in failed))


async def _roll(served: Instance, url: str, load: Load, long: Load, stops: int, every: float) -> list[float]:
    """Seconds that each stopped process took to end."""
    tasks = [asyncio.create_task(load.paced(CALLERS, RATE)), asyncio.create_task(long.closed(LONG))]
    exits = []
    await asyncio.sleep(1)
    for number in range(stops):
        began = time.monotonic()
        oldest = min(children(served.process.pid)[GATEWAY])
        os.kill(oldest, signal.SIGTERM)
        exits.append(await asyncio.to_thread(wait_until, partial(_gone, oldest), EXIT_SECONDS + 10))
        await asyncio.to_thread(wait_until, lambda: len(children(served.process.pid).get(GATEWAY, [])) == 2, 10)
        if number == stops // 2:
            await asyncio.to_thread(_expand, url)
        await asyncio.sleep(max(every - (time.monotonic() - began), 1.5))
    load.stop()
    long.stop()
    await asyncio.gather(*tasks)
    return exits


async def _stop(served: Instance, last: Load) -> int:
    """The exit code of `serve`, stopped while streams run."""
    client = [last.client() for _ in range(LONG)]
    running = [asyncio.create_task(last.one(each, stream=True)) for each in client]
    await asyncio.sleep(0.5)
    served.process.send_signal(signal.SIGTERM)
    code = await asyncio.to_thread(served.process.wait, 60)
    await asyncio.gather(*running)
    return code


def _gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def _expand(url: str) -> None:
    with psycopg.connect(psycopg_url(url), autocommit=True) as connection:
        connection.execute("SET lock_timeout = '5s'")
        connection.execute("ALTER TABLE decision ADD COLUMN of_the_next_release text")
