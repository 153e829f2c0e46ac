"""Two heads behind one interface: from states [n, d] to logits [n, k] over arms.

`index` is Trinity's: a bias-free row per arm, and three rows for roles. Only arms it was trained on have a
row. `card` scores an arm by what is known of it: z = (q(x) · values) / temperature, q the softmax of a
linear map over J latent types and `values` [k, J] the arm's expected reward on each. Known arms carry
trained values; a new arm's come from its card or its rewards on probes (`fingerprint`), without retraining.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import nn

from pointsman.errors import UserError

HeadKind = Literal["index", "card"]
ROLES = ("solver", "thinker", "verifier")  # the authors' order; the paper's `worker` is our solver
TEMPERATURE = 0.03


class IndexHead(nn.Module):
    """L x d weights, no bias; with roles (L + 3) x d. Starts at 0: every arm alike."""

    kind: HeadKind = "index"

    def __init__(self, width: int, endpoints: Sequence[str], roles: bool = False) -> None:
        super().__init__()
        self.endpoints = tuple(endpoints)
        self.arms = nn.Parameter(torch.zeros(len(self.endpoints), width))
        self.roles = nn.Parameter(torch.zeros(len(ROLES), width)) if roles else None

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return states @ self.arms.T

    def role_logits(self, states: torch.Tensor) -> torch.Tensor:
        """[n, 3] in the order of `ROLES`: a softmax of its own, apart from that over arms."""
        if self.roles is None:
            raise UserError("this head was trained without roles")
        return states @ self.roles.T


class CardHead(nn.Module):
    """J latent types, and J values per arm in the unit of rewards."""

    kind: HeadKind = "card"

    def __init__(self, width: int, endpoints: Sequence[str], types: int, temperature: float = TEMPERATURE) -> None:
        super().__init__()
        self.endpoints = tuple(endpoints)
        self.temperature = temperature
        self.type_weight = nn.Parameter(torch.zeros(width, types))
        self.type_bias = nn.Parameter(torch.zeros(types))
        self.values = nn.Parameter(torch.zeros(len(self.endpoints), types))

    def types(self, states: torch.Tensor) -> torch.Tensor:
        """Shares [n, J] of the latent types."""
        return torch.softmax(states @ self.type_weight + self.type_bias, dim=1)

    def rewards(self, states: torch.Tensor) -> torch.Tensor:
        """Expected rewards [n, k]."""
        return self.types(states) @ self.values.T

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return self.rewards(states) / self.temperature

    def with_arm(self, endpoint: str, values: torch.Tensor) -> CardHead:
        """The same head with one arm more; nothing of the others changes."""
        if endpoint in self.endpoints:
            raise UserError("this endpoint version has values already")
        head = CardHead(len(self.type_weight), (*self.endpoints, endpoint), self.values.shape[1], self.temperature)
        stacked = torch.cat([self.values.detach(), values[None].to(self.values.dtype)])
        head.load_state_dict(self.state_dict() | {"values": stacked})
        return head


Head = IndexHead | CardHead


def masked(logits: torch.Tensor, available: torch.Tensor) -> torch.Tensor:
    """Logits with unavailable arms at -inf, so that a softmax shares their mass among the rest.

    `available` is [k] or [n, k]. Raises `UserError` where a request has no arm left.
    """
    allowed = available.bool().expand_as(logits)
    if not bool(allowed.any(dim=1).all()):
        raise UserError("a request has no available worker")
    return logits.masked_fill(~allowed, float("-inf"))


def shares(logits: torch.Tensor, available: torch.Tensor | None = None) -> torch.Tensor:
    """Probabilities over the available arms, [n, k], 0 elsewhere."""
    return torch.softmax(logits if available is None else masked(logits, available), dim=1)


def columns(head: Head, endpoints: Sequence[str]) -> list[int]:
    """The head's columns of these endpoint versions. Raises `UserError` where it has none."""
    place = {endpoint: number for number, endpoint in enumerate(head.endpoints)}
    unknown = [endpoint for endpoint in endpoints if endpoint not in place]
    if unknown:
        raise UserError(f"the head knows no endpoint version {', '.join(endpoint[:12] for endpoint in unknown)}")
    return [place[endpoint] for endpoint in endpoints]


def head_size(head: Head) -> int:
    """What a head trains: L·d (and 3·d for roles), or d·J + J + k·J."""
    return sum(parameter.numel() for parameter in head.parameters())
