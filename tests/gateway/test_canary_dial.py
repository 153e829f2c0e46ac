"""The dial in the gateway: the cheap worker where the router is sure enough of it; scores are logged as they were."""

from __future__ import annotations

import pytest

from harness.gateway.dial import Dial
from harness.routing.base import RouterVersion, Scored
from harness.routing.chain import Chain, Decided
from harness.routing.default import DefaultRouter
from harness.routing.exploration import probabilities
from pointsman.config import load_text
from pointsman.pool import Pool
from pointsman.promotion.plan import DialPlan

POOL = Pool.of(
    load_text(
        "".join(
            f'[[workers]]\nname = "{name}"\ndescription = "{name}"\nmodel = "m"\nbase_url = "http://127.0.0.1:9/v1"\n'
            for name in ("cheap", "dear", "other")
        )
    )
)
ROUTER = DefaultRouter("dear")
CHAIN = Chain([ROUTER], lambda: 0.0)
DIAL = Dial("cheap", ROUTER.version.id, -0.5)


def decided(router: DefaultRouter = ROUTER, **scores: float) -> Decided:
    return Decided(Scored(scores), router, (), 0.0)


@pytest.mark.parametrize(
    ("cheap", "flag", "chosen"),
    [(2.5, "dial_cheap", "cheap"), (1.6, "dial_cheap", "cheap"), (1.4, "dial_not_cheap", "dear")],
)
def test_the_margin_decides(cheap: float, flag: str, chosen: str) -> None:
    before = decided(cheap=cheap, dear=2.0, other=1.0)
    scores, said = DIAL.turned(before)
    vector = probabilities(scores, 0.3)
    assert said == flag and max(vector, key=lambda name: vector[name]) == chosen
    assert vector[chosen] == pytest.approx(0.8) and before.scored.scores["cheap"] == cheap


def test_below_the_threshold_the_cheap_worker_is_not_taken_even_where_it_is_best() -> None:
    strict = Dial("cheap", ROUTER.version.id, 1.0)
    scores, said = strict.turned(decided(cheap=2.5, dear=2.0, other=1.0))
    assert said == "dial_not_cheap" and max(scores, key=lambda name: scores[name]) == "dear"


def test_other_scores_stay_as_they_are() -> None:
    stranger = DefaultRouter("other")
    assert DIAL.turned(decided(stranger, cheap=1.0, dear=2.0)) == ({"cheap": 1.0, "dear": 2.0}, None)
    assert DIAL.turned(decided(dear=2.0, other=1.0)) == ({"dear": 2.0, "other": 1.0}, None)


def test_it_is_in_force_for_its_endpoint_and_its_router_alone() -> None:
    endpoint, version = POOL.by_name["cheap"].endpoint_hash, ROUTER.version.id
    assert Dial.of(DialPlan("d", "cheap", endpoint, version, 0.1), CHAIN, POOL) == Dial("cheap", version, 0.1)
    assert Dial.of(DialPlan("d", "cheap", "another", version, 0.1), CHAIN, POOL) is None
    assert Dial.of(DialPlan("d", "cheap", endpoint, RouterVersion("default", {"x": 1}).id, 0.1), CHAIN, POOL) is None
    assert Dial.of(DialPlan("d", "gone", endpoint, version, 0.1), CHAIN, POOL) is None
    assert Dial.of(None, CHAIN, POOL) is None
