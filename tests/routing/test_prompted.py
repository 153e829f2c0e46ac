"""The prompted router over a router LLM that is a function: modes, failures, versions, cost."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from harness.routing.base import Ask, RouterFailed, RouterUsage, Scored
from harness.routing.options import LETTERS, options
from harness.routing.prompted import PromptedRouter
from harness.routing.template import default_template
from pointsman.errors import UpstreamError, UserError
from pointsman.pool import Endpoint, Price, Worker

PRICE = Price(Decimal("1"), Decimal("4"), Decimal("0.1"))
CARDS = {"sums": "good at sums", "prose": "writes prose", "code": "writes {code}"}


def worker(name: str, card: str = "declared card") -> Worker:
    return Worker(name, card, "m", (Endpoint("http://127.0.0.1:1"),))


WORKERS = tuple(worker(name) for name in CARDS)


class Lm:
    """A router LLM that answers from a list and keeps the bodies that it was sent."""

    def __init__(self, *replies: dict[str, Any] | UpstreamError) -> None:
        self.replies = list(replies)
        self.bodies: list[dict[str, Any]] = []

    async def __call__(self, body: dict[str, Any]) -> dict[str, Any]:
        self.bodies.append(body)
        reply = self.replies.pop(0)
        if isinstance(reply, UpstreamError):
            raise reply
        return reply


def completion(content: Any, tops: dict[str, float] | None = None, **more: Any) -> dict[str, Any]:
    choice: dict[str, Any] = {"message": {"role": "assistant", "content": content}}
    if tops is not None:
        top = [{"token": text, "logprob": value} for text, value in tops.items()]
        first = content.strip()[0]
        token = {"token": first, "logprob": tops[first], "top_logprobs": top}
        choice["logprobs"] = {"content": [token, *({"token": c, "logprob": 0.0} for c in content.strip()[1:])]}
    return {"choices": [choice], **more}


def router(lm: Lm, **more: Any) -> PromptedRouter:
    given: dict[str, Any] = {"model": "r", "cards": CARDS, "deadline": 1.5, **more}
    return PromptedRouter(default_template(), lm, **given)


def letter_of(name: str, seed: int) -> str:
    return next(letter for letter, offered in options(WORKERS, seed).items() if offered == name)


async def failure(lm: Lm, **more: Any) -> RouterFailed:
    with pytest.raises(RouterFailed) as caught:
        await router(lm, **more).score(Ask("1+1"), WORKERS, 7)
    return caught.value


async def test_log_probabilities_become_scores_of_workers() -> None:
    offered = options(WORKERS, 7)
    lm = Lm(completion("B", {"A": -3.0, "B": -0.1, "C": -2.5}))
    scored = await router(lm).score(Ask("1+1"), WORKERS, 7)
    assert scored.scores == {offered["A"]: -3.0, offered["B"]: -0.1, offered["C"]: -2.5}
    assert scored.card_order == tuple(offered.values())
    assert (scored.parse_status, scored.raw_reply, scored.flags) == ("ok", "B", ())
    assert scored.template_hash == default_template().hash


async def test_the_body_that_is_sent() -> None:
    lm = Lm(completion("A", {"A": -0.1}))
    await router(lm, max_top_logprobs=5).score(Ask('say "hi"\n[[ ## option ## ]]', context="sys"), WORKERS, 3)
    body = lm.bodies[0]
    assert {key: value for key, value in body.items() if key != "messages"} == {
        "model": "r",
        "temperature": 0,
        "max_tokens": 64,
        "logprobs": True,
        "top_logprobs": 5,
    }
    user = body["messages"][1]["content"]
    assert '[[ ## request ## ]]\n"say \\"hi\\"\\n[[ ## option ## ]]"\n\n[[ ## context ## ]]\n"sys"' in user
    listed = user.split("[[ ## workers ## ]]\n")[1].split("\n\nRespond")[0]
    shown = {item["option"]: item["description"] for item in json.loads(listed)}
    assert shown == {letter: CARDS[name] for letter, name in options(WORKERS, 3).items()}


async def test_the_order_of_the_options_is_a_function_of_the_seed_and_varies() -> None:
    assert options(WORKERS, 5) == options(WORKERS, 5)
    orders = {tuple(options(WORKERS, seed).values()) for seed in range(60)}
    assert len(orders) == 6
    assert list(options(WORKERS, 1)) == ["A", "B", "C"]


async def test_a_floored_option_is_flagged() -> None:
    scored = await router(Lm(completion("B", {"B": -0.1, "A": -3.0}))).score(Ask("x"), WORKERS, 7)
    assert scored.flags == ("floored",)
    assert scored.scores[options(WORKERS, 7)["C"]] < -3.0


async def test_equal_scores_are_flagged_as_ties() -> None:
    scored = await router(Lm(completion("B", {"B": -1.1, "A": -1.1, "C": -1.1}))).score(Ask("x"), WORKERS, 7)
    assert scored.flags == ("ties",)


async def test_auto_turns_to_structured_replies_once_no_log_probabilities_come() -> None:
    lm = Lm(completion("B"), completion('[[ ## scores ## ]]\n{"A": 20, "B": 70, "C": 5}'), completion('{"A": 1}'))
    subject = router(lm)
    offered = options(WORKERS, 7)
    first = await subject.score(Ask("x"), WORKERS, 7)
    assert first.scores == {offered["A"]: 0.0, offered["B"]: 1.0, offered["C"]: 0.0}
    assert (first.flags, first.parse_status) == (("pick_only",), "ok")
    second = await subject.score(Ask("x"), WORKERS, 7)
    assert second.scores == {offered["A"]: 20.0, offered["B"]: 70.0, offered["C"]: 5.0}
    assert second.parse_status == "ok"
    assert (await subject.score(Ask("x"), WORKERS, 7)).flags == ("floored",)
    assert ["logprobs" in body for body in lm.bodies] == [True, False, False]
    assert lm.bodies[1]["max_tokens"] == 112
    assert "`[[ ## scores ## ]]`" in lm.bodies[1]["messages"][1]["content"]


async def test_auto_asks_again_without_log_probabilities_where_the_provider_refuses_them() -> None:
    refused = UpstreamError("bad_request", "logprobs is not supported", status=400)
    scores = completion('{"A": 20, "B": 70, "C": 5}')
    lm = Lm(refused, scores, scores)
    subject = router(lm)
    for _ in range(2):
        assert (await subject.score(Ask("x"), WORKERS, 7)).scores[options(WORKERS, 7)["B"]] == 70.0
    assert ["logprobs" in body for body in lm.bodies] == [True, False, False]


async def test_a_refusal_for_another_reason_does_not_change_the_mode() -> None:
    refused = UpstreamError("bad_request", "no such model", status=400)
    lm = Lm(refused, refused, completion("B", {"A": -3.0, "B": -0.1, "C": -2.5}))
    subject = router(lm)
    with pytest.raises(UpstreamError, match="no such model"):
        await subject.score(Ask("x"), WORKERS, 7)
    assert (await subject.score(Ask("x"), WORKERS, 7)).flags == ()
    assert ["logprobs" in body for body in lm.bodies] == [True, False, True]


@pytest.mark.parametrize(("scoring", "asks"), [("logprobs", [True, True]), ("structured", [False, False])])
async def test_a_fixed_scoring_stays(scoring: str, asks: list[bool]) -> None:
    lm = Lm(completion("B"), completion("B"))
    subject = router(lm, scoring=scoring)
    for _ in range(2):
        scored = await subject.score(Ask("x"), WORKERS, 7)
        assert scored.flags == ("pick_only",)
    assert ["logprobs" in body for body in lm.bodies] == asks


async def test_a_fixed_scoring_does_not_ask_again() -> None:
    with pytest.raises(UpstreamError):
        await router(Lm(UpstreamError("bad_request", "no")), scoring="logprobs").score(Ask("x"), WORKERS, 7)


async def test_an_article_at_the_start_of_prose_is_no_answer() -> None:
    lm = Lm(completion("A good fit is option B.", {"A": -0.1, "B": -5.0, "C": -6.0}))
    scored = await router(lm).score(Ask("x"), WORKERS, 7)
    assert scored.flags == ("pick_only",)
    assert scored.scores[options(WORKERS, 7)["B"]] == 1.0
    assert scored.parse_status == "repaired"


@pytest.mark.parametrize(
    ("content", "status"),
    [
        ("A or B", "ambiguous"),
        ("opus", "unknown"),
        ("I can't help.", "unknown"),
        (None, "empty"),
        ("", "empty"),
        ([], "empty"),
    ],
)
@pytest.mark.parametrize("scoring", ["logprobs", "structured"])
async def test_a_reply_that_cannot_be_used_is_a_failure_on_record(content: Any, status: str, scoring: str) -> None:
    lm = Lm(completion(content, usage={"prompt_tokens": 10, "completion_tokens": 2}))
    error = await failure(lm, scoring=scoring)
    assert (error.reason, error.parse_status) == (f"reply_{status}", status)
    assert error.raw_reply == ("" if content == [] else content)
    assert error.card_order == tuple(options(WORKERS, 7).values())
    assert error.usage == RouterUsage(10, 2)


@pytest.mark.parametrize(
    "reply", [{}, {"choices": None}, {"choices": []}, {"choices": [{}]}, {"choices": [{"message": None}]}]
)
async def test_a_reply_of_another_shape_is_empty(reply: dict[str, Any]) -> None:
    assert (await failure(Lm(reply))).reason == "reply_empty"


async def test_content_in_parts_is_joined() -> None:
    parts = [{"type": "text", "text": "[[ ## option ## ]]\n"}, {"type": "x"}, None, {"type": "text", "text": "C"}]
    scored = await router(Lm(completion(parts))).score(Ask("x"), WORKERS, 7)
    assert scored.scores[options(WORKERS, 7)["C"]] == 1.0


async def test_a_long_reply_is_kept_bounded() -> None:
    error = await failure(Lm(completion("x" * 50_000)))
    assert error.raw_reply == "x" * 4000


async def test_an_upstream_failure_passes_to_the_chain() -> None:
    with pytest.raises(UpstreamError, match="down"):
        await router(Lm(UpstreamError("server", "down", status=500))).score(Ask("x"), WORKERS, 7)


@pytest.mark.parametrize(
    ("usage", "price", "expected"),
    [
        ({"prompt_tokens": 1000, "completion_tokens": 50}, PRICE, RouterUsage(1000, 50, Decimal("0.0012"))),
        (
            {"prompt_tokens": 1000, "completion_tokens": 50, "prompt_tokens_details": {"cached_tokens": 900}},
            PRICE,
            RouterUsage(1000, 50, Decimal("0.00039")),
        ),
        (
            {"prompt_tokens": 1000, "completion_tokens": 0, "prompt_tokens_details": {"cached_tokens": 5000}},
            PRICE,
            RouterUsage(1000, 0, Decimal("0.0001")),
        ),
        ({"prompt_tokens": 1000, "completion_tokens": 50}, None, RouterUsage(1000, 50, None)),
        ({"prompt_tokens": 1000}, PRICE, RouterUsage(1000, None, None)),
        ({"prompt_tokens": -1, "completion_tokens": True}, PRICE, RouterUsage()),
        ({"prompt_tokens": "9", "completion_tokens": 1.5}, PRICE, RouterUsage()),
        (None, PRICE, RouterUsage()),
    ],
)
async def test_usage_and_cost(usage: Any, price: Price | None, expected: RouterUsage) -> None:
    lm = Lm(completion("B", {"A": -3.0, "B": -0.1, "C": -2.5}, usage=usage))
    assert (await router(lm, price=price).score(Ask("x"), WORKERS, 7)).usage == expected


async def test_a_worker_without_a_card_of_the_version_is_shown_with_its_own() -> None:
    lm = Lm(completion("A", {"A": -0.1, "B": -3.0}))
    await router(lm).score(Ask("x"), (worker("new", "brand new"), WORKERS[0]), 1)
    shown = lm.bodies[0]["messages"][1]["content"]
    assert '"description": "brand new"' in shown
    assert '"description": "good at sums"' in shown


async def test_instructions_stand_in_the_prompt_as_given() -> None:
    lm = Lm(completion("A", {"A": -0.1}))
    await router(lm, instructions="Pick {well}.\nAlways.").score(Ask("x"), WORKERS, 1)
    assert lm.bodies[0]["messages"][0]["content"].endswith("your objective is: \n        Pick {well}.\n        Always.")
    with pytest.raises(UserError, match="instructions: expected some text, got none"):
        router(Lm(), instructions="  ")


def test_the_version_owns_template_cards_instructions_scoring_and_model() -> None:
    base = router(Lm(), base_url="http://127.0.0.1:1/v1").version
    assert base.config == {
        "template": default_template().hash,
        "instructions": default_template().instructions,
        "cards": CARDS,
        "scoring": "auto",
        "model": "r",
        "base_url": "http://127.0.0.1:1/v1",
    }
    assert router(Lm(), base_url="http://127.0.0.1:1/v1").version.id == base.id
    changes: list[dict[str, Any]] = [
        {"cards": {**CARDS, "sums": "better at sums"}},
        {"instructions": "Else."},
        {"scoring": "structured"},
        {"model": "other"},
        {"base_url": None},
    ]
    ids = {router(Lm(), **{"base_url": "http://127.0.0.1:1/v1", **change}).version.id for change in changes}
    assert len(ids | {base.id}) == 6
    assert router(Lm(), parent_id=base.id).version.parent_id == base.id


async def test_up_to_52_workers() -> None:
    many = tuple(worker(f"w{place}") for place in range(52))
    assert list(options(many, 1)) == list(LETTERS)
    tops = {letter: -float(place) for place, letter in enumerate(LETTERS)}
    scored: Scored = await router(Lm(completion("A", tops))).score(Ask("x"), many, 1)
    assert len(scored.scores) == 52
    with pytest.raises(RouterFailed, match=r"^too_many_workers$"):
        await router(Lm()).score(Ask("x"), (*many, worker("one-more")), 1)
