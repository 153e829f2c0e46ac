"""Evidence to label set: weighing, estimates, targets, parts, report."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from distill.arrays import Floats
from distill.features.extras import Extras
from distill.labels.estimate import EstimateConfig, estimate
from distill.labels.evidence import Evidence
from distill.labels.parts import check_leaks, split_as_given, split_by_time
from distill.labels.report import data_report
from distill.labels.store import LabelSet
from distill.labels.targets import probability_best, row_weights, soft_targets
from distill.labels.weighing import Weighing, weigh
from pointsman.errors import UserError
from pointsman.jobs.learning import Encoder, SplitBy, Target

NORM = 4.0
"""The length of a sentence embedding beside the other features."""


@dataclass(frozen=True)
class LabelConfig:
    encoder: Encoder = "minilm"
    target: Target = "softmax"
    temperature: float = 0.03
    split: SplitBy = "time"
    least: int = 600
    toy: bool = False
    estimate: EstimateConfig = field(default_factory=EstimateConfig)
    weighing: Weighing = field(default_factory=Weighing)

    @property
    def seed(self) -> int:
        return self.estimate.seed


def make_labels(evidence: Evidence, config: LabelConfig, cache: Path | None = None) -> LabelSet:
    """Raises `UserError` where there are too few requests, unless `toy`."""
    size = len(evidence.asked)
    if size < config.least and not config.toy:
        raise UserError(
            f"labels: {size} requests are known of, and below {config.least} a router learned from them is worse than "
            "the best single worker more often than not; collect more, or say toy to try things out"
        )
    weighed, cut = weigh(evidence, config.weighing)
    points = label_points([one.text for one in evidence.asked], config.encoder, config.seed, cache)
    found = estimate(points, weighed, config.estimate)
    best = probability_best(found.mean, found.deviation, np.random.default_rng([config.seed, 3]))
    asked = evidence.asked
    parts = split_by_time(asked) if config.split == "time" else split_as_given(asked, config.seed)
    check_leaks(asked, parts)
    values, _ = weighed.matrices()
    notes = {
        "config": _told(config),
        "method": found.method,
        "grouped": found.grouped,
        "caps": cut,
        "report": data_report(weighed, points, config.seed),
    }
    return LabelSet(
        ids=tuple(one.id for one in asked),
        episodes=tuple(one.episode for one in asked),
        texts=tuple(one.text for one in asked),
        tasks=tuple(one.task for one in asked),
        moments=tuple(one.moment.isoformat() for one in asked),
        origins=tuple(one.origin for one in asked),
        parts=parts,
        arms=evidence.arms,
        mean=found.mean,
        deviation=found.deviation,
        targets=soft_targets(found.mean, best, config.target, config.temperature),
        rewards=values,
        weights=row_weights(best),
        notes=notes,
    )


def label_points(texts: list[str], encoder: Encoder, seed: int, cache: Path | None) -> Floats:
    """What estimates read of the texts: word counts and surface, beside a sentence embedding where wanted, [n, d]."""
    extras = Extras.fit(texts, seed).rows(texts)
    if encoder == "text":
        return extras
    from distill.features.sentence import SentenceEncoder

    model = SentenceEncoder()
    states = model.encode(texts) if cache is None else model.cached(cache, texts)
    return np.hstack([states * np.float32(NORM), extras])


def _told(config: LabelConfig) -> dict[str, object]:
    told = asdict(config)
    told["weighing"]["sources"] = dict(told["weighing"]["sources"])
    return told
