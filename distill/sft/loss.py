"""Soft targets and forward KL. Unavailable arms take no part on either side."""

from __future__ import annotations

import torch

from distill.router_model.heads import masked
from pointsman.errors import UserError


def soft_targets(scores: torch.Tensor, temperature: float, tried: torch.Tensor | None = None) -> torch.Tensor:
    """softmax(score / τ) over the arms that were tried, [n, k]. Fugu §3.1; τ = .03 is ours (`docs/papers.md`)."""
    if temperature <= 0:
        raise UserError(f"a label temperature must be above 0, got {temperature}")
    tempered = scores / temperature
    return torch.softmax(tempered if tried is None else masked(tempered, tried), dim=1)


def forward_kl(
    logits: torch.Tensor,
    targets: torch.Tensor,
    kept: torch.Tensor | None = None,
    weights: torch.Tensor | None = None,
) -> torch.Tensor:
    """Weighted mean of KL(p ‖ π) per request; with `kept` [n, k] both are renormalised over the kept arms.

    A request whose kept arms have no target mass counts nothing.
    """
    if kept is not None:
        logits = masked(logits, kept)
        targets = targets * kept
    mass = targets.sum(dim=1, keepdim=True)
    share = targets / mass.clamp(min=1e-12)
    logs = torch.log_softmax(logits, dim=1)
    terms = torch.where(share > 0, share * (share.clamp(min=1e-12).log() - logs), torch.zeros(()))
    weight = (mass.squeeze(1) > 0).to(logits.dtype) * (1 if weights is None else weights)
    total: torch.Tensor = (weight * terms.sum(dim=1)).sum() / weight.sum().clamp(min=1e-12)
    return total
