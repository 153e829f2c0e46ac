"""What LiteLLM's SDK raises, as the class of fault that decides about retry, fallback and breaker.

Read from the attributes that its exceptions share (status, headers, message) and from what caused them, so that
nothing here imports the SDK.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from pointsman.errors import UpstreamError
from pointsman.upstream.faults import MAX_TEXT, from_status, without_secrets
from pointsman.upstream.retry_after import parse_retry_after

_CONNECT = ("APIConnectionError", "ConnectError", "ClientConnectorError", "ReadError", "RemoteProtocolError")
_TIMEOUT = ("Timeout", "APITimeoutError", "ReadTimeout", "ConnectTimeout")


def from_exception(error: Exception) -> UpstreamError:
    """The fault. Its text has been freed of what looks like a key."""
    text = str(getattr(error, "message", None) or error)
    names = {type(link).__name__ for link in _chain(error)}
    if type(error).__name__ == "ContextWindowExceededError":
        return UpstreamError("context_exceeded", "HTTP 400", status=400, body=without_secrets(text)[:MAX_TEXT])
    if not names.isdisjoint(_TIMEOUT):
        return UpstreamError("timeout", "the provider did not answer in time")
    headers = _headers(error)
    if not headers and not names.isdisjoint(_CONNECT):
        return UpstreamError("connect", f"no connection: {type(error).__name__}")
    if not headers and any(isinstance(link, json.JSONDecodeError) for link in _chain(error)):
        return UpstreamError("malformed", "the reply is not the JSON of a completion")
    status = getattr(error, "status_code", None)
    if not isinstance(status, int) or not 400 <= status < 600:
        return UpstreamError("server", f"the SDK failed: {type(error).__name__}", body=without_secrets(text)[:MAX_TEXT])
    return from_status(status, text, parse_retry_after(headers.get("retry-after")))


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception, and those that it came from."""
    link: BaseException | None = error
    for _ in range(20):
        if link is None:
            return
        yield link
        link = link.__cause__ or link.__context__


def _headers(error: Exception) -> dict[str, str]:
    """Those of the provider's answer, if there was one."""
    response = getattr(error, "response", None)
    for headers in (getattr(error, "litellm_response_headers", None), getattr(response, "headers", None)):
        if headers:
            return {str(name).lower(): str(value) for name, value in headers.items()}
    return {}
