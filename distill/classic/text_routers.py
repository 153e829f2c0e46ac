"""Classic routers on hashed TF-IDF, made to be served by the gateway (`harness.routing.classic`).

fitted = fit(table, TextRouterConfig("mixture"), seed)
write(folder, fitted)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from distill.arrays import Floats
from distill.classic.clusters import fit_clusters
from distill.classic.heads import Head, fit_logistic, fit_mixture, fit_neighbours, fit_ridge
from distill.classic.means import arm_means
from distill.features.hashed import Projection, TfIdf, count_matrix
from distill.files import write_json
from distill.table import Arm, RewardTable
from harness.routing.classic_model import FORMAT, JSON_FILE, TENSOR_FILE, ClassicModel, Method
from harness.routing.hashed_text import HashedText
from pointsman.errors import UserError


@dataclass(frozen=True)
class TextRouterConfig:
    """`c`, `alpha`: scikit-learn's; `dimensions` of the SVD under clusters and neighbours.

    `most_neighbours` rows are kept, drawn at random: more are not searched within a tenth of a millisecond.
    """

    method: Method = "mixture"
    bits: int = 14
    max_chars: int = 600
    c: float = 30.0
    alpha: float = 1.0
    dimensions: int = 32
    neighbours: int = 80
    most_neighbours: int = 2048


@dataclass(frozen=True, eq=False)
class TextRouter:
    """A trained router: what the gateway loads, the arms of its columns, and how it was made."""

    model: ClassicModel
    arms: tuple[Arm, ...]
    notes: dict[str, Any] = field(default_factory=dict)

    def scores(self, texts: Sequence[str], seed: int = 0) -> Floats:
        """As the gateway would score them, [texts, arms]."""
        return np.stack([self.model.scores(text, seed) for text in texts])


def fit(table: RewardTable, config: TextRouterConfig, seed: int) -> TextRouter:
    """Raises `UserError` where the table cannot teach this method (no tasks, too few rows)."""
    if not len(table):
        raise UserError("no requests to train on")
    text = HashedText(config.bits, config.max_chars)
    tensors: dict[str, Any]
    if config.method == "constant":
        tensors = {"means": arm_means(table.rewards)}
    elif config.method == "random":
        tensors = {}
    else:
        tensors = _fit_text(table, config, text, seed)
    settings = {"neighbours": config.neighbours} if config.method == "neighbours" else {}
    model = ClassicModel(config.method, table.endpoints, tensors, text, settings)
    return TextRouter(model, table.arms, {"config": asdict(config), "requests": len(table), "seed": seed})


def write(folder: Path, router: TextRouter) -> None:
    """`router.json` and `router.safetensors`, the JSON last: a folder without it is no router."""
    from safetensors.numpy import save

    model = router.model
    raw = save({name: np.ascontiguousarray(tensor) for name, tensor in model.tensors.items()})
    folder.mkdir(parents=True, exist_ok=True)
    (folder / TENSOR_FILE).write_bytes(raw)
    content = {
        "format": FORMAT,
        "kind": "classic",
        "method": model.method,
        "arms": [{"endpoint": arm.endpoint, "worker": arm.worker} for arm in router.arms],
        "tensors": sha256(raw).hexdigest(),
        "text": {"bits": model.text.bits, "max_chars": model.text.max_chars},
        "settings": dict(model.settings),
        "notes": router.notes,
    }
    write_json(folder / JSON_FILE, content)


def _fit_text(table: RewardTable, config: TextRouterConfig, text: HashedText, seed: int) -> dict[str, Any]:
    counts = count_matrix(table.texts, text)
    weighting = TfIdf.fit(counts, text)
    rows = weighting.rows(counts)
    if config.method in ("clusters", "neighbours"):
        projection = Projection.fit(rows, config.dimensions, seed)
        points = projection.points(rows)
        return {"idf": weighting.idf, "projection": projection.matrix, **_dense(points, table, config, seed).tensors()}
    return {"idf": weighting.idf, **_sparse(rows, table, config).tensors()}


def _dense(points: Floats, table: RewardTable, config: TextRouterConfig, seed: int) -> Head:
    if config.method == "clusters":
        return fit_clusters(points, table.rewards, seed)
    rows = np.random.default_rng(seed).permutation(len(points))[: config.most_neighbours]
    return fit_neighbours(points[rows], table.rewards[rows], count=config.neighbours)


def _sparse(rows: Any, table: RewardTable, config: TextRouterConfig) -> Head:
    if config.method == "linear":
        return fit_ridge(rows, table.rewards, alpha=config.alpha)
    if config.method == "logistic":
        return fit_logistic(rows, table.rewards, c=config.c)
    tasks, numbers = table.task_numbers()
    return fit_mixture(rows, table.rewards, numbers, tasks, c=config.c)
