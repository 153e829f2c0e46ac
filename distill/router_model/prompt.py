"""How a request becomes the text that a backbone reads. The template's hash is kept with every checkpoint.

The default is the plain form that sentence encoders and base models take alike. `chat` asks the
tokenizer's own chat template, which must exist.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pointsman.errors import UserError
from pointsman.hashing import content_hash

Form = Literal["plain", "tagged", "chat"]
SYSTEM = "Choose the worker that will answer this request best."


@dataclass(frozen=True)
class PromptConfig:
    """`tagged` puts the request between marks, so that a causal model's last tokens are always the same."""

    form: Form = "plain"
    max_tokens: int = 512
    head_share: float = 0.67


def render(text: str, form: Form, tokenizer: Any) -> str:
    """The text of one request, before it is tokenised."""
    if form == "plain":
        return text
    if form == "tagged":
        return f"{SYSTEM}\n\nRequest:\n{text}\n\nWorker:"
    if not getattr(tokenizer, "chat_template", None):
        raise UserError("this backbone's tokenizer has no chat template; use the form `tagged` or `plain`")
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}]
    rendered: str = tokenizer.apply_chat_template(
        messages, tokenize=False, add_generation_prompt=True, enable_thinking=False
    )
    return rendered


def template_hash(config: PromptConfig, tokenizer: Any) -> str:
    """Of everything that turns a request into tokens, the tokenizer's vocabulary apart."""
    chat = getattr(tokenizer, "chat_template", None) if config.form == "chat" else None
    return content_hash([1, config.form, config.max_tokens, config.head_share, SYSTEM, chat])


def tokenizer_hash(tokenizer: Any) -> str:
    """Of the vocabulary and of what the tokenizer makes of a text that has a bit of everything."""
    probe = "Aé 17 + 23 = ?\n\tdef f(x): return x\u2003😀 <|endoftext|>"
    return content_hash([sorted(tokenizer.get_vocab().items()), tokenizer(probe)["input_ids"]])


def shortened(numbers: list[int], limit: int, head_share: float) -> list[int]:
    """At most `limit` tokens: the head and the tail, since an ask is stated first and sharpened last."""
    if len(numbers) <= limit:
        return numbers
    head = max(1, min(limit - 1, int(limit * head_share)))
    return numbers[:head] + numbers[len(numbers) - (limit - head) :]
