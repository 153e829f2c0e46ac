"""A Qwen3 of a few million parameters with a tokenizer of its own: a conductor for worlds of the sandbox.

It begins without any training, so what it learns it learns from examples. Its word embeddings begin as MiniLM's word
pieces, projected to its width: a word that no example had then stands near words that some had.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distill.features.sentence import minilm_folder
from pointsman.sandbox.cards import cards
from pointsman.sandbox.tasks import tasks
from pointsman.sandbox.team_tasks import team_tasks

if TYPE_CHECKING:
    import torch

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""ChatML, as Qwen's own template writes it without tools and thinking."""
_PAD, _START, _END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
_PLANS = (
    'workers = ["A", "B", "C", "D", "E", "F", "G"]\nsubtasks = ["Do part 1 of the request.", "Do part 2 of the '
    'request.", "Do part 3 of the request."]\naccess = ["none", [1], "all"]',
    'workers = ["A"]\nsubtasks = ["Do the request."]\naccess = ["none"]\nworkers = ["B", "A"]\naccess = ["none", [1]]',
)
_FIRST_WORD = 1_996
"""Where BERT's vocabulary turns from letters to words, the most frequent first."""


@dataclass(frozen=True)
class TinyConfig:
    """Of 2 to 8 million parameters: with the defaults 2.1."""

    vocabulary: int = 7_000
    width: int = 160
    layers: int = 3
    heads: int = 4
    inner: int = 448
    words: int = 4_000
    longest: int = 1_024
    seed: int = 1


def sandbox_texts(worlds: Sequence[int], n: int = 200) -> Iterator[str]:
    """Cards and training tasks of some worlds: what a tokenizer for the sandbox is trained on."""
    for world in worlds:
        yield from cards(world, "truthful").values()
        for stream in (tasks(world, "train", n), team_tasks(world, "train", n)):
            yield from (json.dumps(task.prompt, ensure_ascii=False) for task in stream)


def make_tiny(folder: Path, config: TinyConfig, texts: Iterable[str]) -> Path:
    """Writes tokenizer, template and an untrained model to `folder`, loadable through the Auto classes."""
    import torch
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

    trained = _tokenizer(config, texts)
    tokenizer: Any = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=trained, eos_token=_END, pad_token=_PAD, additional_special_tokens=[_START]
    )
    tokenizer.chat_template = TEMPLATE
    torch.manual_seed(config.seed)
    model: Any = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer),
            hidden_size=config.width,
            intermediate_size=config.inner,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            num_key_value_heads=config.heads,
            head_dim=config.width // config.heads,
            max_position_embeddings=config.longest,
            tie_word_embeddings=True,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            bos_token_id=None,
        )
    )
    with torch.no_grad():
        _from_words(model.get_input_embeddings().weight, tokenizer)
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _tokenizer(config: TinyConfig, texts: Iterable[str]) -> Any:
    """Byte-level BPE, numbers digit by digit; common English words are whole whether the texts have them or not."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=config.vocabulary,
        special_tokens=[_PAD, _START, _END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    words = [" " + " ".join(_common_words(config.words))] * 5
    tokenizer.train_from_iterator([*texts, *_PLANS * 50, *words], trainer)
    return tokenizer


def _common_words(n: int) -> list[str]:
    vocabulary = json.loads((minilm_folder() / "tokenizer.json").read_text())["model"]["vocab"]
    ranked = sorted(vocabulary, key=vocabulary.__getitem__)[_FIRST_WORD:]
    return [word for word in ranked if word.isascii() and word.isalpha()][:n]


def _from_words(embedding: torch.Tensor, tokenizer: Any) -> None:
    """Tokens that are words begin as MiniLM's embedding of them, on its first principal axes."""
    import torch
    from safetensors.torch import load_file

    weights = load_file(minilm_folder() / "model.safetensors")
    pieces = next(value for name, value in weights.items() if name.endswith("word_embeddings.weight")).float()
    vocabulary = json.loads((minilm_folder() / "tokenizer.json").read_text())["model"]["vocab"]
    centred = pieces - pieces.mean(0)
    axes = torch.linalg.eigh(centred.T @ centred).eigenvectors[:, -embedding.shape[1] :]
    placed = centred @ axes
    placed *= embedding.std() / placed.std()
    for token, number in tokenizer.get_vocab().items():
        word = token.replace("Ġ", "").lower()
        if len(word) > 1 and word.isalpha() and word in vocabulary:
            embedding[number] = placed[vocabulary[word]]
