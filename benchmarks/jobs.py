"""Jobs under harm and under load, on each broker: embedded, Redis and RabbitMQ. All three are started here.

`drain_per_s` is the rate at which two workers drain 50,000 small jobs (ten duplicates of each of 100 collapse),
`urgent_s` how long an urgent job behind them waited at worst. In each of `kill_rounds` something is killed,
flushed or restarted while jobs of every kind run: `lost` jobs did not end as they do undisturbed (state, and the
hash of the file), `doubled` ones had an effect twice or two holders at once, `recovered_s_max` is the longest
time from a harm until jobs moved again. Leases last 5 s here; 15 is the default.

Run: python benchmarks/jobs.py [--quick] [--json] [--seed S] [--only embedded,redis] [--rounds N] [--no-drain]
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a script, this folder is first and the root may be absent

from benchmarks.jobwork.drain import drain
from benchmarks.jobwork.rounds import kill_rounds
from benchmarks.jobwork.scene import BROKERS, scene

QUICK_ROUNDS = 5
ROUNDS = {"embedded": 50, "redis": 10, "rabbitmq": 10}
KEYS = ("drain_per_s", "urgent_s", "lost", "doubled", "kill_rounds", "recovered_s_max")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROUNDS} kill rounds on each broker")
    parser.add_argument("--json", action="store_true", help="one JSON object as the last line")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=_brokers, default=list(BROKERS), help="brokers, separated by commas")
    parser.add_argument("--rounds", type=int, help="kill rounds on each broker")
    parser.add_argument("--no-drain", action="store_true", help="the kill rounds alone")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that all it started is ended
    results = {broker: _measure(broker, arguments) for broker in arguments.only}
    if arguments.json:
        print(json.dumps(results))
    return 1 if any(each["lost"] or each["doubled"] for each in results.values()) else 0


def _measure(broker: str, arguments: argparse.Namespace) -> dict[str, Any]:
    began = time.monotonic()
    drained: dict[str, Any] = {"drain_per_s": None, "urgent_s": None, "lost": 0, "doubled": 0}
    if not arguments.no_drain:
        with scene(broker, notes=False, sandbox=False) as at:
            drained = drain(at)
        _show(broker, "drain", drained)
    rounds = arguments.rounds or (QUICK_ROUNDS if arguments.quick else ROUNDS[broker])
    with scene(broker) as at:
        hurt = kill_rounds(at, rounds, arguments.seed)
    _show(broker, "kill rounds", hurt | {"took_s": round(time.monotonic() - began, 1)})
    both = drained | hurt
    both["lost"] = drained["lost"] + hurt["lost"]
    both["doubled"] = drained["doubled"] + hurt["doubled"] + drained.get("duplicates_made", 0)
    return {key: both[key] for key in KEYS} | {key: value for key, value in both.items() if key not in KEYS}


def _show(broker: str, part: str, figures: dict[str, Any]) -> None:
    print(f"{broker}: {part}")
    for name, value in figures.items():
        print(f"    {name:20} {value}", flush=True)


def _brokers(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if unknown := [name for name in names if name not in BROKERS]:
        raise argparse.ArgumentTypeError(f"expected some of {','.join(BROKERS)}, got {unknown[0]!r}")
    return names


if __name__ == "__main__":
    raise SystemExit(main())
