"""Chat messages as Anthropic's: system apart, tool messages as results in a user message, roles in turn.

Texts that are blank are left out, since the API refuses them. System and developer messages, wherever they
stand, go to the system text, except those that an Anthropic client placed itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from pointsman.upstream.anthropic_state import (
    CACHE,
    IS_ERROR,
    LAYOUT,
    NATIVE,
    OF_RESULT,
    RESULT_BELOW,
    THINKING,
    refused,
    unsealed,
)

BEGINNING = "(the conversation begins with the assistant)"
"""The first message must be a user's; this one stands where a conversation has none."""

Block = dict[str, Any]
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,", re.ASCII)
_ID = re.compile(r"[A-Za-z0-9_-]{1,128}", re.ASCII)
_BAD_ID = re.compile(r"[^A-Za-z0-9_-]", re.ASCII)


def to_messages(messages: Sequence[Mapping[str, Any]], origin: str) -> tuple[list[Block], list[Block]]:
    """The system blocks and the messages. Raises `UpstreamError` for parts that have no like."""
    system: list[Block] = []
    turns: list[Block] = []
    for index, message in enumerate(messages):
        role, path = message.get("role"), f"messages[{index}]"
        if role in ("system", "developer"):
            texts = _blocks(message.get("content"), path)
            if NATIVE not in message:
                system += texts
            else:
                _add(turns, "system", texts)
        elif role == "assistant":
            _add(turns, "assistant", _assistant(message, origin, path))
        elif role == "tool":
            _add(turns, "user", [_result(message, path)])
        elif role == "user":
            _add_user(turns, message, path)
        else:
            raise refused(f"{path}.role: this worker knows no such role")
    if not turns and not system:
        raise refused("messages: there is no text for this worker")
    if not turns or turns[0]["role"] == "assistant":
        turns.insert(0, {"role": "user", "content": [{"type": "text", "text": BEGINNING}]})
    _trim_prefill(turns[-1])
    return system, turns


def tool_use_id(identity: Any) -> str:
    """A tool call's id in the letters that Anthropic allows; equal ids stay equal."""
    text = str(identity or "none")
    if _ID.fullmatch(text):
        return text
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{_BAD_ID.sub('_', text)[:100]}_{digest}"


def tool_input(arguments: Any) -> dict[str, Any]:
    """A call's arguments as an object; what is none stands under `raw_arguments`, so that nothing is hidden."""
    if isinstance(arguments, dict):
        return arguments
    text = arguments if isinstance(arguments, str) else ""
    if not text.strip():
        return {}
    try:
        value = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {"raw_arguments": text}


def _add(turns: list[Block], role: str, blocks: list[Block]) -> None:
    """Consecutive messages of one role become one: tool results and what the person adds belong together."""
    if not blocks:
        return
    if turns and turns[-1]["role"] == role:
        turns[-1]["content"] += blocks
    else:
        turns.append({"role": role, "content": blocks})


def _add_user(turns: list[Block], message: Mapping[str, Any], path: str) -> None:
    """A user's parts; images of a tool's result go back into the result that they are part of."""
    content = message.get("content")
    if not isinstance(content, list):
        _add(turns, "user", _blocks(content, path))
        return
    results = {
        block["tool_use_id"]: block
        for block in (turns[-1]["content"] if turns else ())
        if block["type"] == "tool_result"
    }
    own: list[Any] = []
    for index, part in enumerate(content):
        identity = part.get(OF_RESULT) if isinstance(part, dict) else None
        result = results.get(tool_use_id(identity)) if identity else None
        if result is None:
            own.append(part)
        else:
            result["content"] = [
                *(block for block in result["content"] if block.get("text") != RESULT_BELOW),
                *_blocks([part], f"{path}.content[{index}]"),
            ]
    _add(turns, "user", _blocks(own, path))


def _result(message: Mapping[str, Any], path: str) -> Block:
    block: Block = {
        "type": "tool_result",
        "tool_use_id": tool_use_id(message.get("tool_call_id")),
        "content": _blocks(message.get("content"), path),
    }
    if message.get(IS_ERROR) is True:
        block["is_error"] = True
    if message.get(CACHE):
        block[CACHE] = message[CACHE]
    return block


def _assistant(message: Mapping[str, Any], origin: str, path: str) -> list[Block]:
    """Blocks in the order of the layout, else thinking, text, tool calls."""
    held = message.get(THINKING)
    thinking = [unsealed(block, origin) for block in held] if isinstance(held, list) else []
    given = message.get("tool_calls")
    calls = [_tool_use(call, f"{path}.tool_calls") for call in (given if isinstance(given, list) else ())]
    content, layout = message.get("content"), message.get(LAYOUT)
    if isinstance(layout, list) and isinstance(content, str | None):
        ordered = _laid_out(layout, thinking, content or "", calls)
    else:
        ordered = [*thinking, *_blocks(content, path), *_refusal(message), *calls]
    return [block for block in ordered if block is not None and not _is_blank(block)]


def _laid_out(
    layout: Iterable[Any], thinking: Sequence[Block | None], text: str, calls: Sequence[Block]
) -> list[Block | None]:
    """A number of the layout is the length of a text, in characters. What it does not name comes last."""
    thoughts, tools = list(thinking), list(calls)
    ordered: list[Block | None] = []
    at = 0
    for item in layout:
        if item == "thinking" and thoughts:
            ordered.append(thoughts.pop(0))
        elif item == "tool_use" and tools:
            ordered.append(tools.pop(0))
        elif isinstance(item, int) and not isinstance(item, bool) and item > 0:
            ordered.append({"type": "text", "text": text[at : at + item]})
            at += item
    return [*ordered, *thoughts, {"type": "text", "text": text[at:]}, *tools]


def _tool_use(call: Any, path: str) -> Block:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        raise refused(f"{path}: this worker knows calls of functions only")
    return {
        "type": "tool_use",
        "id": tool_use_id(call.get("id")),
        "name": str(function.get("name") or ""),
        "input": tool_input(function.get("arguments")),
    }


def _refusal(message: Mapping[str, Any]) -> list[Block]:
    text = message.get("refusal")
    return [{"type": "text", "text": text}] if isinstance(text, str) and text else []


def _blocks(content: Any, path: str) -> list[Block]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content.strip() else []
    parts = content if isinstance(content, list) else ()
    made = (_block(part, f"{path}.content[{index}]") for index, part in enumerate(parts))
    return [block for block in made if not _is_blank(block)]


def _block(part: Any, path: str) -> Block:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "text":
        block: Block = {"type": "text", "text": str(part.get("text") or "")}
    elif kind == "refusal":
        block = {"type": "text", "text": str(part.get("refusal") or "")}
    elif kind == "image_url":
        held = part.get("image_url")
        url = held.get("url") if isinstance(held, dict) else held
        block = {"type": "image", "source": _source(str(url or ""))}
    elif kind == "file":
        block = _document(part.get("file"), path)
    else:
        raise refused(f"{path}: this worker does not take parts of type {kind}")
    if part.get(CACHE):
        block[CACHE] = part[CACHE]
    return block


def _source(url: str) -> Block:
    match = _DATA_URL.match(url)
    if match is None:
        return {"type": "url", "url": url}
    return {"type": "base64", "media_type": match.group(1), "data": url[match.end() :]}


def _document(file: Any, path: str) -> Block:
    data = file.get("file_data") if isinstance(file, dict) else None
    source = _source(data) if isinstance(data, str) else {}
    if source.get("media_type") != "application/pdf":
        raise refused(f"{path}: of files, this worker takes PDF in base64 only")
    name = file.get("filename")
    return {"type": "document", "source": source, **({"title": name} if isinstance(name, str) and name else {})}


def _is_blank(block: Block) -> bool:
    return block["type"] == "text" and not block["text"].strip()


def _trim_prefill(last: Block) -> None:
    """The beginning of an answer must not end in blanks."""
    if last["role"] == "assistant" and last["content"][-1]["type"] == "text":
        last["content"][-1]["text"] = last["content"][-1]["text"].rstrip()
