"""The transport for workers with `quirks.api = "litellm"`: LiteLLM's SDK in place of HTTP (extra `providers`).

It gives the SDK's answers as the bytes of chat completions, JSON or events, so that everything behind it reads
them like any other. It never retries and never falls back: that is the one loop's part. Prices are ours, from
the worker's configuration; the SDK's are not asked for. Only the process that has such a worker imports it.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from pointsman.config.home import settle_litellm
from pointsman.errors import UpstreamError
from pointsman.pool import NO_ADDRESS
from pointsman.upstream.litellm_faults import from_exception
from pointsman.upstream.litellm_request import arguments
from pointsman.upstream.sse import DONE

_LONGEST = 86_400.0  # seconds: the caller has its own limits


class LitellmTransport:
    """One per event loop."""

    def __init__(self) -> None:
        self._sdk = _load()

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, connect: float) -> LitellmReply:
        """Asks the SDK. Raises `UpstreamError`."""
        import httpx

        given = arguments(body)
        key = headers.get("authorization", "").removeprefix("Bearer ")
        if key:
            given["api_key"] = key
        if url != NO_ADDRESS:
            given["base_url"] = url
        if "traceparent" in headers:
            given["extra_headers"] = {n: headers[n] for n in ("traceparent", "tracestate") if n in headers}
        timeout = httpx.Timeout(_LONGEST, connect=connect)
        try:
            answer = await self._sdk.acompletion(**given, timeout=timeout, max_retries=0, num_retries=0)
        except self._sdk.raised as error:
            raise from_exception(error) from error
        return LitellmReply(answer, self._sdk.raised)

    async def close(self) -> None:
        await self._sdk.close()


class LitellmReply:
    """A `Reply` over what the SDK gave: an answer, or a stream of chunks."""

    def __init__(self, answer: Any, raised: tuple[type[Exception], ...]) -> None:
        self._answer = answer
        self._raised = raised
        self._closing: asyncio.Future[None] | None = None
        self._ended = False

    async def read(self) -> bytes:
        return _encoded(_whole(self._answer))

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The events. A stream that its provider did not end is not ended here either, whatever the SDK adds."""
        stream = self._answer
        try:
            async for chunk in stream:
                part = chunk.model_dump(exclude_none=True)
                if _ends(part) and getattr(stream, "received_finish_reason", None) is None:
                    return
                yield b"data: " + _encoded(part) + b"\n\n"
        except self._raised as error:
            raise from_exception(error) from error
        else:
            yield b"data: " + DONE + b"\n\n"
        finally:
            self._ended = True
            await stream.aclose()

    def close(self) -> None:
        if not self._ended and hasattr(self._answer, "aclose"):
            self._ended = True
            self._closing = asyncio.ensure_future(self._answer.aclose())


class _Sdk(NamedTuple):
    """What is used of it. `raised`: its own errors, which are OpenAI's, and those it lets through."""

    acompletion: Callable[..., Awaitable[Any]]
    close: Callable[[], Awaitable[None]]
    raised: tuple[type[Exception], ...]


def _load() -> _Sdk:
    """The SDK, imported quietly: nothing fetched, nothing told, nothing written to its own log."""
    settle_litellm()
    import httpx
    import litellm
    import openai
    from litellm.llms.custom_httpx.async_client_cleanup import close_litellm_async_clients

    litellm.suppress_debug_info = True
    litellm.telemetry = False
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logger = logging.getLogger(name)  # its lines may quote requests
        logger.handlers = [logging.NullHandler()]
        logger.propagate = False
    raised = (openai.OpenAIError, httpx.HTTPError, OSError, ValueError, LookupError, TypeError, AttributeError)
    return _Sdk(litellm.acompletion, close_litellm_async_clients, raised)


def _whole(answer: Any) -> dict[str, Any]:
    if not hasattr(answer, "model_dump"):
        raise UpstreamError("malformed", "the reply is no completion")
    body: dict[str, Any] = answer.model_dump(exclude_none=True)
    for choice in body.get("choices", ()):
        choice.setdefault("message", {}).setdefault("content", None)
    return body


def _ends(part: Mapping[str, Any]) -> bool:
    return any(choice.get("finish_reason") for choice in part.get("choices", ()))


def _encoded(value: Any) -> bytes:
    return json.dumps(value, default=str, separators=(",", ":")).encode()
