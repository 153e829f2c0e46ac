"""One answer of one worker to one question, as another system recorded it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from pointsman.words import CallStatus


@dataclass(frozen=True, slots=True)
class Record:
    """`query` is the same for all records of one question. What is not known is None, never 0.

    `body` is the request in the form of OpenAI's API, None where it was not logged or is a mere text.
    Costs are USD, times milliseconds, scores in [0, 1].
    `trace` groups the calls of one task: a score that was given to it is each call's.
    """

    query: str
    model: str
    text: str | None = None
    body: dict[str, Any] | None = None
    provider_model: str | None = None
    asked_at: datetime | None = None
    episode: str | None = None
    trace: str | None = None
    task: str | None = None
    split: str | None = None
    completion: str | None = None
    tool_calls: Any | None = None
    finish_reason: str | None = None
    status: CallStatus = "ok"
    http_status: int | None = None
    error: str | None = None
    score: float | None = None
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    cost: Decimal | None = None
    latency_ms: float | None = None
    first_token_ms: float | None = None
    repeat: int | None = None
