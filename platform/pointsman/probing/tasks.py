"""Tasks of a probe, one JSON object a line:

    {"id": "sum-1", "prompt": "What is 2 + 2?", "verifier": {"kind": "numeric", "value": 4}, "task": "sums"}

`messages` (a chat's) may stand in place of `prompt`; `task` and `split` are labels for later. The whole file is
read and every verifier tried before anything is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from pointsman.errors import UserError
from pointsman.hashing import content_hash
from pointsman.verifiers import verify
from pointsman.verifiers.code import require

MAX_ID = 200


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    id: str | int
    verifier: dict[str, Any]
    prompt: str | None = None
    messages: list[dict[str, Any]] | None = None
    task: str | None = None
    split: str | None = None


@dataclass(frozen=True)
class ProbeTask:
    """A request with the verifier of its answer."""

    id: str
    messages: tuple[Mapping[str, Any], ...]
    verifier: Mapping[str, Any]
    task: str | None = None
    split: str | None = None

    @property
    def text(self) -> str:
        """The person's ask: the last user message's text."""
        for message in reversed(self.messages):
            if message.get("role") == "user":
                return _text(message.get("content"))
        return ""

    @cached_property
    def hash(self) -> str:
        """Of what is asked and how it is checked: a task that is changed is another one."""
        return content_hash([self.id, list(self.messages), self.verifier])


def read_tasks(file: Path) -> list[ProbeTask]:
    """The tasks of a file. Raises `UserError` naming file and line for the first that is not one."""
    try:
        lines = file.read_bytes().splitlines()
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror}") from None
    tasks: list[ProbeTask] = []
    seen: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        if line.strip():
            task = _task(line, f"{file}: line {number}")
            if task.id in seen:
                raise UserError(f"{file}: line {number}: id: {task.id!r} is line {seen[task.id]}'s already")
            seen[task.id] = number
            tasks.append(task)
    if not tasks:
        raise UserError(f"{file}: no tasks; expected one JSON object a line, with id, prompt and verifier")
    if any(task.verifier.get("kind") == "code" for task in tasks):
        require()
    return tasks


def task_of(value: Mapping[str, Any], place: str = "task") -> ProbeTask:
    """A task from its JSON object."""
    return _task(msgspec.json.encode(value), place)


def _task(line: bytes, place: str) -> ProbeTask:
    try:
        read = msgspec.json.decode(line, type=_Line)
    except msgspec.ValidationError as error:
        raise UserError(f"{place}: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{place}: expected one JSON object: {error}") from None
    if (read.prompt is None) == (read.messages is None):
        raise UserError(f"{place}: expected either prompt or messages, and not both")
    messages = read.messages if read.messages is not None else [{"role": "user", "content": read.prompt}]
    if not messages or not all(isinstance(message.get("role"), str) for message in messages):
        raise UserError(f"{place}: messages: expected a list of objects with a role, that is not empty")
    if not 0 < len(str(read.id)) <= MAX_ID:
        raise UserError(f"{place}: id: expected 1 to {MAX_ID} characters")
    task = ProbeTask(str(read.id), tuple(messages), read.verifier, read.task, read.split)
    if not task.text.strip():
        raise UserError(f"{place}: expected a user message with a text")
    try:
        verify(read.verifier, "")
    except UserError as error:
        raise UserError(f"{place}: {error}") from None
    return task


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "\n".join(text for text in parts if isinstance(text, str))
    return ""
