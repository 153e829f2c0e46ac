"""From a recorded query or outcome to the rows of the log: one full-information row each query.

A full-information row is one decision without a choice (`chosen` and `probabilities` NULL), and a
call and an outcome per worker and repeat; the outcome's id is its call's.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

from pointsman.hashing import text_hash
from pointsman.pool import Worker
from pointsman.replay.identities import ReplayIds
from pointsman.replay.source import Query, RecordedOutcome

Row = dict[str, Any]


def dataset_tag(dataset: str) -> str:
    """The tag that marks the requests of one data set."""
    return f"dataset:{dataset}"


def request_row(ids: ReplayIds, query: Query, moment: datetime, *, learn: bool) -> Row:
    """The columns that have no meaning of their own are kept in `hints.replay`."""
    return {
        "id": ids.request(query.id, moment),
        "project_id": ids.project_id,
        "received_at": moment,
        "text": query.text,
        "text_hash": text_hash(query.text),
        "hints": {"replay": {"query_id": query.id, **query.extra}},
        "tags": [dataset_tag(ids.dataset)],
        "task": query.task,
        "split": query.split,
        "learn": learn,
    }


def decision_row(
    ids: ReplayIds, query_id: str, moment: datetime, eligible: dict[str, str | None], pool_hash: str, cards_hash: str
) -> Row:
    return {
        "id": ids.decision(query_id, moment),
        "project_id": ids.project_id,
        "request_id": ids.request(query_id, moment),
        "origin": "replay",
        "decided_at": moment,
        "pool_hash": pool_hash,
        "cards_hash": cards_hash,
        "eligible": eligible,
    }


def call_row(ids: ReplayIds, outcome: RecordedOutcome, moment: datetime, worker: Worker, cost: Decimal | None) -> Row:
    return {
        "id": ids.call(outcome.query_id, moment, worker.name, outcome.repeat),
        "project_id": ids.project_id,
        "decision_id": ids.decision(outcome.query_id, moment),
        "request_id": ids.request(outcome.query_id, moment),
        "worker": worker.name,
        "endpoint_hash": worker.endpoint_hash,
        "card_hash": worker.card_hash,
        "price_hash": worker.price_hash,
        "purpose": "replay",
        "repeat": outcome.repeat,
        "started_at": moment,
        "provider_model": worker.model,
        "completion": outcome.response,
        "status": "ok",
        "input_tokens": outcome.input_tokens,
        "output_tokens": outcome.output_tokens,
        "cost": cost,
        "latency_ms": outcome.latency_ms,
    }


def outcome_row(
    ids: ReplayIds, outcome: RecordedOutcome, moment: datetime, worker: Worker, cost: Decimal | None
) -> Row:
    call_id = ids.call(outcome.query_id, moment, worker.name, outcome.repeat)
    return {
        "id": call_id,
        "project_id": ids.project_id,
        "decision_id": ids.decision(outcome.query_id, moment),
        "call_id": call_id,
        "origin": "replay",
        "status": "ok",
        "worker": worker.name,
        "score": outcome.score,
        "calls": 1,
        "cost": cost,
        "latency_ms": outcome.latency_ms,
        "ended_at": moment,
    }


def pool_rows(worker: Worker, now: datetime) -> dict[str, list[Row]]:
    """The rows by which the log knows a worker at its versions, by table."""
    common = {"worker": worker.name, "created_at": now}
    rows: dict[str, list[Row]] = {
        "worker_endpoint": [
            {**common, "hash": worker.endpoint_hash, "model": worker.model, "content": worker.endpoint_content}
        ],
        "card": [{**common, "hash": worker.card_hash, "text": worker.card, "source": "file"}],
    }
    if worker.price is not None:
        price = worker.price
        amounts = {"input": price.input, "output": price.output, "cached_input": price.cached_input}
        rows["price"] = [{**common, "hash": worker.price_hash, **amounts}]
    return rows
