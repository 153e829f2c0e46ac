"""Replay workers: each recorded model as an OpenAI-compatible worker that answers recorded queries again.

A bare ASGI application: `POST /v1/chat/completions` (JSON and SSE) and `GET /v1/models`. A query is
found by the exact text of the last user message; any other text is a 404. Of several repeats the
request's `seed` chooses one (0 by default). Recorded latency is not acted out: answers come at once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import uvicorn

from pointsman.errors import RequestError
from pointsman.replay.answers import RecordedAnswers
from pointsman.replay.completion import completion, error_body, model_list, stream

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MAX_BODY_BYTES = 20_000_000


class _Part(msgspec.Struct):
    type: str
    text: str = ""


class _Message(msgspec.Struct):
    role: str
    content: str | list[_Part] | None = None


class _StreamOptions(msgspec.Struct):
    include_usage: bool = False


class _Chat(msgspec.Struct):
    model: str
    messages: list[_Message]
    stream: bool | None = False
    stream_options: _StreamOptions | None = None
    seed: int | None = None


_decode = msgspec.json.Decoder(_Chat).decode


def app(answers: RecordedAnswers) -> App:
    """The application that serves `answers`."""

    async def serve_one(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        if scope["type"] != "http":
            return
        try:
            await _route(answers, scope, receive, send)
        except RequestError as error:
            body = error_body(error.message, type=error.type, code=error.code, param=error.param)
            await _reply(send, error.status, body)

    return serve_one


def serve(folder: Path, host: str, port: int) -> None:
    """Serves the folder's models until interrupted. Meant for loopback: it asks for no key."""
    uvicorn.run(app(RecordedAnswers(folder)), host=host, port=port, log_level="warning", access_log=False)


async def _route(answers: RecordedAnswers, scope: Scope, receive: Receive, send: Send) -> None:
    method, path = scope["method"], scope["path"]
    if (method, path) == ("GET", "/v1/models"):
        await _reply(send, 200, model_list(answers.models))
    elif (method, path) == ("POST", "/v1/chat/completions"):
        await _chat(answers, await _body(receive), send)
    else:
        raise RequestError(f"no such endpoint: {method} {path}", status=404, code="not_found")


async def _chat(answers: RecordedAnswers, raw: bytes, send: Send) -> None:
    chat = _parsed(raw)
    if chat.model not in answers.models:
        raise RequestError(
            f"no recorded model {chat.model!r}; see /v1/models", status=404, code="model_not_found", param="model"
        )
    answer = answers.find(chat.model, last_user_text(chat.messages), chat.seed or 0)
    if answer is None:
        raise RequestError(f"not a recorded query of {chat.model}", status=404, code="not_recorded", param="messages")
    identity = f"chatcmpl-replay-{sha256(raw).hexdigest()[:24]}"
    if not chat.stream:
        await _reply(send, 200, completion(identity, chat.model, answer))
        return
    include_usage = chat.stream_options is not None and chat.stream_options.include_usage
    await _start(send, 200, b"text/event-stream")
    for event in stream(identity, chat.model, answer, include_usage=include_usage):
        await send({"type": "http.response.body", "body": event, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def last_user_text(messages: list[_Message]) -> str:
    """The text of the last user message; of a list of parts, its text parts joined."""
    for message in reversed(messages):
        if message.role == "user":
            content = message.content or ""
            return content if isinstance(content, str) else "".join(part.text for part in content)
    raise RequestError("messages: expected a user message", param="messages")


def _parsed(raw: bytes) -> _Chat:
    try:
        return _decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError(f"not a chat completion request: {error}") from None


async def _body(receive: Receive) -> bytes:
    chunks = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RequestError("the client went away", status=499)
        chunks += message.get("body", b"")
        if len(chunks) > MAX_BODY_BYTES:
            raise RequestError(f"a body holds {MAX_BODY_BYTES} bytes at most", status=413)
        if not message.get("more_body"):
            return bytes(chunks)


async def _reply(send: Send, status: int, body: bytes) -> None:
    await _start(send, status, b"application/json", len(body))
    await send({"type": "http.response.body", "body": body})


async def _start(send: Send, status: int, content_type: bytes, length: int | None = None) -> None:
    headers = [(b"content-type", content_type)]
    if length is not None:
        headers.append((b"content-length", str(length).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
