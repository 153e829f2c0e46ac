"""From a record to the rows of the log: a full-information row of origin `replay`, of one answer or of many.

Texts are redacted by the configuration's patterns before anything is kept, as the gateway does it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from pointsman.hashing import text_hash
from pointsman.ids import content_id
from pointsman.intake.record import Record
from pointsman.pool import Worker
from pointsman.redaction import Redactor
from pointsman.replay.cells import COST_PLACES
from pointsman.replay.identities import UNDATED, ReplayIds
from pointsman.replay.models import MILLION
from pointsman.replay.records import Row, dataset_tag

MAX_ERROR = 2000


@dataclass(frozen=True)
class Writer:
    """Makes rows under one data set's ids. Without `store_text` no text of any kind is kept."""

    ids: ReplayIds
    form: str
    redactor: Redactor
    store_text: bool
    learn: bool

    def request(self, record: Record, moment: datetime) -> Row:
        text = self._text(record.text)
        query = self.redactor.text(record.query)
        return {
            "id": self.ids.request(record.query, moment),
            "project_id": self.ids.project_id,
            "episode_id": self.episode_id(record),
            "received_at": moment,
            "text": text,
            "text_hash": None if record.text is None else text_hash(record.text),
            "body": self.redactor.value(record.body) if self.store_text else None,
            "hints": {"replay": {"query_id": query, "format": self.form}},
            "tags": [dataset_tag(self.ids.dataset)],
            "task": self.redactor.text(record.task),
            "split": record.split,
            "learn": self.learn,
        }

    def decision(
        self, query: str, moment: datetime, eligible: dict[str, str | None], pool_hash: str, cards_hash: str
    ) -> Row:
        return {
            "id": self.ids.decision(query, moment),
            "project_id": self.ids.project_id,
            "request_id": self.ids.request(query, moment),
            "origin": "replay",
            "decided_at": moment,
            "pool_hash": pool_hash,
            "cards_hash": cards_hash,
            "eligible": eligible,
        }

    def call(self, record: Record, moment: datetime, worker: Worker, cost: Decimal | None, repeat: int) -> Row:
        return {
            "id": self.ids.call(record.query, moment, worker.name, repeat),
            "project_id": self.ids.project_id,
            "decision_id": self.ids.decision(record.query, moment),
            "request_id": self.ids.request(record.query, moment),
            "worker": worker.name,
            "endpoint_hash": worker.endpoint_hash,
            "card_hash": worker.card_hash,
            "price_hash": worker.price_hash,
            "purpose": "replay",
            "repeat": repeat,
            "started_at": moment,
            "provider_model": record.provider_model or worker.model,
            "completion": self._text(record.completion),
            "tool_calls": self.redactor.value(record.tool_calls) if self.store_text else None,
            "finish_reason": record.finish_reason,
            "status": record.status,
            "http_status": record.http_status,
            "error": None if record.error is None else self._text(record.error[:MAX_ERROR]),
            "input_tokens": record.input_tokens,
            "cached_tokens": record.cached_tokens,
            "output_tokens": record.output_tokens,
            "cost": cost,
            "first_token_ms": record.first_token_ms,
            "latency_ms": record.latency_ms,
        }

    def outcome(self, record: Record, moment: datetime, worker: Worker, cost: Decimal | None, repeat: int) -> Row:
        call_id = self.ids.call(record.query, moment, worker.name, repeat)
        ended = {"ok": "ok", "truncated": "truncated", "cancelled": "client_cancelled", "timeout": "timeout"}
        return {
            "id": call_id,
            "project_id": self.ids.project_id,
            "decision_id": self.ids.decision(record.query, moment),
            "call_id": call_id,
            "episode_id": self.episode_id(record),
            "origin": "replay",
            "status": ended.get(record.status, "upstream_error"),
            "worker": worker.name,
            "score": record.score,
            "http_status": record.http_status,
            "calls": 1,
            "cost": cost,
            "first_token_ms": record.first_token_ms,
            "latency_ms": record.latency_ms,
            "ended_at": moment,
        }

    def episode(self, record: Record, moment: datetime) -> Row | None:
        identity = self.episode_id(record)
        if identity is None:
            return None
        given = self.redactor.text(record.episode)
        common = {"project_id": self.ids.project_id, "source": "given", "started_at": moment}
        return {"id": identity, "given": given, **common}

    def episode_id(self, record: Record) -> str | None:
        """Of the data set's own space: conversations of two systems never meet."""
        if record.episode is None:
            return None
        return content_id("imported-episode", self.ids.project_id, self.ids.dataset, record.episode)

    def _text(self, text: str | None) -> str | None:
        return self.redactor.text(text) if self.store_text else None


def cost_of(record: Record, worker: Worker) -> Decimal | None:
    """The recorded cost in USD; else what the recorded tokens cost at the worker's price; else None."""
    price = worker.price
    if record.cost is not None or price is None or record.input_tokens is None or record.output_tokens is None:
        return record.cost
    cached = min(record.cached_tokens or 0, record.input_tokens)
    fresh = record.input_tokens - cached
    dollars = price.input * fresh + price.cached_input * cached + price.output * record.output_tokens
    return (dollars / MILLION).quantize(COST_PLACES)


def moment_of(record: Record) -> datetime:
    """When it was asked, `UNDATED` where that is not known."""
    return record.asked_at or UNDATED
