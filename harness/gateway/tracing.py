"""Traces over OTLP (`[tracing]`, off by default): one span per decision, one per call to a worker below it.

Spans are written when a request has ended, from what its rows say, by the conventions for generative AI
(`gen_ai.*`, with `pointsman.*` for what those have no word for). They hold no text of requests or answers, no
error's text and no key. Ids are those of the log: a trace that began here has its decision's id.

Sending is a thread's work, with a bounded queue: a collector that is away or slow costs spans, never requests.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib.metadata import version
from threading import Thread
from urllib.parse import unquote
from uuid import UUID

import msgspec
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    StatusCode,
    TraceFlags,
    get_current_span,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from harness.gateway.access import Headers, header
from harness.gateway.decide import Decision
from harness.gateway.trace_attributes import Attributes, of_answer, of_call, of_decision
from pointsman.config.model import TracingConfig
from pointsman.errors import UserError
from pointsman.upstream.outgoing import Outgoing
from pointsman.upstream.record import CallRecord

VERSION = version("pointsman")
SEND_SECONDS = 3.0  # for one batch, tries included
EVERY_MS = 1_000
QUEUE = 4_096
_LOW = (1 << 64) - 1
_RANDOM = (1 << 32) - 1  # of an id's bits these are random whatever the others count
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_propagator = TraceContextTextMapPropagator()


class Tracing:
    """What `[tracing]` asks for. `headers` go to the collector."""

    def __init__(self, config: TracingConfig, headers: Mapping[str, str]) -> None:
        assert config.endpoint is not None
        self.config = config
        self.sample = config.sample
        self.propagate = config.propagate
        self.ids = _Given()
        exporter = OTLPSpanExporter(config.endpoint, headers=dict(headers), timeout=SEND_SECONDS)
        self._provider = TracerProvider(
            ALWAYS_ON,
            Resource.create({SERVICE_NAME: "pointsman", SERVICE_VERSION: VERSION}),
            shutdown_on_exit=False,
            id_generator=self.ids,
        )
        self._provider.add_span_processor(BatchSpanProcessor(exporter, QUEUE, EVERY_MS))
        self.tracer = self._provider.get_tracer("pointsman", VERSION)

    def begin(self, decision_id: str, headers: Headers) -> Trace:
        """The trace of one request: the client's, where it sent a `traceparent`, else one of its own."""
        given = {name: header(headers, name.encode()) for name in ("traceparent", "tracestate")}
        carrier = {name: value for name, value in given.items() if value is not None}
        parent = get_current_span(_propagator.extract(carrier, Context())).get_span_context()
        identity = UUID(decision_id).int
        sampled = parent.trace_flags.sampled if parent.is_valid else (identity & _RANDOM) < self.sample * (_RANDOM + 1)
        trace_id = parent.trace_id if parent.is_valid else identity
        flags = _SAMPLED if sampled else TraceFlags(TraceFlags.DEFAULT)
        own = SpanContext(trace_id, identity & _LOW or 1, False, flags, parent.trace_state)
        return Trace(self, decision_id, own, parent if parent.is_valid else None)

    def close(self, seconds: float = 0.0) -> None:
        """Sends what waits, for so long at most; what is left then is not sent."""
        last = Thread(target=self._provider.shutdown, daemon=True)
        last.start()
        last.join(seconds)


class Trace:
    """One request's part of a trace. `own` is the span of its decision, `parent` the client's."""

    def __init__(self, tracing: Tracing, decision_id: str, own: SpanContext, parent: SpanContext | None) -> None:
        self._tracing = tracing
        self._decision_id = decision_id
        self._own = own
        self._parent = parent

    def passed_on(self, outgoing: Outgoing, attempt: int) -> Outgoing:
        """A call with its span as `traceparent`, where workers are to get one."""
        if not self._tracing.propagate:
            return outgoing
        carrier: dict[str, str] = {}
        _propagator.inject(carrier, set_span_in_context(NonRecordingSpan(self._of_call(attempt)), Context()))
        return msgspec.structs.replace(outgoing, headers={**outgoing.headers, **carrier})

    def decided(
        self,
        decision: Decision,
        surface: str,
        status: str,
        *,
        model: str,
        seconds: float,
        records: Sequence[CallRecord] = (),
        http_status: int | None = None,
    ) -> None:
        """The spans of a request that was decided, once it has ended: `seconds` are from its arrival until now."""
        if not self._own.trace_flags.sampled:
            return
        operation = "embeddings" if surface == "embeddings" else "chat"
        attributes = {
            "gen_ai.operation.name": operation,
            "gen_ai.request.model": model,
            "gen_ai.conversation.id": decision.episode.id,
            **of_decision(decision),
            **of_answer(records),
        }
        self._root(f"{operation} {model}", surface, status, attributes, seconds, http_status)
        for record in records:
            self._call(operation, record)

    def undecided(self, surface: str, status: str, received_at: datetime, http_status: int) -> None:
        """The span of a request that ended without a draw: it was refused, or answered from memory."""
        if self._own.trace_flags.sampled:
            seconds = max(time.time() - received_at.timestamp(), 0.0)
            self._root(f"request {surface}", surface, status, {}, seconds, http_status)

    def _root(
        self, name: str, surface: str, status: str, more: Attributes, seconds: float, http_status: int | None
    ) -> None:
        attributes = {
            "pointsman.decision.id": self._decision_id,
            "pointsman.surface": surface,
            "pointsman.outcome": status,
            **more,
        }
        if http_status is not None:
            attributes["http.response.status_code"] = http_status
        end = time.time_ns()
        fault = None if status == "ok" else status
        self._span(name, SpanKind.SERVER, self._own, self._parent, attributes, end - int(seconds * 1e9), end, fault)

    def _call(self, operation: str, record: CallRecord) -> None:
        start = int(record.started_at.timestamp() * 1e9)
        end = start + int((record.latency_ms or 0.0) * 1e6)
        fault = None if record.status == "ok" else record.fault or record.status
        attributes = {"gen_ai.operation.name": operation, **of_call(record)}
        name = f"{operation} {record.worker.model}"
        own = self._of_call(record.attempt)
        self._span(name, SpanKind.CLIENT, own, self._own, attributes, start, end, fault)

    def _of_call(self, attempt: int) -> SpanContext:
        """Known before the call: its decision's span id, counted on."""
        own = self._own
        span_id = (own.span_id + attempt) & _LOW or 1
        return SpanContext(own.trace_id, span_id, False, own.trace_flags, own.trace_state)

    def _span(
        self,
        name: str,
        kind: SpanKind,
        own: SpanContext,
        parent: SpanContext | None,
        attributes: Attributes,
        start: int,
        end: int,
        fault: str | None,
    ) -> None:
        self._tracing.ids.given = own
        context = set_span_in_context(NonRecordingSpan(parent), Context()) if parent is not None else Context()
        if fault is not None:
            attributes["error.type"] = fault
        span = self._tracing.tracer.start_span(name, context, kind, attributes, start_time=start)
        if fault is not None:
            span.set_status(StatusCode.ERROR)
        span.end(end)


class _Given(IdGenerator):
    """The ids of the span that is made next; one event loop makes them all."""

    given: SpanContext

    def generate_span_id(self) -> int:
        return self.given.span_id

    def generate_trace_id(self) -> int:
        return self.given.trace_id


def make_tracing(config: TracingConfig, given: str | None) -> Tracing:
    """`given` is what the variable of `headers_env` holds. Raises `UserError` where that is no list of headers."""
    return Tracing(config, _headers(given, config.headers_env))


def _headers(given: str | None, variable: str | None) -> dict[str, str]:
    headers: dict[str, str] = {}
    for item in (given or "").split(","):
        name, found, value = item.partition("=")
        if found and name.strip():
            headers[unquote(name).strip().lower()] = unquote(value).strip()
        elif item.strip():
            raise UserError(f"${variable}: expected name=value pairs, separated by commas")
    return headers
