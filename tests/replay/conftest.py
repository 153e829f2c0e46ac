"""Small recorded data sets, made in a temporary folder from plain rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

Rows = list[dict[str, Any]]

QUERIES: Rows = [
    {"id": 1, "text": "What is 2 + 2?", "task": "sums", "split": "train", "metric": "exact"},
    {"id": 2, "text": "Name a prime above 90.", "task": "sums", "split": "test", "metric": "exact"},
    {"id": 3, "text": "Translate « été ».", "task": "words", "split": "test", "metric": None},
]
OUTCOMES: Rows = [
    {"query_id": 2, "model": "big", "score": 0.1, "response": "97", "cost": 0.0003, "input_tokens": 7,
     "output_tokens": 1},
    {"query_id": 1, "model": "big", "score": 1.0, "response": "4", "cost": 0.0002, "input_tokens": 6,
     "output_tokens": 1},
    {"query_id": 1, "model": "small", "score": 0.7, "response": "four", "cost": 0.00001, "input_tokens": 6,
     "output_tokens": 1},
    {"query_id": 3, "model": "small", "score": 0.3, "response": "summer", "cost": 0.00002, "input_tokens": 9,
     "output_tokens": 2},
    {"query_id": 1, "model": "small", "score": 0.2, "response": "5", "cost": 0.00001, "input_tokens": 6,
     "output_tokens": 1},
    {"query_id": 3, "model": "big", "score": 0.3, "response": None, "cost": 0.0004, "input_tokens": 9,
     "output_tokens": 1},
]  # fmt: skip
MODELS = {
    "big": {"input_price": 2.5, "output_price": 10, "size": "70B", "model": "vendor/big-70b"},
    "unused": {"input_price": 1, "output_price": 1},
}


def write_table(folder: Path, stem: str, rows: Rows, form: str) -> None:
    if form == "parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), folder / f"{stem}.parquet")
        return
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (folder / f"{stem}.jsonl").write_text(lines, encoding="utf-8")


@pytest.fixture
def make_folder(tmp_path: Path) -> Callable[..., Path]:
    """Writes a data set and returns its folder; what is not given is the small one above."""

    def make(
        queries: Rows = QUERIES,
        outcomes: Rows = OUTCOMES,
        *,
        models: dict[str, Any] | None = None,
        form: str = "parquet",
        name: str = "small-set",
    ) -> Path:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        write_table(folder, "queries", queries, form)
        write_table(folder, "outcomes", outcomes, form)
        if models is not None:
            (folder / "models.json").write_text(json.dumps(models))
        return folder

    return make


@pytest.fixture
def models() -> dict[str, Any]:
    return MODELS
