"""`kill -9` of the gateway at random moments under load: has every request that got a byte exactly one row?

A gateway process is killed 20 times while 50 clients send, half of them streaming, on a real PostgreSQL;
`serve` starts it again each time. Afterwards the clients' notes are held against the log: `missing` ids
that a client was given, `doubled` rows, decisions `without_outcome`. All three must be 0.

Run: python benchmarks/crash.py [--quick] [--json] [--seed S]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import time
from typing import Any

from common.drive import Clients
from common.instance import Instance, instance
from common.ledger import await_shipped, children, read_ledger
from common.report import run
from common.worker import configuration, working

from pointsman.database.embedded import EmbeddedPostgres

ROUNDS = 20
CLIENTS = 50
GATEWAY = "harness.gateway.process"
RESTART_SECONDS = 30.0


async def kill_rounds(served: Instance, clients: Clients, rounds: int, rng: random.Random) -> list[float]:
    """Kills at random moments up to 2 s after the gateway serves; the seconds until it served again, each time."""
    back: list[float] = []
    load = asyncio.create_task(clients.run())
    for _ in range(rounds):
        await asyncio.sleep(rng.uniform(0, 2))
        (victim,) = children(served.process.pid)[GATEWAY]
        whole = sum(seen.whole for seen in clients.seen)
        os.kill(victim, signal.SIGKILL)
        began = time.monotonic()
        while sum(seen.whole for seen in clients.seen) <= whole + CLIENTS:
            if time.monotonic() - began > RESTART_SECONDS:
                raise SystemExit("the gateway did not serve again")
            await asyncio.sleep(0.02)
        back.append(time.monotonic() - began)
    clients.stop()
    await load
    return back


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    rounds = 5 if arguments.quick else ROUNDS
    with working() as worker, instance(configuration(worker)) as served:
        clients = Clients(served.url, CLIENTS)
        back = asyncio.run(kill_rounds(served, clients, rounds, random.Random(arguments.seed)))
        url = EmbeddedPostgres(served.home).url
        settled = await_shipped(url, served.home / "journal")
        given = [seen.decision for seen in clients.seen if seen.byte and seen.decision]
        ledger = read_ledger(url, given)
    return {
        "rounds": rounds,
        "requests": len(clients.seen),
        "got_byte": len(given),
        "cut_in_the_middle": sum(seen.byte and not seen.whole for seen in clients.seen),
        **ledger.as_dict(),
        "settled_s": round(settled, 2),
        "back_s_median": round(sorted(back)[len(back) // 2], 2),
        "back_s_worst": round(max(back), 2),
    }


if __name__ == "__main__":
    run(__doc__, measure, f"5 kills in place of {ROUNDS}")
