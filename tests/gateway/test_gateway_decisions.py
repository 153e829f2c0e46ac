"""Decisions: what is logged of a choice, of forced ones, of hints; and the breaker."""

from __future__ import annotations

import json
import time

import pytest

from pointsman.upstream.breaker import Breaker

HEADERS = ("decision-id", "episode-id", "worker", "router", "pattern", "propensity")


def hinted(gateway, content="x", **hints):
    return gateway.chat(content, metadata={"pointsman": hints})


def test_every_answer_carries_the_decision(gateway, upstream, fake):
    upstream.script("m-gamma", fake.reply({}, 401))
    answers = [gateway.chat("x"), gateway.chat("x", stream=True), gateway.chat("x", model="gamma"), gateway.post(b"{")]
    for answer in answers:
        assert all(f"x-pointsman-{name}" in answer.headers for name in HEADERS)
    record = gateway.record(answers[0])
    decision, rule = record["decision"], record["router_version"]
    assert answers[0].headers["x-pointsman-router"] == f"{rule['kind']}@{rule['id']}"
    assert rule["kind"] == "default" and decision["fail_open"] == ["rule:no_rule_matched"]
    assert decision["scores"] == {"alpha": 1, "beta": 0, "gamma": 0}
    assert decision["probabilities"] == {"alpha": 1, "beta": 0, "gamma": 0}
    assert sum(decision["probabilities"].values()) == 1 and decision["propensity"] == 1
    assert len(decision["draw"]) == 2 and decision["explored"] is False and decision["forced"] is None
    assert record["cards"] == {
        "alpha": "Alpha: knows much.",
        "beta": "Beta: knows less.",
        "gamma": "Gamma: small, without a price.",
    }
    assert record["calls"][0]["endpoint_hash"] and record["calls"][0]["card_hash"] and record["calls"][0]["price_hash"]
    assert record["outcome"]["latency_ms"] > 0 and record["outcome"]["overhead_ms"] > 0


def test_a_worker_named_as_the_model_is_direct_and_has_no_substitute(gateway, upstream, fake):
    answer = gateway.chat("beta", model="gamma")
    decision = gateway.record(answer)["decision"]
    assert (decision["chosen"], decision["forced"], decision["propensity"]) == ("gamma", "direct", 1)
    assert answer.headers["x-pointsman-router"] == "none"
    upstream.script("m-gamma", fake.reply({}, 500))
    failed = gateway.chat("x", model="gamma")
    assert failed.status_code == 502
    assert {call.json["model"] for call in upstream.calls} == {"m-gamma"}


def test_pinned_versions(gateway, upstream):
    models = {model["id"]: model["pointsman"] for model in gateway.client.get("/v1/models").json()["data"]}
    assert {"pointsman", "alpha", "beta", "gamma"} < set(models)
    pinned = {entry["router"]: name for name, entry in models.items() if "@" in name}
    assert set(pinned) == {"rule", "default"}
    by_rule = gateway.chat("beta", model=pinned["rule"])
    assert by_rule.headers["x-pointsman-worker"] == "beta"
    by_default = gateway.chat("beta", model=pinned["default"])
    assert by_default.headers["x-pointsman-worker"] == "alpha"
    assert gateway.record(by_default)["decision"]["router_kind"] == "default"
    short = pinned["rule"][: len("pointsman@") + 8]
    assert gateway.chat("beta", model=short).status_code == 200
    assert gateway.client.get(f"/v1/models/{pinned['rule']}").json()["object"] == "model"


@pytest.mark.parametrize(
    "model", ["gpt-4", "pointsman@", "pointsman@00000000", "pointsman@a", "Alpha", "alph", "m-alpha"]
)
def test_an_unknown_model_is_404(gateway, upstream, model):
    answer = gateway.chat("x", model=model)
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "model_not_found"
    assert gateway.client.get(f"/v1/models/{model}").status_code == 404
    assert gateway.record(answer)["outcome"]["status"] == "rejected"


@pytest.mark.parametrize(
    ("hints", "eligible"),
    [
        ({"allowed_workers": ["beta", "gamma"]}, {"alpha": "not_allowed", "beta": None, "gamma": None}),
        ({"excluded_workers": ["alpha"]}, {"alpha": "excluded", "beta": None, "gamma": None}),
        ({"allowed_workers": ["gamma"]}, {"alpha": "not_allowed", "beta": "not_allowed", "gamma": None}),
        ({"budget": 0.0005}, {"alpha": None, "beta": None, "gamma": None}),
        ({"budget": "0.00002"}, {"alpha": "budget", "beta": None, "gamma": "budget"}),
        ({"quality": None, "tags": None, "deadline": None}, {"alpha": None, "beta": None, "gamma": None}),
    ],
)
def test_hints_in_metadata_and_headers_say_the_same(gateway, upstream, hints, eligible):
    as_headers = {
        f"x-pointsman-{name.replace('_', '-')}": ",".join(value) if isinstance(value, list) else str(value)
        for name, value in hints.items()
        if value is not None
    }
    answers = [
        hinted(gateway, "x" * 20, **hints),
        gateway.chat("x" * 20, headers=as_headers),
        gateway.chat("x" * 20, metadata={"pointsman": json.dumps(hints)}),
    ]
    for answer in answers:
        assert answer.status_code == 200, answer.text
        decision = gateway.record(answer)["decision"]
        assert decision["eligible"] == eligible
        if list(eligible.values()).count(None) == 1:
            assert decision["forced"] == "only_one"
    assert all("metadata" not in call.json for call in upstream.calls)


@pytest.mark.parametrize(
    ("hints", "message"),
    [
        ({"allowed_workers": ["delta"]}, "hint allowed_workers: 'delta' is no worker, expected some of"),
        ({"allowed_workers": []}, "no worker may answer this request (alpha: not_allowed"),
        ({"quality": 2}, "hint quality: expected a number from 0 to 1"),
        ({"quality": True}, "hint quality: expected a number"),
        ({"budget": -1}, "hint budget: expected an amount of USD, 0 or more"),
        ({"budget": "NaN"}, "hint budget: expected an amount of USD, 0 or more"),
        ({"deadline": 0}, "hint deadline: expected seconds"),
        ({"deadline": 10**400}, "hint deadline: expected a number"),
        ({"disable_fallbacks": 1}, "hint disable_fallbacks: expected true or false"),
        ({"excluded_workers": "alpha,beta,gamma"}, "no worker may answer this request (alpha: excluded"),
        ({"nonsense": 1}, "metadata.pointsman.nonsense: no such hint, expected one of"),
    ],
)
def test_bad_hints_are_refused(gateway, upstream, hints, message):
    answer = hinted(gateway, **hints)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith(message)


def test_tags_reach_the_rules(make_gateway, upstream):
    rule = (
        '[router]\nchain = ["rule"]\n[[router.rules]]\nworker = "gamma"\ntags = ["cheap"]\n[exploration]\nepsilon = 0\n'
    )
    gateway = make_gateway(rule)
    assert hinted(gateway, tags=["cheap", "other"]).headers["x-pointsman-worker"] == "gamma"
    assert hinted(gateway, tags=["other"]).headers["x-pointsman-worker"] != "gamma"
    gateway.close()


def test_exploration_is_logged_with_the_whole_vector(make_gateway, upstream):
    gateway = make_gateway("[router]\nchain = ['default']\ndefault = 'beta'\n[exploration]\nepsilon = 0.5\nseed = 7\n")
    decisions = [gateway.record(gateway.chat("x"))["decision"] for _ in range(30)]
    for decision in decisions:
        assert sum(decision["probabilities"].values()) == pytest.approx(1)
        assert decision["probabilities"]["beta"] == pytest.approx(0.5 + 0.5 / 3)
        assert decision["propensity"] == decision["probabilities"][decision["chosen"]]
        assert decision["explored"] is (decision["draw"][0] < 0.5)
    assert {decision["chosen"] for decision in decisions} == {"alpha", "beta", "gamma"}
    gateway.close()


@pytest.fixture(scope="module")
def breaking(make_gateway):
    settings = (
        "[router]\nchain = ['default']\ndefault = 'alpha'\n[exploration]\nepsilon = 0\n"
        "[retries]\nattempts = 3\nbackoff = 0.01\n[breaker]\nfailures = 3\nopen_seconds = 0.4\n[timeouts]\ngap = 0.2\n"
    )
    return make_gateway(settings)


def test_the_breaker_opens_probes_and_closes(breaking, upstream, fake):
    upstream.script("m-alpha", fake.reply({}, 500))
    for _ in range(3):
        assert breaking.chat("x").headers["x-pointsman-worker"] != "alpha"
    answers = [breaking.chat("x") for _ in range(5)]
    assert len(upstream.of("m-alpha")) == 3
    assert breaking.record(answers[-1])["decision"]["eligible"]["alpha"] == "unhealthy"
    assert breaking.client.get("/readyz").json()["workers"]["alpha"] == "unhealthy"
    assert breaking.chat("x", model="alpha").status_code == 502  # asked for by name, it is asked
    tried = len(upstream.of("m-alpha"))
    upstream.script("m-alpha", fake.text("well again"))
    time.sleep(0.9)
    assert breaking.chat("x").headers["x-pointsman-worker"] == "alpha"
    assert len(upstream.of("m-alpha")) == tried + 1
    assert breaking.client.get("/readyz").json()["workers"]["alpha"] == "ok"


def test_a_worker_that_always_cuts_its_streams_is_kept_away_too(breaking, upstream, fake):
    upstream.script("m-alpha", fake.stream(fake.event(fake.delta(content="a")), ending="reset"))
    for _ in range(3):
        breaking.chat("x", stream=True)
    assert not breaking.state.breaker.healthy("alpha")
    breaking.state.breaker.succeeded("alpha")


def test_a_client_in_a_hurry_does_not_open_the_breaker(breaking, upstream, fake):
    upstream.script("m-alpha", fake.hang)
    for _ in range(4):
        assert breaking.chat("x", headers={"x-pointsman-deadline": "0.05"}).status_code == 504
    assert breaking.state.breaker.healthy("alpha")


def test_when_all_are_ill_one_is_asked_all_the_same(breaking, upstream, fake):
    for name in ("alpha", "beta", "gamma"):
        breaking.state.breaker.cool_down(name, 30)
    answer = breaking.chat("x")
    assert answer.status_code == 200
    assert breaking.record(answer)["decision"]["flags"][0] == "health_lifted"
    for name in ("alpha", "beta", "gamma"):
        breaking.state.breaker.succeeded(name)


def test_the_breaker_by_its_own_clock():
    now = [0.0]
    breaker = Breaker(2, 5, lambda: now[0])
    breaker.failed("w")
    assert breaker.healthy("w")
    breaker.failed("w")
    assert (breaker.healthy("w"), breaker.seconds_left("w"), breaker.open_workers()) == (False, 5, ["w"])
    now[0] = 5
    assert breaker.healthy("w")
    breaker.started("w")
    assert not breaker.healthy("w")  # one probe at a time
    breaker.failed("w")
    assert breaker.seconds_left("w") == 10  # each opening in a row is twice as long
    now[0] = 15
    breaker.started("w")
    breaker.answered("w")
    assert breaker.healthy("w")
    breaker.failed("w")
    assert not breaker.healthy("w")  # the probe's stream broke
    breaker.succeeded("w")
    breaker.failed("w")
    assert breaker.healthy("w")
    breaker.cool_down("w", 86_400)
    assert breaker.seconds_left("w") == 86_400
