"""The shapes of the Response object: the object itself, its output items, its usage, its error."""

from __future__ import annotations

from typing import Any

import msgspec

from harness.gateway.surfaces.responses_context import Naming, ResponsesContext
from harness.gateway.surfaces.responses_input import CUSTOM_ARGUMENT
from pointsman.errors import RequestError

Shape = dict[str, Any]

INCOMPLETE = {"length": "max_output_tokens", "max_tokens": "max_output_tokens", "content_filter": "content_filter"}
"""A chat `finish_reason` by which an answer is incomplete, and the reason as the Responses API says it."""

_CODES = ("rate_limit_exceeded", "context_length_exceeded", "server_error")
_ORCHESTRATION = "orchestration_"


def response_object(
    context: ResponsesContext,
    naming: Naming,
    created_at: float,
    *,
    status: str,
    model: str | None = None,
    output: list[Shape],
    usage: Shape | None = None,
    error: Shape | None = None,
    incomplete: str | None = None,
    completed_at: float | None = None,
) -> Shape:
    return {
        "id": naming.response,
        "object": "response",
        "created_at": int(created_at),
        "status": status,
        "completed_at": None if completed_at is None else int(completed_at),
        "error": error,
        "incomplete_details": None if incomplete is None else {"reason": incomplete},
        "model": model or context.model,
        "output": output,
        "usage": usage,
        **context.echo,
    }


def message_item(identity: str, status: str, content: list[Shape]) -> Shape:
    return {"id": identity, "type": "message", "status": status, "role": "assistant", "content": content}


def text_part(text: str, logprobs: list[Shape]) -> Shape:
    return {"type": "output_text", "annotations": [], "logprobs": logprobs, "text": text}


def refusal_part(refusal: str) -> Shape:
    return {"type": "refusal", "refusal": refusal}


def reasoning_item(identity: str, status: str, text: str | None, *, summary: bool) -> Shape:
    """A worker's reasoning: as the summary where the client reads that, else as text of its own."""
    item: Shape = {"id": identity, "type": "reasoning", "status": status, "summary": []}
    if summary:
        item["summary"] = [] if text is None else [{"type": "summary_text", "text": text}]
    else:
        item["content"] = [] if text is None else [{"type": "reasoning_text", "text": text}]
    return item


def call_item(identity: str, status: str, call_id: str, name: str, arguments: str, *, custom: bool) -> Shape:
    item: Shape = {"id": identity, "type": "function_call", "status": status, "call_id": call_id, "name": name}
    if not custom:
        return {**item, "arguments": arguments}
    return {**item, "type": "custom_tool_call", "input": custom_input(arguments) if arguments else ""}


def custom_input(arguments: str) -> str:
    """The one text of a free-form tool; a worker that did not keep to the form is taken at its word."""
    try:
        value = msgspec.json.decode(arguments)
    except (msgspec.MsgspecError, RecursionError):
        return arguments
    held = value.get(CUSTOM_ARGUMENT) if isinstance(value, dict) else value
    return held if isinstance(held, str) else arguments


def usage_object(usage: Any) -> Shape | None:
    """Chat usage by the Responses API's names; orchestration tokens stay apart, `estimated` is kept."""
    if not isinstance(usage, dict):
        return None
    given, answered = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    inner, outer = _details(usage, "prompt_tokens_details"), _details(usage, "completion_tokens_details")
    shape: Shape = {
        "input_tokens": given,
        "input_tokens_details": {
            "cached_tokens": _count(inner, "cached_tokens"),
            "cache_write_tokens": _count(inner, "cache_write_tokens"),
            **_orchestration(inner),
        },
        "output_tokens": answered,
        "output_tokens_details": {"reasoning_tokens": _count(outer, "reasoning_tokens"), **_orchestration(outer)},
        "total_tokens": _count(usage, "total_tokens") or given + answered,
    }
    if "estimated" in usage:
        shape["estimated"] = usage["estimated"]
    return shape


def logprobs_of(choice: Shape) -> list[Shape]:
    """A chat choice's log-probabilities; the bytes of a token are filled in where a worker leaves them out."""
    held = choice.get("logprobs")
    content = held.get("content") if isinstance(held, dict) else None
    if not isinstance(content, list):
        return []
    return [_logprob(token, with_top=True) for token in content if isinstance(token, dict)]


def error_object(error: RequestError) -> Shape:
    """The error of a Response that failed in the middle; its codes are a closed list."""
    code = error.code if error.code in _CODES else "server_error"
    return {"code": code, "message": error.message}


def error_in(held: Any) -> RequestError:
    """The error of a chat stream's error event."""
    fields = held if isinstance(held, dict) else {"message": held}
    kind, code, param = fields.get("type"), fields.get("code"), fields.get("param")
    return RequestError(
        str(fields.get("message") or "the worker failed"),
        status=502,
        type=kind if isinstance(kind, str) else "server_error",
        code=None if code is None else str(code),
        param=param if isinstance(param, str) else None,
    )


def _logprob(token: Shape, *, with_top: bool) -> Shape:
    text = token.get("token")
    text = text if isinstance(text, str) else ""
    given = token.get("bytes")
    shape: Shape = {
        "token": text,
        "bytes": given if isinstance(given, list) else list(text.encode()),
        "logprob": token.get("logprob", 0.0),
    }
    if with_top:
        top = token.get("top_logprobs")
        others = top if isinstance(top, list) else []
        shape["top_logprobs"] = [_logprob(other, with_top=False) for other in others if isinstance(other, dict)]
    return shape


def _details(usage: Shape, name: str) -> Shape:
    details = usage.get(name)
    return details if isinstance(details, dict) else {}


def _orchestration(details: Shape) -> Shape:
    return {name: count for name, count in details.items() if name.startswith(_ORCHESTRATION)}


def _count(holder: Shape, name: str) -> int:
    value = holder.get(name)
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 else 0
