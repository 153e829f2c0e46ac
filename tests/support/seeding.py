"""A log to read in tests: varied, reproducible, written the way the shipper writes.

`seed` is a function of its arguments alone. Its figures are also kept as plain Python, so that tests
compare what the database says with what was put in, not with itself.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from hashlib import sha256
from typing import Any

import psycopg

from pointsman.config import load_text
from pointsman.database.copy import copy_rows
from pointsman.database.engine import psycopg_url
from pointsman.ids import content_id, id_at
from pointsman.pool import Pool

CONFIG = """
[router]
chain = ["default"]
default = "atlas"

[[workers]]
name = "atlas"
description = "Careful with sums and units; slow."
model = "atlas-1"
base_url = "http://127.0.0.1:1/v1"
price = {input = 3.0, output = 15.0, cached_input = 0.3}

[[workers]]
name = "brook"
description = "Quick with words; weak at sums."
model = "brook-1"
base_url = "http://127.0.0.1:1/v1"
price = {input = 0.2, output = 0.8}

[[workers]]
name = "cinder"
description = "A local model without a price."
model = "cinder-1"
base_url = "http://127.0.0.1:1/v1"

[[workers]]
name = "dune"
description = "Sees images only."
model = "dune-1"
base_url = "http://127.0.0.1:1/v1"
"""

WORKERS = ("atlas", "brook", "cinder")
HOSTILE = "<img src=x onerror=alert(1)> what is 2 + 2? ![x](http://tracker.invalid/p.png) **bold**"
STATUSES = ("ok",) * 16 + ("upstream_error", "truncated", "client_cancelled", "timeout")
KINDS = ("harness",) * 6 + ("rule", "default")
TOPICS = ("sums of integers", "a sonnet about rivers", "translate this letter", "sort a list in Python")


@dataclass(frozen=True)
class Seeded:
    """What was written: rows by table in the order of their ids, oldest first."""

    project: str
    pool: Pool
    rows: dict[str, list[dict[str, Any]]] = field(repr=False)

    @property
    def decisions(self) -> list[dict[str, Any]]:
        return self.rows["decision"]

    @property
    def outcomes(self) -> dict[str, dict[str, Any]]:
        return {row["id"]: row for row in self.rows["outcome"]}

    @property
    def requests(self) -> dict[str, dict[str, Any]]:
        return {row["id"]: row for row in self.rows["request"]}


def seed(
    url: str,
    *,
    until: datetime,
    number: int = 300,
    spread: timedelta = timedelta(days=6),
    project: str = "main",
    rng_seed: int = 1,
) -> Seeded:
    """Writes `number` traffic decisions, evenly spread over the `spread` before `until`.

    The newest one holds a hostile prompt, was explored, was answered by a fallback and has feedback.
    """
    maker = _Maker(project, random.Random(rng_seed))
    for position in range(number):
        moment = until - spread * ((number - position) / number)
        maker.decision(position, moment, newest=position == number - 1)
    _write(url, maker.rows)
    return Seeded(maker.project, maker.pool, maker.rows)


class _Maker:
    def __init__(self, project: str, rng: random.Random) -> None:
        self.name = project
        self.rng = rng
        self.project = content_id("test-project", project)
        self.pool = Pool.of(load_text(CONFIG))
        self.version = content_id("router_version", "harness", "f" * 64)
        self.rows: dict[str, list[dict[str, Any]]] = {
            "project": [], "router_version": [], "card": [], "price": [], "pool_snapshot": [], "worker": [],
            "request": [], "decision": [], "call": [], "outcome": [], "feedback": [],
        }  # fmt: skip
        self._reference_rows()

    def _reference_rows(self) -> None:
        made = "2026-01-01T00:00:00+00:00"
        self.rows["project"].append({"id": self.project, "name": self.name, "secret": "00", "created_at": made})
        self.rows["router_version"].append(
            {"id": self.version, "kind": "harness", "artifact_hash": "f" * 64, "config": {"template": "t"},
             "state": "serving", "created_at": made}
        )  # fmt: skip
        self.rows["pool_snapshot"].append({"hash": self.pool.hash, "content": self.pool.content, "created_at": made})
        for worker in self.pool.workers:
            self.rows["worker"].append(
                {"id": content_id("worker", worker.name), "name": worker.name, "created_at": made}
            )
            self.rows["card"].append(
                {"hash": worker.card_hash, "worker": worker.name, "text": worker.card, "source": "file",
                 "created_at": made}
            )  # fmt: skip
            if worker.price:
                self.rows["price"].append(
                    {"hash": worker.price_hash, "worker": worker.name, "input": worker.price.input,
                     "output": worker.price.output, "cached_input": worker.price.cached_input,
                     "created_at": made}
                )  # fmt: skip

    def identity(self, kind: str, position: int, moment: datetime) -> str:
        entropy = sha256(f"{self.name}/{kind}/{position}".encode()).digest()
        return id_at(moment, entropy)

    def decision(self, position: int, moment: datetime, *, newest: bool) -> None:
        rng = self.rng
        request = self.identity("request", position, moment)
        decision = self.identity("decision", position, moment)
        episode = content_id("test-episode", self.name, str(position // 3))
        scores = {worker: round(rng.uniform(-4, 0), 3) for worker in WORKERS}
        best = max(scores, key=lambda worker: scores[worker])
        explored = newest or rng.random() < 0.1
        chosen = rng.choice([w for w in WORKERS if w != best]) if explored else best
        forced = "direct" if not newest and position % 11 == 0 else None
        if forced:
            explored = False
        chosen = best if forced else chosen
        probabilities = {chosen: 1.0} if forced else {w: 0.95 * (w == best) + 0.05 / 3 for w in WORKERS}
        kind = "harness" if newest else rng.choice(KINDS)
        text = HOSTILE if newest else f"Question {position}: {rng.choice(TOPICS)}"
        eligible: dict[str, Any] = {**dict.fromkeys(WORKERS), "dune": "the request has no image"}
        self.rows["request"].append(
            {"id": request, "project_id": self.project, "episode_id": episode, "received_at": moment,
             "model": "pointsman", "text": text, "text_hash": sha256(text.encode()).hexdigest(),
             "body": {"model": "pointsman", "messages": [{"role": "user", "content": text}]}}
        )  # fmt: skip
        self.rows["decision"].append(
            {"id": decision, "project_id": self.project, "request_id": request, "episode_id": episode,
             "turn": position % 3, "decided_at": moment, "router_version_id": self.version,
             "router_kind": kind, "template_hash": "e" * 64, "cards_hash": self.pool.cards_hash,
             "pool_hash": self.pool.hash, "card_order": ["brook", "cinder", "atlas"], "eligible": eligible,
             "scores": scores, "probabilities": probabilities, "chosen": chosen,
             "propensity": probabilities[chosen], "draw": [0.25], "explored": explored, "forced": forced,
             "parse_status": "repaired" if newest else "ok", "raw_reply": '```json\n{"worker": "B"}\n```',
             "router_input_tokens": 310, "router_output_tokens": 4, "router_cost": Decimal("0.000021"),
             "router_ms": rng.uniform(20, 90)}
        )  # fmt: skip
        self._ending(position, moment, request, decision, episode, chosen, newest=newest)

    def _ending(
        self, position: int, moment: datetime, request: str, decision: str, episode: str, chosen: str,
        *, newest: bool,
    ) -> None:  # fmt: skip
        rng = self.rng
        status = "ok" if newest else rng.choice(STATUSES)
        fell_back = newest or (status == "ok" and position % 17 == 0)
        answered = next(w for w in WORKERS if w != chosen) if fell_back else chosen
        latency = rng.lognormvariate(6.5, 0.5)
        cost = Decimal(0)
        unknown = False
        attempts = ([chosen] if fell_back else []) + [answered]
        for attempt, worker in enumerate(attempts, start=1):
            good = status == "ok" and worker == answered
            if newest:
                good = attempt == 2
            price = self.pool.by_name[worker].price
            tokens = (200 + position % 50, 80)
            spent = (price.input * tokens[0] + price.output * tokens[1]) / 1_000_000 if price else None
            unknown = unknown or spent is None
            cost += spent or 0
            self.rows["call"].append(
                {"id": self.identity(f"call-{attempt}", position, moment), "project_id": self.project,
                 "decision_id": decision, "request_id": request, "worker": worker,
                 "endpoint_hash": self.pool.by_name[worker].endpoint_hash,
                 "card_hash": self.pool.by_name[worker].card_hash,
                 "price_hash": self.pool.by_name[worker].price_hash, "attempt": attempt,
                 "started_at": moment, "provider_model": f"{worker}-1",
                 "completion": f"<b>Answer</b> to question {position}" if good else None,
                 "completion_id": f"chatcmpl-{self.name}-{position}-{attempt}",
                 "finish_reason": "stop" if good else None, "status": "ok" if good else "error",
                 "http_status": 200 if good else 503, "fault": None if good else "server",
                 "error": None if good else "upstream said 503", "input_tokens": tokens[0],
                 "output_tokens": tokens[1], "cost": spent, "first_token_ms": latency / 4,
                 "latency_ms": latency / len(attempts)}
            )  # fmt: skip
        self.rows["outcome"].append(
            {"id": decision, "project_id": self.project, "decision_id": decision, "episode_id": episode,
             "status": status, "worker": answered, "http_status": 200 if status == "ok" else 502,
             "calls": len(attempts), "cost": None if unknown else cost, "first_token_ms": latency / 4,
             "latency_ms": latency, "overhead_ms": rng.uniform(0.2, 2),
             "ended_at": moment + timedelta(milliseconds=latency)}
        )  # fmt: skip
        if newest or position % 4 == 0:
            self._word(position, moment, decision, answered)

    def _word(self, position: int, moment: datetime, decision: str, answered: str) -> None:
        """A boolean on every fourth; one in five of those is then amended to the contrary."""
        value = self.rng.random() < 0.8
        first = self.identity("feedback", position, moment + timedelta(seconds=5))
        row = {"id": first, "project_id": self.project, "decision_id": decision, "metric": "correct",
               "value": value, "source": "person", "comment": "looks <i>right</i>" if value else None,
               "amends": None, "joined": True, "created_at": moment + timedelta(seconds=5)}  # fmt: skip
        self.rows["feedback"].append(row)
        if position % 20 == 0:
            second = self.identity("amend", position, moment + timedelta(seconds=9))
            self.rows["feedback"].append({**row, "id": second, "value": not value, "amends": first})


def _write(url: str, rows: dict[str, list[dict[str, Any]]]) -> None:
    with psycopg.connect(psycopg_url(url)) as connection:
        for table, batch in rows.items():
            copy_rows(connection, table, batch)
        connection.commit()
        for table in ("request", "decision", "call", "outcome", "feedback"):
            connection.execute(psycopg.sql.SQL("ANALYZE {}").format(psycopg.sql.Identifier(table)))
