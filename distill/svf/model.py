"""The tuner that puts SVF layers into a model, and its registration with PEFT."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from peft import get_peft_model
from peft.mapping import PEFT_TYPE_TO_TUNER_MAPPING
from peft.tuners.tuners_utils import BaseTuner
from peft.utils import register_peft_method
from peft.utils.peft_types import PeftType
from torch import nn

from distill.svf.config import METHOD, SvfConfig
from distill.svf.layer import SvfLinear
from pointsman.errors import BrokenInvariant, UserError

_LAYER = re.compile(r"(?:^|\.)(?:layers?|h|blocks?)\.(\d+)\.")


class SvfModel(BaseTuner):
    """Replaces the chosen linear layers by `SvfLinear`."""

    prefix = "svf_"
    tuner_layer_cls = SvfLinear
    target_module_mapping: dict[str, list[str]] = {}  # noqa: RUF012 (declared so by PEFT)

    def _create_and_replace(
        self,
        peft_config: Any,
        adapter_name: str,
        target: nn.Module,
        target_name: str,
        parent: nn.Module,
        current_key: str,
        parameter_name: str | None = None,
    ) -> None:
        settings = (adapter_name, peft_config.renormalise, peft_config.inference_mode)
        if isinstance(target, SvfLinear):
            target.update_layer(*settings)
        elif isinstance(target, nn.Linear):
            layer = SvfLinear(target, *settings)
            if adapter_name not in self.active_adapters:
                layer.requires_grad_(False)
            self._replace_module(parent, target_name, layer, target)
        else:
            raise UserError(f"{current_key}: SVF adapts linear layers, this is a {type(target).__name__}")


def register() -> None:
    """Makes PEFT know the method. PEFT closes its list of types, so the enum gets one more member."""
    if METHOD in PeftType.__members__:
        if PEFT_TYPE_TO_TUNER_MAPPING.get(PeftType[METHOD]) is not SvfModel:
            raise BrokenInvariant(f"this version of PEFT has a method {METHOD} of its own")
        return
    member = str.__new__(PeftType, METHOD)
    member._name_, member._value_ = METHOD, METHOD
    type.__setattr__(PeftType, METHOD, member)
    PeftType._member_map_[METHOD] = member
    PeftType._value2member_map_[METHOD] = member
    PeftType._member_names_.append(METHOD)
    register_peft_method(name=METHOD.lower(), config_cls=SvfConfig, model_cls=SvfModel)


def choose(model: nn.Module, matrices: Sequence[str] = (), layers: Sequence[int] = ()) -> list[str]:
    """Names of linear layers: of these matrices (`q_proj`; none given: all) in these layers (-1 is the last).

    Raises `UserError` where a matrix or a layer is not in the model.
    """
    inner: Any = model.get_base_model() if hasattr(model, "get_base_model") else model  # type: ignore[operator]
    named = ((name.removesuffix(".base_layer"), module) for name, module in inner.named_modules())
    found = {name: int(match[1]) for name, module in named if (match := _in_layer(name, module))}
    depth = max(found.values(), default=-1) + 1
    wanted = {layer % depth if -depth <= layer < depth else None for layer in layers} if depth else {None}
    unknown = sorted(set(matrices) - {name.rpartition(".")[2] for name in found})
    if None in wanted or unknown:
        raise UserError(f"the model has {depth} layers; not found: layers {list(layers)}, matrices {unknown}")
    return [
        name
        for name, layer in found.items()
        if (not wanted or layer in wanted) and (not matrices or name.rpartition(".")[2] in matrices)
    ]


def _in_layer(name: str, module: nn.Module) -> re.Match[str] | None:
    return _LAYER.search(name) if isinstance(module, nn.Linear) else None


def adapt(model: nn.Module, config: SvfConfig) -> Any:
    """A PEFT model whose offsets are all 0. Raises where a chosen matrix got none or one too many."""
    adapted = get_peft_model(model, config)
    offsets = count_offsets(adapted)
    trainable = sum(parameter.numel() for parameter in adapted.parameters() if parameter.requires_grad)
    if not offsets or trainable != offsets:
        raise BrokenInvariant(f"{offsets} singular values were chosen, {trainable} parameters would be trained")
    return adapted


def layers(model: nn.Module) -> Iterator[tuple[str, SvfLinear]]:
    """The adapted matrices by name, in the model's order: the order of a flat vector of offsets."""
    for name, module in model.named_modules():
        if isinstance(module, SvfLinear):
            yield name, module


def count_offsets(model: nn.Module) -> int:
    """Σ min(out, in) over the adapted matrices: what one adapter trains."""
    return sum(min(layer.in_features, layer.out_features) for _, layer in layers(model))


def set_offsets(model: nn.Module, vector: torch.Tensor, adapter: str = "default") -> None:
    """Writes a flat vector of all offsets, in the order of `layers`."""
    if len(vector) != count_offsets(model):
        raise BrokenInvariant(f"{len(vector)} offsets given, the adapter has {count_offsets(model)}")
    start = 0
    with torch.no_grad():
        for _, layer in layers(model):
            offsets = layer.svf_offsets[adapter]
            offsets.copy_(vector[start : start + len(offsets)])
            start += len(offsets)
