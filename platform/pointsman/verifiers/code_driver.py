"""The program that runs inside the box: limits first, then the program that is tested, then its tests.

It is read as text by `code_run` and given to an interpreter without site packages: it may import the standard
library only. Orders come on standard input as one JSON object; the report goes to where standard output was,
while the program's own output goes nowhere.
"""

from __future__ import annotations

import json
import math
import os
import resource
import signal
import sys
from types import FrameType
from typing import Any

SHOWN = 300


class Late(BaseException):
    """The time was up. Not an `Exception`: the program under test cannot easily swallow it."""


def limit(order: dict[str, Any]) -> None:
    """Hard limits, which this process and its children cannot raise again."""
    seconds = math.ceil(order["seconds"]) + 1
    for what, bound in (
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_AS, order["bytes"]),
        (resource.RLIMIT_NPROC, order["processes"]),
        (resource.RLIMIT_FSIZE, order["file_bytes"]),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_STACK, 64 * 1024 * 1024),
    ):
        resource.setrlimit(what, (bound, bound))


def ring(number: int, frame: FrameType | None) -> None:
    raise Late


def tried(source: str, name: str, space: dict[str, Any]) -> str | None:
    """None where `source` ran to its end, else what stopped it."""
    try:
        # This is the place that runs what a model wrote; there is nothing here that it could harm.
        exec(compile(source, name, "exec", dont_inherit=True), space)
    except Late:
        return "the time was up"
    except BaseException as error:  # noqa: BLE001 - SystemExit of the program must not end the tests
        return f"{type(error).__name__}: {error}"[:SHOWN]
    return None


def main() -> None:
    order = json.loads(sys.stdin.buffer.read())
    report = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    limit(order)
    token, tests = order.pop("token"), order.pop("tests")
    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, order["seconds"])
    space: dict[str, Any] = {"__name__": "__answer__"}
    why = tried(order.pop("program"), "answer.py", space)
    passed = [False] * len(tests)
    for position, test in enumerate(tests if why is None else ()):
        why_not = tried(test, f"test_{position}.py", space)
        passed[position] = why_not is None
        why = why or why_not
    signal.setitimer(signal.ITIMER_REAL, 0)
    os.write(report, json.dumps({"token": token, "passed": passed, "why": why}).encode())
    os._exit(0)


main()
