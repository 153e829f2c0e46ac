"""kill -9, of a gateway, of all, of the one that watches: nothing that a client was told is lost or doubled."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from typing import Any

from benchmarks.common.drive import Clients
from benchmarks.common.instance import Instance, instance
from benchmarks.common.ledger import await_shipped, children, read_ledger
from benchmarks.common.worker import Worker, configuration

GATEWAY, SHIPPER = "harness.gateway.process", "pointsman.journal.process"
KILLS = 5


async def until(condition: Any, seconds: float = 20.0) -> float:
    """Seconds until the condition holds."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, "waited in vain"
        await asyncio.sleep(0.05)
    return time.monotonic() - began


def alive(pid: int) -> bool:
    try:
        return open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gateways(served: Instance) -> list[int]:
    return children(served.process.pid).get(GATEWAY, [])


def given(clients: Clients) -> list[str]:
    ids = [seen.decision for seen in clients.seen if seen.byte]
    assert None not in ids
    return [identity for identity in ids if identity is not None]


async def test_a_gateway_killed_at_random_moments_loses_and_doubles_nothing(server: Any, worker: Worker) -> None:
    url, rng = server.database(), random.Random(7)
    with instance(configuration(worker, url)) as served:
        clients = Clients(served.url, 20)
        load = asyncio.create_task(clients.run())
        for _ in range(KILLS):
            await asyncio.sleep(rng.uniform(0.2, 0.7))
            (victim,) = gateways(served)
            answered = sum(seen.whole for seen in clients.seen)
            os.kill(victim, signal.SIGKILL)
            await until(lambda before=answered: sum(s.whole for s in clients.seen) > before + 20)
        clients.stop()
        await load
        took = await asyncio.to_thread(await_shipped, url, served.home / "journal")
        ledger = read_ledger(url, given(clients))
        assert ledger.sound, ledger
        assert ledger.abandoned > 0 and took < 60
        assert any(seen.byte and not seen.whole for seen in clients.seen)  # it was under way, truly
        folders = [path for path in (served.home / "journal").iterdir() if path.is_dir()]
        await until(lambda: len([p for p in folders if p.exists()]) == 1)  # the dead ones' are gone


async def test_everything_killed_at_once_is_made_good_by_the_next_start(server: Any, worker: Worker) -> None:
    url = server.database()
    text = configuration(worker, url, "[gateway]\nworkers = 2\n")
    with instance(text) as served:
        clients = Clients(served.url, 20)
        load = asyncio.create_task(clients.run())
        await until(lambda: sum(seen.whole for seen in clients.seen) > 100)
        family = [served.process.pid, *(pid for pids in children(served.process.pid).values() for pid in pids)]
        assert len(family) == 4
        for pid in family:
            os.kill(pid, signal.SIGKILL)
        served.process.wait()
        clients.stop()
        await load
        again = relaunch(served)
        try:
            await until(lambda: not any(p.name[0] != "." for p in stale(served, again)), 30)
            await asyncio.to_thread(await_shipped, url, served.home / "journal")
            ledger = read_ledger(url, given(clients))
            assert ledger.sound and ledger.abandoned > 0, ledger
        finally:
            again.send_signal(signal.SIGTERM)
            assert again.wait(30) == 0


def relaunch(served: Instance) -> subprocess.Popen[bytes]:
    environment = {
        **os.environ,
        "POINTSMAN_HOME": str(served.home),
        "POINTSMAN_CONFIG": str(served.config_file),
        "POINTSMAN_PORT": served.url.rpartition(":")[2],
    }
    log = (served.home / "again.log").open("wb")
    return subprocess.Popen(
        [sys.executable, "-m", "pointsman.commands", "serve"], env=environment, stdin=subprocess.DEVNULL,
        stdout=log, stderr=log,
    )  # fmt: skip


def stale(served: Instance, again: subprocess.Popen[bytes]) -> list[Any]:
    """Journal folders beyond those of the gateways that run now; all of them until those run."""
    folders = [path for path in (served.home / "journal").iterdir() if path.is_dir()]
    running = children(again.pid).get(GATEWAY, [])
    return folders if len(running) < 2 else sorted(folders)[:-2]


async def test_children_leave_when_their_supervisor_is_killed(server: Any, worker: Worker) -> None:
    url = server.database()
    with instance(configuration(worker, url)) as served:
        clients = Clients(served.url, 5)
        load = asyncio.create_task(clients.run())
        await until(lambda: sum(seen.whole for seen in clients.seen) > 20)
        family = [pid for pids in children(served.process.pid).values() for pid in pids]
        assert len(family) == 2
        served.process.kill()
        served.process.wait()
        clients.stop()
        again = relaunch(served)  # at once: the port is free as soon as it is needed
        try:
            await load
            took = await until(lambda: not any(alive(pid) for pid in family), 15)
            assert took < 10
            await until(lambda: children(again.pid).get(GATEWAY))
            after = Clients(served.url, 2)
            await after.run(until=lambda: sum(seen.whole for seen in after.seen) > 5)
            await asyncio.to_thread(await_shipped, url, served.home / "journal")
            ledger = read_ledger(url, given(clients) + given(after))
            assert ledger.sound, ledger
            assert ledger.abandoned == 0  # they stopped gracefully
        finally:
            again.send_signal(signal.SIGTERM)
            assert again.wait(30) == 0


async def test_a_shipper_that_is_killed_is_started_again(server: Any, worker: Worker) -> None:
    url = server.database()
    with instance(configuration(worker, url)) as served:
        clients = Clients(served.url, 10)
        load = asyncio.create_task(clients.run())
        for _ in range(3):
            await asyncio.sleep(0.4)
            (pid,) = children(served.process.pid)[SHIPPER]
            os.kill(pid, signal.SIGKILL)
            await until(lambda old=pid: children(served.process.pid).get(SHIPPER, [old]) != [old])
        clients.stop()
        await load
        assert clients.failed == []
        await asyncio.to_thread(await_shipped, url, served.home / "journal")
        ledger = read_ledger(url, given(clients))
        assert ledger.sound and ledger.rows == len(clients.seen) and ledger.abandoned == 0
