"""OTLP traces against a receiver on loopback: one span per decision and per call, no text, and never in the way."""

from __future__ import annotations

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from harness.gateway.tracing import make_tracing
from pointsman.config.model import TracingConfig
from pointsman.errors import UserError
from pointsman.ids import new_id

CLIENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SERVER_KIND, CLIENT_KIND, ERROR = 2, 3, 2


class Collector:
    """An OTLP/HTTP receiver: `spans` are what came, `raw` every byte of it."""

    def __init__(self) -> None:
        self.raw = b""
        self.headers: list[dict[str, str]] = []
        self.spans: list = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                request = ExportTraceServiceRequest.FromString(body)
                collector.headers.append({name.lower(): value for name, value in self.headers.items()})
                for resource in request.resource_spans:
                    for scope in resource.scope_spans:
                        collector.spans += scope.spans
                collector.raw += body
                self.send_response(200)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *arguments):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/v1/traces"

    def of(self, trace_id: str, count: int) -> list:
        """The spans of one trace, once they are so many; the decision's first, calls in order."""
        until = time.monotonic() + 15
        while True:
            found = [span for span in list(self.spans) if span.trace_id.hex() == trace_id]
            if len(found) >= count or time.monotonic() > until:
                assert len(found) == count, found
                return sorted(found, key=lambda span: (span.kind != SERVER_KIND, span.start_time_unix_nano))
            time.sleep(0.02)


@pytest.fixture(scope="module")
def collector():
    made = Collector()
    yield made
    made.server.shutdown()


def section(url: str, rest: str = "") -> str:
    return f'[tracing]\nendpoint = "{url}"\n{rest}'


@pytest.fixture(scope="module")
def traced(make_gateway, collector):
    """Sends a header with the spans, from its environment."""
    return make_gateway(
        more=section(collector.url, 'headers_env = "COLLECTOR"\n'), COLLECTOR="x-team=blue, x-token=t%3D1"
    )


@pytest.fixture(scope="module")
def passing(make_gateway, collector):
    return make_gateway(more=section(collector.url, "propagate = true\n"))


def attributes(span) -> dict:
    values = {}
    for item in span.attributes:
        kind = item.value.WhichOneof("value")
        value = getattr(item.value, kind)
        values[item.key] = [part.string_value for part in value.values] if kind == "array_value" else value
    return values


def trace_of(answer) -> str:
    return answer.headers["x-pointsman-decision-id"].replace("-", "")


def test_a_decision_and_its_call(traced, collector, upstream, fake):
    upstream.script("m-alpha", fake.reply(fake.completion("a secret answer", usage={
        "prompt_tokens": 17, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 7}})))  # fmt: skip
    answer = traced.chat("my secret question", headers={"authorization": "Bearer sk-CANARY-private-token"})
    decision, call = collector.of(trace_of(answer), 2)
    assert (decision.name, decision.kind, decision.parent_span_id) == ("chat pointsman", SERVER_KIND, b"")
    said = attributes(decision)
    assert said["pointsman.decision.id"] == answer.headers["x-pointsman-decision-id"]
    assert said["gen_ai.conversation.id"] == answer.headers["x-pointsman-episode-id"]
    assert (said["gen_ai.operation.name"], said["gen_ai.request.model"]) == ("chat", "pointsman")
    assert (said["pointsman.worker"], said["pointsman.answered_by"]) == ("alpha", "alpha")
    assert (said["pointsman.propensity"], said["pointsman.outcome"], said["pointsman.calls"]) == (1.0, "ok", 1)
    assert said["http.response.status_code"] == 200 and said["pointsman.surface"] == "chat.completions"
    assert (call.name, call.kind, call.parent_span_id) == ("chat m-alpha", CLIENT_KIND, decision.span_id)
    told = attributes(call)
    assert (told["gen_ai.provider.name"], told["gen_ai.request.model"]) == ("openai", "m-alpha")
    assert (told["gen_ai.response.model"], told["gen_ai.response.id"]) == ("provider-model", "chatcmpl-1")
    assert told["gen_ai.response.finish_reasons"] == ["stop"]
    assert [told[f"gen_ai.usage.{name}"] for name in ("input_tokens", "output_tokens", "cache_read.input_tokens")] == [
        17, 5, 7,
    ]  # fmt: skip
    assert told["pointsman.cost_usd"] == pytest.approx(0.000077)
    assert (told["server.address"], told["server.port"]) == ("127.0.0.1", upstream.port)
    assert decision.start_time_unix_nano <= call.start_time_unix_nano <= call.end_time_unix_nano
    assert call.end_time_unix_nano <= decision.end_time_unix_nano + 2_000_000
    assert decision.status.code == call.status.code == 0
    for private in (b"secret", b"CANARY", b"canary-worker-key"):
        assert private not in collector.raw
    assert collector.headers[-1]["x-team"] == "blue" and collector.headers[-1]["x-token"] == "t=1"
    assert "traceparent" not in upstream.calls[0].headers


def test_a_failed_call_and_the_one_that_answered(traced, collector, upstream, fake):
    quoting = {"error": {"message": "cannot do: my secret question"}}
    upstream.script("m-alpha", fake.reply(quoting, 500))
    answer = traced.chat("my secret question")
    decision, first, second = collector.of(trace_of(answer), 3)
    assert decision.status.code == 0 and attributes(decision)["pointsman.calls"] == 2
    assert attributes(decision)["pointsman.answered_by"] == "beta"
    assert (first.status.code, first.status.message) == (ERROR, "")
    assert attributes(first)["error.type"] == "server" and attributes(first)["http.response.status_code"] == 500
    assert attributes(second)["pointsman.attempt"] == 2 and second.status.code == 0
    assert len({span.span_id for span in (decision, first, second)}) == 3
    assert b"secret" not in collector.raw


def test_a_stream_says_when_its_first_chunk_came(traced, collector, upstream, fake):
    upstream.script("m-alpha", fake.stream(fake.words("one", "two")))
    with traced.streaming() as answer:
        answer.read()
    _, call = collector.of(trace_of(answer), 2)
    assert 0 < attributes(call)["gen_ai.response.time_to_first_chunk"] < 5


def test_a_refused_request_has_a_span_too(traced, collector):
    answer = traced.chat("x", model="my secret model")
    (span,) = collector.of(trace_of(answer), 1)
    assert (span.name, span.status.code) == ("request chat.completions", ERROR)
    assert attributes(span)["error.type"] == "rejected" and attributes(span)["http.response.status_code"] == 404
    assert b"secret" not in collector.raw


def test_a_dry_run_is_a_decision_without_a_call(traced, collector, running):
    answer = traced.client.post("/v1/route", json=running.WORDS)
    (span,) = collector.of(trace_of(answer), 1)
    assert attributes(span)["pointsman.surface"] == "route" and attributes(span)["pointsman.calls"] == 0


@pytest.mark.parametrize("given", ["", "00-zz-00-01", "00-" + "0" * 32 + "-00f067aa0ba902b7-01", "a" * 9000])
def test_a_traceparent_that_is_none_begins_a_trace(traced, collector, upstream, given):
    answer = traced.chat("x", headers={"traceparent": given})
    assert answer.status_code == 200
    decision, _ = collector.of(trace_of(answer), 2)
    assert decision.parent_span_id == b""


def test_the_clients_trace_goes_on_and_to_the_worker_only_where_configured(traced, passing, collector, upstream):
    given = {"traceparent": f"00-{CLIENT[0]}-{CLIENT[1]}-01", "tracestate": "vendor=value"}
    traced.chat("x", headers=given)
    decision, call = collector.of(CLIENT[0], 2)
    assert decision.parent_span_id.hex() == CLIENT[1]
    assert "traceparent" not in upstream.calls[0].headers
    upstream.clear()
    other = "c" * 32
    passing.chat("x", headers={**given, "traceparent": f"00-{other}-{CLIENT[1]}-01"})
    decision, call = collector.of(other, 2)
    sent = upstream.calls[0].headers
    assert sent["traceparent"].split("-")[1:3] == [other, call.span_id.hex()]
    assert sent["tracestate"] == "vendor=value"
    assert call.parent_span_id == decision.span_id


def test_a_client_that_is_not_sampled_stays_so(passing, collector, upstream):
    unsampled = "d" * 32
    passing.chat("x", headers={"traceparent": f"00-{unsampled}-{CLIENT[1]}-00"})
    assert upstream.calls[0].headers["traceparent"].startswith(f"00-{unsampled}-")
    assert upstream.calls[0].headers["traceparent"].endswith("-00")
    known = passing.chat("x")
    collector.of(trace_of(known), 2)  # later spans have come: the earlier ones would be here
    assert not [span for span in collector.spans if span.trace_id.hex() == unsampled]


def test_the_share_that_is_traced():
    tracing = make_tracing(TracingConfig(endpoint="http://127.0.0.1:9/v1/traces", sample=0.25), None)
    try:
        sampled = sum(tracing.begin(new_id(), [])._own.trace_flags.sampled for _ in range(2000))
    finally:
        tracing.close()
    assert 400 < sampled < 600


def test_headers_that_are_none_are_the_users_mistake_and_are_not_shown():
    config = TracingConfig(endpoint="http://127.0.0.1:9/v1/traces", headers_env="COLLECTOR")
    with pytest.raises(UserError, match=r"^\$COLLECTOR: expected name=value pairs, separated by commas$"):
        make_tracing(config, "a=b, secret")


def test_a_collector_that_is_away_or_hangs_never_touches_a_request(make_gateway, upstream):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        for port in (silent.getsockname()[1], 9):
            gateway = make_gateway(more=section(f"http://127.0.0.1:{port}/v1/traces"))
            assert [gateway.chat("x").status_code for _ in range(50)] == [200] * 50
            gateway.close()  # fails after 10 s
    assert len(upstream.calls) == 100


def test_reload_turns_it_on_and_off(make_gateway, collector, upstream):
    gateway = make_gateway()
    assert gateway.state.tracing is None
    without = gateway.file.read_text()
    admin = {"authorization": f"Bearer {gateway.key(scopes=('admin',))}", "content-type": "application/json"}
    gateway.file.write_text(section(collector.url) + without)
    assert gateway.client.post("/v1/reload", content="{}", headers=admin).status_code == 200
    collector.of(trace_of(gateway.chat("x")), 2)
    gateway.file.write_text(without)
    assert gateway.client.post("/v1/reload", content="{}", headers=admin).status_code == 200
    assert gateway.state.tracing is None and gateway.chat("x").status_code == 200
