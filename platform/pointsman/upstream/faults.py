"""From what a provider answered to the class of the fault, which decides about retry, fallback and breaker."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from pointsman.errors import UpstreamError, UpstreamFault

# The words by which providers say that a prompt does not fit: OpenAI, Anthropic, Google, vLLM,
# SGLang, llama.cpp, Mistral, Cohere.
_CONTEXT = re.compile(
    r"context_length_exceeded|maximum context length|context (?:window|length|size)|prompt is too long"
    r"|input token count|exceeds the maximum number of tokens|too many (?:input )?tokens|longer than the model"
    r"|exceed_context_size|input is too long|reduce the length",
    re.IGNORECASE,
)
# Only the shape of a secret matters here: error texts of providers have quoted keys before.
_SECRET = re.compile(r"(?i)\b(?:sk|pk|pm|gsk|xai|key)[-_][A-Za-z0-9_\-]{8,}|\bAIza[\w-]{20,}|Bearer\s+\S+")
MAX_TEXT = 2_000
REMOVED = "[key removed]"


def from_status(status: int, body: str, retry_after: float | None) -> UpstreamError:
    """The fault that an HTTP status other than 200 stands for."""
    text = without_secrets(body)[:MAX_TEXT]
    fault: UpstreamFault
    if status == 429:
        fault = "rate_limited"
    elif status in (401, 403):
        fault = "auth"
    elif status in (400, 413, 422) and _CONTEXT.search(body):
        fault = "context_exceeded"
    elif status in (400, 409, 413, 415, 422):
        fault = "bad_request"
    elif status == 408:
        fault = "timeout"
    else:  # 404 too: the worker is configured wrongly, and another may answer
        fault = "server"
    return UpstreamError(fault, f"HTTP {status}", status=status, retry_after=retry_after, body=text)


def from_error_object(error: Any) -> UpstreamError:
    """The fault in an `{"error": …}` that came with status 200 or as an event of a stream."""
    text = error if isinstance(error, str) else json.dumps(error, default=str)
    code = error.get("code") if isinstance(error, dict) else None
    kind = str(error.get("type") or "") if isinstance(error, dict) else ""
    if (status := _status(code)) is not None:
        return from_status(status, text, None)
    fault: UpstreamFault = "server"
    if _CONTEXT.search(text):
        fault = "context_exceeded"
    elif "rate_limit" in kind or code in ("rate_limit_exceeded", "insufficient_quota") or "overloaded" in kind:
        fault = "rate_limited"
    return UpstreamError(fault, "error in the reply", body=without_secrets(text)[:MAX_TEXT])


def without_secrets(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` with everything that looks like a key blacked out, and `secrets` whatever they look like."""
    for secret in secrets:
        text = text.replace(secret, REMOVED)
    return _SECRET.sub(REMOVED, text)


def _status(code: Any) -> int | None:
    """An HTTP status that stands in an error's `code`, as a number or as its digits."""
    if isinstance(code, str) and code.isdecimal() and len(code) == 3:
        code = int(code)
    return code if isinstance(code, int) and 400 <= code < 600 else None
