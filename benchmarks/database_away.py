"""Postgres stopped for 30 s under load: does a request fail, is a row lost, does `/readyz` say so?

The server is stopped as its owner would stop it, while 30 clients send, half of them streaming, and
started again; the journal then has to reach it. `failed`, `missing` and `doubled` must be 0.

Run: python benchmarks/database_away.py [--quick] [--json] [--seed S]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from common.drive import Clients
from common.instance import Instance, instance
from common.ledger import await_shipped, read_ledger
from common.report import run
from common.worker import configuration, working

from pointsman.database.embedded import EmbeddedPostgres

AWAY_SECONDS = 30.0
CLIENTS = 30


def readyz(url: str) -> dict[str, Any]:
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=5) as reply:
            return {"http": reply.status, **json.load(reply)}
    except urllib.error.HTTPError as error:
        return {"http": error.code, **json.load(error)}


async def outage(served: Instance, postgres: EmbeddedPostgres, clients: Clients, seconds: float) -> dict[str, Any]:
    """What `/readyz` said while the server was stopped, and how soon."""
    load = asyncio.create_task(clients.run())
    await asyncio.sleep(2)
    await asyncio.to_thread(postgres.stop)
    stopped, said_after = time.monotonic(), None
    while time.monotonic() - stopped < seconds:
        said = await asyncio.to_thread(readyz, served.url)
        if said_after is None and said["database"] == "away":
            said_after = time.monotonic() - stopped
        await asyncio.sleep(0.2)
    await asyncio.to_thread(postgres.start)
    began = time.monotonic()
    clients.stop()
    await load
    return {"said": said, "said_after": said_after, "back": began}


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    seconds = 5.0 if arguments.quick else AWAY_SECONDS
    with tempfile.TemporaryDirectory(prefix="pointsman-pg-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)  # PostgreSQL runs as another user where we are root
        with (
            EmbeddedPostgres(Path(folder)) as postgres,
            working() as worker,
            instance(configuration(worker, postgres.url)) as served,
        ):
            pause = random.Random(arguments.seed).uniform(0.0, 0.02)
            clients = Clients(served.url, CLIENTS, pause)
            found = asyncio.run(outage(served, postgres, clients, seconds))
            await_shipped(postgres.url, served.home / "journal", 120)
            replay = time.monotonic() - found["back"]
            ledger = read_ledger(postgres.url, [seen.decision for seen in clients.seen if seen.decision])
    said = found["said"]
    return {
        "away_s": seconds,
        "requests": len(clients.seen),
        "failed": len(clients.failed),
        "lost": ledger.missing + len(clients.seen) - ledger.rows,
        **ledger.as_dict(),
        "replay_s": round(replay, 2),
        "readyz_said": f"{said['http']} {said['status']}, database {said['database']}",
        "readyz_after_s": None if found["said_after"] is None else round(found["said_after"], 2),
        "waiting_bytes": said["journal"]["waiting_bytes"],
    }


if __name__ == "__main__":
    run(__doc__, measure, f"5 s in place of {AWAY_SECONDS:.0f}")
