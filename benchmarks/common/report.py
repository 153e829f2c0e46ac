"""How a benchmark takes its arguments and prints what it found."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any


def run(
    description: str | None,
    measure: Callable[[argparse.Namespace], dict[str, Any]],
    quick: str,
    options: Callable[[argparse.ArgumentParser], None] = lambda parser: None,
) -> None:
    """Parses `--quick --json --seed`, measures, prints a line per figure, and with `--json` one object at the end.

    `options` adds a benchmark's own.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--json", action="store_true", help="one JSON object as the last line")
    parser.add_argument("--seed", type=int, default=1)
    options(parser)
    arguments = parser.parse_args()
    result = measure(arguments)
    for name, value in result.items():
        print(f"{name:20} {value}")
    if arguments.json:
        print(json.dumps(result))
