"""Prometheus metrics of one gateway process. Labels are workers, statuses and reasons, never text of requests."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)


class Metrics:
    """A registry of its own, so that a process may hold several gateways (tests do)."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "pointsman_requests", "Requests by outcome and worker", ["status", "worker"], registry=self.registry
        )
        self._refused = Counter(
            "pointsman_refused", "Requests refused before a decision", ["reason"], registry=self.registry
        )
        self._fail_open = Counter(
            "pointsman_router_fail_open", "Routers of the chain that did not decide", ["reason"], registry=self.registry
        )
        self.overhead = Histogram(
            "pointsman_routing_overhead_seconds",
            "From the request's arrival to the worker's call",
            registry=self.registry,
            buckets=_SECONDS,
        )
        self.latency = Histogram(
            "pointsman_request_seconds",
            "From arrival to the end of the answer",
            registry=self.registry,
            buckets=_SECONDS,
        )
        self.calls = Counter("pointsman_upstream_calls", "Calls to workers, retries included", registry=self.registry)
        self.in_flight = Gauge("pointsman_in_flight", "Requests under way", registry=self.registry)
        self.waiting_bytes = Gauge(
            "pointsman_journal_waiting_bytes", "Journal bytes not in Postgres yet", registry=self.registry
        )
        self.waiting_lines = Gauge(
            "pointsman_journal_waiting_lines",
            "Journal lines of this process not in Postgres yet",
            registry=self.registry,
        )
        self.lost = Gauge("pointsman_rows_lost", "Rows lost: must stay 0", registry=self.registry)
        self.database_up = Gauge("pointsman_database_up", "1 while Postgres answers", registry=self.registry)
        self.open_breakers = Gauge(
            "pointsman_breakers_open", "Workers kept away by their breaker", registry=self.registry
        )
        self.default_rows = Gauge(
            "pointsman_default_partition_rows", "Rows outside every month's partition", registry=self.registry
        )
        self.generation = Gauge("pointsman_generation", "Configurations served so far", registry=self.registry)
        self._children: dict[tuple[str, str], Counter] = {}

    def ended(self, status: str, worker: str) -> None:
        child = self._children.get((status, worker))
        if child is None:
            child = self._children[status, worker] = self._requests.labels(status, worker)
        child.inc()

    def refused(self, reason: str) -> None:
        self._refused.labels(reason).inc()

    def fail_open(self, reason: str) -> None:
        self._fail_open.labels(reason).inc()

    def render(self) -> bytes:
        return generate_latest(self.registry)
