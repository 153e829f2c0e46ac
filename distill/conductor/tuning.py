"""What of a conductor is trained: everything, low-rank updates (LoRA), or singular values (SVF); merging and saving.

A trained conductor is saved merged, as plain safetensors that any server loads, beside its adapter. Where input and
output embeddings are tied, an adapter on either changes both or neither: merging is checked against the adapter's own
outputs, and one that does not agree is not saved.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from distill.files import write_json
from pointsman.errors import BrokenInvariant, UserError

Tuning = Literal["full", "lora", "svf"]
AGREEMENT = 1e-3
"""The largest difference of logits between merged and adapter outputs that is taken."""
_TIED = ("embed_tokens", "lm_head")


def tuned(model: Any, tuning: Tuning, *, rank: int = 16, layers: tuple[int, ...] = ()) -> Any:
    """The model with what is to be trained made trainable; outputs are the same as before."""
    if tuning == "full":
        model.requires_grad_(True)
        return model
    if tuning == "svf":
        from distill.svf import SvfConfig, adapt, choose

        return adapt(
            model, SvfConfig(target_modules=choose(model, layers=list(layers)) if layers else _matrices(model))
        )
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=_matrices(model), task_type="CAUSAL_LM")
    return get_peft_model(model, config)


def merged(model: Any) -> Any:
    """The plain model with the adapter folded in; a plain model is itself. Checked on random tokens."""
    import torch

    if not hasattr(model, "merge_and_unload"):
        return model
    _refuse_tied(model)
    ids = torch.arange(3, 3 + 24).remainder(model.get_input_embeddings().weight.shape[0])[None]
    was_training = model.training
    model.eval()
    with torch.inference_mode():
        before = model(input_ids=ids).logits
    plain = model.merge_and_unload()
    with torch.inference_mode():
        after = plain(input_ids=ids).logits
    apart = float((before - after).abs().max())
    if not apart <= AGREEMENT:
        raise BrokenInvariant(f"merged and adapter outputs differ by {apart:.2g}, more than {AGREEMENT}")
    plain.train(was_training)
    return plain


def save(model: Any, tokenizer: Any, folder: Path, about: dict[str, Any]) -> Path:
    """Merged weights, tokenizer and `conductor.json`; the adapter beside them where there is one."""
    folder.mkdir(parents=True, exist_ok=True)
    if hasattr(model, "merge_and_unload"):
        model.save_pretrained(folder / "adapter", safe_serialization=True)
    merged(model).save_pretrained(folder, safe_serialization=True)
    tokenizer.save_pretrained(folder)
    write_json(folder / "conductor.json", about)
    return folder


def _matrices(model: Any) -> list[str]:
    """Every linear layer but the output head: with tied embeddings that is the input table too."""
    from torch import nn

    names = {name.rsplit(".", 1)[-1] for name, part in model.named_modules() if isinstance(part, nn.Linear)}
    found = sorted(names - set(_TIED))
    if not found:
        raise UserError("the model has no linear layers that an adapter could be put on")
    return found


def _refuse_tied(model: Any) -> None:
    """Merging into a tied matrix would change the other end without anybody having trained that."""
    if not getattr(model.config, "tie_word_embeddings", False):
        return
    chosen = getattr(model.peft_config[model.active_adapter], "target_modules", None) or ()
    touched = [name for name in chosen if name.rsplit(".", 1)[-1] in _TIED]
    if touched:
        raise UserError(
            f"{', '.join(touched)}: input and output embeddings are tied; an adapter on one cannot be merged without "
            "changing the other"
        )
