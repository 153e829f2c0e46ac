"""From a reward table to a learned router's head: teacher, soft labels, student; and the card head.

States are given: frozen and cached for a head alone, so that a fit takes seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from distill.arrays import Floats, Integers
from distill.classic.clusters import kmeans, nearest_centroid
from distill.classic.heads import Mixture, fit_mixture
from distill.classic.teacher import Teacher, TeacherConfig, fit_teacher, soft_labels
from distill.evaluate.folds import stratified_split
from distill.table import RewardTable

if TYPE_CHECKING:
    from distill.router_model.heads import CardHead, IndexHead
    from distill.sft.loop import Epoch, SftConfig, SftResult


@dataclass(frozen=True)
class DistilConfig:
    """`temperature` of the soft labels; `held_out` is the share of rows that stop the training early."""

    teacher: TeacherConfig = field(default_factory=TeacherConfig)
    temperature: float = 0.03
    held_out: float = 0.15
    latent_types: int = 24


@dataclass(frozen=True, eq=False)
class Distilled:
    """A student and what it learned from. Its logits times `temperature` are on the scale of rewards."""

    teacher: Teacher
    head: IndexHead
    sft: SftResult


def distil(
    states: Floats,
    extras: Floats,
    table: RewardTable,
    seed: int,
    sft: SftConfig,
    config: DistilConfig = DistilConfig(),
    progress: Callable[[Epoch], None] = lambda epoch: None,
) -> Distilled:
    """An index head over [states, extras] (both [n, ·], row by row with `table`)."""
    from distill.router_model.heads import IndexHead
    from distill.sft.loop import SftData, train
    from distill.sft.states import CachedStates

    teacher = fit_teacher(states, extras, table.rewards, table.task_numbers(), seed, config.teacher)
    rows = np.hstack([states, extras]).astype(np.float32)
    head = IndexHead(rows.shape[1], table.endpoints)
    training, held_out = stratified_split(table.task_numbers()[1], config.held_out, seed)
    targets = soft_labels(teacher.training, config.temperature)
    data = SftData(CachedStates(rows), targets, table.rewards, training, held_out)
    return Distilled(teacher, head, train(head, data, sft, progress=progress))


def card_mixture(rows: Floats, table: RewardTable, seed: int, config: DistilConfig = DistilConfig()) -> Mixture:
    """The mixture that a card head serves: types are the tasks, else clusters, and values the shrunk means."""
    names, numbers = types_of(rows, table, seed, config.latent_types)
    return fit_mixture(rows, table.rewards, numbers, names, c=config.teacher.c)


def types_of(rows: Floats, table: RewardTable, seed: int, latent: int) -> tuple[tuple[str, ...], Integers]:
    """Latent types to describe workers by: the known tasks, or k-means clusters where there are none."""
    names, numbers = table.task_numbers()
    if len(names) > 1:
        return names, numbers
    size = min(latent, max(2, len(rows) // 50))
    centres = kmeans(rows, size, seed)
    return tuple(f"cluster {number}" for number in range(size)), nearest_centroid(rows, centres)


def card_head(mixture: Mixture, endpoints: tuple[str, ...], temperature: float) -> CardHead:
    """The same as a torch head, to serve, to tune further, or to add a worker to."""
    import torch

    from distill.router_model.heads import CardHead

    width, types = mixture.posterior.weight.shape
    head = CardHead(width, endpoints, types, temperature)
    with torch.no_grad():
        head.type_weight.copy_(torch.as_tensor(mixture.posterior.weight))
        head.type_bias.copy_(torch.as_tensor(mixture.posterior.bias))
        head.values.copy_(torch.as_tensor(mixture.values.T))
    return head
