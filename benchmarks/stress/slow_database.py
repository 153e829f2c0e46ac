"""6. Postgres slow, out of connections, in deadlocks and failing over, each for a while, under 50 asks a second.

Slow: every statement that writes decisions sleeps 0.5 s. Out of connections: the gateway's account has two.
Deadlocks: three in ten such statements are ended with 40P01. Failover: every 0.3 s all of the gateway's
connections are ended with 57P01. No ask may wait for it, and the totals have to be exact afterwards.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg
from sqlalchemy.engine import make_url

from benchmarks.common.instance import instance
from benchmarks.common.ledger import await_shipped
from benchmarks.stress.load import Load
from benchmarks.stress.oracle import match
from benchmarks.stress.scene import added, configuration, postgres, workers
from benchmarks.stress.verdict import Size, Verdict, quantile
from pointsman.database.embedded import EmbeddedPostgres
from pointsman.database.engine import psycopg_url

CALLERS = 25
RATE = 50.0
ACCOUNT, DATABASE = "served", "served"
_TRIGGER = (
    "CREATE OR REPLACE FUNCTION hinder() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} RETURN NULL; END $$",
    "DROP TRIGGER IF EXISTS hinder ON decision",
    "CREATE TRIGGER hinder BEFORE INSERT ON decision FOR EACH STATEMENT EXECUTE FUNCTION hinder()",
)
SLEEP = "PERFORM pg_sleep(0.5);"
DEADLOCK = "IF random() < 0.3 THEN RAISE EXCEPTION 'deadlock detected' USING ERRCODE = '40P01'; END IF;"
NOTHING = ""
ERRORS = {"40P01", "57P01"}

Admin = psycopg.AsyncConnection[Any]


def run(size: Size) -> dict[str, Any]:
    verdict = Verdict()
    with postgres() as server, workers(pause=0.05) as upstream:
        url = _database(server)
        with instance(configuration(upstream, database_url=url)) as served:
            load = Load(served.url, rng=size.rng())
            begun = asyncio.run(_hinder(server, load, size.of(15, 2)))
            took = time.monotonic()
            await_shipped(url, served.home / "journal", 120)
            took = time.monotonic() - took
            found = match(url, upstream.lines(), load.asks)
            rejected = (served.home / "journal" / "rejected.log").exists()
            felt = set(re.findall(r"\(\w+ ([0-9A-Z]{5})\)", (served.home / "serve.log").read_text()))
    for name, (first, last) in begun.items():
        waits = added([ask for ask in load.asks if first <= ask.began < last], found.journal)
        verdict.at_most(f"{name}_worst_added_s", max(waits, default=float("nan")), 2)
        verdict.note(**{f"{name}_added_p99_ms": quantile(waits, 0.99) * 1000})
    verdict.is_("errors_not_felt", sorted(ERRORS - felt), [])  # else the troubles were none
    verdict.is_("failed", sum(not ask.whole for ask in load.asks), 0)
    verdict.is_("refused_rows", rejected, False)
    verdict.matched(found)
    verdict.is_("rows_beyond_asks", sum(found.statuses.values()) - len(load.asks), 0)
    verdict.note(asks=len(load.asks), caught_up_s=took)
    return verdict.as_dict()


def _database(server: EmbeddedPostgres) -> str:
    """A database that an account without a superuser's rights owns, so that a limit of connections binds it."""
    with psycopg.connect(psycopg_url(server.url), autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {ACCOUNT} LOGIN")
        connection.execute(f"CREATE DATABASE {DATABASE} OWNER {ACCOUNT}")
    return make_url(server.url).set(database=DATABASE, username=ACCOUNT).render_as_string(hide_password=False)


async def _hinder(server: EmbeddedPostgres, load: Load, seconds: float) -> dict[str, tuple[float, float]]:
    """When each trouble began and ended."""
    address = make_url(server.url).set(database=DATABASE).render_as_string(hide_password=False)
    admin = await psycopg.AsyncConnection.connect(psycopg_url(address), autocommit=True)
    troubles: dict[str, Callable[[Admin, float], Awaitable[None]]] = {
        "slow": _triggered(SLEEP),
        "out_of_connections": _two_connections,
        "deadlocks": _triggered(DEADLOCK),
        "failover": _failover,
    }
    task = asyncio.create_task(load.paced(CALLERS, RATE))
    await asyncio.sleep(1)
    begun = {}
    async with admin:
        for name, trouble in troubles.items():
            first = time.monotonic()
            await trouble(admin, seconds)
            begun[name] = (first, time.monotonic())
    load.stop()
    await task
    return begun


def _triggered(body: str) -> Callable[[Admin, float], Awaitable[None]]:
    async def trouble(admin: Admin, seconds: float) -> None:
        await _set_trigger(admin, body)
        await asyncio.sleep(seconds)
        await _set_trigger(admin, NOTHING)

    return trouble


async def _set_trigger(admin: Admin, body: str) -> None:
    for statement in _TRIGGER:
        await admin.execute(statement.format(body=body))


async def _two_connections(admin: Admin, seconds: float) -> None:
    await admin.execute(f"ALTER ROLE {ACCOUNT} CONNECTION LIMIT 2")
    await _end_connections(admin)  # they come back as two
    await asyncio.sleep(seconds)
    await admin.execute(f"ALTER ROLE {ACCOUNT} CONNECTION LIMIT -1")


async def _failover(admin: Admin, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        await _end_connections(admin)
        await asyncio.sleep(0.3)


async def _end_connections(admin: Admin) -> None:
    await admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", [ACCOUNT])
