"""A log without a gateway, row by row: two routers that always disagree, arms and rewards as a test wants them."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from sqlalchemy import Engine, delete, insert, text

from pointsman.actions.actor import Actor
from pointsman.actions.gates import start_gate
from pointsman.config import load_text
from pointsman.ids import content_id, id_at, new_id, time_of
from pointsman.pool import Pool
from pointsman.promotion.process import Progress, process_gate
from pointsman.promotion.register import Overrides
from pointsman.promotion.versions import ROUTER_VERSION
from pointsman.tables import METADATA

ANA = Actor("ana", "operator")
POOL_TOML = """
[router]
chain = ["harness", "default"]
model = "r"
base_url = "http://127.0.0.1:9/v1"
default = "alpha"
[[workers]]
name = "alpha"
description = "Alpha."
model = "m-alpha"
base_url = "http://127.0.0.1:9/v1"
[[workers]]
name = "beta"
description = "Beta."
model = "m-beta"
base_url = "http://127.0.0.1:9/v1"
"""
START = datetime(2026, 11, 1, 12, tzinfo=UTC)

TABLES = (
    "request", "decision", "call", "outcome", "feedback", "reward", "reward_spec", "gate", "gate_row", "certificate",
    "alpha_ledger", "alarm", "actor_log", "promotion", "dial", "detector", "router_version", "pool_snapshot", "job_log",
    "job", "audit_run", "episode", "flywheel_turn",
)  # fmt: skip


def clear(engine: Engine) -> None:
    """Takes every row that these tests write: to truncate all tables takes ten times as long."""
    with engine.begin() as connection:
        for table in TABLES:
            connection.execute(delete(METADATA.tables[table]))


class Synthetic:
    """A log without a gateway: the incumbent always picks alpha, the candidate beta, arms as a test wants them."""

    def __init__(self, engine: Engine, project: str, more: str = "") -> None:
        self.engine = engine
        self.project = project
        self.config = load_text(POOL_TOML + more)
        self.pool = Pool.of(self.config)
        self.clock = START
        self.rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.incumbent, self.candidate = self.version("served"), self.version("better")
        snapshot = {"hash": self.pool.hash, "content": self.pool.content, "created_at": START}
        with engine.begin() as connection:
            connection.execute(insert(METADATA.tables["pool_snapshot"]).values(snapshot))

    def version(self, name: str, state: str = "candidate") -> str:
        """A version that is no router: only a name."""
        identity = content_id("router_version", name)
        values = {
            "id": identity, "kind": "harness", "artifact_hash": name, "config": {"name": name}, "state": state,
            "created_at": START,
        }  # fmt: skip
        with self.engine.begin() as connection:
            connection.execute(insert(ROUTER_VERSION).values(values))
        return identity

    def gate(self, mode: Any = "auto", more: Mapping[str, Any] | None = None) -> str:
        """A gate of the candidate against the incumbent, as the configuration says."""
        config = self.config
        if more:
            config = config.model_copy(update={"gate": config.gate.model_copy(update=dict(more))})
        with self.engine.begin() as connection:
            return start_gate(
                connection, ANA, self.project, self.candidate, config, self.clock,
                serving=self.incumbent, overrides=Overrides(mode=mode, ramp=((0, 0.5),)),
            )  # fmt: skip

    def decision(self, gate: str | None, arm: str, *, episode: str | None = None, **changed: Any) -> str:
        """A decision under a gate and its outcome, a second after the one before; its id. `outcome` {}: none came."""
        self.clock += timedelta(seconds=1)
        identity, request = id_at(self.clock), id_at(self.clock)
        key, outcome = changed.pop("key", None), changed.pop("outcome", {"status": "ok"})
        chosen = "beta" if arm == "candidate" else "alpha"
        picks = [
            {"part": "incumbent", "version": self.incumbent, "worker": "alpha"},
            {"part": "candidate", "version": self.candidate, "worker": "beta"},
        ]
        self.rows["request"].append(
            {"id": request, "project_id": self.project, "key_id": key, "received_at": self.clock, "model": "pointsman"}
        )
        self.rows["decision"].append(
            {
                "id": identity, "project_id": self.project, "request_id": request,
                "episode_id": episode or id_at(self.clock), "decided_at": self.clock, "eligible": {},
                "router_version_id": self.candidate if arm == "candidate" else self.incumbent,
                "router_kind": "harness", "pool_hash": self.pool.hash, "scores": {"alpha": 1.0, "beta": 0.0},
                "probabilities": {"alpha": 0.5, "beta": 0.5}, "chosen": chosen, "propensity": 0.5, "gate_id": gate,
                "shadow_picks": {"picks": picks, "gate": {"arm": arm, "rho": 0.5, "fresh": True}},
                "explored": False, "forced": None, **changed,
            }
        )  # fmt: skip
        if outcome:
            self.rows["outcome"].append(
                {
                    "id": identity, "project_id": self.project, "decision_id": identity, "status": "ok",
                    "worker": chosen, "cost": Decimal("0.001"), "latency_ms": 500.0,
                    "ended_at": self.clock + timedelta(milliseconds=500), **outcome,
                }
            )  # fmt: skip
        return identity

    def word(self, decision: str, value: Any, *, after: float = 1.0, **changed: Any) -> None:
        """A word on a decision, some seconds after it."""
        self.rows["feedback"].append(
            {
                "id": new_id(), "project_id": self.project, "key_id": None, "decision_id": decision, "episode_id": None,
                "metric": "correct", "value": value, "source": "person",
                "created_at": time_of(decision) + timedelta(seconds=after), **changed,
            }
        )  # fmt: skip

    def asked(self, origin: str, scores: Mapping[str, float], request: str | None = None, **changed: Any) -> str:
        """A full-information row: what every worker's answer to a request was worth; its decision's id."""
        self.clock += timedelta(seconds=1)
        identity = id_at(self.clock)
        if request is None:
            request = id_at(self.clock)
            self.rows["request"].append(
                {"id": request, "project_id": self.project, "received_at": self.clock, "model": None}
                | {name: changed.pop(name) for name in ("text", "tags") if name in changed}
            )
        self.rows["decision"].append(
            {"id": identity, "project_id": self.project, "request_id": request, "episode_id": None, "origin": origin,
             "decided_at": self.clock, "eligible": {}, "pool_hash": self.pool.hash, "audit_rate": 0.1}
        )  # fmt: skip
        repeats = changed.pop("repeats", 1)
        for worker, score in scores.items():
            for repeat in range(repeats):
                self._answer(origin, identity, worker, repeat, score)
        return identity

    def _answer(self, origin: str, decision: str, worker: str, repeat: int, score: float) -> None:
        call = id_at(self.clock)
        self.rows["call"].append(
            {"id": call, "project_id": self.project, "decision_id": decision, "worker": worker, "purpose": origin,
             "endpoint_hash": self.pool.by_name[worker].endpoint_hash, "repeat": repeat, "started_at": self.clock,
             "status": "ok"}
        )  # fmt: skip
        self.rows["outcome"].append(
            {"id": call, "project_id": self.project, "decision_id": decision, "call_id": call, "origin": origin,
             "status": "ok", "worker": worker, "score": score, "cost": Decimal("0.001"), "latency_ms": 1.0,
             "ended_at": self.clock}
        )  # fmt: skip

    def flush(self) -> None:
        with self.engine.begin() as connection:
            for table in ("request", "decision", "call", "outcome", "feedback"):
                alike: dict[frozenset[str], list[dict[str, Any]]] = defaultdict(list)
                for row in self.rows.pop(table, []):
                    alike[frozenset(row)].append(row)
                for rows in alike.values():
                    connection.execute(insert(METADATA.tables[table]), rows)

    def traffic(self, gate: str, n: int, wins: Mapping[str, float], *, seed: int = 1, key: Any = None) -> None:
        """`n` episodes, arms by turns at random, each with a word that is good with its arm's chance."""
        rng = random.Random(seed)
        for _ in range(n):
            arm = rng.choice(("candidate", "incumbent"))
            self.word(self.decision(gate, arm, key=key), rng.random() < wins[arm])

    def look(self, gate: str, after: float = 2_000.0) -> Progress:
        self.flush()
        progress = process_gate(self.engine, gate, self.clock + timedelta(seconds=after), settle=timedelta(0))
        assert progress is not None
        return progress

    def sql(self, query: str, **values: Any) -> list[Any]:
        with self.engine.connect() as connection:
            return list(connection.execute(text(query), values))
