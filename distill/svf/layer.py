"""One adapted matrix: the base layer plus what the offsets change, so that offset 0 is the base to the bit."""

from __future__ import annotations

from typing import Any

import torch
from peft.tuners.tuners_utils import BaseTunerLayer, check_adapters_to_merge
from torch import nn


class SvfLinear(nn.Module, BaseTunerLayer):
    """A linear layer [out, in] with r = min(out, in) offsets per adapter.

    y = c · (W x + U (s · offset · Vᵀx)) + b, c = Σs / Σ s(1 + offset) where renormalised, else 1. U, s and V
    are computed once in float32 from the base weight and never saved.
    """

    adapter_layer_names = ("svf_offsets",)
    other_param_names = ()
    left: torch.Tensor
    values: torch.Tensor
    right: torch.Tensor

    def __init__(self, base_layer: nn.Linear, adapter_name: str, renormalise: bool, inference_mode: bool) -> None:
        super().__init__()
        self.base_layer = base_layer
        self.in_features, self.out_features = base_layer.in_features, base_layer.out_features
        self.svf_offsets: Any = nn.ParameterDict({})
        self.renormalise: dict[str, bool] = {}
        self.merged_adapters: list[str] = []
        self._unmerged: Any = None
        left, values, right = decompose(base_layer.weight)
        self.register_buffer("left", left, persistent=False)
        self.register_buffer("values", values, persistent=False)
        self.register_buffer("right", right, persistent=False)
        self.update_layer(adapter_name, renormalise, inference_mode)

    def update_layer(self, adapter_name: str, renormalise: bool, inference_mode: bool) -> None:
        """Adds an adapter that changes nothing yet."""
        self.svf_offsets[adapter_name] = nn.Parameter(torch.zeros_like(self.values))
        self.renormalise[adapter_name] = renormalise
        self._move_adapter_to_device_of_base_layer(adapter_name)
        self.set_adapter(self.active_adapters, inference_mode=inference_mode)

    def factor(self, adapter: str) -> Any:
        """c of the class's formula."""
        if not self.renormalise[adapter]:
            return torch.ones((), device=self.values.device)
        scaled: torch.Tensor = self.values * (1 + self.svf_offsets[adapter])
        return self.values.sum() / scaled.sum()

    def forward(self, x: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        if self.disable_adapters and self.merged:
            self.unmerge()
        result: torch.Tensor = self.base_layer(x, *args, **kwargs)
        if self.disable_adapters or self.merged:
            return result
        for adapter in self.active_adapters:
            if adapter in self.svf_offsets:
                result = self._adapted(x, result, adapter)
        return result

    def delta(self, adapter: str) -> Any:
        """W' - W of one adapter, in float32."""
        scaled = self.left * (self.values * self.svf_offsets[adapter]) @ self.right
        base: Any = self.get_base_layer()
        weight: torch.Tensor = base.weight.float()
        return self.factor(adapter) * (weight + scaled) - weight

    def merge(self, safe_merge: bool = False, adapter_names: list[str] | None = None) -> None:
        """Writes one adapter into the base weight."""
        names = [name for name in check_adapters_to_merge(self, adapter_names) or [] if name in self.svf_offsets]
        if len(names) > 1:
            raise ValueError("SVF merges one adapter: two sets of scales on one matrix do not add")
        base: Any = self.get_base_layer()
        for name in names:
            merged = base.weight.data.float() + self.delta(name).detach()
            if safe_merge and not torch.isfinite(merged).all():
                raise ValueError(f"adapter {name!r} is not finite: not merged")
            self._unmerged = base.weight.data
            base.weight.data = merged.to(base.weight.dtype)
            self.merged_adapters.append(name)

    def unmerge(self) -> None:
        if self._unmerged is not None:
            base: Any = self.get_base_layer()
            base.weight.data = self._unmerged
        self._unmerged = None
        self.merged_adapters.clear()

    def _adapted(self, x: torch.Tensor, result: torch.Tensor, adapter: str) -> Any:
        base: Any = self.get_base_layer()
        bias: torch.Tensor | None = base.bias
        scales = (self.values * self.svf_offsets[adapter]).to(x.dtype)
        change = ((x @ self.right.T.to(x.dtype)) * scales) @ self.left.T.to(x.dtype)
        factor = self.factor(adapter).to(x.dtype)
        if bias is None:
            return factor * (result + change)
        return factor * (result - bias + change) + bias if self.renormalise[adapter] else result + change


def decompose(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """U [out, r], s [r] descending, Vᵀ [r, in] of a weight, in float32."""
    with torch.no_grad():
        left, values, right = torch.linalg.svd(weight.detach().float(), full_matrices=False)
    return left.contiguous(), values, right.contiguous()
