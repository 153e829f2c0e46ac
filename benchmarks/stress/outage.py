"""5. Postgres stopped for 60 s under 50 asks a second: a gateway in spool mode, a strict one, one with a small journal.

In spool mode nothing may fail, and all has to be in Postgres within 30 s of its return, in the order in
which it came; the strict one refuses; the small one refuses when its journal is full. `/readyz` says
which, and no log says a word of a prompt.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
import urllib.error
import urllib.request
from contextlib import ExitStack
from itertools import count
from typing import Any

import psycopg
from sqlalchemy.engine import make_url

from benchmarks.common.instance import Instance, instance
from benchmarks.common.ledger import await_shipped
from benchmarks.stress.load import Load
from benchmarks.stress.oracle import match
from benchmarks.stress.scene import configuration, postgres, workers
from benchmarks.stress.verdict import Size, Verdict, quantile
from pointsman.database.embedded import EmbeddedPostgres
from pointsman.database.engine import psycopg_url

CALLERS = 25
RATE = 50.0
CAP_BYTES = 1_000_000
FIRST_NUMBERS = (1, 1_000_000, 2_000_000)
"""Where the asks' numbers begin for each gateway: they share their workers, and so the journal."""
SECTIONS = {
    "spool": "",
    "strict": '[log]\nmode = "strict"\n',
    "small": f"[log]\nmax_bytes = {CAP_BYTES}\n",
}


def run(size: Size) -> dict[str, Any]:
    verdict = Verdict()
    with postgres() as server, workers(pause=0.05) as upstream, ExitStack() as stack:
        served: dict[str, Instance] = {}
        urls = {name: _database(server, name) for name in SECTIONS}
        for name, sections in SECTIONS.items():
            text = configuration(upstream, sections, database_url=urls[name])
            served[name] = stack.enter_context(instance(text))
        loads = {
            name: Load(at.url, rng=size.rng(), numbers=count(first))
            for first, (name, at) in zip(FIRST_NUMBERS, served.items(), strict=True)
        }
        back = asyncio.run(_outage(server, served, loads, size.of(60, 4), verdict))
        await_shipped(urls["spool"], served["spool"].home / "journal", 120)
        replay = time.monotonic() - back
        spools = [line for line in upstream.lines() if line["number"] < FIRST_NUMBERS[1]]
        found = match(urls["spool"], spools, loads["spool"].asks)
        texts = [(at.home / "serve.log").read_text(errors="replace") for at in served.values()]
        disorder = _disorder(urls["spool"])
    spool = loads["spool"].asks
    verdict.at_least("spool_answered", sum(ask.whole for ask in spool) / len(spool), 0.999)
    verdict.matched(found)
    verdict.at_most("replay_s", replay, 30)
    verdict.is_("out_of_order", disorder, 0)
    verdict.is_("logs_with_prompt_text", sum("by the north line" in text for text in texts), 0)
    verdict.note(asks=len(spool))
    return verdict.as_dict()


def _database(server: EmbeddedPostgres, name: str) -> str:
    with psycopg.connect(psycopg_url(server.url), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return make_url(server.url).set(database=name).render_as_string(hide_password=False)


async def _outage(
    server: EmbeddedPostgres, served: dict[str, Instance], loads: dict[str, Load], seconds: float, verdict: Verdict
) -> float:
    """When Postgres was back."""
    spool = asyncio.create_task(loads["spool"].paced(CALLERS, RATE))
    strict = asyncio.create_task(loads["strict"].paced(5, 20))
    await asyncio.sleep(2)
    await asyncio.to_thread(server.stop)
    stopped = time.monotonic()
    small = asyncio.create_task(_fill(loads["small"]))
    said = {name: await _says_away(at.url, stopped) for name, at in served.items() if name != "small"}
    await asyncio.sleep(max(stopped + seconds - time.monotonic(), 0))
    full_after = await small
    http = {name: (await asyncio.to_thread(readyz, at.url))[0] for name, at in served.items()}
    waiting = (await asyncio.to_thread(readyz, served["small"].url))[1]["journal"]["waiting_bytes"]
    await asyncio.to_thread(server.start)
    back = time.monotonic()
    await asyncio.sleep(2)
    for load in loads.values():
        load.stop()
    await asyncio.gather(spool, strict)
    _judge_refusals(loads, stopped, back, verdict)
    verdict.at_most("readyz_away_s", max(said.values()), 5)
    verdict.is_("readyz_http", http, {"spool": 200, "strict": 503, "small": 503})
    verdict.at_most("full_journal_bytes", waiting, 1.3 * CAP_BYTES)
    verdict.note(away_s=seconds, small_refused_after_asks=full_after)
    return back


def _judge_refusals(loads: dict[str, Load], stopped: float, back: float, verdict: Verdict) -> None:
    strict = [ask for ask in loads["strict"].asks if stopped < ask.began < back and ask.status == 503]
    first = min((ask.ended for ask in strict), default=math.inf) - stopped
    verdict.at_most("strict_first_503_s", first, 1)
    verdict.at_most("strict_503_p99_s", quantile([ask.seconds for ask in strict], 0.99), 1)
    late = [ask for ask in loads["strict"].asks if stopped + 1 < ask.began < back and ask.status != 503]
    verdict.is_("strict_served_after_1_s", len(late), 0)
    refused = [ask for ask in loads["small"].asks if ask.status != 200]
    verdict.is_("small_refused_with", sorted({ask.status or 0 for ask in refused}), [503])


async def _fill(load: Load) -> int:
    """Asks until the journal is full; how many it took."""
    client = load.client()
    for _ in range(3_000):
        if (await load.one(client, size=3_000, stream=False, play={"pause": 0.0})).status == 503:
            break
    client.close()
    return len(load.asks)


async def _says_away(url: str, stopped: float) -> float:
    while time.monotonic() - stopped < 15:
        if (await asyncio.to_thread(readyz, url))[1]["database"] == "away":
            return time.monotonic() - stopped
        await asyncio.sleep(0.1)
    return math.inf


def readyz(url: str) -> tuple[int, dict[str, Any]]:
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=5) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def _disorder(url: str) -> int:
    """Requests whose arrival is earlier than that of the one before them by id."""
    query = (
        "SELECT count(*) FROM"
        " (SELECT received_at < lag(received_at) OVER (ORDER BY id) AS late FROM request) r WHERE late"
    )
    with psycopg.connect(psycopg_url(url)) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return int(row[0])
