"""What of a backbone's states is read: one position per request, whatever side the padding is on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pointsman.errors import UserError

if TYPE_CHECKING:
    import torch

Position = Literal["penultimate", "last", "first", "mean"]


def read_states(states: torch.Tensor, mask: torch.Tensor, position: Position) -> torch.Tensor:
    """[n, t, d] and a mask [n, t] of 0 and 1 to [n, d].

    `penultimate` (Trinity §3.1) of a text of one token is that token. `mean` has length 1.
    Raises `UserError` for a row without a token.
    """
    import torch

    if position == "mean":
        from distill.features.sentence import mean_state

        return mean_state(states, mask)
    numbers = token_numbers(mask, position)
    rows = torch.arange(len(states), device=states.device)
    return states[rows, numbers]


def token_numbers(mask: torch.Tensor, position: Position) -> torch.Tensor:
    """The index of the token to read, per row: counted among the unmasked ones, so [0, 0, 1, 1] ends at 3."""
    import torch

    sizes = mask.sum(dim=1)
    if bool((sizes == 0).any()):
        raise UserError("a request has no token to read a state from")
    wanted = {"last": sizes - 1, "penultimate": (sizes - 2).clamp(min=0), "first": torch.zeros_like(sizes)}[position]
    place = mask.long().cumsum(dim=1) - 1
    return ((place == wanted[:, None]) & mask.bool()).long().argmax(dim=1)
