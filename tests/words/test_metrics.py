"""What a scrape says: plain counts on the hot route, Prometheus families when somebody asks."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from harness.gateway.metrics import Metrics


def scraped(metrics: Metrics) -> dict[str, float]:
    values = {}
    for family in text_string_to_metric_families(metrics.render().decode()):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            values[f"{sample.name}{{{labels}}}"] = sample.value
    return values


def test_counts_by_status_worker_and_reason() -> None:
    metrics = Metrics()
    for status, worker in (("ok", "a"), ("ok", "a"), ("timeout", "b")):
        metrics.ended(status, worker)
    metrics.refused("invalid_api_key")
    metrics.fail_open("harness:timeout")
    metrics.calls += 4
    metrics.lost.set(0)
    values = scraped(metrics)
    assert values["pointsman_requests_total{status=ok,worker=a}"] == 2
    assert values["pointsman_requests_total{status=timeout,worker=b}"] == 1
    assert values["pointsman_refused_total{reason=invalid_api_key}"] == 1
    assert values["pointsman_router_fail_open_total{reason=harness:timeout}"] == 1
    assert values["pointsman_upstream_calls_total{}"] == 4
    assert values["pointsman_rows_lost{}"] == 0


def test_a_histogram_is_cumulative_and_its_bounds_are_inclusive() -> None:
    metrics = Metrics()
    for seconds in (0.0005, 0.0006, 0.02, 500.0):
        metrics.overhead.observe(seconds)
    values = scraped(metrics)
    name = "pointsman_routing_overhead_seconds"
    assert values[f"{name}_bucket{{le=0.0005}}"] == 1
    assert values[f"{name}_bucket{{le=0.001}}"] == 2
    assert values[f"{name}_bucket{{le=0.025}}"] == 3
    assert values[f"{name}_bucket{{le=120}}"] == 3
    assert values[f"{name}_bucket{{le=+Inf}}"] == values[f"{name}_count{{}}"] == 4
    assert values[f"{name}_sum{{}}"] == 500.0211
