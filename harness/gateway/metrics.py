"""Prometheus metrics of one gateway process. Labels are workers, statuses and reasons, never text of requests.

The hot route only counts in plain Python; the families are built when somebody scrapes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from pointsman.words import AlarmKind, members

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)


class Times:
    """A histogram of durations in seconds."""

    def __init__(self) -> None:
        self.counts = [0] * (len(_SECONDS) + 1)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(_SECONDS, seconds)] += 1
        self.total += seconds

    def family(self, name: str, meaning: str) -> HistogramMetricFamily:
        buckets, below = [], 0
        for bound, count in zip((*map(str, _SECONDS), "+Inf"), self.counts, strict=True):
            below += count
            buckets.append((bound, below))
        return HistogramMetricFamily(name, meaning, buckets=buckets, sum_value=self.total)


class Metrics:
    """A registry of its own, so that a process may hold several gateways (tests do)."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.overhead = Times()
        self.latency = Times()
        self.calls = 0
        self._ended: Counter[tuple[str, str]] = Counter()
        self._refused: Counter[str] = Counter()
        self._fail_open: Counter[str] = Counter()
        self.in_flight = self._gauge("in_flight", "Requests under way")
        self.waiting_bytes = self._gauge("journal_waiting_bytes", "Journal bytes not in Postgres yet")
        self.waiting_lines = self._gauge("journal_waiting_lines", "Journal lines of this process not in Postgres yet")
        self.lost = self._gauge("rows_lost", "Rows lost: must stay 0")
        self.rejected_rows = self._gauge("rows_rejected", "Rows kept in rejected.log: Postgres refused a value")
        self.damaged_lines = self._gauge("journal_lines_damaged", "Lines kept in rejected.log: they cannot be read")
        self.database_up = self._gauge("database_up", "1 while Postgres answers")
        self.open_breakers = self._gauge("breakers_open", "Workers kept away by their breaker")
        self.default_rows = self._gauge("default_partition_rows", "Rows outside every month's partition")
        self.generation = self._gauge("generation", "Configurations served so far")
        self.alarms: Counter[str] = Counter()
        self.registry.register(self)

    def ended(self, status: str, worker: str) -> None:
        self._ended[status, worker] += 1

    def refused(self, reason: str) -> None:
        self._refused[reason] += 1

    def fail_open(self, reason: str) -> None:
        self._fail_open[reason] += 1

    def collect(self) -> Iterator[Metric]:
        """What is counted here, as families: called by the registry at a scrape."""
        requests = CounterMetricFamily(
            "pointsman_requests", "Requests by outcome and worker", labels=["status", "worker"]
        )
        for labels, count in self._ended.items():
            requests.add_metric(labels, count)
        yield requests
        for name, meaning, counts in (
            ("pointsman_refused", "Requests refused before a decision", self._refused),
            ("pointsman_router_fail_open", "Routers of the chain that did not decide", self._fail_open),
        ):
            family = CounterMetricFamily(name, meaning, labels=["reason"])
            for reason, count in counts.items():
                family.add_metric([reason], count)
            yield family
        alarms = GaugeMetricFamily("pointsman_alarms", "Alarms that are on, by kind", labels=["kind"])
        for kind in members(AlarmKind):
            alarms.add_metric([kind], self.alarms[kind])
        yield alarms
        yield CounterMetricFamily("pointsman_upstream_calls", "Calls to workers, retries included", value=self.calls)
        yield self.overhead.family(
            "pointsman_routing_overhead_seconds", "From the request's arrival to the worker's call"
        )
        yield self.latency.family("pointsman_request_seconds", "From arrival to the end of the answer")

    def render(self) -> bytes:
        return generate_latest(self.registry)

    def _gauge(self, name: str, meaning: str) -> Gauge:
        return Gauge(f"pointsman_{name}", meaning, registry=self.registry)
