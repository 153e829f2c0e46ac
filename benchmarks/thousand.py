"""1,000 requests through the OpenAI SDK, half of them streamed: is each on record, with a sound vector and an outcome?

The sandbox's workers, the prompted router and exploration are as `pointsman up` has them. A vector is
sound where it has a probability for every eligible worker and for no other, and sums to 1.

Run: python benchmarks/thousand.py [--quick] [--json] [--seed S]
"""

from __future__ import annotations

import argparse
import asyncio
import time
from typing import Any
from urllib.parse import urlsplit

import openai
import psycopg
from common.instance import instance
from common.ledger import await_shipped, read_ledger
from common.report import run

from pointsman.database.embedded import EmbeddedPostgres
from pointsman.database.engine import psycopg_url
from pointsman.sandbox.serve import serving
from pointsman.sandbox.setup import toml_text
from pointsman.sandbox.tasks import tasks

REQUESTS = 1_000
AT_ONCE = 16
TOLERANCE = 1e-9


async def send_all(url: str, asks: list[str]) -> list[str | None]:
    """The error of each request, None where it was answered."""
    gate = asyncio.Semaphore(AT_ONCE)
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none-is-needed-here", max_retries=0) as client:

        async def one(number: int, text: str) -> str | None:
            async with gate:
                try:
                    return None if await answer(client, text, stream=bool(number % 2)) else "empty"
                except openai.OpenAIError as error:
                    return type(error).__name__

        return await asyncio.gather(*(one(number, text) for number, text in enumerate(asks)))


async def answer(client: openai.AsyncOpenAI, text: str, *, stream: bool) -> str:
    messages: Any = [{"role": "user", "content": text}]
    if not stream:
        whole = await client.chat.completions.create(model="pointsman", messages=messages)
        return whole.choices[0].message.content or ""
    parts = []
    async for chunk in await client.chat.completions.create(model="pointsman", messages=messages, stream=True):
        parts += [choice.delta.content or "" for choice in chunk.choices]
    return "".join(parts)


def sound_vectors(url: str) -> int:
    """Decisions whose probabilities are of exactly the eligible workers, sum to 1, and hold the propensity."""
    sound = 0
    with psycopg.connect(psycopg_url(url)) as connection:
        rows = connection.execute(
            "SELECT eligible, probabilities, chosen, propensity FROM decision WHERE origin = 'traffic'"
        )
        for eligible, probabilities, chosen, propensity in rows:
            names = {name for name, reason in eligible.items() if reason is None}
            sound += (
                probabilities is not None
                and set(probabilities) == names
                and abs(sum(probabilities.values()) - 1) < TOLERANCE
                and probabilities[chosen] == propensity
            )
    return sound


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    requests = 100 if arguments.quick else REQUESTS
    asks = [task.prompt for task in tasks(arguments.seed, "train", requests)]
    with (
        serving(arguments.seed, latency_scale=0.0) as sandbox,
        instance(toml_text(arguments.seed, urlsplit(sandbox).port or 0)) as served,
    ):
        began = time.perf_counter()
        errors = asyncio.run(send_all(served.url, asks))
        seconds = time.perf_counter() - began
        url = EmbeddedPostgres(served.home).url
        await_shipped(url, served.home / "journal")
        ledger = read_ledger(url, ())
        vectors = sound_vectors(url)
    return {
        "requests": requests,
        "decisions": ledger.rows,
        "vectors_ok": vectors,
        "outcomes": ledger.rows - ledger.without_outcome,
        "failed": sum(error is not None for error in errors),
        "errors": sorted({error for error in errors if error}),
        "seconds": round(seconds, 2),
    }


if __name__ == "__main__":
    run(__doc__, measure, f"100 requests in place of {REQUESTS:,}")
