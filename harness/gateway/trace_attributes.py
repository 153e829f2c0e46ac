"""What a span says of a decision and of a call, by the conventions for generative AI (`gen_ai.*`).

What those have no word for is `pointsman.*`. Nothing here is text that a person, a model or an error wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from harness.gateway.decide import Decision
from pointsman.pool import Worker
from pointsman.upstream.record import CallRecord

Attributes = dict[str, Any]


def of_decision(decision: Decision) -> Attributes:
    attributes: Attributes = {
        "pointsman.worker": decision.draw.chosen,
        "pointsman.router": decision.router,
        "pointsman.propensity": decision.propensity,
        "pointsman.explored": decision.draw.explored,
    }
    if decision.draw.forced is not None:
        attributes["pointsman.forced"] = decision.draw.forced
    if decision.decided is not None:
        attributes["pointsman.router.ms"] = round(decision.decided.seconds * 1000, 3)
    return attributes


def of_answer(records: Sequence[CallRecord]) -> Attributes:
    """What the client got: the last call's."""
    if not records:
        return {"pointsman.calls": 0}
    return {"pointsman.calls": len(records), "pointsman.answered_by": records[-1].worker.name, **_usage(records[-1])}


def of_call(record: CallRecord) -> Attributes:
    seen = record.seen
    host = urlsplit(record.endpoint.base_url)
    attributes: Attributes = {
        "gen_ai.provider.name": _provider(record.worker),
        "gen_ai.request.model": record.worker.model,
        "pointsman.worker": record.worker.name,
        "pointsman.attempt": record.attempt,
        **_usage(record),
    }
    optional = {
        "server.address": host.hostname,
        "server.port": host.port,
        "http.response.status_code": record.http_status,
        "gen_ai.response.model": seen.model,
        "gen_ai.response.id": seen.completion_id,
        "gen_ai.response.finish_reasons": (seen.finish_reason,) if seen.finish_reason else None,
        "gen_ai.response.time_to_first_chunk": record.first_token_ms / 1000 if record.first_token_ms else None,
    }
    return attributes | {name: value for name, value in optional.items() if value is not None}


def _usage(record: CallRecord) -> Attributes:
    usage = record.usage
    if usage is None:
        return {}
    attributes: Attributes = {
        "gen_ai.usage.input_tokens": usage.input,
        "gen_ai.usage.output_tokens": usage.output,
        "gen_ai.usage.cache_read.input_tokens": usage.cached,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning,
        "pointsman.usage_estimated": usage.estimated,
    }
    if record.cost is not None:
        attributes["pointsman.cost_usd"] = float(record.cost)
    return attributes


def _provider(worker: Worker) -> str:
    """By the API that a worker speaks; LiteLLM's models begin with their provider's name."""
    return worker.model.partition("/")[0] if worker.quirks.api == "litellm" else worker.quirks.api
