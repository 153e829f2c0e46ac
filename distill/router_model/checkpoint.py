"""A learned router on disk: `learned.json`, `head.safetensors`, `extras.safetensors` where it has extras,
and `adapter/` where SVF or LoRA was trained.

The JSON names the backbone by commit or hash of its files, the hashes of template and tokenizer, the
position that is read, and the endpoint version of every column. Loading checks all of it and refuses a
backbone that would give other states than the head was trained on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from distill.arrays import Floats
from distill.features.extras import Extras, ExtrasConfig
from distill.files import file_hash, read_json, write_json
from distill.router_model.backbone import Backbone, BackboneConfig, load_backbone
from distill.router_model.prompt import PromptConfig
from pointsman.errors import UserError

if TYPE_CHECKING:
    from distill.router_model.heads import Head

FORMAT = 1
JSON_FILE, HEAD_FILE, EXTRAS_FILE, ADAPTER = "learned.json", "head.safetensors", "extras.safetensors", "adapter"
_CHECKED = ("commit", "files", "position", "template", "tokenizer")


@dataclass(eq=False)
class LearnedRouter:
    """A backbone and the head that reads its states, times `scale`, with `extras` beside them where given."""

    backbone: Backbone
    head: Head
    scale: float = 1.0
    extras: Extras | None = None
    notes: dict[str, Any] = field(default_factory=dict)

    def states(self, texts: Sequence[str], cache: Path | None = None) -> Floats:
        """What the head reads, [n, d] or [n, d + e]."""
        scaled = self.backbone.states(texts, cache) * np.float32(self.scale)
        return scaled if self.extras is None else np.hstack([scaled, self.extras.rows(texts)])

    def logits(self, texts: Sequence[str], cache: Path | None = None) -> Floats:
        """[n, k] over the head's endpoint versions, unmasked."""
        import torch

        device = next(self.head.parameters()).device
        with torch.inference_mode():
            found: Floats = self.head(torch.as_tensor(self.states(texts, cache)).to(device)).cpu().numpy()
        return found


def save_router(folder: Path, router: LearnedRouter) -> str:
    """Writes all files, the JSON last, and gives the artifact hash."""
    from safetensors.numpy import save_file as save_numpy
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    head = router.head
    save_file({name: tensor.contiguous() for name, tensor in head.state_dict().items()}, folder / HEAD_FILE)
    if router.extras is not None:
        save_numpy({name: np.ascontiguousarray(t) for name, t in router.extras.tensors().items()}, folder / EXTRAS_FILE)
    adapted = hasattr(router.backbone.model, "peft_config")
    if adapted:
        router.backbone.model.save_pretrained(folder / ADAPTER)
    content = {
        "format": FORMAT,
        "kind": "learned",
        "head": head.kind,
        "temperature": getattr(head, "temperature", None),
        "scale": router.scale,
        "extras": None if router.extras is None else asdict(router.extras.config),
        "endpoints": list(head.endpoints),
        "config": asdict(router.backbone.config),
        "identity": router.backbone.identity,
        "files": {name: file_hash(folder / name) for name in _tensor_files(adapted, router.extras is not None)},
        "notes": router.notes,
    }
    write_json(folder / JSON_FILE, content)
    return file_hash(folder / JSON_FILE)


def load_router(folder: Path, *, backbone_folder: str | None = None, device: str = "cpu") -> LearnedRouter:
    """Raises `UserError` where a file is not the one that was saved, or the backbone is another.

    `backbone_folder` is where the backbone lies now, if not where it was; its files must be the same.
    """
    content = read_json(folder / JSON_FILE)
    if content.get("format") != FORMAT or content.get("kind") != "learned":
        raise UserError(f"{folder / JSON_FILE}: not a learned router of format {FORMAT}")
    for name, expected in content["files"].items():
        if not (folder / name).is_file() or file_hash(folder / name) != expected:
            raise UserError(f"{folder / name}: its bytes are not those that were saved")
    raw = content["config"]
    prompt = PromptConfig(**raw["prompt"])
    name = backbone_folder or raw["name"]
    config = BackboneConfig(name, content["identity"]["commit"], raw["position"], prompt, device)
    backbone = load_backbone(config)
    check_identity(content["identity"], backbone.identity)
    head = _read_head(folder / HEAD_FILE, content)
    if f"{ADAPTER}/adapter_model.safetensors" in content["files"]:
        backbone.model = _adapted(backbone.model, folder / ADAPTER)
    return LearnedRouter(backbone, head.to(device), content["scale"], _read_extras(folder, content), content["notes"])


def check_identity(saved: dict[str, Any], present: dict[str, Any]) -> None:
    """Raises `UserError` naming what differs between the backbone trained on and the one that is here."""
    changed = [key for key in _CHECKED if saved.get(key) != present.get(key)]
    if changed:
        said = "; ".join(f"{key} was {saved.get(key)!r}, is {present.get(key)!r}" for key in changed)
        raise UserError(f"the backbone is not the one this router was trained on: {said}")


def _tensor_files(adapted: bool, extras: bool) -> list[str]:
    names = ["adapter_model.safetensors", "adapter_config.json"] if adapted else []
    return [HEAD_FILE, *([EXTRAS_FILE] if extras else []), *(f"{ADAPTER}/{name}" for name in names)]


def _read_extras(folder: Path, content: dict[str, Any]) -> Extras | None:
    from safetensors.numpy import load_file

    if content["extras"] is None:
        return None
    return Extras.restored(load_file(folder / EXTRAS_FILE), ExtrasConfig(**content["extras"]))


def _read_head(file: Path, content: dict[str, Any]) -> Head:
    from safetensors.torch import load_file

    from distill.router_model.heads import CardHead, IndexHead

    tensors = load_file(file)
    endpoints = content["endpoints"]
    head: Head
    if content["head"] == "index":
        head = IndexHead(tensors["arms"].shape[1], endpoints, roles="roles" in tensors)
    else:
        width, types = tensors["type_weight"].shape
        head = CardHead(width, endpoints, types, content["temperature"])
    head.load_state_dict(tensors)
    return head


def _adapted(model: Any, folder: Path) -> Any:
    from peft import PeftModel

    from distill.svf import register

    register()  # PEFT must know SVF before an adapter of that type is read
    return PeftModel.from_pretrained(model, folder).eval()
