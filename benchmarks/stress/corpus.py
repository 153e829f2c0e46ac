"""The corpus of nasty inputs in `corpus.json`: each a request's bytes, or what a worker answers to a plain one.

An entry has a `name`, an `expect` (`ok`, `refused`, or `either` where several answers are right) and one of
`body` (all of it), `content` (the JSON of the message's content), `extra` (the JSON of an unknown field),
`members` (JSON members beside model and messages) or `reply` (the worker's bytes, with `stream`). Text is a
list of parts: a string, `{"text", "times"}`, or `{"hex"}` for bytes that are no UTF-8.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

FILE = Path(__file__).with_name("corpus.json")
HELLO = b'[{"role":"user","content":"hello"}]'


@dataclass(frozen=True)
class Nasty:
    """One input. `from_worker`: the request is plain, and the worker's answer is not."""

    name: str
    body: bytes
    expect: Literal["ok", "refused", "either"]
    from_worker: bool = False
    stream: bool = False


def load_corpus() -> list[Nasty]:
    return [_entry(entry) for entry in json.loads(FILE.read_text(encoding="utf-8"))]


def _entry(entry: dict[str, Any]) -> Nasty:
    name, expect, stream = entry["name"], entry["expect"], bool(entry.get("stream"))
    if "reply" in entry:
        play = json.dumps({"pause": 0.0, "reply": _bytes(entry["reply"]).decode()})
        members = b'"stream":%b,"play":%b' % (b"true" if stream else b"false", play.encode())
        return Nasty(name, _with_members(members), expect, from_worker=True, stream=stream)
    if "body" in entry:
        return Nasty(name, _bytes(entry["body"]), expect)
    if "content" in entry:
        messages = b'[{"role":"user","content":%b}]' % _bytes(entry["content"])
        return Nasty(name, b'{"model":"pointsman","messages":%b}' % messages, expect)
    if "extra" in entry:
        return Nasty(name, _with_members(b'"extra":' + _bytes(entry["extra"])), expect)
    return Nasty(name, _with_members(_bytes(entry["members"])), expect)


def _with_members(members: bytes) -> bytes:
    return b'{"model":"pointsman","messages":%b,%b}' % (HELLO, members)


def _bytes(parts: list[Any]) -> bytes:
    return b"".join(_part(part) for part in parts)


def _part(part: Any) -> bytes:
    if isinstance(part, str):
        return part.encode()
    if "hex" in part:
        return bytes.fromhex(part["hex"])
    text: str = part["text"]
    return text.encode() * int(part["times"])
