"""Runs one program with its tests in a box: bounded in time, memory, processes and output, and gone afterwards.

The limits are set inside, by `code_driver`, before it reads a line of the program. Time is kept outside: when
it is up the whole box dies, with every process that the program has started.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import selectors
import signal
import subprocess
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO

import msgspec

from pointsman.verifiers.code_box import ENVIRONMENT, Box, interpreter

MAX_REPORT = 64_000
PROCESSES = 24
FILE_BYTES = 8 * 1024 * 1024
START_SECONDS = 3.0
"""How long the box and its interpreter may take beside the program's own time, on a busy machine."""


@dataclass(frozen=True)
class Limits:
    """Of one program with all its tests."""

    seconds: float
    megabytes: int


@dataclass(frozen=True)
class Ran:
    """Whether each test passed; `why` is what went wrong where the program did not get to its tests."""

    passed: tuple[bool, ...]
    why: str | None = None


class _Report(msgspec.Struct):
    token: str
    passed: list[bool]
    why: str | None = None


def run(box: Box, program: str, tests: list[str], limits: Limits) -> Ran:
    """Runs it. Whatever the program does, this returns within the limit and leaves no process behind."""
    token = secrets.token_hex(16)
    order = {
        "token": token,
        "program": program,
        "tests": tests,
        "seconds": limits.seconds,
        "bytes": limits.megabytes * 1024 * 1024,
        "processes": PROCESSES,
        "file_bytes": FILE_BYTES,
    }
    output, late = _communicate(box, _encoded(order), limits.seconds + START_SECONDS)
    none = (False,) * len(tests)
    try:
        report = msgspec.json.decode(output, type=_Report)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return Ran(none, "the time was up" if late else "the program ended everything")
    if report.token != token or len(report.passed) != len(tests):
        return Ran(none, "the report is not ours")
    return Ran(tuple(report.passed), report.why)


def _encoded(order: dict[str, object]) -> bytes:
    # A lone surrogate has no UTF-8: such a program is no Python either, and fails inside.
    return msgspec.json.encode({key: _clean(value) for key, value in order.items()})


def _clean(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return [_clean(item) for item in value] if isinstance(value, list) else value


def _communicate(box: Box, order: bytes, seconds: float) -> tuple[bytes, bool]:
    """What the driver wrote, at most `MAX_REPORT` bytes of it, and whether the time was up."""
    process = subprocess.Popen(
        box.command(*interpreter(), "-c", _driver()),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=ENVIRONMENT,
        cwd="/",
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        return _exchange(process.stdin, process.stdout, order, time.monotonic() + seconds)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdin.close()
        process.stdout.close()


def _exchange(stdin: IO[bytes], stdout: IO[bytes], order: bytes, until: float) -> tuple[bytes, bool]:
    with contextlib.suppress(BrokenPipeError):
        stdin.write(order)
        stdin.flush()
    with contextlib.suppress(BrokenPipeError):
        stdin.close()
    output = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(stdout, selectors.EVENT_READ)
        while len(output) <= MAX_REPORT:
            left = until - time.monotonic()
            if left <= 0 or not selector.select(left):
                return bytes(output), True
            chunk = os.read(stdout.fileno(), 65_536)
            if not chunk:
                break
            output += chunk
    return bytes(output), False


@cache
def _driver() -> str:
    return Path(__file__).with_name("code_driver.py").read_text(encoding="utf-8")
