"""Postgres stopped under load: no request fails, no row is lost, and `/readyz` says so meanwhile."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy.engine import make_url

from benchmarks.common.drive import Clients
from benchmarks.common.instance import instance
from benchmarks.common.ledger import await_shipped, read_ledger
from benchmarks.common.worker import Worker, configuration
from pointsman.database.engine import psycopg_url

AWAY_SECONDS = 3.0


def given(clients: Clients) -> list[str]:
    return [seen.decision for seen in clients.seen if seen.decision is not None]


async def said(fetch: Any, url: str, database: str, seconds: float = 6.0) -> tuple[int, dict[str, Any]]:
    """Status and body of `/readyz` once it says this of the database."""
    until = asyncio.get_running_loop().time() + seconds
    while True:
        status, body = await asyncio.to_thread(fetch, f"{url}/readyz")
        if body["database"] == database or asyncio.get_running_loop().time() > until:
            return status, body
        await asyncio.sleep(0.1)


async def test_in_spool_mode_it_serves_on_and_in_strict_mode_it_does_not(
    server: Any, worker: Worker, fetch: Any
) -> None:
    spool, strict = server.database(), server.database()
    with (
        instance(configuration(worker, spool)) as served,
        instance(configuration(worker, strict, '[log]\nmode = "strict"\n')) as strictly,
    ):
        clients = Clients(served.url, 12, pause=0.01)
        load = asyncio.create_task(clients.run())
        await asyncio.sleep(1)
        await asyncio.to_thread(server.postgres.stop)
        try:
            status, body = await said(fetch, served.url, "away")
            assert (status, body["status"], body["database"]) == (200, "ready", "away")
            status, body = await said(fetch, strictly.url, "away")
            assert (status, body["status"], body["database"]) == (503, "not ready", "away")
            refused = Clients(strictly.url, 1)
            await refused.run(until=lambda: len(refused.seen) >= 3)
            assert [(seen.status, seen.told) for seen in refused.seen] == [(503, True)] * len(refused.seen)
            before = len(clients.seen)
            await asyncio.sleep(AWAY_SECONDS)
            assert len(clients.seen) > before + 100
            _, body = await asyncio.to_thread(fetch, f"{served.url}/readyz")
            assert body["journal"]["waiting_bytes"] > 100_000 and body["journal"]["rows_lost"] == 0
        finally:
            await asyncio.to_thread(server.postgres.start)
        assert (await said(fetch, served.url, "ok"))[0] == 200
        assert (await said(fetch, strictly.url, "ok"))[0] == 200
        await asyncio.sleep(0.5)
        clients.stop()
        await load
        assert clients.failed == []
        after = Clients(strictly.url, 1)
        await after.run(until=lambda: len(after.seen) >= 2)
        assert after.failed == []
        took = await asyncio.to_thread(await_shipped, spool, served.home / "journal")
        assert took < 30
        ledger = read_ledger(spool, given(clients))
        assert ledger.sound and ledger.rows == len(clients.seen) and ledger.abandoned == 0, ledger
        log = (served.home / "serve.log").read_text()
        assert "Which way do the points lie" not in log and "Traceback" not in log


async def test_connections_ended_by_the_server_cost_nothing(server: Any, worker: Worker) -> None:
    """57P01 at the worst moments: the shipper's and the gateway's connections, again and again."""
    url = server.database()
    with instance(configuration(worker, url)) as served:
        clients = Clients(served.url, 10)
        load = asyncio.create_task(clients.run())
        with psycopg.connect(psycopg_url(server.postgres.url), autocommit=True) as admin:
            ended = 0
            for _ in range(15):
                await asyncio.sleep(0.12)
                ended += admin.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = %s AND application_name LIKE 'pointsman-%%'",
                    [make_url(url).database],
                ).rowcount
        clients.stop()
        await load
        assert ended >= 5 and clients.failed == []
        await asyncio.to_thread(await_shipped, url, served.home / "journal")
        ledger = read_ledger(url, given(clients))
        assert ledger.sound and ledger.rows == len(clients.seen), ledger


async def test_a_start_without_postgres_serves_and_makes_the_schema_when_it_is_there(
    server: Any, worker: Worker, fetch: Any
) -> None:
    """Nothing has been migrated yet: the rows must wait for their tables, not be refused for want of them."""
    url = make_url(server.postgres.url).set(database="comes_later").render_as_string(hide_password=False)
    with instance(configuration(worker, url)) as served:
        assert fetch(f"{served.url}/readyz")[1]["database"] == "away"
        clients = Clients(served.url, 2)
        await clients.run(until=lambda: len(clients.seen) >= 30)
        assert clients.failed == []
        with psycopg.connect(psycopg_url(server.postgres.url), autocommit=True) as admin:
            admin.execute("CREATE DATABASE comes_later")
        assert (await said(fetch, served.url, "ok", 15))[1]["database"] == "ok"
        await asyncio.to_thread(await_shipped, url, served.home / "journal")
        assert not (served.home / "journal" / "rejected.log").exists()
        ledger = read_ledger(url, given(clients))
        assert ledger.sound and ledger.rows == len(clients.seen), ledger
        request = urllib.request.Request(f"{served.url}/v1/models", headers={"authorization": f"Bearer {served.key}"})
        with urllib.request.urlopen(request, timeout=5) as reply:
            assert "north" in {model["id"] for model in json.load(reply)["data"]}


async def test_a_full_journal_refuses_until_there_is_room(server: Any, worker: Worker, fetch: Any) -> None:
    url = make_url(server.postgres.url).set(database="not_there_for_now").render_as_string(hide_password=False)
    with instance(configuration(worker, url, "[log]\nmax_bytes = 1_000_000\n")) as served:
        clients = Clients(served.url, 16)
        await asyncio.wait_for(clients.run(until=lambda: any(seen.status == 503 for seen in clients.seen)), 60)
        refused = [seen for seen in clients.seen if not seen.whole]
        assert {(seen.status, seen.told) for seen in refused} == {(503, True)}
        status, body = await asyncio.to_thread(fetch, f"{served.url}/readyz")
        assert status == 503 and body["journal"]["waiting_bytes"] < 1_300_000
        with psycopg.connect(psycopg_url(server.postgres.url), autocommit=True) as admin:
            admin.execute("CREATE DATABASE not_there_for_now")
        await asyncio.to_thread(await_shipped_when_there, url, served.home / "journal")
        await asyncio.sleep(1.5)  # the depth is read once a second
        assert (await said(fetch, served.url, "ok"))[0] == 200
        accepted = [seen.decision for seen in clients.seen if seen.whole and seen.decision]
        ledger = read_ledger(url, accepted)
        assert ledger.sound and ledger.rows == len(accepted), ledger
        again = Clients(served.url, 1)
        await again.run(until=lambda: len(again.seen) >= 2)
        assert again.failed == []


def await_shipped_when_there(url: str, journal: Path) -> None:
    """`await_shipped`, for a database whose schema is being made."""
    until = time.monotonic() + 20
    while True:
        try:
            await_shipped(url, journal)
            return
        except psycopg.Error:
            assert time.monotonic() < until
            time.sleep(0.2)
