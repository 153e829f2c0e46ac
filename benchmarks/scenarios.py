"""Heavy and faulty scenarios, each held against its criterion: load, bursts, kills, outages, faults, slow clients.

Every scenario starts what it needs (Postgres, the workers' process, `pointsman serve`) in folders of its
own and on loopback, and ends it. Its workers give each call a serial and keep a journal; afterwards that
journal, what the callers saw, and decisions, calls and outcomes in Postgres have to match. The load, the
workers and Postgres share the machine with the gateway, so the figures are of all of them together.

Run: python benchmarks/scenarios.py [--only 1,8] [--quick] [--json] [--seed S]
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script, this folder is first and the root may be absent

from benchmarks.jobwork import scenarios as jobwork
from benchmarks.stress import (
    burst,
    faults,
    kills,
    leaving,
    nasty,
    outage,
    rolling,
    slow_clients,
    slow_database,
    steady,
)
from benchmarks.stress.verdict import Size

SCENARIOS: dict[int, tuple[str, Callable[[Size], dict[str, Any]]]] = {
    1: ("steady load", steady.run),
    2: ("burst and back-pressure", burst.run),
    3: ("kill -9 of the gateway", kills.run),
    4: ("kill -9 of workers, brokers, Postgres under jobs", jobwork.killed),
    5: ("Postgres away", outage.run),
    6: ("Postgres slow and failing", slow_database.run),
    7: ("the broker away, then empty", jobwork.broker_away),
    8: ("workers with faults", faults.run),
    9: ("slow clients", slow_clients.run),
    10: ("clients that leave", leaving.run),
    11: ("a queue of 50,000 jobs", jobwork.long_queue),
    13: ("nasty inputs", nasty.run),
    14: ("graceful stop and rolling restart", rolling.run),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=_numbers, default=list(SCENARIOS), help="numbers, such as 1,8")
    parser.add_argument("--quick", action="store_true", help="each scaled down, to a few seconds of load")
    parser.add_argument("--json", action="store_true", help="one JSON object as the last line")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that all it started is ended
    results = {}
    for number in arguments.only:
        title, run = SCENARIOS[number]
        began = time.monotonic()
        result = run(Size(arguments.quick, arguments.seed))
        result["took_s"] = round(time.monotonic() - began, 1)
        results[str(number)] = {"scenario": title, **result}
        _show(number, title, result)
    if arguments.json:
        print(json.dumps(results))
    return 0 if all(result["pass"] for result in results.values()) else 1


def _numbers(text: str) -> list[int]:
    numbers = [int(part) for part in text.split(",")]
    if unknown := [number for number in numbers if number not in SCENARIOS]:
        raise argparse.ArgumentTypeError(f"no scenario {unknown[0]}; there are {', '.join(map(str, SCENARIOS))}")
    return numbers


def _show(number: int, title: str, result: dict[str, Any]) -> None:
    print(f"\n{number}. {title}: {'passed' if result['pass'] else 'FAILED'} in {result['took_s']} s")
    for name, value in result["figures"].items():
        limit = result["limits"].get(name, "")
        print(f"  {'!' if name in result['failed'] else ' '} {name:34} {value!s:24} {limit}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
