"""Reading a reply: whole, or as a stream whose first content is awaited before anyone sees a byte of it.

Events are forwarded as they came. Only an event that is no strict JSON (NaN, a lone surrogate) is
written anew, so that no client stumbles over it. A worker that speaks another API is translated before
anything else is done with its reply.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from pointsman.database.clean import clean_json
from pointsman.errors import UpstreamError
from pointsman.pool import Worker
from pointsman.upstream.outgoing import Outgoing
from pointsman.upstream.record import CallRecord
from pointsman.upstream.seen import Seen
from pointsman.upstream.sse import DONE, EventSplitter, event_data
from pointsman.upstream.transport import Reply

LINGER_SECONDS = 0.3
"""How long a stream may go on after its `[DONE]`: some send usage there, some never close."""
SIGN_OF_LIFE = b": the worker lives\n\n"
"""Stands for an event of another API that says nothing to a client of this one."""


class Event(NamedTuple):
    """An event's bytes; `usage` where it carries a usage, `alone` where it carries nothing else."""

    data: bytes
    usage: bool = False
    alone: bool = False


@dataclass
class Answer:
    """An answer that has begun. A JSON reply is `body`; a stream is `head`, then `source`.

    `has_ids`: an event of the stream had an id.
    """

    worker: Worker
    record: CallRecord
    body: bytes | None = None
    head: list[Event] = field(default_factory=list)
    source: AsyncGenerator[Event, None] | None = None
    reply: Reply | None = None
    done: bool = False
    has_ids: bool = False
    translate: Callable[[bytes], list[bytes]] | None = None

    def close(self) -> None:
        """Ends the call upstream, if it still runs."""
        if self.reply is not None:
            self.reply.close()


async def read_whole(worker: Worker, record: CallRecord, reply: Reply, outgoing: Outgoing) -> Answer:
    """A JSON reply. Raises `UpstreamError` where it is not what was asked for."""
    body = await reply.read()
    if outgoing.translation is not None:
        body = outgoing.translation.whole(body, int(record.started_at.timestamp()))
    outgoing.read(record.seen, body)
    record.finish()
    return Answer(worker, record, body=clean_json(body).encode() if record.seen.unclean else body)


async def read_stream(worker: Worker, record: CallRecord, reply: Reply, outgoing: Outgoing) -> Answer:
    """A stream up to its first content. Raises `UpstreamError` where none comes."""
    answer = Answer(worker, record, reply=reply)
    if outgoing.translation is not None:
        answer.translate = outgoing.translation.stream(int(record.started_at.timestamp()))
    answer.source = _events(reply, record.seen, answer)
    async for event in answer.source:
        answer.head.append(event)
        if record.shown:
            record.first_token()
            return answer
    _refuse_whole(answer)
    raise UpstreamError("malformed", "the stream ended without content")


def _refuse_whole(answer: Answer) -> None:
    """Raises what a JSON reply in place of a stream says, where it is one."""
    text = b"".join(event.data for event in answer.head).strip()
    if text.startswith(b"{"):
        answer.record.seen.whole(text)
        raise UpstreamError("malformed", "a whole reply came in place of a stream")


async def _events(reply: Reply, seen: Seen, answer: Answer) -> AsyncGenerator[Event, None]:
    """Events as they came; the reading beside them goes into `seen`. `[DONE]` is not passed on, only noted."""
    splitter = EventSplitter()
    async with aclosing(_chunks(reply)) as chunks:
        async for chunk in chunks:
            for event in _cut(splitter, chunk, answer):
                if (read := _read(event, seen, answer)) is not None:
                    yield read
            if answer.done:
                break
        if answer.done:
            for event in await _lingering(chunks, splitter, answer):
                if (read := _read(event, seen, answer)) is not None:
                    yield read


def _cut(splitter: EventSplitter, chunk: bytes | None, answer: Answer) -> list[bytes]:
    """The events that a chunk completes, or the end where it is None, as chat completions has them."""
    events = splitter.feed(chunk) if chunk is not None else splitter.finish()
    if answer.translate is None or not events:
        return events
    translated: list[bytes] = []
    for event in events:
        data = event_data(event)
        if data:
            translated += [b"data: " + part + b"\n\n" for part in answer.translate(data)]
        else:
            translated.append(event)
    return translated or [SIGN_OF_LIFE]


def _read(event: bytes, seen: Seen, answer: Answer) -> Event | None:
    """One event read; None for `[DONE]`, which is only noted."""
    if b"\nid:" in event or event.startswith(b"id:"):
        answer.has_ids = True
    data = event_data(event)
    if not data:
        return Event(event)
    if data == DONE or data.strip() == DONE:
        answer.done = True
        return None
    answer.record.shown |= seen.event(data)
    if seen.unclean:
        event = b"data: " + clean_json(data).encode() + b"\n\n"
    return Event(event, seen.has_usage, seen.usage_only)


async def _lingering(chunks: AsyncIterator[bytes | None], splitter: EventSplitter, answer: Answer) -> list[bytes]:
    """What still comes after `[DONE]`, for a moment; the answer is complete whatever happens here."""
    events: list[bytes] = []
    with suppress(TimeoutError, UpstreamError):
        async with asyncio.timeout(LINGER_SECONDS):
            async for chunk in chunks:
                events += _cut(splitter, chunk, answer)
    return events


async def _chunks(reply: Reply) -> AsyncGenerator[bytes | None, None]:
    """The chunks of a reply, then None for its end."""
    async with aclosing(reply.chunks()) as chunks:
        async for chunk in chunks:
            yield chunk
    yield None
