"""Versions from the database in a real gateway: promoted, pinned, shadowed; arms kept; consent; the file's say."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Engine, delete, insert

from harness.routing.prompted import PromptedRouter
from harness.routing.template import default_template
from pointsman.actions.actor import Actor
from pointsman.actions.gates import start_gate, stop_gate
from pointsman.actions.routers import promote, roll_back, shadow
from pointsman.config import Config
from pointsman.identity import DEFAULT_PROJECT_ID as PROJECT
from pointsman.ids import new_id
from pointsman.promotion.register import Overrides
from pointsman.promotion.serving import announce
from pointsman.promotion.versions import ROUTER_VERSION
from pointsman.tables import METADATA

ANA = Actor("ana", "operator")
NAMES = ("alpha", "beta", "gamma")
SETTINGS = """
[router]
chain = ["harness", "default"]
default = "gamma"
model = "m-router"
base_url = "{url}"
scoring = "structured"
deadline = 5
cards = "{cards}"
[exploration]
epsilon = 0
seed = 1
[retries]
backoff = 0.01
"""
WORKERS = "".join(
    f"""
[[workers]]
name = "{name}"
description = "{name}{star}"
model = "m-{name}"
base_url = "{{url}}"
"""
    for name, star in zip(NAMES, (" *", "", ""), strict=True)
)


def points(prompt: str) -> str:
    """What the scripted router LLM says: 90 for the card with a star, 10 for the others."""
    shown = [json.loads(line.rstrip(",")) for line in prompt.splitlines() if line.startswith('{"option"')]
    scores = {option["option"]: 90 if "*" in option["description"] else 10 for option in shown}
    return f"[[ ## scores ## ]]\n{json.dumps(scores)}\n\n[[ ## completed ## ]]"


class Versions:
    """A gateway over a scripted router LLM that favours the worker whose card has a star; the file's is alpha."""

    def __init__(self, gateway: Any) -> None:
        self.gateway = gateway
        self.engine = gateway.engine
        self.config: Config = gateway.config

    def add(self, favourite: str, state: str = "candidate", **changed: Any) -> str:
        """A version that favours this worker, in the log; its id."""
        section = self.config.router
        cards = {name: f"{name} *" if name == favourite else name for name in NAMES}
        fields: Mapping[str, Any] = {"model": section.model, "base_url": section.base_url, "scoring": section.scoring}

        async def nobody(body: dict[str, Any]) -> dict[str, Any]:
            raise AssertionError("it only names a version")

        version = PromptedRouter(default_template(), nobody, cards=cards, deadline=5, **{**fields, **changed}).version
        values = {
            "id": version.id, "kind": "harness", "artifact_hash": version.artifact_hash, "state": state,
            "config": dict(version.config), "created_at": datetime.now(UTC),
        }  # fmt: skip
        with self.engine.begin() as connection:
            connection.execute(insert(ROUTER_VERSION).values(values))
            announce(connection, "another version")
        self.gateway.refresh()
        return version.id

    def act(self, action: Callable[..., Any], *arguments: Any, refresh: bool = True, **more: Any) -> Any:
        with self.engine.begin() as connection:
            done = action(connection, ANA, PROJECT, *arguments, datetime.now(UTC), **more)
        if refresh:
            self.gateway.refresh()
        return done

    def gate(self, candidate: str, rho: float = 0.5) -> str:
        """A gate of a candidate against what serves."""
        serving = self.gateway.client.get("/v1/models/pointsman").json()["pointsman"]["version"]
        overrides = Overrides(ramp=((0, rho),))
        return str(self.act(start_gate, candidate, self.config, serving=serving, overrides=overrides))

    def worker(self, **fields: Any) -> str:
        return str(self.gateway.chat("hello", **fields).headers["x-pointsman-worker"])


@pytest.fixture
def make(
    make_gateway: Callable[..., Any], upstream: Any, fake: Any, engine: Engine
) -> Iterator[Callable[..., Versions]]:
    """`make(cards)`: an empty log and a gateway whose file favours alpha; it stops at the test's end."""
    made: list[Any] = []

    async def router(call: Any) -> None:
        await fake.reply(fake.completion(points(call.json["messages"][-1]["content"])))(call)

    def build(cards: str = "file") -> Versions:
        with engine.begin() as connection:
            for table in ("promotion", "gate", "dial", "router_version", "alarm", "decision", "outcome", "request"):
                connection.execute(delete(METADATA.tables[table]))
        upstream.script("m-router", router)
        gateway = make_gateway(SETTINGS.format(url=upstream.url, cards=cards), WORKERS)
        made.append(gateway)
        return Versions(gateway)

    yield build
    for gateway in made:
        gateway.close()


def test_a_promotion_reaches_the_gateway_by_notification_and_is_served_after_a_start_without_it(
    make: Callable[..., Versions],
) -> None:
    at = make()
    candidate = at.add("beta")
    assert at.worker() == "alpha"
    began, generation = time.monotonic(), at.gateway.state.generation.number
    at.act(promote, candidate, uncertified=True, refresh=False)
    while at.gateway.state.generation.number == generation:
        assert time.monotonic() - began < 10, "it was not announced"
        time.sleep(0.01)
    assert at.worker() == "beta"
    models = {model["id"]: model["pointsman"] for model in at.gateway.client.get("/v1/models").json()["data"]}
    assert models["pointsman"]["version"] == candidate
    at.gateway.stop()
    at.gateway.start()  # the plan was kept on disk
    assert at.worker() == "beta"
    at.act(roll_back)
    assert at.worker() == "alpha"


def test_candidates_can_be_pinned_and_a_version_that_was_tampered_with_cannot(make: Callable[..., Versions]) -> None:
    at = make()
    candidate = at.add("beta")
    answer = at.gateway.chat("hello", model=f"pointsman@{candidate[:12]}")
    assert answer.headers["x-pointsman-worker"] == "beta"
    assert answer.headers["x-pointsman-router"] == f"harness@{candidate}"
    with at.engine.begin() as connection:
        connection.exec_driver_sql(
            "UPDATE router_version SET config = jsonb_set(config, '{cards,gamma}', '\"gamma *\"') WHERE id = %s",
            (candidate,),
        )
    at.gateway.stop()
    (at.gateway.home / "versions.json").unlink()
    at.gateway.start()
    assert at.gateway.chat("hello", model=f"pointsman@{candidate}").status_code == 404
    assert any("it was changed after it was made" in note for note in at.gateway.state.generation.notes)


def test_a_router_llm_at_an_address_that_the_file_does_not_name_is_never_asked(make: Callable[..., Versions]) -> None:
    at = make()
    candidate = at.add("beta", base_url="http://127.0.0.1:9/v1")
    at.act(promote, candidate, uncertified=True)
    assert at.worker() == "alpha"
    assert "its router LLM is at 'http://127.0.0.1:9/v1'" in at.gateway.client.get("/readyz").json()["notes"][0]


@pytest.mark.parametrize(("cards", "serves"), [("file", "gamma"), ("promoted", "beta")])
def test_descriptions_changed_in_the_file_serve_at_once_or_become_a_candidate(
    make: Callable[..., Versions], cards: str, serves: str
) -> None:
    at = make(cards)
    at.worker()
    at.gateway.ship()  # the log tells which descriptions the file had
    at.act(promote, at.add("beta"), uncertified=True)
    assert at.worker() == "beta"
    text = at.gateway.file.read_text()
    changed = text.replace('description = "alpha *"', 'description = "alpha"')
    changed = changed.replace('description = "gamma"', 'description = "gamma *"')
    at.gateway.file.write_text(changed)
    admin = {"authorization": f"Bearer {at.gateway.key(scopes=('admin',))}"}
    assert at.gateway.client.post("/v1/reload", content="{}", headers=admin).status_code == 200
    assert at.worker() == serves
    made = str(at.gateway.state.generation.chain.routers[0].version.id)
    at.gateway.ship()
    states = {str(row.id): row.state for row in at.gateway.sql("SELECT id, state FROM router_version")}
    assert states[made] == ("serving" if cards == "file" else "candidate")


def test_the_promoted_versions_fallback_decides_where_it_cannot(
    make: Callable[..., Versions], upstream: Any, fake: Any
) -> None:
    at = make()
    first, second = at.add("beta"), at.add("gamma")
    at.act(promote, first, uncertified=True, fallback=second)

    async def breaks_on_beta(call: Any) -> None:
        prompt = call.json["messages"][-1]["content"]
        broken = '"beta *"' in prompt
        await fake.reply(fake.completion("no idea" if broken else points(prompt)))(call)

    upstream.script("m-router", breaks_on_beta)
    record = at.gateway.record(at.gateway.chat("hello"))
    assert record["decision"]["chosen"] == "gamma"
    assert record["decision"]["router_version_id"] == second
    assert record["decision"]["fail_open"] == ["harness:reply_unknown"]


def test_a_shadow_is_logged_beside_and_changes_nothing(make: Callable[..., Versions], upstream: Any) -> None:
    at = make()
    candidate = at.add("beta")
    at.act(shadow, candidate, on=True)
    record = at.gateway.record(at.gateway.chat("hello"))
    decision = record["decision"]
    assert (decision["chosen"], decision["probabilities"]["alpha"], decision["gate_id"]) == ("alpha", 1.0, None)
    picks = {pick["part"]: pick for pick in decision["shadow_picks"]["picks"]}
    assert (picks["serving"]["worker"], picks["shadow"]["worker"]) == ("alpha", "beta")
    assert picks["shadow"]["version"] == candidate and "gate" not in decision["shadow_picks"]
    assert len(upstream.of("m-router")) == 2
    assert decision["router_input_tokens"] == 20  # ten for each: both are orchestration
    at.act(shadow, candidate, on=False)
    upstream.calls.clear()
    at.worker()
    assert len(upstream.of("m-router")) == 1


def test_a_gates_rows_name_it_and_their_vector_is_the_mixture(make: Callable[..., Versions]) -> None:
    at = make()
    gate = at.gate(at.add("beta"), rho=0.25)
    chosen = []
    for _ in range(40):
        decision = at.gateway.chat("hello")
        chosen.append(decision.headers["x-pointsman-worker"])
    record = at.gateway.record(decision)["decision"]
    assert record["gate_id"] == gate
    assert record["probabilities"] == {"alpha": 0.75, "beta": 0.25, "gamma": 0.0}
    drawn = record["shadow_picks"]["gate"]
    assert (drawn["rho"], drawn["fresh"], drawn["arm"]) == (
        0.25,
        True,
        {"alpha": "incumbent", "beta": "candidate"}[chosen[-1]],
    )
    assert set(chosen) == {"alpha", "beta"}


def test_an_episode_keeps_its_arm_whatever_the_ramp_does_and_on_every_gateway(make: Callable[..., Versions]) -> None:
    at = make()
    at.gate(at.add("beta"), rho=0.5)
    first: dict[str, str] = {}
    for n in range(12):
        first[f"talk {n}"] = at.worker(metadata={"pointsman": {"episode_id": f"talk {n}"}})
    assert set(first.values()) == {"alpha", "beta"}
    at.gateway.ship()
    with at.engine.begin() as connection:  # the ramp has come to 95%
        connection.exec_driver_sql("UPDATE gate SET ramp = '{\"steps\": [[0, 0.95]]}'")
    at.gateway.stop()
    at.gateway.start()  # a process that has seen none of them
    again = {name: at.worker(metadata={"pointsman": {"episode_id": name}}) for name in first}
    assert again == first
    record = at.gateway.record(at.gateway.chat("hello", metadata={"pointsman": {"episode_id": "talk 3"}}))["decision"]
    assert record["shadow_picks"]["gate"]["fresh"] is False
    assert record["probabilities"][first["talk 3"]] == 1.0


def test_who_does_not_consent_to_learning_meets_no_gate(make: Callable[..., Versions], upstream: Any) -> None:
    at = make()
    at.gate(at.add("beta"), rho=0.95)
    quiet = at.gateway.key(learn=False)
    upstream.calls.clear()
    for fields in ({"headers": {"authorization": f"Bearer {quiet}"}}, {"store": False}):
        answer = at.gateway.chat("hello", **fields)
        record = at.gateway.record(answer)["decision"]
        assert (record["chosen"], record["gate_id"], record["shadow_picks"]) == ("alpha", None, None)
    assert len(upstream.of("m-router")) == 2


def test_a_gate_of_another_pool_or_incumbent_draws_nothing(make: Callable[..., Versions]) -> None:
    at = make()
    gate = at.gate(at.add("beta"), rho=0.95)
    with at.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE gate SET pool_epoch = 'of other workers'")
    at.gateway.refresh()
    assert at.worker() == "alpha"
    assert f"gate {gate} has no canary here: its workers were others" in at.gateway.state.generation.notes
    at.act(stop_gate, gate)
    assert at.gateway.state.generation.notes == ()


def test_two_projects_are_served_apart(make: Callable[..., Versions]) -> None:
    at = make()
    at.act(promote, at.add("beta"), uncertified=True)
    other = {"authorization": f"Bearer {at.gateway.key(project='other')}"}
    assert (at.worker(), at.worker(headers=other)) == ("beta", "alpha")


def test_a_dial_lets_the_cheap_worker_answer_and_logs_the_routers_own_scores(make: Callable[..., Versions]) -> None:
    at = make()
    serving = at.gateway.state.generation.chain.routers[0].version.id
    endpoint = at.gateway.state.generation.pool.by_name["gamma"].endpoint_hash
    with at.engine.begin() as connection:
        connection.execute(
            insert(METADATA.tables["dial"]).values(
                id=new_id(), project_id=PROJECT, worker="gamma", endpoint_hash=endpoint, router_version_id=serving,
                threshold=-80.0, certificate_id=new_id(), pool_epoch="e", made_by="ana", made_at=datetime.now(UTC),
            )
        )  # fmt: skip
    at.gateway.refresh()
    decision = at.gateway.record(at.gateway.chat("hello"))["decision"]  # alpha has 90 points, gamma 10: a margin of -80
    assert (decision["chosen"], decision["probabilities"]["gamma"]) == ("gamma", 1.0)
    assert decision["scores"] == {"alpha": 90.0, "beta": 10.0, "gamma": 10.0}
    assert "dial_cheap" in decision["flags"]
