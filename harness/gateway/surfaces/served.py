"""The surfaces as the gateway serves them, and at which path. The translations are in the modules beside.

Comments of a worker's stream pass to clients of every surface: a client of server-sent events skips them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from harness.gateway.access import Headers
from harness.gateway.request import parse_chat
from harness.gateway.responses import error_body
from harness.gateway.surfaces import anthropic, anthropic_errors, anthropic_reply, responses
from harness.gateway.surfaces.anthropic_stream import PING, AnthropicStream
from harness.gateway.surfaces.base import COMMENT, Reading, Surface, Teller
from harness.gateway.surfaces.embeddings import parse_embeddings
from pointsman.errors import RequestError
from pointsman.words import Surface as SurfaceName


class ChatSurface:
    """`/v1/chat/completions`: the core's own words."""

    name: SurfaceName = "chat.completions"
    keep_alive = COMMENT

    def read(self, body: bytes, headers: Headers, decision_id: str, received_at: datetime) -> Reading:
        return Reading(parse_chat(body, headers))

    def error_body(self, error: RequestError) -> bytes:
        return error_body(error)


class EmbeddingsSurface:
    """`/v1/embeddings`: passed through to a worker that makes them."""

    name: SurfaceName = "embeddings"
    keep_alive = COMMENT

    def read(self, body: bytes, headers: Headers, decision_id: str, received_at: datetime) -> Reading:
        return Reading(parse_embeddings(body, headers))

    def error_body(self, error: RequestError) -> bytes:
        return error_body(error)


class ResponsesSurface:
    """`/v1/responses`. The answer's ids are made from its decision's."""

    name: SurfaceName = "responses"
    keep_alive = COMMENT

    def read(self, body: bytes, headers: Headers, decision_id: str, received_at: datetime) -> Reading:
        chat = responses.to_chat(body)
        voice = ResponsesVoice(chat.context, decision_id, received_at.timestamp())
        return Reading(parse_chat(chat.body, headers), voice)

    def error_body(self, error: RequestError) -> bytes:
        return error_body(responses.in_own_words(error))


@dataclass(frozen=True, slots=True)
class ResponsesVoice:
    context: responses.ResponsesContext
    decision_id: str
    created_at: float

    def whole(self, reply: bytes) -> bytes:
        return responses.from_chat(
            reply, self.context, identity=self.decision_id, created_at=self.created_at, clock=time.time
        )

    def stream(self) -> Teller:
        return ResponsesTeller(
            responses.ResponsesStream(
                self.context, identity=self.decision_id, created_at=self.created_at, clock=time.time
            )
        )


@dataclass(frozen=True, slots=True)
class ResponsesTeller:
    told: responses.ResponsesStream

    def feed(self, data: bytes) -> bytes:
        return self.told.feed(data)

    def finish(self) -> bytes:
        return self.told.feed(responses.DONE)

    def fail(self, error: RequestError) -> bytes:
        return self.told.fail(responses.in_own_words(error))


class MessagesSurface:
    """`/v1/messages`, with `?beta=true` or without."""

    name: SurfaceName = "messages"
    keep_alive = PING

    def read(self, body: bytes, headers: Headers, decision_id: str, received_at: datetime) -> Reading:
        chat = anthropic.to_chat(body, headers)
        return Reading(parse_chat(chat.body, headers), MessagesVoice(chat.context))

    def error_body(self, error: RequestError) -> bytes:
        return anthropic_errors.error_body(error)


@dataclass(frozen=True, slots=True)
class MessagesVoice:
    context: anthropic.ReplyContext

    def whole(self, reply: bytes) -> bytes:
        return anthropic_reply.from_chat(reply, self.context)

    def stream(self) -> Teller:
        return AnthropicStream(self.context)


MESSAGES = MessagesSurface()
OPENAI = ChatSurface()
SURFACES: Mapping[str, Surface] = {
    "/v1/chat/completions": OPENAI,
    "/v1/responses": ResponsesSurface(),
    "/v1/messages": MESSAGES,
    "/v1/embeddings": EmbeddingsSurface(),
}
"""By path; each answers POST."""


def surface_of(path: str) -> Surface:
    """Whose words an error at a path is said in, whether anything is served there or not."""
    return MESSAGES if path.startswith("/v1/messages") else SURFACES.get(path, OPENAI)
