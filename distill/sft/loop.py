"""The trainer: AdamW on forward KL, early stopping on held-out reward, resumable after any epoch.

Stopping looks at what the router would earn (arg max on the held-out requests), not at the loss: the two
part ways long before the loss rises. Order and dropout of an epoch depend on the seed and its number
alone, so a resumed run gives the numbers of an uninterrupted one. With `accelerate launch` every process
takes its share of each batch and gradients are averaged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from distill.arrays import Floats
from distill.files import load_state, save_state
from distill.router_model.dropout import kept_arms
from distill.router_model.heads import Head
from distill.sft.loss import forward_kl
from distill.sft.states import States
from pointsman.errors import UserError


@dataclass(frozen=True)
class SftConfig:
    """`keep_arms`: k of k-of-n worker dropout, 0 for none. `backbone_rate` is the adapter's learning rate."""

    learning_rate: float = 0.01
    backbone_rate: float = 0.002
    weight_decay: float = 0.01
    batch: int = 256
    epochs: int = 60
    patience: int = 10
    keep_arms: int = 0
    clip: float = 1.0
    seed: int = 1


@dataclass(frozen=True, eq=False)
class SftData:
    """`targets` [n, k] are soft labels for all rows of `states`; `weights` [n] how much each row counts.

    `training` and `held_out` are row numbers; `rewards` [n, k] is read for held-out rows only, NaN where an
    arm was not tried (such a pick counts nothing).
    """

    states: States
    targets: Floats
    rewards: Floats
    training: Any
    held_out: Any
    weights: Floats | None = None


@dataclass(frozen=True)
class Epoch:
    number: int
    loss: float
    held_out_reward: float


@dataclass(eq=False)
class SftResult:
    """`best` is the epoch whose parameters the head and the adapter now have; 0 is the start."""

    best: int
    held_out_reward: float
    log: list[Epoch] = field(default_factory=list)


def train(
    head: Head,
    data: SftData,
    config: SftConfig,
    *,
    checkpoint: Path | None = None,
    progress: Callable[[Epoch], None] = lambda epoch: None,
) -> SftResult:
    """Trains `head` (and what is trained under `data.states`) in place; leaves it at the best epoch.

    Raises `UserError` where labels or the loss are not finite, or there is nothing to hold out.
    """
    if not len(data.held_out) or not len(data.training):
        raise UserError(f"{len(data.training)} requests to train on and {len(data.held_out)} held out: need both")
    if not np.isfinite(data.targets).all():
        raise UserError("the soft labels are not finite")
    run = _Run(head, data, config)
    result = run.restore(checkpoint)
    while len(result.log) < config.epochs and len(result.log) - result.best < config.patience:
        number = len(result.log) + 1
        line = Epoch(number, run.epoch(number), run.reward())
        result.log.append(line)
        if line.held_out_reward > result.held_out_reward:
            result.best, result.held_out_reward = number, line.held_out_reward
            run.keep()
        if checkpoint is not None:
            run.save(checkpoint, result)
        progress(line)
    run.use_best()
    return result


class _Run:
    """One training: parameters, optimiser, and the best parameters so far."""

    def __init__(self, head: Head, data: SftData, config: SftConfig) -> None:
        from accelerate import Accelerator

        self.head, self.data, self.config = head, data, config
        device = next(head.parameters()).device
        self.parameters: list[nn.Parameter] = [*head.parameters(), *data.states.trained()]
        groups = [{"params": list(head.parameters()), "lr": config.learning_rate}]
        if data.states.trained():
            groups.append({"params": data.states.trained(), "lr": config.backbone_rate})
        self.accelerator = Accelerator(cpu=device.type == "cpu")
        self.optimiser = torch.optim.AdamW(groups, weight_decay=config.weight_decay)
        self.targets = torch.as_tensor(data.targets, dtype=torch.float32, device=device)
        self.weights = None if data.weights is None else torch.as_tensor(data.weights, dtype=torch.float32).to(device)
        self.training = torch.as_tensor(np.asarray(data.training))
        self.best = self._copies()

    def epoch(self, number: int) -> float:
        """One pass; the mean loss."""
        generator = torch.Generator().manual_seed(self.config.seed * 100_003 + number)
        order = self.training[torch.randperm(len(self.training), generator=generator)]
        losses = [self._step(rows, generator) for rows in torch.split(order, self.config.batch)]
        return sum(losses) / len(losses)

    def reward(self) -> float:
        """Mean reward of the arg max on the held-out rows that have one for it."""
        picks = []
        with torch.no_grad():
            for rows in torch.split(torch.as_tensor(np.asarray(self.data.held_out)), self.config.batch):
                picks.append(self.head(self.data.states.batch(rows)).argmax(dim=1).cpu().numpy())
        earned = self.data.rewards[np.asarray(self.data.held_out), np.concatenate(picks)]
        return float(np.nanmean(earned)) if np.isfinite(earned).any() else 0.0

    def keep(self) -> None:
        self.best = self._copies()

    def use_best(self) -> None:
        with torch.no_grad():
            for parameter, value in zip(self.parameters, self.best, strict=True):
                parameter.copy_(value)

    def restore(self, file: Path | None) -> SftResult:
        if file is None or not file.exists():
            return SftResult(0, self.reward())
        arrays, content = load_state(file)
        with torch.no_grad():
            for number, parameter in enumerate(self.parameters):
                parameter.copy_(torch.as_tensor(arrays[f"now.{number}"]))
                self.best[number] = torch.as_tensor(arrays[f"best.{number}"]).to(parameter.device)
                self.optimiser.state[parameter] = {
                    name: torch.as_tensor(arrays[f"{name}.{number}"])
                    for name in ("step", "exp_avg", "exp_avg_sq")
                    if f"{name}.{number}" in arrays
                }
        log = [Epoch(**line) for line in content["log"]]
        return SftResult(content["best"], content["held_out_reward"], log)

    def save(self, file: Path, result: SftResult) -> None:
        if not self.accelerator.is_main_process:
            return
        arrays = {}
        for number, (parameter, best) in enumerate(zip(self.parameters, self.best, strict=True)):
            arrays[f"now.{number}"] = parameter.detach().cpu().numpy()
            arrays[f"best.{number}"] = best.cpu().numpy()
            for name, value in self.optimiser.state[parameter].items():
                arrays[f"{name}.{number}"] = value.cpu().numpy()
        log = [{"number": e.number, "loss": e.loss, "held_out_reward": e.held_out_reward} for e in result.log]
        save_state(file, arrays, {"best": result.best, "held_out_reward": result.held_out_reward, "log": log})

    def _step(self, rows: torch.Tensor, generator: torch.Generator) -> float:
        arms = self.targets.shape[1]
        kept = kept_arms((len(rows), arms), self.config.keep_arms or arms, generator).to(self.targets.device)
        loss = self._loss(rows, kept)
        if not bool(torch.isfinite(loss)):
            raise UserError("the loss is not finite: a smaller learning rate, or labels without NaN, is needed")
        self.optimiser.zero_grad()
        self.accelerator.backward(loss)
        self._average()
        nn.utils.clip_grad_norm_(self.parameters, self.config.clip)
        self.optimiser.step()
        return float(loss.detach())

    def _loss(self, rows: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
        process, count = self.accelerator.process_index, self.accelerator.num_processes
        mine = torch.arange(process, len(rows), count) if len(rows) >= count else torch.arange(len(rows))
        rows, kept = rows[mine], kept[mine]
        weights = None if self.weights is None else self.weights[rows]
        return forward_kl(self.head(self.data.states.batch(rows)), self.targets[rows], kept, weights)

    def _average(self) -> None:
        if self.accelerator.num_processes == 1:
            return
        for parameter in self.parameters:
            if parameter.grad is not None:
                parameter.grad = self.accelerator.reduce(parameter.grad, reduction="mean")

    def _copies(self) -> list[torch.Tensor]:
        return [parameter.detach().clone() for parameter in self.parameters]
