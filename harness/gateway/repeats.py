"""`Idempotency-Key`: the first request under a key runs, and a repeat gets its stored answer.

Only requests that carry the header come here; it costs them two short transactions. A key is kept for an
answer that was given whole (outcome `ok`) or a refusal that would come again (4xx but 408, 409 and 429);
whatever else ends a request frees its key, so that the client may try again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from sqlalchemy.exc import SQLAlchemyError

from harness.gateway.access import Caller, Headers
from harness.gateway.responses import Message, Send
from harness.gateway.state import State
from pointsman.errors import RequestError
from pointsman.idempotency import Capture, Done, New, StoredAnswer, abandon, begin, finish, refusal, request_hash

HEADER = b"idempotency-key"
REPLAYED = (b"x-pointsman-replayed", b"true")
_PASSING = (408, 409, 429)


class Recorder:
    """Stands between an answer and the client, and remembers what went by.

    `last` runs before the last part leaves: a client that has its whole answer finds it stored.
    """

    def __init__(self, send: Send, last: Callable[[Recorder], Awaitable[None]]) -> None:
        self._send = send
        self._last = last
        self.capture = Capture()
        self.status = 0
        self.headers: Headers = []

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], list(message["headers"])
        else:
            self.capture.add(message.get("body", b""))
            if not message.get("more_body", False):
                await self._last(self)
        await self._send(message)

    def header(self, name: bytes) -> str | None:
        return next((value.decode("latin-1") for key, value in self.headers if key == name), None)


async def run_once(
    state: State, caller: Caller, key: str, path: str, body: bytes, send: Send, run: Callable[[Send], Awaitable[None]]
) -> None:
    """Runs a request under its key, or answers from the one that ran. Raises 409, 422 or 503."""
    try:
        begun = await asyncio.to_thread(begin, state.engine, caller.project_id, key, request_hash(path, body))
    except SQLAlchemyError as error:
        message = "an Idempotency-Key cannot be honoured while Postgres is away; send the request without, or later"
        raise RequestError(message, status=503, type="server_error", code="log_unavailable", retry_after=2) from error
    if isinstance(begun, Done) and begun.answer is not None:
        await _replay(begun.answer, send)
        return
    if not isinstance(begun, New):
        raise refusal(begun)
    state.claims.add(begun)

    async def last(recorder: Recorder) -> None:
        await asyncio.shield(_close(state, begun, recorder))

    try:
        await run(Recorder(send, last))
    finally:
        if begun in state.claims:  # nothing whole was sent
            await asyncio.shield(_close(state, begun, None))


async def _close(state: State, claim: New, recorder: Recorder | None) -> None:
    """Stores the answer under its key, or frees the key; a claim that cannot be closed lapses by itself."""
    state.claims.discard(claim)
    with suppress(SQLAlchemyError):
        if recorder is not None and _to_keep(state, recorder):
            await asyncio.to_thread(_finish, state, claim, recorder)
        else:
            await asyncio.to_thread(abandon, state.engine, claim)


def _to_keep(state: State, recorder: Recorder) -> bool:
    if 400 <= recorder.status < 500:
        return recorder.status not in _PASSING
    entry = state.recent.get(recorder.header(b"x-pointsman-decision-id") or "")
    return recorder.status == 200 and entry is not None and (entry.outcome or {}).get("status") == "ok"


def _finish(state: State, claim: New, recorder: Recorder) -> None:
    decision_id = recorder.header(b"x-pointsman-decision-id")
    entry = state.recent.get(decision_id or "")
    # Text that may not be stored is not kept for a repeat either.
    stored = entry is not None and (entry.request or {}).get("body") is not None
    finish(
        state.engine,
        claim,
        decision_id=decision_id,
        status=recorder.status,
        content_type=recorder.header(b"content-type") or "application/json",
        body=recorder.capture.body if stored or recorder.status != 200 else None,
    )


async def _replay(answer: StoredAnswer, send: Send) -> None:
    headers: Headers = [
        (b"content-type", answer.content_type.encode()),
        (b"content-length", str(len(answer.body)).encode()),
        REPLAYED,
    ]
    if answer.decision_id is not None:
        headers.append((b"x-pointsman-decision-id", answer.decision_id.encode()))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
