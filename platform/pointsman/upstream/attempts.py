"""The one retry loop: from workers in order of preference to an answer whose first content has arrived.

Until the first content byte a failure is retried or handed to the next worker, within one budget of
calls and one deadline; role-only and empty events are held back until then. After content nothing is
retried. Every call, failed or not, leaves a `CallRecord`. How a reply is read is in `reading`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pointsman.errors import UpstreamError
from pointsman.pool import Endpoint, Worker
from pointsman.time_limit import TimeLimit
from pointsman.upstream.breaker import Breaker
from pointsman.upstream.faults import without_secrets
from pointsman.upstream.outgoing import Outgoing
from pointsman.upstream.reading import Answer, read_stream, read_whole
from pointsman.upstream.record import CallRecord
from pointsman.upstream.transport import Reply, Transport
from pointsman.words import WorkerApi

TICK_SECONDS = 0.01
_WORKERS_FAULTS = ("connect", "timeout", "server", "malformed", "auth", "truncated")


@dataclass(frozen=True)
class Limits:
    """Seconds: to connect, to the first content, between chunks; and how 429s and failures are met."""

    connect: float
    first_token: float
    gap: float
    attempts: int
    max_retry_after: float
    backoff: float


class Attempts:
    """Calls workers in turn. One per event loop; holds the breaker and the transport.

    `others` carry the calls to workers whose API is not plain HTTP, by that API.
    """

    def __init__(
        self,
        transport: Transport,
        breaker: Breaker,
        headers: Callable[[Worker, Endpoint], dict[str, str]],
        choose_endpoint: Callable[[Worker], Endpoint],
    ) -> None:
        self.transport = transport
        self.others: dict[WorkerApi, Transport] = {}
        self.breaker = breaker
        self._headers = headers
        self._choose_endpoint = choose_endpoint

    async def answer(
        self,
        candidates: Sequence[Worker],
        outgoing_for: Callable[[Worker], Outgoing],
        limits: Limits,
        records: list[CallRecord],
        *,
        stream: bool,
        deadline: float,
    ) -> Answer:
        """The first answer; `records` gets a record per call. Raises the `UpstreamError` that says most.

        `deadline` is in the loop's time.
        """
        queue = self._at_hand(candidates)
        faults: list[UpstreamError] = []
        refusal: UpstreamError | None = None
        while queue and len(records) < limits.attempts:
            worker = queue[0]
            try:
                outgoing = outgoing_for(worker)
            except UpstreamError as fault:  # said here, without a call: its API has no word for this request
                refusal = refusal or fault
                queue = queue[1:]
                continue
            record = CallRecord.begin(worker, self._choose_endpoint(worker), len(records) + 1)
            records.append(record)
            self.breaker.started(worker.name)
            try:
                answer = await self._call(worker, record, outgoing, limits, stream=stream, deadline=deadline)
            except UpstreamError as fault:
                faults.append(fault)
                record.fail(fault)
                if not _hurried(record, fault, limits, deadline):
                    self.note_failure(worker.name, fault)
                queue, wait = self._next(queue, fault, limits, deadline, len(records))
                if wait and len(records) < limits.attempts:
                    await asyncio.sleep(wait)
            except asyncio.CancelledError:
                record.cancelled()
                raise
            else:
                if answer.body is None:
                    self.breaker.answered(worker.name)
                else:
                    self.breaker.succeeded(worker.name)
                return answer
        if refusal is not None and not faults:
            raise refusal
        raise self._most_telling(faults, candidates)

    def note_failure(self, worker: str, fault: UpstreamError) -> None:
        """Tells the breaker of a fault, if it is the worker's."""
        if fault.fault in _WORKERS_FAULTS:
            self.breaker.failed(worker)
        elif fault.fault == "rate_limited" and fault.retry_after:
            self.breaker.cool_down(worker, fault.retry_after)
        elif fault.fault == "rate_limited":
            self.breaker.failed(worker)

    def _at_hand(self, candidates: Sequence[Worker]) -> list[Worker]:
        """The candidates; without a first one that fell ill between the decision and now, if others are well."""
        if len(candidates) > 1 and not self.breaker.healthy(candidates[0].name):
            others = [worker for worker in candidates[1:] if self.breaker.healthy(worker.name)]
            return others or list(candidates)
        return list(candidates)

    def _most_telling(self, faults: Sequence[UpstreamError], candidates: Sequence[Worker]) -> UpstreamError:
        """The last fault; but that a substitute was busy or too small does not hide why it was asked."""
        assert faults, "there is always one candidate and one attempt"
        last = faults[-1]
        if last.fault not in ("rate_limited", "context_exceeded"):
            return last
        other = next((fault for fault in reversed(faults) if fault.fault != last.fault), None)
        if other is not None:
            return other
        if last.fault == "rate_limited":
            left = [self.breaker.seconds_left(worker.name) for worker in candidates]
            last.retry_after = min((seconds for seconds in left if seconds > 0), default=last.retry_after)
        return last

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
        self, worker: Worker, record: CallRecord, outgoing: Outgoing, limits: Limits, *, stream: bool, deadline: float
    ) -> Answer:
        first = min(deadline, asyncio.get_running_loop().time() + limits.first_token)
        endpoint = record.endpoint
        own = headers = self._headers(worker, endpoint)
        if outgoing.headers:
            headers = {**own, **outgoing.headers}
        reply: Reply | None = None
        try:
            # A JSON reply is its own first token: only the deadline of the request bounds it.
            with TimeLimit(first if stream else deadline):
                reply = await self.others.get(worker.quirks.api, self.transport).post(
                    endpoint.base_url + outgoing.path, headers, outgoing.body, limits.connect
                )
                record.http_status = 200
                return await (read_stream if stream else read_whole)(worker, record, reply, outgoing)
        except TimeoutError as error:
            _close(reply)
            which = "total" if is_due(deadline) else "first token"
            raise UpstreamError("timeout", f"no answer within the {which} limit") from error
        except UpstreamError as fault:
            _close(reply)
            if fault.body:
                fault.body = without_secrets(fault.body, _keys(own))
            raise
        except asyncio.CancelledError:
            _close(reply)
            raise


def is_due(deadline: float) -> bool:
    """Whether a deadline has passed, by the clock of the running loop, whose timers may be early by a tick."""
    return asyncio.get_running_loop().time() >= deadline - TICK_SECONDS


def _hurried(record: CallRecord, fault: UpstreamError, limits: Limits, deadline: float) -> bool:
    """Whether the client's own deadline ended a call that had not had its time: no word about the worker."""
    return fault.fault == "timeout" and is_due(deadline) and (record.latency_ms or 0.0) < limits.first_token * 1000


def _keys(headers: Mapping[str, str]) -> list[str]:
    """The secrets that a worker's headers carry: a provider may quote them in its error."""
    values = [value.removeprefix("Bearer ") for name, value in headers.items() if name != "content-type"]
    return [value for value in values if len(value) >= 4]


def _close(reply: Reply | None) -> None:
    if reply is not None:
        reply.close()
