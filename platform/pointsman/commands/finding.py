"""Finds what `pointsman init` can put in the file: keys in the environment, servers on this machine."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pointsman.commands.providers import PROVIDERS, Offer
from pointsman.upstream.listing import ListedModel, NoAnswer, list_models

PROBE_SECONDS = 0.5
MOST_MODELS = 6
"""A local server may hold dozens of models; the file starts with these few."""

_PLAIN = re.compile(r"[!-~]{1,200}")
_NOT_CHAT = re.compile(r"embed|rerank|whisper|tts|bge-|minilm", re.IGNORECASE)
_CODE = re.compile(r"cod(e|er|ing)|starcoder|devstral", re.IGNORECASE)
_MATH = re.compile(r"math|-r1|qwq|reason", re.IGNORECASE)


@dataclass(frozen=True)
class LocalServer:
    """A server that may run on this machine, by its OpenAI-compatible address."""

    title: str
    base_url: str


LOCAL_SERVERS = (
    LocalServer("Ollama", "http://127.0.0.1:11434/v1"),
    LocalServer("vLLM", "http://127.0.0.1:8000/v1"),
)


def find_offers(
    environment: Mapping[str, str],
    servers: Sequence[LocalServer] = LOCAL_SERVERS,
    timeout: float = PROBE_SECONDS,
) -> list[Offer]:
    """Every worker that can be offered, providers first, names made unique."""
    offers = [offer for provider in PROVIDERS if environment.get(provider.api_key_env) for offer in provider.offers()]
    taken = {offer.name for offer in offers}
    with ThreadPoolExecutor(max_workers=max(1, len(servers))) as pool:
        for server, models in zip(servers, pool.map(lambda s: _models(s, timeout), servers), strict=True):
            for model in models:
                name = _name(model.id, taken)
                taken.add(name)
                offers.append(_local_offer(server, model, name))
    return offers


def _models(server: LocalServer, timeout: float) -> list[ListedModel]:
    """The server's chat models; none where it does not answer or is something else."""
    try:
        listing = list_models(server.base_url, timeout=timeout)
    except NoAnswer:
        return []
    usable = [m for m in listing.models or () if _PLAIN.fullmatch(m.id) and not _NOT_CHAT.search(m.id)]
    return usable[:MOST_MODELS]


def _local_offer(server: LocalServer, model: ListedModel, name: str) -> Offer:
    return Offer(
        name=name,
        model=model.id,
        base_url=server.base_url,
        description=_description(server.title, model.id),
        source=f"{server.title} on this machine",
        context_window=model.context_window,
    )


def _description(server: str, model: str) -> str:
    if _CODE.search(model):
        bent = "Writing, explaining and fixing code"
    elif _MATH.search(model):
        bent = "Mathematics and step-by-step reasoning"
    else:
        bent = "General questions, writing and summaries"
    return f"{bent}. The model {model}, run by {server} on this machine: text stays here, and no provider bills for it."


def _name(model: str, taken: set[str]) -> str:
    """A worker's name for a model's id: `qwen2.5-coder-7b` for `/models/Qwen2.5-Coder-7B`."""
    last = model.rstrip("/").rpartition("/")[2].removesuffix(":latest").lower()
    base = re.sub(r"[^a-z0-9._:-]+", "-", last).strip("-._:")[:80] or "local"
    if base in ("pointsman", "default", "none") or base.startswith(("pointsman-", "pointsman@")):
        base = f"local-{base}"
    name, number = base, 2
    while name in taken:
        name, number = f"{base}-{number}", number + 1
    return name
