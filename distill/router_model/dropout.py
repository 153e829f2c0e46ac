"""k-of-n worker dropout: some arms are masked in training, so that no head leans on one that may be away."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def kept_arms(size: tuple[int, int], keep: int, generator: torch.Generator) -> torch.Tensor:
    """A mask [n, k] with exactly `keep` arms per row, drawn uniformly; `keep` ≥ k keeps all."""
    import torch

    rows, arms = size
    if keep >= arms:
        return torch.ones(rows, arms, dtype=torch.bool)
    order = torch.rand(rows, arms, generator=generator).argsort(dim=1)
    return order < max(keep, 1)
