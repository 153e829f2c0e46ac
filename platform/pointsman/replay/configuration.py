"""A `pointsman.toml` whose pool is a data set's replay workers."""

from __future__ import annotations

import json
from pathlib import Path

from pointsman.pool import Price, Worker
from pointsman.replay.models import read_models, replay_pool
from pointsman.replay.source import Folder

_HEAD = """\
# Replay workers of the data set {dataset}: the models answer its recorded queries, and only those.
# Serve them with: pointsman import FOLDER --name {dataset} --serve {port}

[router]
chain = ["rule", "default"]
default = {default}
# For the prompted router: chain = ["harness", "rule", "default"], and
# model = "…", base_url = "https://…/v1", api_key_env = "…"
"""


def toml_text(folder: Path, port: int, *, dataset: str, host: str = "127.0.0.1") -> str:
    """The configuration for the models of `folder`, served on `port`. The first by name is the default worker."""
    source = Folder(folder)
    numbers = {query.id: number for number, query in enumerate(source.queries())}
    models = {outcome.model for outcome in source.outcomes(numbers)}
    return pool_toml(replay_pool(models, read_models(folder), dataset).workers, port, dataset=dataset, host=host)


def pool_toml(workers: tuple[Worker, ...], port: int, *, dataset: str, host: str = "127.0.0.1") -> str:
    """The same for workers that are known already."""
    head = _HEAD.format(dataset=dataset, port=port, default=_quoted(workers[0].name))
    return head + "".join(_worker(worker, f"http://{host}:{port}/v1") for worker in workers)


def _worker(worker: Worker, base_url: str) -> str:
    # `model` is the recorded name: the replay server knows no other.
    lines = [
        "",
        "[[workers]]",
        f"name = {_quoted(worker.name)}",
        f"description = {_quoted(worker.card)}",
        f"model = {_quoted(worker.name)}",
        f"base_url = {_quoted(base_url)}",
    ]
    if worker.price is not None:
        lines.append(f"price = {_price(worker.price)}")
    if worker.context_window is not None:
        lines.append(f"context_window = {worker.context_window}")
    return "\n".join(lines) + "\n"


def _price(price: Price) -> str:
    cached = "" if price.cached_input == price.input else f", cached_input = {price.cached_input:f}"
    return f"{{ input = {price.input:f}, output = {price.output:f}{cached} }}"


def _quoted(text: str) -> str:
    # A JSON string is a TOML basic string, but for DEL, which TOML wants escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
