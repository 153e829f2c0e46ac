"""What does the router server add to a forward pass, and what does batching bring under load?

A learned router on a Qwen3 of random weights (speed only; its choices mean nothing) and an index head over nine
workers, served over its unix socket as gateways ask it. Each text is new, so no cached state helps.

`bare_ms`, `served_ms`: median milliseconds of one forward pass in this process (batch 1, tokenising and head
included) and of one question over the socket, taken in turns; `latency_ratio` is the median of their ratios.
`alone_per_s`: questions a second one after another; `together_per_s`: sixteen at a time, gathered into batches;
`batching_gain` is their ratio.
`cached_ms`: a text that was asked before.

Run: python benchmarks/router_server.py [--size tiny|small|qwen] [--tokens N] [--quick] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import statistics
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from common.report import run

from distill.arrays import Floats
from distill.router_model.backbone import BackboneConfig, load_backbone
from distill.router_model.checkpoint import LearnedRouter as Loaded
from distill.router_model.heads import IndexHead
from distill.router_model.prompt import PromptConfig
from distill.server.models import StateCache
from distill.server.serve import serve
from harness.routing.base import Ask, RouterVersion
from harness.routing.learned import LearnedRouter
from pointsman.pool import Endpoint, Worker

SIZES = {"tiny": (3, 64, 128, 4), "small": (8, 512, 1536, 8), "qwen": (28, 1024, 3072, 16)}
"""Layers, width, inner width, heads; `qwen` is Qwen3-0.6B's."""
WORDS = (
    "what",
    "which",
    "how",
    "sum",
    "code",
    "river",
    "letter",
    "translate",
    "prove",
    "list",
    "sort",
    "price",
    "city",
)
TOGETHER = 16


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp(prefix="rs-"))
    try:
        make_backbone(folder / "model", arguments.size)
        config = BackboneConfig(str(folder / "model"), None, "penultimate", PromptConfig("tagged"))
        backbone = load_backbone(config)
        pool = tuple(Worker(f"w{n}", "card", f"m{n}", (Endpoint("http://127.0.0.1:1"),)) for n in range(9))
        head = IndexHead(backbone.width, [worker.endpoint_hash for worker in pool])
        rounds = 5 if arguments.quick else arguments.rounds
        found = asyncio.run(timed(Loaded(backbone, head), pool, folder / "s", arguments, rounds))
    finally:
        shutil.rmtree(folder)
    parameters = sum(parameter.numel() for parameter in backbone.model.parameters())
    return {"size": arguments.size, "parameters": parameters, "tokens": arguments.tokens, "rounds": rounds, **found}


async def timed(
    router: Loaded, pool: tuple[Worker, ...], socket: Path, arguments: argparse.Namespace, rounds: int
) -> dict[str, Any]:
    states = StateCache(10_000)

    def score(version: str, texts: list[str]) -> tuple[tuple[str, ...], Floats]:
        import torch

        rows = states.through(version, texts, router.states)
        with torch.inference_mode():
            scores: Floats = router.head(torch.as_tensor(rows)).numpy()
        return router.head.endpoints, scores

    ready = asyncio.Event()
    task = asyncio.create_task(serve(socket, score, ready))
    await ready.wait()
    client = LearnedRouter(RouterVersion("learned", {}), socket, deadline=600)
    rng = np.random.default_rng(arguments.seed)

    def text() -> str:
        return " ".join(rng.choice(WORDS, arguments.tokens).tolist())

    try:
        router.logits([text()])
        await client.score(Ask(text()), pool, 0)
        pairs = [(bare(router, text()), await one(client, pool, text())) for _ in range(rounds)]
        known = text()
        await client.score(Ask(known), pool, 0)
        cached = [await one(client, pool, known) for _ in range(20)]
        asked = rounds if arguments.quick else 2 * TOGETHER
        alone = sum([await one(client, pool, text()) for _ in range(asked)])
        began = time.perf_counter()
        room = asyncio.Semaphore(TOGETHER)

        async def together() -> None:
            async with room:
                await client.score(Ask(text()), pool, 0)

        await asyncio.gather(*(together() for _ in range(2 * TOGETHER)))
        seconds = time.perf_counter() - began
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    return {
        "bare_ms": round(1000 * statistics.median(first for first, _ in pairs), 3),
        "served_ms": round(1000 * statistics.median(second for _, second in pairs), 3),
        "latency_ratio": round(statistics.median(second / first for first, second in pairs), 3),
        "cached_ms": round(1000 * statistics.median(cached), 3),
        "alone_per_s": round(asked / alone, 2),
        "together_per_s": round(2 * TOGETHER / seconds, 2),
        "batching_gain": round(2 * TOGETHER / seconds / (asked / alone), 3),
    }


def bare(router: Loaded, text: str) -> float:
    began = time.perf_counter()
    router.logits([text])
    return time.perf_counter() - began


async def one(client: LearnedRouter, pool: tuple[Worker, ...], text: str) -> float:
    began = time.perf_counter()
    await client.score(Ask(text), pool, 0)
    return time.perf_counter() - began


def make_backbone(folder: Path, size: str) -> None:
    """A Qwen3 of random weights, and a tokenizer of whole words."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3Model

    layers, width, inner, heads = SIZES[size]
    vocabulary = {"<unk>": 0, "<|endoftext|>": 1} | {word: n + 2 for n, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|endoftext|>", unk_token="<unk>")
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    words = 151_936 if size == "qwen" else 1_024
    config = Qwen3Config(
        vocab_size=words, hidden_size=width, intermediate_size=inner, num_hidden_layers=layers,
        num_attention_heads=heads, num_key_value_heads=heads // 2, head_dim=128 if size == "qwen" else width // heads,
    )  # fmt: skip
    Qwen3Model(config).save_pretrained(folder)


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--size", choices=tuple(SIZES), default="qwen", help="of the backbone")
    parser.add_argument("--tokens", type=int, default=48, help="words of each text")
    parser.add_argument("--rounds", type=int, default=15, help="pairs of a bare and a served pass")


if __name__ == "__main__":
    run(__doc__, measure, "five pairs, few questions", options)
