"""A router version's scores on texts, by endpoint, whatever its kind; and how the same router is fitted anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from distill.arrays import Floats
from distill.evaluate.ablating import Refit
from distill.labels.store import LabelSet
from harness.routing.classic_model import Method, model_of
from pointsman.errors import UserError
from pointsman.jobs.files import ArtifactStore
from pointsman.promotion.versions import StoredVersion

UNKNOWN = -1e6


@dataclass(frozen=True, eq=False)
class Judge:
    """`scores(texts, endpoints)` are in the unit of rewards, UNKNOWN for an endpoint that the router does not know.

    `refit(rows)` gives what fits the same kind of router on a label set and scores its texts `rows`.
    """

    name: str
    kind: str
    scores: Callable[[Sequence[str], Sequence[str]], Floats]
    refit: Callable[[Sequence[int]], Refit]


def judge_of(version: StoredVersion, files: ArtifactStore, folder: Path, cache: Path, seed: int) -> Judge:
    """Raises `UserError` where the version is of a kind that is not trained from labels."""
    if version.kind == "classic":
        return _classic(version, files, seed)
    if version.kind == "learned":
        return _learned(version, files, folder, cache, seed)
    raise UserError(f"router version {version.id}: a {version.kind} router is compared by `pointsman optimize`")


def by_endpoint(scores: Floats, known: Sequence[str], wanted: Sequence[str]) -> Floats:
    """Columns of `known` in the order of `wanted`."""
    place = {endpoint: number for number, endpoint in enumerate(known)}
    result = np.full((len(scores), len(wanted)), UNKNOWN)
    for number, endpoint in enumerate(wanted):
        if endpoint in place:
            result[:, number] = scores[:, place[endpoint]]
    return result


def _classic(version: StoredVersion, files: ArtifactStore, seed: int) -> Judge:
    raw = files.read(str(version.config["tensors"]), ".safetensors")
    model = model_of(version.config, raw, f"router version {version.id}")

    def scores(texts: Sequence[str], endpoints: Sequence[str]) -> Floats:
        found = np.stack([model.scores(text, seed) for text in texts])
        return by_endpoint(found, model.endpoints, endpoints)

    def refit(rows: Sequence[int]) -> Refit:
        return lambda labels: classic_scores(labels, model.method, rows, seed)

    return Judge(f"{version.kind} {version.id[:8]}", version.kind, scores, refit)


def classic_scores(labels: LabelSet, method: Method, rows: Sequence[int], seed: int) -> Floats:
    """A classic router fitted on training and validation rows, its scores on the texts of `rows`."""
    from distill.classic.choosing import config_of, estimates
    from distill.classic.text_routers import fit

    training = labels.of("train", "validation")
    fitted = fit(estimates(labels).rows(training), config_of(method, len(training)), seed)
    return fitted.scores([labels.texts[row] for row in rows], seed)


def _learned(version: StoredVersion, files: ArtifactStore, folder: Path, cache: Path, seed: int) -> Judge:
    from distill.router_model.checkpoint import load_router
    from distill.router_model.distilling import DistilConfig
    from distill.router_model.fitting import FitConfig, fit_learned
    from distill.server.models import fetched

    router = load_router(fetched(version, files, folder))
    temperature = DistilConfig().temperature
    tuned = version.config["notes"].get("tuner", "none") != "none"

    def scores(texts: Sequence[str], endpoints: Sequence[str]) -> Floats:
        found = router.logits(texts, None if tuned else cache) * temperature
        return by_endpoint(found, router.head.endpoints, endpoints)

    def refit(rows: Sequence[int]) -> Refit:
        """A head on the router's own backbone as it is: of a tuned one the adapter stays."""

        def fitted(labels: LabelSet) -> Floats:
            made = fit_learned(
                labels, router.backbone, FitConfig(router.head.kind, seed=seed), cache=None if tuned else cache
            )
            texts = [labels.texts[row] for row in rows]
            return made.router.logits(texts, None if tuned else cache) * temperature

        return fitted

    return Judge(f"{version.kind} {version.id[:8]}", version.kind, scores, refit)


def table_of(lines: Sequence[dict[str, Any]]) -> bytes:
    """CSV of lines whose keys may differ; nested values are written as JSON."""
    import csv
    import io
    import json

    names = list(dict.fromkeys(name for line in lines for name in line))
    target = io.StringIO()
    writer = csv.DictWriter(target, names, lineterminator="\n")
    writer.writeheader()
    for line in lines:
        writer.writerow(
            {name: json.dumps(value) if isinstance(value, list | dict) else value for name, value in line.items()}
        )
    return target.getvalue().encode()
