"""8. Workers with 30% faults, and one that is dead: what do callers see of it?

Each of 500, 429 with Retry-After, reset, silence, 200 with an error and either a stream cut after content
or JSON that is cut meets 5% of the calls of two workers; at the third's address nobody listens. A stream
that broke off after its first content may not be tried again (rule 2): it has to end with an error in
the stream, and counts as `cut_after_content`, not against `answered`.
"""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from benchmarks.stress.load import Load
from benchmarks.stress.oracle import Match
from benchmarks.stress.scene import stage
from benchmarks.stress.verdict import Size, Verdict, quantile

CALLERS = 150
RATE = 50.0
SHARE = 0.05
KINDS = ("server", "rate_limited", "reset", "hang", "error_body", "cut", "bad_json")
DEAD = "east"
SETTINGS = """
[retries]
attempts = 6
[timeouts]
connect = 2
first_token = {first}
total = 120
"""


def run(size: Size) -> dict[str, Any]:
    verdict = Verdict()
    silence = size.of(30, 3)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # bound and not listening: refused, and nobody else's
        dead = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        faults = dict.fromkeys(KINDS, SHARE)
        settings = SETTINGS.format(first=size.of(5, 1))
        with stage(settings, seed=size.seed, dead=dead, faults=faults, hang=silence, pause=0.05) as at:
            load = Load(at.url, rng=size.rng())
            began = datetime.now(UTC)
            asyncio.run(load.paced(CALLERS, RATE, size.of(120, 8)))
            found = at.settle(load.asks)
    settled = began.timestamp() + size.of(30, 3)
    cut = [ask for ask in load.asks if ask.status == 200 and not ask.whole and ask.streamed]
    kept = len(load.asks) - len(cut)
    verdict.at_least("answered", sum(ask.whole for ask in load.asks) / kept, 0.995)
    verdict.is_("cut_without_an_error", sum(not ask.told for ask in cut), 0)
    verdict.at_most("dead_share", *_dead_share(found, settled))
    verdict.at_least("dead_probe_gap_s", _probe_gap(found, settled), 4.9)
    calls = len(found.calls) / len(load.asks)
    verdict.at_most("calls_per_ask", calls, 1.5)
    verdict.is_("tried_again_after_content", again_after_content(found), 0)
    verdict.matched(found)
    refused = Counter(f"{ask.status} {ask.code or ask.error}" for ask in load.asks if not ask.whole and ask not in cut)
    met = Counter(line["met"] or "nothing" for line in found.journal)
    verdict.note(asks=len(load.asks), cut_after_content=len(cut), refused_with=dict(refused), met=dict(met))
    verdict.note(p99_s=quantile([ask.seconds for ask in load.asks], 0.99), whole=sum(a.whole for a in load.asks))
    return verdict.as_dict()


def _dead_share(found: Match, settled: float) -> tuple[float, float]:
    """The dead worker's share of the calls once its breaker had time to open; its limit."""
    late = [row for row in found.calls if row[6].timestamp() >= settled]
    return sum(row[4] == DEAD for row in late) / max(len(late), 1), 0.02


def _probe_gap(found: Match, settled: float) -> float:
    """The shortest time between two calls to the dead worker then; infinite where there was at most one."""
    at = sorted(row[6].timestamp() for row in found.calls if row[4] == DEAD and row[6].timestamp() >= settled)
    return min((later - sooner for sooner, later in pairwise(at)), default=float("inf"))


def again_after_content(found: Match) -> int:
    """Calls for an ask that a worker saw after one of them had sent content."""
    by_number: dict[int, list[dict[str, Any]]] = {}
    for line in found.journal:
        by_number.setdefault(line["number"], []).append(line)
    again = 0
    for lines in by_number.values():
        shown = [line for line in lines if line["pieces"] or line["whole"]]
        again += sum(line["began"] > min(one["ended"] for one in shown) for line in lines) if shown else 0
    return again
