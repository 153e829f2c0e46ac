"""A trained router gives way where its choice is gone or doubted, and nowhere else."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from harness.gateway.versions import Versions
from harness.routing.base import Ask, RouterFailed, RouterVersion, Scored
from harness.routing.chain import Chain, LocalRouter
from harness.routing.default import DefaultRouter
from harness.routing.rule import RuleRouter
from harness.routing.wary import wary
from pointsman.config import load_text
from pointsman.drift.alarms import About, doubted_endpoints, raise_alarm, resolve
from pointsman.ids import new_id
from pointsman.pool import Pool
from pointsman.promotion.plan import Plan, Standing

WORKERS = "".join(
    f'[[workers]]\nname = "{name}"\ndescription = "{name}."\nmodel = "m-{name}"\nbase_url = "http://127.0.0.1:9/v1"\n'
    for name in ("alpha", "beta", "gamma")
)
ALL = Pool.of(load_text('[router]\nchain = ["default"]\ndefault = "alpha"\n' + WORKERS))
LESS = Pool.of(load_text('[router]\nchain = ["default"]\ndefault = "alpha"\n' + WORKERS.rsplit("[[", 1)[0]))
HASH = {name: worker.endpoint_hash for name, worker in ALL.by_name.items()}
WORTH = {"sum": {"alpha": 0.1, "beta": 0.5, "gamma": 0.9}, "poem": {"alpha": 0.8, "beta": 0.2, "gamma": 0.3}}


class Trained:
    """Says of each endpoint what `WORTH` says, as a trained router does; of others -1."""

    kind: Any = "classic"
    deadline = 0.05

    def __init__(self) -> None:
        self.version = RouterVersion("classic", {"endpoints": [HASH[name] for name in ("alpha", "beta", "gamma")]})

    def score_now(self, ask: Ask, workers: Any, seed: int) -> Scored:
        by_hash = {HASH[name]: worth for name, worth in WORTH[ask.text].items()}
        return Scored({worker.name: by_hash.get(worker.endpoint_hash, -1.0) for worker in workers})

    async def score(self, ask: Ask, workers: Any, seed: int) -> Scored:
        return self.score_now(ask, workers, seed)


class Distant:
    """The same, answering from elsewhere."""

    kind: Any = "learned"
    deadline = 1.5

    def __init__(self) -> None:
        self._near = Trained()
        self.version = self._near.version

    async def score(self, ask: Ask, workers: Any, seed: int) -> Scored:
        return self._near.score_now(ask, workers, seed)


def _decided(router: Any, pool: Pool, text: str) -> tuple[str, tuple[str, ...]]:
    chain = Chain([router, DefaultRouter(pool.by_name["alpha"].name)], lambda: 0.0)
    decided = asyncio.run(chain.decide(Ask(text), pool.workers, 1))
    scores = decided.scored.scores
    assert set(scores) == set(pool.by_name)
    return max(scores, key=lambda name: scores[name]), decided.fail_open


@pytest.mark.parametrize("made", [Trained, Distant])
def test_only_the_traffic_of_a_worker_that_has_left_moves(made: Any) -> None:
    router = wary(made(), LESS)
    assert isinstance(router, LocalRouter) == (made is Trained)
    assert _decided(router, LESS, "sum") == ("alpha", (f"{router.kind}:worker_gone",))  # not beta, its second choice
    assert _decided(router, LESS, "poem") == ("alpha", ())
    with pytest.raises(RouterFailed, match="worker_gone"):
        asyncio.run(router.score(Ask("sum"), LESS.workers, 1))


def test_a_worker_under_an_alarm_is_not_chosen_until_it_is_over() -> None:
    router = wary(Trained(), ALL, [HASH["gamma"]])
    assert _decided(router, ALL, "sum") == ("alpha", ("classic:worker_doubted",))
    assert _decided(router, ALL, "poem") == ("alpha", ())
    assert _decided(wary(Trained(), ALL), ALL, "sum") == ("gamma", ())


def test_a_router_is_as_it_was_where_nothing_has_changed_or_it_is_not_trained() -> None:
    same, rule = Trained(), RuleRouter((), "alpha")
    assert wary(same, ALL) is same
    assert wary(same, ALL, ["an endpoint that nobody has"]) is same
    assert wary(rule, LESS) is rule


def test_a_worker_that_is_only_not_offered_is_masked_as_ever() -> None:
    """A breaker or a missing capability is no change of the pool: the second choice is taken."""
    router = wary(Trained(), ALL, [HASH["alpha"]])
    offered = tuple(worker for worker in ALL.workers if worker.name != "gamma")
    scored = asyncio.run(router.score(Ask("sum"), offered, 1))
    assert scored.scores == {"alpha": 0.1, "beta": 0.5}


def test_what_serves_gives_way_and_what_is_pinned_does_not() -> None:
    versions = Versions(
        load_text('[router]\nchain = ["default"]\n' + WORKERS), LESS, [DefaultRouter("alpha")], None, Plan()
    )
    trained = Trained()
    versions._routers[trained.version.id] = trained
    plan = Plan(projects={"p": Standing(promoted=trained.version.id)})
    versions.plan = plan
    served = versions.served()["p"].chain.routers[0]
    assert served is not trained and served.version is trained.version
    assert versions.pinned()[trained.version.id].routers[0] is trained


def test_alarms_name_the_endpoints_that_are_doubted(engine: Any, empty_database: str) -> None:
    now, project, other = datetime.now(UTC), new_id(), new_id()
    with engine.begin() as connection:
        fell = raise_alarm(connection, project, "worker_reward", "fell", now, About("gamma", HASH["gamma"]))
        raise_alarm(connection, project, "silent_update", "other", now, About("beta", HASH["beta"]))
        raise_alarm(connection, project, "card_changed", "card", now, About("alpha", HASH["alpha"]))
        raise_alarm(connection, other, "silent_update", "other", now, About("alpha", HASH["alpha"]))
        assert doubted_endpoints(connection) == {
            project: tuple(sorted((HASH["gamma"], HASH["beta"]))),
            other: (HASH["alpha"],),
        }
        assert fell is not None
        resolve(connection, project, fell, now)
        assert doubted_endpoints(connection)[project] == (HASH["beta"],)


def test_a_worker_that_leaves_is_no_change_of_descriptions() -> None:
    """A promoted router serves on when a worker goes or comes; a description that says something else serves itself."""
    config = load_text('[router]\nchain = ["default"]\n' + WORKERS)
    cards = {name: worker.card_hash for name, worker in ALL.by_name.items()}
    standing = Standing(promoted="v", cards_hash=ALL.cards_hash, cards=cards)

    def serves(pool: Pool, said: Standing) -> bool:
        return Versions(config, pool, [DefaultRouter("alpha")], None, Plan()).file_serves(said)

    assert not serves(ALL, standing) and not serves(LESS, standing)
    less = {name: cards[name] for name in LESS.by_name}
    assert not serves(ALL, Standing(promoted="v", cards_hash=LESS.cards_hash, cards=less))
    assert serves(LESS, Standing(promoted="v", cards_hash=ALL.cards_hash, cards=cards | {"alpha": "another"}))
    assert serves(LESS, Standing(promoted="v", cards_hash=ALL.cards_hash))  # nobody knows what they were
