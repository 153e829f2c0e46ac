"""Cheap features beside a backbone's state: surface counts, an SVD of hashed TF-IDF, a constant 1.

They are fitted on training texts and travel with the router. The constant gives a bias-free head its
prior over workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from distill.arrays import Floats
from distill.features.hashed import Projection, TfIdf, count_matrix
from distill.features.surface import NAMES, surface_features
from harness.routing.hashed_text import HashedText

SURFACE_SCALE, TEXT_SCALE = 0.3, 4.0  # so that the blocks have like norms: chosen on the inner folds of llmrouter9
_CLIP = 5.0


@dataclass(frozen=True)
class ExtrasConfig:
    """`dimensions` of the SVD."""

    bits: int = 14
    max_chars: int = 1000
    dimensions: int = 48


@dataclass(frozen=True, eq=False)
class Extras:
    """Fitted extras; `rows` gives [n, 37 + d + 1] in float32."""

    config: ExtrasConfig
    mean: Floats
    scale: Floats
    weighting: TfIdf
    projection: Projection

    @classmethod
    def fit(cls, texts: Sequence[str], seed: int, config: ExtrasConfig = ExtrasConfig()) -> Extras:
        surface = surface_features(texts)
        text = HashedText(config.bits, config.max_chars)
        counts = count_matrix(texts, text)
        weighting = TfIdf.fit(counts, text)
        projection = Projection.fit(weighting.rows(counts), config.dimensions, seed)
        scale = np.maximum(surface.std(axis=0), 1e-3)
        return cls(config, surface.mean(axis=0), scale, weighting, projection)

    @property
    def width(self) -> int:
        return len(NAMES) + int(self.projection.matrix.shape[1]) + 1

    def rows(self, texts: Sequence[str]) -> Floats:
        surface = np.clip((surface_features(texts) - self.mean) / self.scale, -_CLIP, _CLIP) * SURFACE_SCALE
        weighted = self.weighting.rows(count_matrix(texts, self.weighting.text))
        points = self.projection.points(weighted) * TEXT_SCALE
        return np.hstack([surface, points, np.ones((len(texts), 1))]).astype(np.float32)

    def tensors(self) -> dict[str, Floats]:
        return {
            "mean": self.mean,
            "scale": self.scale,
            "idf": self.weighting.idf,
            "projection": self.projection.matrix,
        }

    @classmethod
    def restored(cls, tensors: dict[str, Any], config: ExtrasConfig) -> Extras:
        text = HashedText(config.bits, config.max_chars)
        weighting, projection = TfIdf(text, tensors["idf"]), Projection(tensors["projection"])
        return cls(config, tensors["mean"], tensors["scale"], weighting, projection)
