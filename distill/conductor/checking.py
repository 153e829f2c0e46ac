"""What can be wrong with a checkpoint, said before training begins.

Weights are safetensors only and no code of a checkpoint runs. Its chat template is a program in Jinja: transformers
compiles it in an `ImmutableSandboxedEnvironment`, which is looked at here rather than trusted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from distill.files import only_safetensors
from distill.router_model.backbone import resolve
from pointsman.errors import UserError

_TRIED = [{"role": "user", "content": 'request "What is 17 times 23?"\nA Good at sums. A'}]
_PLAN = 'workers = ["A"]\nsubtasks = ["Do the request."]\naccess = ["none"]'


def load_causal(name: str, revision: str | None = None) -> tuple[Any, Any, dict[str, Any]]:
    """(model, tokenizer, what identifies them) of a folder or hub name, on the CPU in float32, checked."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder, identity = resolve(name, revision)
    tokenizer_there(folder)
    only_safetensors(folder)
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        model = AutoModelForCausalLM.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False, use_safetensors=True, dtype="float32"
        )
    except (ValueError, OSError, KeyError) as error:
        raise UserError(f"{name}: cannot be loaded as a causal language model: {error}") from error
    check(model, tokenizer)
    return model, tokenizer, identity


def tokenizer_there(folder: Path) -> None:
    """Raises where a folder has no tokenizer of its own."""
    if not any((folder / name).is_file() for name in ("tokenizer.json", "tokenizer.model", "vocab.json")):
        raise UserError(f"{folder}: expected a tokenizer (tokenizer.json, tokenizer.model or vocab.json); it has none")


def check(model: Any, tokenizer: Any) -> None:
    """Raises `UserError` for what would train a model that cannot be served, or that learns to say nothing."""
    rows = model.get_input_embeddings().weight.shape[0]
    if len(tokenizer) > rows:
        raise UserError(
            f"tokenizer: it has {len(tokenizer)} tokens, the model only {rows} embeddings; it belongs to another model"
        )
    if not tokenizer.chat_template:
        raise UserError("tokenizer: expected a chat template; take an instruct model, or put chat_template.jinja there")
    if tokenizer.eos_token_id is None:
        raise UserError("tokenizer: expected an end token (eos_token); without one no plan would ever end")
    if tokenizer.pad_token_id is None:
        raise UserError("tokenizer: expected a pad token; set pad_token to one that is not eos_token")
    if tokenizer.pad_token_id == tokenizer.eos_token_id:
        raise UserError(
            "tokenizer: pad token and end token are the same: padding is left out of the loss, so that the end of a "
            "plan would never be learnt; set pad_token to another one"
        )
    _check_template(tokenizer)


def _check_template(tokenizer: Any) -> None:
    from jinja2 import TemplateError

    try:
        asked = tokenizer.apply_chat_template(_TRIED, tokenize=False, add_generation_prompt=True)
        whole = tokenizer.apply_chat_template([*_TRIED, {"role": "assistant", "content": _PLAN}], tokenize=False)
    except TemplateError as error:
        raise UserError(f"tokenizer: its chat template cannot be used: {error}") from error
    if not whole.startswith(asked):
        raise UserError(
            "tokenizer: its chat template writes a prompt that its own transcript does not begin with (thinking "
            "blocks, say): training and serving would differ"
        )
    if _TRIED[0]["content"] not in asked or _PLAN not in whole:
        raise UserError("tokenizer: its chat template leaves out what is said")
    ids = tokenizer(whole, add_special_tokens=False)["input_ids"]
    if _PLAN not in tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False):
        raise UserError("tokenizer: a plan does not come back from its tokens as it was; expected one without loss")
    if tokenizer.unk_token_id is not None and tokenizer.unk_token_id in ids:
        raise UserError("tokenizer: it does not know characters that plans are written in")
