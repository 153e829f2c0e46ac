"""Stopping and reloading under load, and two gateway processes behind one port."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from typing import Any

import aiohttp
import psycopg

from benchmarks.common.drive import Clients, Seen, ask
from benchmarks.common.instance import Instance, instance
from benchmarks.common.ledger import await_shipped, children, read_ledger
from benchmarks.common.worker import Worker, configuration
from pointsman.database.engine import psycopg_url
from pointsman.journal.folder import waiting_bytes

GATEWAY = "harness.gateway.process"


def given(clients: Clients) -> list[str]:
    return [seen.decision for seen in clients.seen if seen.decision is not None]


async def stopped(served: Instance, seconds: float) -> tuple[int, float]:
    """SIGTERM; the exit code, and the seconds it took."""
    began = time.monotonic()
    served.process.send_signal(signal.SIGTERM)
    code = await asyncio.to_thread(served.process.wait, seconds)
    return code, time.monotonic() - began


async def test_running_answers_finish_and_no_new_work_is_taken(server: Any, worker: Worker) -> None:
    url = server.database()
    worker.pause = 0.15  # a stream takes 1.5 s
    with instance(configuration(worker, url)) as served:
        clients = Clients(served.url, 20)
        load = asyncio.create_task(clients.run())
        await asyncio.sleep(2.2)
        stop_at = time.monotonic()
        clients.stop()  # those under way are let finish
        code, took = await stopped(served, 30)
        await load
        assert code == 0 and took < 8
        assert clients.failed == []
        assert any(seen.streamed and seen.began > stop_at - 1 for seen in clients.seen)
        late = Seen(time.monotonic(), True)
        async with aiohttp.ClientSession() as session:
            await ask(session, served.url, late)
        assert late.error == "ClientConnectorError"
        assert waiting_bytes(served.home / "journal") == 0  # flushed, and shipped
        assert [path.name for path in (served.home / "journal").iterdir()] == []
        ledger = read_ledger(url, given(clients))
        assert ledger.sound and ledger.rows == len(clients.seen) and ledger.abandoned == 0, ledger
        assert not (served.home / "serve.pid").exists()


async def test_what_outlasts_the_grace_ends_in_band(server: Any, worker: Worker) -> None:
    url = server.database()
    worker.pause = 1.0  # an answer takes 1 s, a stream 10
    with instance(configuration(worker, url, "[gateway]\ngrace = 1\n")) as served:
        async with aiohttp.ClientSession() as session:
            streams = [Seen(time.monotonic(), True) for _ in range(6)]
            running = [asyncio.create_task(ask(session, served.url, seen)) for seen in streams]
            await asyncio.sleep(2.6)
            code, took = await stopped(served, 30)
            await asyncio.gather(*running)
        assert code == 0 and took < 5
        for seen in streams:
            assert (seen.status, seen.whole, seen.told, seen.error) == (200, False, True, None)
        ledger = read_ledger(url, [seen.decision for seen in streams if seen.decision])
        assert ledger.sound and ledger.rows == 6 and ledger.abandoned == 0, ledger
        with psycopg.connect(psycopg_url(url)) as connection:
            rows = connection.execute("SELECT status, reason FROM outcome").fetchall()
        assert rows == [("truncated", "the gateway stopped")] * 6


async def test_a_changed_card_serves_at_the_next_decision_and_no_request_fails(
    server: Any, worker: Worker, fetch: Any
) -> None:
    url = server.database()
    with instance(configuration(worker, url)) as served:
        text = served.config_file.read_text()
        clients = Clients(served.url, 10)
        load = asyncio.create_task(clients.run())
        await asyncio.sleep(0.5)
        generations = [fetch(f"{served.url}/readyz")[1]["configuration"]]
        for number in range(4):
            served.config_file.write_text(text.replace("of the load", f"of the load, {number}"))
            served.process.send_signal(signal.SIGHUP)
            generations.append(await another(served, fetch, generations[-1]))
            await asyncio.sleep(0.2)
        for bad in ("[[[", text.replace("base_url", "base_ulr"), ""):  # no generation of these: the old one serves on
            served.config_file.write_text(bad)
            served.process.send_signal(signal.SIGHUP)
            await asyncio.sleep(0.3)
            assert fetch(f"{served.url}/readyz")[1]["configuration"] == generations[-1]
        clients.stop()
        await load
        assert clients.failed == []
        assert len(set(generations)) == 5
        last = Clients(served.url, 1)
        await last.run(until=lambda: len(last.seen) >= 2)
        await asyncio.to_thread(await_shipped, url, served.home / "journal")
        with psycopg.connect(psycopg_url(url)) as connection:
            hashes = connection.execute(
                "SELECT cards_hash, count(*) FROM decision GROUP BY 1 ORDER BY min(id::text)"
            ).fetchall()
            cards = {row[0] for row in connection.execute("SELECT text FROM card")}
        assert len(hashes) == 5 and sum(row[1] for row in hashes) == len(clients.seen) + len(last.seen)
        assert {f"A worker of the load, {number}." for number in range(4)} <= cards
        log = (served.home / "serve.log").read_text()
        assert "not reloaded: " in log and "base_ulr: no such key" in log and "ended with" not in log


async def another(served: Instance, fetch: Any, before: str) -> str:
    for _ in range(100):
        now: str = fetch(f"{served.url}/readyz")[1]["configuration"]
        if now != before:
            return now
        await asyncio.sleep(0.05)
    raise AssertionError("the new file does not serve")


async def test_a_reload_while_children_start_ends_none_of_them(server: Any, worker: Worker) -> None:
    url = server.database()
    with instance(configuration(worker, url)) as served:
        (first,) = children(served.process.pid)[GATEWAY]
        clients = Clients(served.url, 2)
        load = asyncio.create_task(clients.run())
        os.kill(first, signal.SIGTERM)
        for _ in range(60):  # through the end of one process and the start of the next
            served.process.send_signal(signal.SIGHUP)
            await asyncio.sleep(0.03)
        clients.stop()
        await load
        assert sum(seen.whole for seen in clients.seen) > 0
        assert (served.home / "serve.log").read_text().count("gateway 1 ended with") == 1


async def test_two_processes_share_one_port(server: Any, worker: Worker) -> None:
    url = server.database()
    with instance(configuration(worker, url, "[gateway]\nworkers = 2\n")) as served:
        pids = children(served.process.pid)[GATEWAY]
        assert len(pids) == 2
        while (served.home / "serve.log").read_text().count("Postgres answers") < 2:
            await asyncio.sleep(0.05)  # the first may answer before the second is up
        seen: list[Seen] = []
        for pid in pids:  # whichever of them sleeps, the other takes the new clients
            os.kill(pid, signal.SIGSTOP)
            clients = Clients(served.url, 6)
            await clients.run(until=lambda these=clients: len(these.seen) >= 40)
            os.kill(pid, signal.SIGCONT)
            assert clients.failed == []
            seen += clients.seen
        folders = [path for path in (served.home / "journal").iterdir() if path.is_dir()]
        assert len(folders) == 2
        assert all((folder / "00000001.log").stat().st_size > 5_000 for folder in folders)
        await asyncio.to_thread(await_shipped, url, served.home / "journal")
        ledger = read_ledger(url, [one.decision for one in seen if one.decision])
        assert ledger.sound and ledger.rows == len(seen), ledger
        for path in [*folders, *(file for folder in folders for file in folder.iterdir())]:
            assert path.stat().st_mode & 0o077 == 0, path
        assert (await stopped(served, 30))[0] == 0


def test_a_port_that_is_taken_is_said(server: Any, worker: Worker, tmp_path: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        file = tmp_path / "pointsman.toml"
        file.write_text(configuration(worker, server.database()))
        home = {"POINTSMAN_HOME": str(tmp_path), "POINTSMAN_CONFIG": str(file), "POINTSMAN_PORT": str(port)}
        done = subprocess.run(
            [sys.executable, "-m", "pointsman.commands", "serve"],
            env={**os.environ, **home},
            capture_output=True, text=True, timeout=30,
        )  # fmt: skip
    assert done.returncode != 0
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
