"""Tokens and money: parts are never added, unknown is never zero, and what routing took is told apart."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from pointsman.pool import Price
from pointsman.upstream.price import add, cost
from pointsman.upstream.usage import Usage

USAGES = [
    # cached and reasoning are parts; (input, cached, output, reasoning), USD for alpha
    (
        {"prompt_tokens": 17111, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 17102}},
        (17111, 17102, 10, 0),
        "0.01722",
    ),
    (
        {"prompt_tokens": 10, "completion_tokens": 8, "completion_tokens_details": {"reasoning_tokens": 6}},
        (10, 0, 8, 6),
        "0.0001",
    ),
    (
        {
            "prompt_tokens": 10,
            "completion_tokens": 8,
            "prompt_tokens_details": {"cached_tokens": 99},
            "completion_tokens_details": {"reasoning_tokens": 99},
        },
        (10, 10, 8, 8),
        "0.00009",
    ),
    ({"prompt_tokens": 10, "completion_tokens": 0, "prompt_tokens_details": None}, (10, 0, 0, 0), "0.00002"),
    (
        {"prompt_tokens": 10, "completion_tokens": 5, "cost": 9, "prompt_tokens_details": {"cached_tokens": -4}},
        (10, 0, 5, 0),
        "0.00007",
    ),
]


@pytest.mark.parametrize(("usage", "tokens", "usd"), USAGES)
def test_usage_and_cost(gateway, upstream, fake, usage, tokens, usd):
    upstream.script("m-alpha", fake.reply(fake.completion("x", usage=usage)))
    answer = gateway.chat("x")
    assert answer.json()["usage"] == usage
    record = gateway.record(answer)
    call = record["calls"][0]
    assert tuple(call[f"{name}_tokens"] for name in ("input", "cached", "output", "reasoning")) == tokens
    assert (Decimal(call["cost"]), Decimal(record["outcome"]["cost"])) == (Decimal(usd), Decimal(usd))
    assert call["usage_estimated"] is False


@pytest.mark.parametrize(
    "usage", [None, {}, {"prompt_tokens": "7"}, {"prompt_tokens": True, "completion_tokens": 1}, 5]
)
def test_without_usage_an_estimate_is_flagged(gateway, upstream, fake, usage):
    upstream.script("m-alpha", fake.reply(fake.completion("12345678", usage=usage)))
    call = gateway.record(gateway.chat("x"))["calls"][0]
    assert (call["usage_estimated"], call["output_tokens"]) == (True, 2)
    assert call["input_tokens"] > 5


def test_an_unknown_price_is_null_and_never_zero(gateway, upstream, fake):
    record = gateway.record(gateway.chat("x", model="gamma"))
    assert record["calls"][0]["cost"] is None and record["outcome"]["cost"] is None
    assert record["calls"][0]["input_tokens"] == 10


def test_money_is_exact():
    tenth = Price(Decimal("0.1"), Decimal(0), Decimal("0.1"))
    total = Decimal(0)
    for _ in range(100_000):
        total = add(total, cost(Usage(1, 0), tenth))
    assert total == Decimal("0.01")
    assert add(total, None) is None and cost(Usage(1, 1), None) is None


def test_failed_attempts_are_counted_and_only_the_answer_is_paid(gateway, upstream, fake):
    upstream.script("m-alpha", fake.reply({}, 500))
    record = gateway.record(gateway.chat("x"))
    assert [(c["attempt"], c["status"], c["http_status"]) for c in record["calls"]] == [
        (1, "error", 500),
        (2, "ok", 200),
    ]
    assert record["outcome"]["calls"] == 2
    assert Decimal(record["outcome"]["cost"]) == Decimal(record["calls"][1]["cost"]) == Decimal("0.000025")


ROUTER = """
[router]
chain = ["harness", "default"]
model = "m-router"
base_url = "{url}"
default = "beta"
scoring = "structured"
deadline = 0.5
price = {{ input = 1, output = 1 }}
[exploration]
epsilon = 0
"""


@pytest.fixture(scope="module")
def prompted(make_gateway, shared_upstream):
    return make_gateway(ROUTER.format(url=shared_upstream.url))


def test_orchestration_tokens_are_told_apart(prompted, upstream, running, fake):
    usage = {"prompt_tokens": 300, "completion_tokens": 20}
    upstream.script("m-router", fake.reply(fake.completion("{}", usage=usage)))
    answer = prompted.chat("x")
    assert answer.status_code == 200
    told = answer.json()["usage"]
    assert (told["prompt_tokens"], told["completion_tokens"], told["total_tokens"]) == (10, 5, 15)
    assert told["prompt_tokens_details"]["orchestration_input_tokens"] == 300
    assert told["completion_tokens_details"]["orchestration_output_tokens"] == 20
    record = prompted.record(answer)
    assert (record["decision"]["router_input_tokens"], record["decision"]["router_output_tokens"]) == (300, 20)
    assert Decimal(record["decision"]["router_cost"]) == Decimal("0.00032")
    assert Decimal(record["outcome"]["cost"]) == Decimal("0.000025")  # beta's, without the router
    with prompted.streaming(stream_options={"include_usage": True}) as streamed:
        last = json.loads(running.events(streamed)[-2])["usage"]
    assert last["prompt_tokens"] == 10
    assert last["prompt_tokens_details"]["orchestration_input_tokens"] == 300


@pytest.mark.parametrize("trouble", ["500", "hang", "nonsense", "surrogate", "reset"])
def test_a_router_in_trouble_is_never_fatal(prompted, upstream, fake, trouble):
    behaviours = {
        "500": fake.reply({}, 500),
        "hang": fake.hang,
        "nonsense": fake.reply(fake.completion("I would rather not say.")),
        "surrogate": fake.reply(b'{"choices":[{"message":{"content":"\\ud83d"}}]}'),
        "reset": fake.reset,
    }
    upstream.script("m-router", behaviours[trouble])
    answer = prompted.chat("private words", store=False)
    assert answer.status_code == 200
    decision = prompted.record(answer)["decision"]
    assert decision["router_kind"] in ("default", "harness")
    if decision["router_kind"] == "default":
        assert decision["chosen"] == "beta" and decision["fail_open"][0].startswith("harness:")
    assert decision["raw_reply"] is None
