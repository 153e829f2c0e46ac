"""Where a batch's states come from. Frozen states are computed once; a tuned backbone runs on every batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import nn

from distill.arrays import Floats
from distill.router_model.backbone import Backbone


class States(Protocol):
    """Rows of states for rows of a data set, with gradients where something under them is trained."""

    def trained(self) -> list[nn.Parameter]: ...

    def batch(self, rows: torch.Tensor) -> torch.Tensor: ...

    def __len__(self) -> int: ...


class CachedStates:
    """An array [n, d] kept in memory."""

    def __init__(self, states: Floats, device: str = "cpu") -> None:
        self._states = torch.as_tensor(states, dtype=torch.float32).to(device)

    def __len__(self) -> int:
        return len(self._states)

    def trained(self) -> list[nn.Parameter]:
        return []

    def batch(self, rows: torch.Tensor) -> torch.Tensor:
        return self._states[rows.to(self._states.device)]


class TunedStates:
    """Texts through a backbone whose adapter (SVF, LoRA) is trained; `scale` as of the head's states."""

    def __init__(self, backbone: Backbone, texts: Sequence[str], scale: float = 1.0) -> None:
        self._backbone, self._texts, self._scale = backbone, tuple(texts), scale

    def __len__(self) -> int:
        return len(self._texts)

    def trained(self) -> list[nn.Parameter]:
        return [parameter for parameter in self._backbone.model.parameters() if parameter.requires_grad]

    def batch(self, rows: torch.Tensor) -> torch.Tensor:
        return self._backbone.forward(*self._backbone.batch([self._texts[row] for row in rows.tolist()])) * self._scale
