"""Asks an OpenAI-compatible server which models it has: for `pointsman init` and `pointsman doctor`.

Blocking, one attempt, no breaker: it never stands in the way of a request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from pointsman.plain_http import NoAnswer, exchange

MAX_MODELS = 5_000


@dataclass(frozen=True)
class ListedModel:
    """A model as `GET /models` names it. `context_window` is in tokens, None where it is not said."""

    id: str
    context_window: int | None = None


@dataclass(frozen=True)
class Listing:
    """What a server answered. `models` is None where the answer was no list of models."""

    status: int
    models: tuple[ListedModel, ...] | None


def list_models(base_url: str, headers: Mapping[str, str] | None = None, *, timeout: float = 3.0) -> Listing:
    """`GET {base_url}/models`. Raises `NoAnswer` where nothing answers."""
    answer = exchange("GET", f"{base_url.rstrip('/')}/models", headers=headers, timeout=timeout)
    return Listing(answer.status, _models(answer.body) if answer.status == 200 else None)


def _models(body: bytes) -> tuple[ListedModel, ...] | None:
    try:
        content = msgspec.json.decode(body)
    except (msgspec.MsgspecError, RecursionError):
        return None
    items = content.get("data") if isinstance(content, dict) else content
    if not isinstance(items, list):
        return None
    found = (_model(item) for item in items[:MAX_MODELS])
    return tuple(model for model in found if model is not None)


def _model(item: Any) -> ListedModel | None:
    if not isinstance(item, dict) or not isinstance(item.get("id"), str):
        return None
    window = item.get("max_model_len") or item.get("context_length")
    return ListedModel(item["id"], window if isinstance(window, int) and window > 0 else None)


__all__ = ["ListedModel", "Listing", "NoAnswer", "list_models"]
