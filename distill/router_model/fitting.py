"""A learned router from a label set: backbone, head, and what of the backbone is tuned.

With a frozen backbone its states are computed once and a fit takes seconds: a card head is the mixture of latent types
in closed form, an index head is distilled from the soft labels. With a tuner (SVF or LoRA on the last layers) the
head and the adapter are trained together on the labels, text by text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from distill.arrays import Floats
from distill.classic.choosing import estimates
from distill.evaluate.values import realised
from distill.features.extras import Extras
from distill.labels.judging import judged
from distill.labels.store import LabelSet
from distill.router_model.backbone import MINILM, Backbone, BackboneConfig, default_backbone
from distill.router_model.checkpoint import LearnedRouter
from distill.router_model.distilling import DistilConfig, card_head, card_mixture
from distill.router_model.heads import Head, IndexHead
from distill.router_model.prompt import PromptConfig
from distill.sft.loop import Epoch, SftConfig, SftData, train
from distill.sft.states import CachedStates, States, TunedStates
from pointsman.errors import UserError
from pointsman.jobs.learning import HeadName, Tuner

NORM = 4.0
"""The mean length of the states that a head reads: chosen on the inner folds of recorded data."""


@dataclass(frozen=True)
class FitConfig:
    head: HeadName = "card"
    tuner: Tuner = "none"
    layers: int = 2
    sft: SftConfig = field(default_factory=SftConfig)
    distil: DistilConfig = field(default_factory=DistilConfig)
    seed: int = 1


@dataclass(frozen=True, eq=False)
class Fitted:
    """`value` on validation rows, beside the best single worker's there; `log` has the epochs, if there were any."""

    router: LearnedRouter
    value: float
    best_single: float
    basis: str
    log: tuple[Epoch, ...] = ()


def backbone_of(name: str | None, revision: str | None) -> BackboneConfig:
    """By name, or what this machine can run. MiniLM's state is a mean; others are read at the penultimate token."""
    import torch

    cuda = torch.cuda.is_available()
    if name is None:
        return default_backbone(cuda)
    device = "cuda" if cuda else "cpu"
    if name == MINILM:
        return BackboneConfig(device=device)
    return BackboneConfig(name, revision, "penultimate", PromptConfig("tagged"), device)


def fit_learned(
    labels: LabelSet,
    backbone: Backbone,
    config: FitConfig,
    *,
    cache: Path | None = None,
    checkpoint: Path | None = None,
    progress: Callable[[Epoch], None] = lambda epoch: None,
) -> Fitted:
    """Trained on the training rows, stopped by and told of the validation rows; test rows are never read."""
    training = labels.of("train")
    if not len(training):
        raise UserError("labels: no training requests: the set is too small to be split")
    if config.tuner != "none":
        return _tuned(labels, backbone, config, checkpoint, progress)
    texts = list(labels.texts)
    states = backbone.states(texts, cache)
    scale = float(NORM / np.linalg.norm(states[training], axis=1).mean())
    extras = Extras.fit([texts[row] for row in training], config.seed)
    rows = np.hstack([states * np.float32(scale), extras.rows(texts)])
    head, log = _head(labels, rows, config, checkpoint, progress)
    notes = {"labels": labels.hash, "head": config.head, "seed": config.seed}
    router = LearnedRouter(backbone, head, scale, extras, notes)
    return _fitted(labels, router, rows, log)


def _head(
    labels: LabelSet,
    rows: Floats,
    config: FitConfig,
    checkpoint: Path | None,
    progress: Callable[[Epoch], None],
) -> tuple[Head, tuple[Epoch, ...]]:
    training = labels.of("train")
    if config.head == "card":
        mixture = card_mixture(rows[training], estimates(labels).rows(training), config.seed, config.distil)
        return card_head(mixture, labels.table().endpoints, config.distil.temperature), ()
    head = IndexHead(rows.shape[1], labels.table().endpoints)
    done = train(head, _data(labels, CachedStates(rows)), config.sft, checkpoint=checkpoint, progress=progress)
    return head, tuple(done.log)


def _tuned(
    labels: LabelSet,
    backbone: Backbone,
    config: FitConfig,
    checkpoint: Path | None,
    progress: Callable[[Epoch], None],
) -> Fitted:
    """An index head and an adapter of the last layers, trained together; no extras beside the state."""
    backbone.model = _adapter(backbone.model, config)
    sample = [labels.texts[row] for row in labels.of("train")[:64]]
    scale = float(NORM / np.linalg.norm(backbone.states(sample), axis=1).mean())
    states = TunedStates(backbone, labels.texts, scale)
    head = IndexHead(backbone.width, labels.table().endpoints).to(backbone.config.device)
    done = train(head, _data(labels, states), config.sft, checkpoint=checkpoint, progress=progress)
    notes = {"labels": labels.hash, "head": "index", "tuner": config.tuner, "seed": config.seed}
    router = LearnedRouter(backbone, head, scale, None, notes)
    return _fitted(labels, router, None, tuple(done.log))


def _adapter(model: Any, config: FitConfig) -> Any:
    from distill.svf import SvfConfig, adapt, choose

    last = list(range(-config.layers, 0))
    if config.tuner == "svf":
        return adapt(model, SvfConfig(target_modules=choose(model, layers=last)))
    from peft import LoraConfig, get_peft_model

    return get_peft_model(model, LoraConfig(r=8, lora_alpha=16, target_modules=choose(model, layers=last)))


def _data(labels: LabelSet, states: States) -> SftData:
    """Soft labels of all rows; held out are the validation rows by which routers are compared."""
    part = judged(labels, "validation")
    rewards = np.full(labels.mean.shape, np.nan)
    rewards[part.rows] = part.rewards
    return SftData(states, labels.targets, rewards, labels.of("train"), part.rows, labels.weights)


def _fitted(labels: LabelSet, router: LearnedRouter, rows: Floats | None, log: tuple[Epoch, ...]) -> Fitted:
    import torch

    part = judged(labels, "validation")
    texts = [labels.texts[row] for row in part.rows]
    read = router.states(texts) if rows is None else rows[part.rows]
    device = next(router.head.parameters()).device
    with torch.inference_mode():
        logits = router.head(torch.as_tensor(np.asarray(read, np.float32)).to(device)).cpu().numpy()
    single = int(labels.mean[labels.of("train")].mean(axis=0).argmax())
    value, beside = float(realised(part.rewards, logits).mean()), float(part.rewards[:, single].mean())
    return Fitted(router, value, beside, part.basis, log)
