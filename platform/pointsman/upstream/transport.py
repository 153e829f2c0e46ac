"""HTTP to workers through one pooled aiohttp session. Times are limited by the caller, except connecting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Protocol

import aiohttp

from pointsman.errors import UpstreamError
from pointsman.upstream.faults import from_status
from pointsman.upstream.retry_after import parse_retry_after

MAX_ERROR_BYTES = 16_384
MAX_REPLY_BYTES = 64 * 1024 * 1024


class Reply(Protocol):
    """An answer whose status was 200; its body is still to be read."""

    async def read(self) -> bytes: ...

    def chunks(self) -> AsyncGenerator[bytes, None]: ...

    def close(self) -> None: ...


class Transport(Protocol):
    """Sends one POST. Raises `UpstreamError` for connection faults and for any status but 200."""

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, connect: float) -> Reply: ...

    async def close(self) -> None: ...


class AiohttpReply:
    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def read(self) -> bytes:
        """The whole body; the connection goes back to the pool."""
        return await _read(self, MAX_REPLY_BYTES)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """The body as it arrives, cut anywhere."""
        content = self._response.content
        try:
            while data := await content.readany():
                yield data
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _lost(error) from error
        self._response.release()

    def close(self) -> None:
        """Closes the connection unless the body was read to its end: this is how a call is cancelled."""
        self._response.close()


class AiohttpTransport:
    """The transport that serves. One per event loop."""

    def __init__(self, *, pool: int = 1_000) -> None:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=pool, keepalive_timeout=30),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=True,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("User-Agent", "Accept-Encoding", "Accept"),
            read_bufsize=64 * 1024,
            trust_env=False,
        )
        self._limits: dict[float, aiohttp.ClientTimeout] = {}

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, connect: float) -> AiohttpReply:
        limit = self._limits.get(connect)
        if limit is None:
            limit = self._limits[connect] = aiohttp.ClientTimeout(total=None, sock_connect=connect)
        try:
            response = await self._session.post(url, data=body, headers=headers, timeout=limit, allow_redirects=False)
        except aiohttp.ServerTimeoutError as error:
            raise UpstreamError("timeout", "the connection could not be made in time") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise UpstreamError("connect", f"no connection: {type(error).__name__}") from error
        if response.status == 200:
            return AiohttpReply(response)
        raise await _refused(response)

    async def close(self) -> None:
        await self._session.close()


async def _refused(response: aiohttp.ClientResponse) -> UpstreamError:
    """The error that a status other than 200 stands for, with its body, bounded."""
    body = b""
    try:
        async with asyncio.timeout(2):
            while len(body) < MAX_ERROR_BYTES and (data := await response.content.readany()):
                body += data
    except (aiohttp.ClientError, OSError, ValueError):
        pass  # the status says enough
    response.close()
    wait = parse_retry_after(response.headers.get("retry-after"))
    return from_status(response.status, body.decode("utf-8", "replace"), wait)


async def _read(reply: AiohttpReply, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for chunk in reply.chunks():
        size += len(chunk)
        if size > limit:
            reply.close()
            raise UpstreamError("malformed", f"the reply is larger than {limit:,} bytes")
        parts.append(chunk)
    return b"".join(parts)


def _lost(error: Exception) -> UpstreamError:
    return UpstreamError("connect", f"the connection was lost: {type(error).__name__}")
