"""What a surface is: one of the APIs that clients speak. The core behind all of them speaks chat completions.

A surface is stateless: it reads a request into the core's form, and says errors in its own. What an answer
needs of its request is a `Voice`, and a stream of that answer a `Teller`. Chat completions have neither:
their answers pass through as they came.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple, Protocol

from harness.gateway.access import Headers
from harness.gateway.request import ChatRequest
from pointsman.errors import RequestError
from pointsman.words import Surface as SurfaceName

COMMENT = b": keep-alive\n\n"


class Teller(Protocol):
    """One stream as this surface tells it. Everything it returns is whole events, or nothing."""

    def feed(self, data: bytes) -> bytes:
        """The events for the data of one chunk of a chat completion."""

    def finish(self) -> bytes:
        """What closes a stream that has come to its end: where chat completions say `[DONE]`."""

    def fail(self, error: RequestError) -> bytes:
        """An error in the middle; nothing follows it."""


class Voice(Protocol):
    """How one answer is told."""

    def whole(self, reply: bytes) -> bytes:
        """The answer for a chat completion. Raises `UpstreamError` (malformed) where it cannot be told."""

    def stream(self) -> Teller:
        """For one stream."""


class Reading(NamedTuple):
    """A request in the core's form. Without a `voice` its answer passes through."""

    request: ChatRequest
    voice: Voice | None = None


class Surface(Protocol):
    """One API. `keep_alive` is what says in a silent stream that it lives."""

    @property
    def name(self) -> SurfaceName: ...

    @property
    def keep_alive(self) -> bytes: ...

    def read(self, body: bytes, headers: Headers, decision_id: str, received_at: datetime) -> Reading:
        """Raises `RequestError` that says what is wrong with the body."""

    def error_body(self, error: RequestError) -> bytes:
        """The body of an answer that refuses."""
