"""The one retry loop: from workers in order of preference to an answer whose first content has arrived.

Until the first content byte a failure is retried or handed to the next worker, within one budget of
calls and one deadline; role-only and empty events are held back until then. After content nothing is
retried. Every call, failed or not, leaves a `CallRecord`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Literal

from pointsman.errors import UpstreamError
from pointsman.pool import Endpoint, Worker
from pointsman.upstream.breaker import Breaker
from pointsman.upstream.record import CallRecord
from pointsman.upstream.seen import Seen
from pointsman.upstream.sse import DONE, EventSplitter, event_data
from pointsman.upstream.transport import Reply, Transport

COMPLETIONS = "/chat/completions"
_WORKERS_FAULTS = ("connect", "timeout", "server", "malformed", "auth")


@dataclass(frozen=True)
class Limits:
    """Seconds: to connect, to the first content, between chunks; and how 429s and failures are met."""

    connect: float
    first_token: float
    gap: float
    attempts: int
    max_retry_after: float
    backoff: float


@dataclass
class Answer:
    """An answer that has begun. A JSON reply is `body`; a stream is `head`, then `events()`."""

    worker: Worker
    record: CallRecord
    body: bytes | None = None
    head: list[bytes] = field(default_factory=list)
    source: AsyncIterator[bytes] | None = None
    reply: Reply | None = None
    done: bool = False

    def close(self) -> None:
        """Ends the call upstream, if it still runs."""
        if self.reply is not None:
            self.reply.close()


class Attempts:
    """Calls workers in turn. One per event loop; holds the breaker and the transport."""

    def __init__(
        self,
        transport: Transport,
        breaker: Breaker,
        headers: Callable[[Worker, Endpoint], dict[str, str]],
        choose_endpoint: Callable[[Worker], Endpoint],
    ) -> None:
        self.transport = transport
        self.breaker = breaker
        self._headers = headers
        self._choose_endpoint = choose_endpoint

    async def answer(
        self,
        candidates: Sequence[Worker],
        body_for: Callable[[Worker], bytes],
        limits: Limits,
        records: list[CallRecord],
        *,
        stream: bool,
        deadline: float,
        tokens: int = 0,
    ) -> Answer:
        """The first answer; `records` gets a record per call. Raises the last `UpstreamError`.

        `deadline` is in the loop's time. `tokens` is the prompt's size: after a worker said that it
        does not fit, only larger windows are tried.
        """
        queue = list(candidates)
        error: UpstreamError | None = None
        while queue and len(records) < limits.attempts:
            worker = queue[0]
            record = CallRecord.begin(worker, self._choose_endpoint(worker), len(records) + 1)
            records.append(record)
            self.breaker.started(worker.name)
            try:
                answer = await self._call(worker, record, body_for(worker), limits, stream=stream, deadline=deadline)
            except UpstreamError as fault:
                error = fault
                record.fail(fault)
                self._note_failure(worker, fault)
                queue, wait = self._next(queue, fault, limits, deadline, len(records))
                if wait:
                    await asyncio.sleep(wait)
            except asyncio.CancelledError:
                record.cancelled()
                raise
            else:
                self.breaker.succeeded(worker.name)
                return answer
        assert error is not None, "there is always one candidate"
        raise error

    def _note_failure(self, worker: Worker, fault: UpstreamError) -> None:
        if fault.fault in _WORKERS_FAULTS:
            self.breaker.failed(worker.name)
        elif fault.fault == "rate_limited" and fault.retry_after:
            self.breaker.cool_down(worker.name, fault.retry_after)
        elif fault.fault == "rate_limited":
            self.breaker.failed(worker.name)

    def _next(
        self, queue: list[Worker], fault: UpstreamError, limits: Limits, deadline: float, calls: int
    ) -> tuple[list[Worker], float]:
        """Who is called next, and after how many seconds."""
        here, others = queue[0], queue[1:]
        if fault.fault == "bad_request":
            return [], 0.0
        if fault.fault == "context_exceeded":
            window = here.context_window or 0
            return [w for w in others if window and (w.context_window or 0) > window], 0.0
        healthy = [worker for worker in others if self.breaker.healthy(worker.name)]
        if healthy:
            return healthy, 0.0
        wait = limits.backoff * 2 ** (calls - 1)
        if fault.fault == "rate_limited" and fault.retry_after is not None:
            if fault.retry_after > limits.max_retry_after:
                return others, 0.0
            wait = max(wait, fault.retry_after)
        if fault.fault == "auth" or asyncio.get_running_loop().time() + wait >= deadline:
            return others, 0.0
        return [here, *others], wait

    async def _call(
        self, worker: Worker, record: CallRecord, body: bytes, limits: Limits, *, stream: bool, deadline: float
    ) -> Answer:
        loop = asyncio.get_running_loop()
        first = min(deadline, loop.time() + limits.first_token)
        endpoint = record.endpoint
        reply: Reply | None = None
        try:
            # A JSON reply is its own first token: only the deadline of the request bounds it.
            async with asyncio.timeout_at(first if stream else deadline):
                reply = await self.transport.post(
                    endpoint.base_url + COMPLETIONS, self._headers(worker, endpoint), body, limits.connect
                )
                record.http_status = 200
                if not stream:
                    answer = Answer(worker, record, body=await reply.read())
                    assert answer.body is not None
                    record.seen.whole(answer.body)
                    record.finish()
                    return answer
                answer = Answer(worker, record, reply=reply)
                answer.source = _read_events(reply, record.seen, answer)
                await _read_head(answer, record)
                return answer
        except TimeoutError as error:
            _close(reply)
            which: Literal["total", "first token"] = "total" if loop.time() >= deadline else "first token"
            raise UpstreamError("timeout", f"no answer within the {which} limit") from error
        except (UpstreamError, asyncio.CancelledError):
            _close(reply)
            raise


async def _read_head(answer: Answer, record: CallRecord) -> None:
    """Holds events back until one has something to show."""
    assert answer.source is not None
    async for event in answer.source:
        answer.head.append(event)
        if record.shown:
            record.first_token()
            return
    raise UpstreamError("malformed", "the stream ended without content")


async def _read_events(reply: Reply, seen: Seen, answer: Answer) -> AsyncIterator[bytes]:
    """Events as they came; the reading beside them goes into `seen`. `[DONE]` is not passed on, only noted."""
    splitter = EventSplitter()
    async with aclosing(_chunks(reply)) as chunks:
        async for chunk in chunks:
            for event in splitter.feed(chunk) if chunk is not None else splitter.finish():
                data = event_data(event)
                if data == DONE:
                    answer.done = True
                    continue
                if data:
                    answer.record.shown |= seen.event(data)
                yield event


async def _chunks(reply: Reply) -> AsyncGenerator[bytes | None, None]:
    """The chunks of a reply, then None for its end."""
    async for chunk in reply.chunks():
        yield chunk
    yield None


def _close(reply: Reply | None) -> None:
    if reply is not None:
        reply.close()
