"""A tiny Qwen3 with a vocabulary trained on the spot, and a small world of tasks whose best worker differs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distill.table import Arm, RewardTable

WORDS = {
    "sums": ("What is {} plus {}?", "Add {} and {} please.", "Compute {} + {}."),
    "code": ("Write a python function that returns {} of {}", "def solve(a{}, b{}): return", "Fix this code: x{}={};"),
    "words": ("Who wrote the book about {} and {}", "Which city is near {} or {}", "When was {} made in {}"),
}
BEST = {"sums": 0, "code": 1, "words": 2}


def make_table(size: int = 300, seed: int = 0, arms: int = 4, untried: float = 0.0) -> RewardTable:
    """Three tasks; worker i is right with .9 on its own, .35 elsewhere; the last worker is right with .5."""
    rng = np.random.default_rng(seed)
    tasks = [str(rng.choice(list(WORDS))) for _ in range(size)]
    texts = [str(rng.choice(WORDS[task])).format(*rng.integers(2, 99, 2)) + f" ({n})" for n, task in enumerate(tasks)]
    chance = np.full((size, arms), 0.35)
    chance[:, -1] = 0.5
    for row, task in enumerate(tasks):
        chance[row, BEST[task]] = 0.9
    rewards = (rng.random((size, arms)) < chance).astype(np.float64)
    rewards[rng.random((size, arms)) < untried] = np.nan
    names = tuple(f"worker-{number}" for number in range(arms))
    return RewardTable(
        ids=tuple(map(str, range(size))),
        texts=tuple(texts),
        arms=tuple(Arm(f"endpoint-{name}", name, f"card of {name}", 1.0 + n) for n, name in enumerate(names)),
        rewards=rewards,
        tasks=tuple(tasks),
        splits=(None,) * size,
    )


@pytest.fixture(scope="session")
def table() -> RewardTable:
    return make_table()


@pytest.fixture(scope="session")
def world() -> Any:
    """The function that makes such tables."""
    return make_table


@pytest.fixture(scope="session")
def tiny_qwen(tmp_path_factory: pytest.TempPathFactory, table: RewardTable) -> Path:
    """A saved Qwen3 of 3 layers and width 64 with random weights, and its tokenizer."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3Model

    folder = tmp_path_factory.mktemp("tiny-qwen")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=600, special_tokens=["<|endoftext|>"], initial_alphabet=alphabet)
    tokenizer.train_from_iterator(table.texts, trainer)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|endoftext|>").save_pretrained(folder)
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=600, hidden_size=64, intermediate_size=128, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=2, head_dim=16, max_position_embeddings=512,
    )  # fmt: skip
    Qwen3Model(config).save_pretrained(folder)
    return folder


@pytest.fixture
def run_job(empty_database: str, engine: Any, tmp_path: Path) -> Any:
    """`run_job(kind, params, project)`: a job begun and run in this process to its end; its view."""
    from pointsman.config import Settings
    from pointsman.jobs.attempt import attempt
    from pointsman.jobs.claiming import claim
    from pointsman.jobs.context import JobContext
    from pointsman.jobs.ending import finish
    from pointsman.jobs.store import Jobs
    from pointsman.jobs.workplace import Workplace, new_owner

    settings = Settings.read({"POINTSMAN_HOME": str(tmp_path / "home")}, cwd=tmp_path)
    place = Workplace.read(settings, database_url=empty_database)

    def run(kind: str, params: dict[str, Any], project: str) -> Any:
        jobs = Jobs(engine)
        begun = jobs.start(kind, params, project_id=project, asked_by="test")
        held = claim(engine, begun.id, new_owner())
        assert held is not None
        with JobContext.open(place, engine, held) as context:
            end = attempt(context)
        finish(engine, end)
        return jobs.get(begun.id)

    run.place = place  # type: ignore[attr-defined]
    return run


@pytest.fixture
def keep_labels(engine: Any, run_job: Any) -> Any:
    """`keep_labels(table, project)`: a label set of a reward table, stored as a job stores it; its id and itself."""
    from datetime import UTC, datetime, timedelta

    from distill.jobs.found import insert_labels
    from distill.labels.evidence import Asked, Cell, gather
    from distill.labels.make import LabelConfig, make_labels
    from distill.labels.store import to_files
    from pointsman.ids import new_id

    def keep(table: RewardTable, project: str) -> Any:
        start = datetime(2026, 5, 1, tzinfo=UTC)
        asked = [
            Asked(id, text, id, start + timedelta(minutes=n), "probe", table.tasks[n])
            for n, (id, text) in enumerate(zip(table.ids, table.texts, strict=True))
        ]
        cells = [
            Cell(n, arm.endpoint, float(table.rewards[n, k]), "verifier")
            for n in range(len(table))
            for k, arm in enumerate(table.arms)
        ]
        labels = make_labels(gather(asked, cells, table.arms), LabelConfig(encoder="text", toy=True))
        data, manifest = to_files(labels)
        files = run_job.place.files()
        values = {
            "id": new_id(), "project_id": project, "job_id": None, "hash": labels.hash, "rows": len(labels),
            "data_hash": files.put(data, ".parquet").hash, "manifest_hash": files.put(manifest, ".json").hash,
            "manifest": labels.manifest(), "created_at": start,
        }  # fmt: skip
        with engine.begin() as connection:
            return insert_labels(connection, values), labels

    return keep
