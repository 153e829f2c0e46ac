"""Decisions, route, models, health, metrics and reload: right values, OpenAI-shaped errors for everything else."""

from __future__ import annotations

import json
import time

import pytest

from pointsman.ids import new_id


def feedback(gateway, **fields):
    headers = fields.pop("headers", None)
    return gateway.client.post("/v1/feedback", json=fields, headers=headers)


def decision_of(answer):
    return answer.headers["x-pointsman-decision-id"]


def test_a_decision_reads_the_same_from_memory_and_from_postgres(gateway, upstream, fake):
    upstream.script("m-alpha", fake.reply({}, 500))
    answer = gateway.chat("x", metadata={"pointsman": {"budget": 5, "tags": ["t"]}}, zz=[1.5, "\x00"], seed=2)
    feedback(gateway, decision_id=decision_of(answer), comment="fine")
    here = gateway.client.get(f"/v1/decisions/{decision_of(answer)}").json()
    gateway.record(answer)
    stored = gateway.client.get(f"/v1/decisions/{decision_of(answer)}").json()
    volatile = {"created_at", "joined"}

    def plain(value):
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items() if key not in volatile}
        if isinstance(value, list):
            return [plain(item) for item in value]
        return value

    assert plain(here) == plain(stored)
    assert set(here) == {
        "decision",
        "request",
        "calls",
        "outcome",
        "outcomes",
        "feedback",
        "router_version",
        "cards",
        "prices",
        "children",
    }


def test_a_young_decision_of_another_process_is_waited_for(gateway, make_gateway, upstream):
    other = make_gateway()
    answer = other.chat("x")
    import threading

    timer = threading.Timer(0.5, other.ship)
    timer.start()
    read = gateway.client.get(f"/v1/decisions/{decision_of(answer)}")
    timer.join()
    assert read.status_code == 200
    assert read.json()["outcome"]["status"] == "ok"
    other.close()


def test_route_decides_and_calls_nobody(gateway, upstream):
    body = {"model": "pointsman", "messages": [{"role": "user", "content": "beta please"}], "max_tokens": 100}
    answer = gateway.client.post("/v1/route", json=body)
    assert answer.status_code == 200
    assert upstream.calls == []
    told = answer.json()
    assert (told["worker"], told["propensity"], told["dry_run"]) == ("beta", 1, True)
    assert told["expected"]["alpha"]["output_tokens"] == 100
    assert told["expected"]["beta"]["cost_usd"] == "0.00031"
    assert told["expected"]["gamma"]["cost_usd"] is None
    gateway.ship()
    rows = gateway.sql(
        "SELECT d.origin, r.learn, r.surface, o.id FROM decision d JOIN request r ON r.id = d.request_id "
        "LEFT JOIN outcome o ON o.id = d.id WHERE d.id = :id",
        id=told["decision_id"],
    )
    assert [tuple(row) for row in rows] == [("dry_run", False, "route", None)]
    record = gateway.client.get(f"/v1/decisions/{told['decision_id']}").json()
    assert record["decision"]["origin"] == "dry_run" and record["calls"] == []
    assert gateway.client.post("/v1/route", json={**body, "model": "nobody"}).status_code == 404


def test_models(gateway):
    listed = gateway.client.get("/v1/models").json()
    assert listed["object"] == "list"
    alpha = next(model for model in listed["data"] if model["id"] == "alpha")
    assert alpha["object"] == "model" and alpha["owned_by"] == "pointsman"
    assert alpha["pointsman"]["description"] == "Alpha: knows much."
    assert alpha["pointsman"]["capabilities"] == ["audio", "images", "json_schema", "logprobs", "tools"]
    assert gateway.client.get("/v1/models/alpha").json() == alpha
    assert "base_url" not in json.dumps(listed) and "canary" not in json.dumps(listed)


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/", 404, "not_found"),
        ("GET", "/v1/nothing", 404, "not_found"),
        ("GET", "/v1/models/", 404, None),
        ("POST", "/v1/models", 405, "method_not_allowed"),
        ("GET", "/v1/chat/completions", 405, "method_not_allowed"),
        ("DELETE", "/v1/chat/completions", 405, "method_not_allowed"),
        ("POST", "/v1/chat/completions/", 404, "not_found"),
        ("GET", "/v1/feedback", 405, "method_not_allowed"),
        ("PUT", "/healthz", 405, "method_not_allowed"),
        ("GET", "/v1/decisions/nonsense", 404, "decision_not_found"),
        ("GET", "/v1/decisions/%00%ff", 404, "decision_not_found"),
        ("GET", "/v1/decisions/..%2f..%2fetc%2fpasswd", 404, "not_found"),
        ("GET", "/v1/models/%F0%9F%98%80", 404, "model_not_found"),
    ],
)
def test_errors_are_openai_shaped_everywhere(gateway, method, path, status, code):
    headers = {"content-type": "application/json"}
    answer = gateway.client.request(method, path, headers=headers, content=b"{}" if method == "POST" else None)
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert code is None or error["code"] == code
    if status == 405:
        assert "allow" in answer.headers


def test_an_odd_host_is_no_fault_of_ours(gateway):
    answer = gateway.client.get("/nothing", headers={"host": "[:"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")


def test_health_readiness_and_metrics(gateway, upstream, fake):
    assert gateway.client.get("/healthz").json() == {"status": "ok"}
    ready = gateway.client.get("/readyz")
    assert ready.status_code == 200
    details = ready.json()
    assert (details["status"], details["database"], details["log_mode"]) == ("ready", "ok", "spool")
    assert details["journal"]["rows_lost"] == 0 and details["workers"]["alpha"] == "ok"

    def value(name):
        lines = gateway.client.get("/metrics").text.splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))

    before = {name: value(name) for name in ('pointsman_requests_total{status="ok",worker="alpha"}',)}
    calls, refused = value("pointsman_upstream_calls_total"), value("pointsman_refused_total")
    gateway.chat("x")
    gateway.chat("x", headers={"authorization": "Bearer pm_no"})
    for name, earlier in before.items():
        assert value(name) == earlier + 1
    assert value("pointsman_upstream_calls_total") == calls + 1
    assert value("pointsman_refused_total") == refused + 1
    assert value("pointsman_rows_lost") == 0
    assert value("pointsman_routing_overhead_seconds_count") > 0
    assert value("pointsman_in_flight") == 0


def test_a_gateway_that_stops_says_so(make_gateway, upstream):
    gateway = make_gateway()
    gateway.state.stopping = True
    assert gateway.client.get("/readyz").status_code == 503
    assert gateway.client.get("/readyz").json()["stopping"] is True
    # What still reached the listener before it closed is served: a rolling deploy refuses nobody.
    assert gateway.chat("x").status_code == 200
    gateway.close()


def test_too_much_in_flight_is_429_at_once(make_gateway, upstream, fake):
    import threading

    gateway = make_gateway("[gateway]\nmax_in_flight = 2\n[router]\nchain = ['default']\n")
    upstream.script("m-gamma", fake.reply(fake.completion("x"), after=0.6))
    threads = [threading.Thread(target=gateway.chat, args=("x",), kwargs={"model": "gamma"}) for _ in range(2)]
    for thread in threads:
        thread.start()
    until = time.monotonic() + 3
    while len(upstream.calls) < 2 and time.monotonic() < until:
        time.sleep(0.01)
    answer = gateway.chat("x")
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
    assert answer.json()["error"]["code"] == "too_many_in_flight"
    for thread in threads:
        thread.join()
    assert gateway.chat("x").status_code == 200
    gateway.close()


def test_a_full_journal_refuses_and_calls_nobody(make_gateway, upstream):
    gateway = make_gateway()
    gateway.state.journal.max_bytes = 1
    for answer in (
        gateway.chat("x"),
        gateway.client.post("/v1/feedback", json={"decision_id": new_id(), "comment": "x"}),
    ):
        assert answer.status_code == 503
        assert answer.json()["error"]["code"] == "log_unavailable"
        assert answer.headers["retry-after"] == "2"
    assert upstream.calls == []
    assert gateway.client.get("/readyz").status_code == 503
    gateway.close()


def test_reload_serves_the_new_file_and_keeps_the_old_on_a_fault(make_gateway, upstream):
    gateway = make_gateway()
    admin = {"authorization": f"Bearer {gateway.key(scopes=('admin',))}"}
    before = gateway.record(gateway.chat("x"))
    gateway.file.write_text(gateway.file.read_text().replace("Alpha: knows much.", "Alpha: knows all."))
    assert gateway.client.post("/v1/reload", headers=admin).json()["generation"] == 2
    after = gateway.record(gateway.chat("x"))
    assert after["cards"]["alpha"] == "Alpha: knows all."
    assert after["calls"][0]["card_hash"] != before["calls"][0]["card_hash"]
    assert after["calls"][0]["endpoint_hash"] == before["calls"][0]["endpoint_hash"]
    gateway.file.write_text("[router]\nnonsense = 1\n")
    refused = gateway.client.post("/v1/reload", headers=admin)
    assert refused.status_code == 422
    assert "nonsense" in refused.json()["error"]["message"]
    assert gateway.chat("x").status_code == 200
    assert gateway.client.get("/readyz").json()["generation"] == 2
    gateway.close()
