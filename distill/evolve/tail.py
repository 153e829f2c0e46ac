"""Head and SVF scales together: only the last layers run per candidate, on inputs computed once.

What lies below the first adapted layer never changes, so its output is kept for every request. A candidate
is [offsets of the adapter, in the order of `distill.svf.layers` | index head, k · d].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from distill.arrays import Floats
from distill.evolve.replay import Fitness, HeadReplay, Shaping
from distill.router_model.backbone import Backbone, batches
from distill.router_model.reading import read_states
from pointsman.errors import UserError


@dataclass(eq=False)
class _Batch:
    """Requests of like length at the door of the first layer that is run anew."""

    rows: list[int]
    hidden: torch.Tensor
    rest: tuple[Any, ...]
    named: dict[str, Any]
    mask: torch.Tensor


class Tail:
    """The last `depth` layers of a backbone, and what comes into them for `texts`."""

    def __init__(self, backbone: Backbone, texts: Sequence[str], depth: int = 2) -> None:
        inner = _inner(backbone.model)
        stack, self._norm = _stack(inner)
        if not 0 < depth <= len(stack):
            raise UserError(f"the backbone has {len(stack)} layers, {depth} were to be run anew")
        self._backbone, self._layers = backbone, list(stack)[-depth:]
        self._size = len(texts)
        self._batches = [self._capture(texts, rows) for rows in batches(texts, backbone.config.prompt.max_tokens)]

    @property
    def bytes(self) -> int:
        """What the cached inputs take."""
        return sum(batch.hidden.numel() * batch.hidden.element_size() for batch in self._batches)

    def states(self) -> Floats:
        """As `Backbone.states` with the adapter as it now is, [n, d]."""
        result = np.empty((self._size, self._backbone.width), np.float32)
        with torch.inference_mode():
            for batch in self._batches:
                hidden = batch.hidden
                for layer in self._layers:
                    hidden = _first(layer(hidden, *batch.rest, **batch.named))
                hidden = hidden if self._norm is None else self._norm(hidden)
                rows = read_states(hidden, batch.mask, self._backbone.config.position)
                result[batch.rows] = rows.float().cpu().numpy()
        return result

    def _capture(self, texts: Sequence[str], rows: list[int]) -> _Batch:
        seen: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

        def keep(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            seen.append((args, dict(kwargs)))

        handle = self._layers[0].register_forward_pre_hook(keep, with_kwargs=True)
        numbers, mask = self._backbone.batch([texts[row] for row in rows])
        try:
            with torch.inference_mode():
                self._backbone.model(input_ids=numbers, attention_mask=mask, use_cache=False)
        finally:
            handle.remove()
        args, named = seen[0]
        hidden = args[0] if args else named.pop("hidden_states")
        return _Batch(rows, hidden, args[1:], named, mask)


class TunedReplay:
    """Replay fitness of [offsets | head] candidates; `Problem` of `replay`."""

    def __init__(self, tail: Tail, model: Any, rewards: Floats, offsets: int, shaping: Shaping = Shaping()) -> None:
        self._tail, self._model, self._rewards = tail, model, rewards
        self._offsets, self._shaping = offsets, shaping

    def fitness(self, candidates: Floats, generation: int) -> Fitness:
        found = [self._replay(candidate).fitness(candidate[None, self._offsets :], 0) for candidate in candidates]
        return Fitness(np.concatenate([one.shaped for one in found]), np.concatenate([one.pure for one in found]))

    def rewards(self, candidate: Floats) -> Floats:
        return self._replay(candidate).rewards(candidate[self._offsets :])

    def _replay(self, candidate: Floats) -> HeadReplay:
        from distill.svf import set_offsets

        set_offsets(self._model, torch.as_tensor(candidate[: self._offsets], dtype=torch.float32))
        # Composing W' once is far cheaper than U, s and V on every token.
        self._model.merge_adapter()
        try:
            states = self._tail.states()
        finally:
            self._model.unmerge_adapter()
        return HeadReplay(states, self._rewards, shaping=self._shaping)


def _inner(model: Any) -> nn.Module:
    inner: nn.Module = model.get_base_model() if hasattr(model, "get_base_model") else model
    return inner


def _stack(model: Any) -> tuple[nn.ModuleList, nn.Module | None]:
    """The layers in order, and what follows the last (causal models have a norm there, BERT has none)."""
    if hasattr(model, "layers"):
        return model.layers, getattr(model, "norm", None)
    if hasattr(model, "encoder") and hasattr(model.encoder, "layer"):
        return model.encoder.layer, None
    raise UserError(f"{type(model).__name__}: its layers are not where they are looked for; tune the head alone")


def _first(output: Any) -> torch.Tensor:
    hidden: torch.Tensor = output[0] if isinstance(output, tuple) else output
    return hidden
