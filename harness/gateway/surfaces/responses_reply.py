"""A whole chat completion as a Response object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from harness.gateway.surfaces.responses_context import Naming, ResponsesContext
from harness.gateway.surfaces.responses_object import (
    INCOMPLETE,
    Shape,
    call_item,
    logprobs_of,
    message_item,
    reasoning_item,
    refusal_part,
    response_object,
    text_part,
    usage_object,
)
from pointsman.errors import UpstreamError


def from_chat(
    reply: bytes | dict[str, Any],
    context: ResponsesContext,
    *,
    identity: str,
    created_at: float,
    clock: Callable[[], float],
) -> bytes:
    """`identity` is the decision's id; `created_at` when the request came, in seconds, `clock` the time now.

    The first choice alone is told: the Responses API has no others. Raises `UpstreamError` (malformed)
    where the reply is no completion.
    """
    chat = reply if isinstance(reply, dict) else _read(reply)
    choices = chat.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        raise UpstreamError("malformed", "the reply has no choices")
    naming = Naming(identity)
    reason = INCOMPLETE.get(str(choice.get("finish_reason")))
    output = _output(choice, context, naming)
    if reason is not None and output:
        output[-1]["status"] = "incomplete"
    model = chat.get("model")
    shape = response_object(
        context,
        naming,
        created_at,
        status="completed" if reason is None else "incomplete",
        model=model if isinstance(model, str) else None,
        output=output,
        usage=usage_object(chat.get("usage")),
        incomplete=reason,
        completed_at=clock() if reason is None else None,
    )
    return msgspec.json.encode(shape)


def reasoning_text(part: Shape) -> str:
    """A message's or a delta's reasoning, under either of its names."""
    text = part.get("reasoning_content") or part.get("reasoning")
    return text if isinstance(text, str) else ""


def content_text(content: Any) -> str:
    """A text, or the texts of a list of parts, as some workers answer."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
    return "".join(text for text in texts if isinstance(text, str))


def _read(reply: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(reply, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise UpstreamError("malformed", "the reply is not the JSON of a completion") from error


def _output(choice: Shape, context: ResponsesContext, naming: Naming) -> list[Shape]:
    message = choice.get("message")
    if not isinstance(message, dict):
        return []
    output: list[Shape] = []
    if reasoning := reasoning_text(message):
        output.append(reasoning_item(naming.item("rs", 0), "completed", reasoning, summary=context.summary))
    content: list[Shape] = []
    if text := content_text(message.get("content")):
        content.append(text_part(text, logprobs_of(choice)))
    if isinstance(refusal := message.get("refusal"), str) and refusal:
        content.append(refusal_part(refusal))
    if content:
        output.append(message_item(naming.item("msg", len(output)), "completed", content))
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict):
            output.append(_call(call, len(output), context, naming))
    return output


def _call(call: Shape, index: int, context: ResponsesContext, naming: Naming) -> Shape:
    function = call.get("function")
    function = function if isinstance(function, dict) else {}
    name, arguments, call_id = function.get("name"), function.get("arguments"), call.get("id")
    name = name if isinstance(name, str) else ""
    if not isinstance(arguments, str):  # some workers send the object itself
        arguments = "" if arguments is None else msgspec.json.encode(arguments).decode()
    custom = name in context.custom_tools
    return call_item(
        naming.item("ctc" if custom else "fc", index),
        "completed",
        call_id if isinstance(call_id, str) and call_id else naming.item("call", index),
        name,
        arguments,
        custom=custom,
    )
