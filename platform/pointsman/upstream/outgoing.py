"""What goes out to a worker for one request: path, body and how its reply is read, by the API it speaks.

The core speaks chat completions. A worker with `quirks.api = "anthropic"` is met half way by `Translation`; one
with `"litellm"` gets the fields that LiteLLM's SDK is given; every other gets the client's own. Where the call
goes and with which key is the caller's part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec

from pointsman.pool import Worker
from pointsman.upstream.anthropic import MESSAGES, headers, request_of
from pointsman.upstream.anthropic_reply import reply_to_chat
from pointsman.upstream.anthropic_state import NATIVE, betas_of, without_native
from pointsman.upstream.anthropic_stream import StreamToChat
from pointsman.upstream.body import Fields, worker_body
from pointsman.upstream.embeddings import read_embeddings
from pointsman.upstream.litellm_request import litellm_body
from pointsman.upstream.seen import Seen

COMPLETIONS = "/chat/completions"
EMBEDDINGS = "/embeddings"
DEFAULT_MAX_TOKENS = 4_096
"""The limit of output for a worker that wants one, where neither request nor `max_output_tokens` says it."""

_NO_HEADERS: Mapping[str, str] = {}


class Translation(Protocol):
    """A worker's replies in another API, as chat completions. `created` is the call's start, in seconds."""

    def whole(self, body: bytes, created: int) -> bytes: ...

    def stream(self, created: int) -> Callable[[bytes], list[bytes]]:
        """For the data of each event of one stream, the data of the chunks that stand for it."""


class Outgoing(msgspec.Struct, frozen=True):
    """`headers` come on top of the worker's own; `read` takes in a whole reply; None: no translation is needed."""

    body: bytes
    path: str = COMPLETIONS
    headers: Mapping[str, str] = _NO_HEADERS
    read: Callable[[Seen, bytes], None] = Seen.whole
    translation: Translation | None = None


class FromAnthropic(msgspec.Struct, frozen=True):
    """`origin` is the worker's name: what it signs is sealed with it, and goes back to no other."""

    origin: str

    def whole(self, body: bytes, created: int) -> bytes:
        return reply_to_chat(body, origin=self.origin, created=created)

    def stream(self, created: int) -> Callable[[bytes], list[bytes]]:
        return StreamToChat(origin=self.origin, created=created).feed


def chat_call(fields: Fields, worker: Worker, *, stream: bool, has_history: bool = True) -> Outgoing:
    """For a chat request. Raises `UpstreamError` (bad_request) for what the worker's API has no word for.

    `has_history`: the conversation has an answer in it, and so perhaps thinking that is another worker's.
    """
    if worker.quirks.api == "anthropic":
        return _to_anthropic(fields, worker)
    if has_history or NATIVE in fields:
        fields = without_native(fields, reasoning="reasoning" in worker.capabilities)
    if worker.quirks.api == "litellm":
        return Outgoing(litellm_body(fields, worker, stream=stream), path="")
    return Outgoing(worker_body(fields, worker, stream=stream))


def embeddings_call(fields: Fields, worker: Worker) -> Outgoing:
    """For a request of embeddings: the client's own body, but for the model."""
    body = msgspec.json.encode({**fields, "model": worker.model})
    return Outgoing(body, EMBEDDINGS, read=read_embeddings)


def _to_anthropic(fields: Fields, worker: Worker) -> Outgoing:
    limit = worker.max_output_tokens or DEFAULT_MAX_TOKENS
    body = request_of(fields, worker.model, limit, origin=worker.name)
    return Outgoing(body, MESSAGES, headers(betas_of(fields)), translation=FromAnthropic(worker.name))
