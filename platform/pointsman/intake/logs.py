"""Rows of a request log as records: one row, one request, one answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pointsman.hashing import content_hash
from pointsman.intake.conversation import Answer, Message, answer_of, ask_of, messages_of, split_answer
from pointsman.intake.maps import ColumnMap
from pointsman.intake.record import Record
from pointsman.intake.values import Unreadable, Values, from_json, status_of

BODY_KEYS = ("messages", "prompt", "input")


class NotAnAnswer(Exception):
    """A row of another type (a span, an embedding): left out, and counted by its type."""


def record_of(row: Mapping[str, Any], columns: ColumnMap) -> Record:
    """The record of one row. Raises `Unreadable`, or `NotAnAnswer`."""
    values = Values(row, columns.fields)
    kind = values.get("type")
    if columns.types and kind is not None and str(kind) not in columns.types:
        raise NotAnAnswer(str(kind)[:40])
    model = values.text("model")
    if not model:
        raise Unreadable("model: expected who answered")
    body, messages, answer = _exchange(values, model)
    status, http_status = status_of(values.get("status") or "")
    error = values.get("error")
    if error is not None and status == "ok" and answer == Answer():
        status = "error"
    asked_at, ended_at = values.moment("asked_at"), values.moment("ended_at")
    latency = values.milliseconds("latency")
    if latency is None and asked_at and ended_at and ended_at >= asked_at:
        latency = (ended_at - asked_at).total_seconds() * 1000 or None
    return Record(
        query=values.text("id") or content_hash(dict(row)),
        model=model,
        text=ask_of(messages),
        body=body,
        provider_model=values.text("provider_model"),
        asked_at=asked_at,
        episode=values.text("episode"),
        trace=values.text("trace"),
        task=values.text("task"),
        split=values.text("split"),
        completion=answer.text,
        tool_calls=answer.tool_calls,
        finish_reason=answer.finish_reason,
        status=status,
        http_status=http_status,
        error=None if status == "ok" or error is None else str(error),
        score=values.score("score"),
        input_tokens=values.count("input_tokens"),
        cached_tokens=values.count("cached_tokens"),
        output_tokens=values.count("output_tokens"),
        cost=values.cost("cost"),
        latency_ms=latency,
        first_token_ms=values.milliseconds("first_token"),
    )


def _exchange(values: Values, model: str) -> tuple[dict[str, Any] | None, list[Message], Answer]:
    """The request's body, its messages, and the answer."""
    request = from_json(values.get("request"))
    given = values.get("response")
    if isinstance(request, Mapping) and any(request.get(key) for key in BODY_KEYS):
        return dict(request), messages_of(request), answer_of(given)
    messages = messages_of(values.get("messages"))
    if given is None:
        messages, given = split_answer(messages)
    body = {"model": model, "messages": messages} if messages else None
    return body, messages, answer_of(given)
