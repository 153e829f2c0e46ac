"""Code against tests, run where it can do no harm; never run anywhere else.

    {"kind": "code", "language": "python", "tests": ["assert add(1, 2) == 3", "assert add(0, 0) == 0"],
     "timeout_s": 5, "memory_mb": 256, "partial": false}

The program is the reply's last fenced block, or the whole reply where it has none. Every test is Python that
runs in the program's own namespace, in order; one that raises has failed. `tests` is one text or a list of
them; `partial` scores the share of tests that passed in place of all or nothing. Where this machine has no
way to confine a program the verifier refuses (`require` says so ahead of time).

The tests run in one interpreter with the program, as `assert` statements must. A program that was written to
cheat (it would have to search the interpreter for the report's token) is not caught by that: keep tests that
people cannot see from being the only judge of code that is trained against them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from pointsman.errors import UserError
from pointsman.verifiers import spec as read
from pointsman.verifiers.code_box import Box, find_box
from pointsman.verifiers.code_run import Limits, run
from pointsman.verifiers.extract import bounded

_BLOCK = re.compile(r"```[A-Za-z0-9_+-]{0,20}[ \t]{0,4}\n(.*?)(?:```|\Z)", re.DOTALL)
_KEYS = ("language", "tests", "timeout_s", "memory_mb", "partial")
MAX_TESTS = 200
MAX_TEST_CHARS = 200_000
INSTALL = "install bubblewrap (Debian: apt-get install bubblewrap), or allow unprivileged user namespaces"


FindBox = Callable[[], Box | None]


def code(spec: Mapping[str, Any], answer: str, *, find: FindBox = find_box) -> float:
    read.only(spec, _KEYS)
    tests, limits = _tests(spec), _limits(spec)
    if spec.get("language", "python") != "python":
        raise read.fault(spec, "language", "python")
    partial = read.flag(spec, "partial", False)
    program = program_in(answer)
    if not program.strip():
        return 0.0
    passed = run(require(find), program, tests, limits).passed
    return sum(passed) / len(tests) if partial else float(all(passed))


def program_in(answer: str) -> str:
    """The program that a reply gives: its last fenced block, one that never closes too; else the reply."""
    text = bounded(answer)
    blocks = _BLOCK.findall(text)
    return str(blocks[-1]) if blocks else text


def require(find: FindBox = find_box) -> Box:
    """How programs are confined here. Raises `UserError` where they cannot be: nothing runs unconfined."""
    box = find()
    if box is None:
        raise UserError(f"verifier code: this machine cannot confine a program, so none is run; {INSTALL}")
    return box


def _tests(spec: Mapping[str, Any]) -> list[str]:
    tests = [spec["tests"]] if isinstance(spec.get("tests"), str) else read.texts(spec, "tests")
    if len(tests) > MAX_TESTS or sum(map(len, tests)) > MAX_TEST_CHARS or not all(test.strip() for test in tests):
        expected = f"1 to {MAX_TESTS} tests that are not empty, {MAX_TEST_CHARS:,} characters in all"
        raise UserError(f"verifier code: tests: expected {expected}")
    return tests


def _limits(spec: Mapping[str, Any]) -> Limits:
    seconds, megabytes = read.decimal(spec, "timeout_s", "5"), read.decimal(spec, "memory_mb", "256")
    if not 0 < seconds <= 60:
        raise read.fault(spec, "timeout_s", "more than 0 and at most 60 seconds")
    if not 32 <= megabytes <= 4096:
        raise read.fault(spec, "memory_mb", "32 to 4096")
    return Limits(float(seconds), int(megabytes))
