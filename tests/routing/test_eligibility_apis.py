"""Masks that come of the API a worker speaks, and of workers that only embed."""

from __future__ import annotations

from typing import Any

import pytest

from harness.routing.eligibility import Needs, eligible
from pointsman.config.model import QuirksConfig
from pointsman.pool import Endpoint, Pool, Worker

ALL = frozenset({"tools", "images", "audio", "json_schema", "logprobs", "embeddings"})


def worker(name: str, capabilities: frozenset[str], **more: Any) -> Worker:
    return Worker(name, "card", "m", (Endpoint("http://127.0.0.1:1"),), capabilities=capabilities, **more)


POOL = Pool(
    (
        worker("native", ALL, quirks=QuirksConfig.model_validate({"api": "anthropic"})),
        worker("plain", ALL),
        worker("embedder", frozenset({"embeddings"}), context_window=10),
        worker("bare", frozenset()),
    )
)


@pytest.mark.parametrize(
    ("needs", "reasons"),
    [
        (Needs(), [None, None, "embeddings_only", None]),
        (Needs(tools=True, images=True, json_schema=True), [None, None, "no_tools", "no_tools"]),
        (Needs(several=True), ["no_n", None, "embeddings_only", None]),
        (Needs(functions=True), ["no_functions", None, "embeddings_only", None]),
        (Needs(audio=True), ["no_audio", None, "no_audio", "no_audio"]),
        (Needs(logprobs=True), ["no_logprobs", None, "no_logprobs", "no_logprobs"]),
        (Needs(embeddings=True), ["no_embeddings", None, None, "no_embeddings"]),
        (Needs(embeddings=True, prompt_tokens=5_000), ["no_embeddings", None, None, "no_embeddings"]),
        (Needs(several=True, excluded=frozenset({"native"})), ["excluded", None, "embeddings_only", None]),
    ],
)
def test_reasons(needs: Needs, reasons: list[str | None]) -> None:
    assert list(eligible(POOL, needs, lambda name: True).reasons.values()) == reasons
