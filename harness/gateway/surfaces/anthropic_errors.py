"""Errors as Anthropic's clients read them. The HTTP status stays the gateway's; its type says the same."""

from __future__ import annotations

from typing import Any

import msgspec

from pointsman.errors import RequestError

_TYPES = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}
TOO_LONG = "prompt is too long"
"""The words by which Claude Code knows that it must shorten the conversation."""


_KINDS = frozenset((*_TYPES.values(), "api_error", "invalid_request_error"))


def error_body(error: RequestError) -> bytes:
    """`{"type": "error", "error": {"type", "message"}}`."""
    return _body(error_type(error.status), _said(error))


def error_event(error: RequestError) -> bytes:
    """An error in the middle of a stream; no `message_stop` follows it."""
    return _event(error_body(error))


def chunk_event(error: Any) -> bytes:
    """The event for the error object of a chunk; a type that is one of Anthropic's stays."""
    given = error if isinstance(error, dict) else {"message": str(error)}
    code, kind = given.get("code"), given.get("type")
    if not isinstance(kind, str) or kind not in _KINDS:
        kind = error_type(code if isinstance(code, int) and 400 <= code < 600 else 502)
    return _event(_body(kind, str(given.get("message") or "the worker failed")))


def error_type(status: int) -> str:
    """Anthropic's word for an HTTP status."""
    return _TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")


def _event(body: bytes) -> bytes:
    return b"event: error\ndata: " + body + b"\n\n"


def _body(kind: str, message: str) -> bytes:
    return msgspec.json.encode({"type": "error", "error": {"type": kind, "message": message}})


def _said(error: RequestError) -> str:
    if error.code == "context_length_exceeded" and TOO_LONG not in error.message:
        return f"{TOO_LONG}: {error.message}"
    return error.message
