"""From what a provider answered to the class of the fault, which decides about retry, fallback and breaker."""

from __future__ import annotations

import re
from typing import Any

import msgspec

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
    text = error if isinstance(error, str) else msgspec.json.encode(error).decode()
    code = error.get("code") if isinstance(error, dict) else None
    kind = str(error.get("type") or "") if isinstance(error, dict) else ""
    if isinstance(code, int) and 400 <= code < 600:
        return from_status(code, text, None)
    fault: UpstreamFault = "server"
    if _CONTEXT.search(text):
        fault = "context_exceeded"
    elif "rate_limit" in kind or code in ("rate_limit_exceeded", "insufficient_quota") or "overloaded" in kind:
        fault = "rate_limited"
    return UpstreamError(fault, "error in the reply", body=without_secrets(text)[:MAX_TEXT])


def without_secrets(text: str) -> str:
    """`text` with everything that looks like a key blacked out."""
    return _SECRET.sub("[key removed]", text)
