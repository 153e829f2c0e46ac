"""Route on the person's ask: what a person wrote last, apart from what agents and harnesses put around it."""

from __future__ import annotations

import re
from typing import Any

import msgspec

MAX_ASK = 200_000
MAX_CONTEXT = 20_000
MAX_PART = 4_000
_MEDIA = ("image_url", "input_audio", "file", "image", "source")
# Blocks that coding agents put into user messages and no person wrote.
_NOISE = re.compile(
    r"<(system-reminder|system_reminder|environment_details|environment_context|command-message|command-name|"
    r"local-command-stdout|user_instructions|ide_opened_file|ide_selection|attached_files|context)>.*?</\1>",
    re.DOTALL,
)


class Conversation(msgspec.Struct, frozen=True):
    """What the messages say of the request: the ask, its surroundings, and what it needs of a worker."""

    ask: str
    context: str
    images: int
    audio: bool
    in_tool_loop: bool
    media_bytes: int
    tool_call_ids: tuple[str, ...]
    has_history: bool
    opening: str


def read_conversation(messages: list[dict[str, Any]]) -> Conversation:
    """Reads OpenAI messages of any content shape: text, parts, null."""
    return _plain(messages) or _any(messages)


def _plain(messages: list[dict[str, Any]]) -> Conversation | None:
    """The usual request, read the short way: texts alone, the last a person's, and nothing in it but theirs."""
    ask = messages[-1].get("content")
    if messages[-1].get("role") != "user" or type(ask) is not str or not ask or "<" in ask:
        return None
    system: list[str] = []
    first: str | None = None
    lines: list[str] = []
    answered = False
    for message in messages:
        text, role = message.get("content"), message.get("role")
        if type(text) is not str:
            return None
        if role == "user":
            first = text if first is None else first
        elif role in ("system", "developer"):
            system.append(text)
        else:
            answered = answered or role in ("assistant", "tool", "function")
    size = 0
    for message in messages[-2::-1]:
        if size >= MAX_CONTEXT:
            break
        lines.append(line := _line(message))
        size += len(line)
    return Conversation(
        ask=ask[:MAX_ASK],
        context="\n".join(reversed(lines))[-MAX_CONTEXT:],
        images=0,
        audio=False,
        in_tool_loop=False,
        media_bytes=0,
        tool_call_ids=(),
        has_history=answered,
        opening="\n".join(system) + f"\x1e{first}",
    )


def _any(messages: list[dict[str, Any]]) -> Conversation:
    ask, around, images, audio, media_bytes = "", [], 0, False, 0
    position = len(messages)
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.get("role") == "user":
            text, noise = _split_noise(_text(message.get("content")))
            if text or (_has_media(message.get("content")) and not _shows_result(messages, index)):
                ask, position = text, index
                if noise:
                    around.append(noise)
                break
    for message in messages:
        content = message.get("content")
        if isinstance(content, list):
            seen, heard = _media(content)
            images, audio, media_bytes = images + seen, audio or heard, media_bytes + _media_bytes(content)
    size = 0
    for index in range(len(messages) - 1, -1, -1):
        if index != position and size < MAX_CONTEXT:
            line = _line(messages[index])
            size += len(line)
            around.append(line)
    loop = _without_reminders(messages)
    return Conversation(
        ask=ask[:MAX_ASK],
        context="\n".join(reversed(around))[-MAX_CONTEXT:],
        images=images,
        audio=audio,
        in_tool_loop=bool(loop) and loop[-1].get("role") in ("tool", "function"),
        media_bytes=media_bytes,
        tool_call_ids=_tool_ids(loop),
        has_history=any(m.get("role") in ("assistant", "tool", "function") for m in messages),
        opening=_opening(messages),
    )


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "\n".join(text for text in parts if isinstance(text, str))
    return ""


def _split_noise(text: str) -> tuple[str, str]:
    if "<" not in text:
        return text, ""
    noise = [match.group(0) for match in _NOISE.finditer(text)]
    return (_NOISE.sub("", text).strip(), "\n".join(noise)) if noise else (text, "")


def _has_media(content: Any) -> bool:
    images, audio = _media(content)
    return bool(images or audio)


def _media(content: Any) -> tuple[int, bool]:
    if not isinstance(content, list):
        return 0, False
    kinds = [part.get("type") for part in content if isinstance(part, dict)]
    return sum(kind in ("image_url", "image", "input_image") for kind in kinds), "input_audio" in kinds


def _media_bytes(content: list[Any]) -> int:
    """How much of the parts is data of images, sounds and files, which are no text."""
    size = 0
    for part in content:
        if isinstance(part, dict):
            for name in _MEDIA:
                held = part.get(name)
                texts = held.values() if isinstance(held, dict) else (held,)
                size += sum(len(text) for text in texts if isinstance(text, str))
    return size


def _without_reminders(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages up to the last that is no system text, no mere reminder of a harness and no result's image."""
    end = len(messages)
    while end and (_is_reminder(messages[end - 1]) or _shows_result(messages, end - 1)):
        end -= 1
    return messages[:end] if end < len(messages) else messages


def _is_reminder(message: dict[str, Any]) -> bool:
    role, content = message.get("role"), message.get("content")
    if role in ("system", "developer"):
        return True
    return role == "user" and not _has_media(content) and not _split_noise(_text(content))[0]


def _shows_result(messages: list[dict[str, Any]], index: int) -> bool:
    """Whether a user message is media alone, right behind tool results: a tool message can hold text only."""
    message, before = messages[index], messages[index - 1] if index else {}
    if message.get("role") != "user" or before.get("role") not in ("tool", "function"):
        return False
    content = message.get("content")
    return _has_media(content) and not _split_noise(_text(content))[0]


def _line(message: dict[str, Any]) -> str:
    text = _text(message.get("content"))
    if len(text) > MAX_PART:
        text = f"{text[: MAX_PART // 2]} … {text[-MAX_PART // 2 :]}"
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        names = [
            c["function"].get("name") for c in calls if isinstance(c, dict) and isinstance(c.get("function"), dict)
        ]
        text = f"{text} [calls {', '.join(str(name) for name in names)}]"
    return f"{message.get('role')}: {text}"


def _tool_ids(messages: list[dict[str, Any]]) -> tuple[str, ...]:
    """The ids that the newest run of tool results answers."""
    ids = []
    for message in reversed(messages):
        if message.get("role") != "tool":
            break
        if isinstance(identity := message.get("tool_call_id"), str):
            ids.append(identity)
    return tuple(ids)


def _opening(messages: list[dict[str, Any]]) -> str:
    """System text and first user message: what stays the same through a conversation."""
    system = "\n".join(_text(m.get("content")) for m in messages if m.get("role") in ("system", "developer"))
    first = next((_text(m.get("content")) for m in messages if m.get("role") == "user"), "")
    return f"{system}\x1e{first}"
