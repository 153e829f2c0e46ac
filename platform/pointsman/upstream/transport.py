"""What carries one call to a worker: a POST, and its reply. `pooled` serves; doubles and other APIs have theirs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Protocol


class Reply(Protocol):
    """An answer whose status was 200; its body is still to be read."""

    async def read(self) -> bytes: ...

    def chunks(self) -> AsyncGenerator[bytes, None]: ...

    def close(self) -> None: ...


class Transport(Protocol):
    """Sends one POST. Raises `UpstreamError` for connection faults and for any status but 200."""

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, connect: float) -> Reply: ...

    async def close(self) -> None: ...
