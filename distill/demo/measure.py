"""What a router would earn on held-out requests that every worker has answered.

The held-out tasks are asked in a project of their own, so that nothing learns from them. A router's picks come from
`POST /v1/route` with its version: the very code that serves. Intervals are paired over requests.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from distill.demo.stage import Stage
from pointsman.errors import StoreError
from pointsman.identity import ensure_project
from pointsman.probing.matrix import full_information
from pointsman.rewards.compute import Window
from pointsman.statistics.episodes import paired_bootstrap
from pointsman.words import Origin

Floats = NDArray[np.float64]
PROJECT = "demo-held-out"
PROBED: tuple[Origin, ...] = ("probe",)


@dataclass(frozen=True)
class HeldOut:
    """`rewards` [n, k] of the workers `names` on `texts`."""

    texts: tuple[str, ...]
    names: tuple[str, ...]
    rewards: Floats

    def without(self, worker: str) -> HeldOut:
        kept = [number for number, name in enumerate(self.names) if name != worker]
        return HeldOut(self.texts, tuple(self.names[k] for k in kept), self.rewards[:, kept])

    @property
    def oracle(self) -> float:
        return float(self.rewards.max(axis=1).mean())

    @property
    def best_single(self) -> float:
        return float(self.rewards.mean(axis=0).max())

    def earned(self, picks: list[str]) -> Floats:
        place = {name: number for number, name in enumerate(self.names)}
        chosen: Floats = self.rewards[np.arange(len(picks)), [place[pick] for pick in picks]]
        return chosen


def ask_held_out(stage: Stage, n: int) -> HeldOut:
    """Every worker answers `n` held-out tasks, by a probe job."""
    with stage.engine.begin() as connection:
        project = ensure_project(connection, PROJECT)
    file = stage.write_tasks("held_out.jsonl", "held_out", n)
    job = stage.job("probe", {"file": file, "name": "held-out", "concurrency": 16}, project=project)
    if job.state != "done":
        raise StoreError(f"the held-out probe {job.state}: {job.reason}")
    with stage.engine.connect() as connection:
        matrix = full_information(connection, project, PROBED, Window())
    whole = matrix.take(matrix.complete)
    return HeldOut(tuple(text or "" for text in whole.texts), whole.names, whole.scores[:, :, 0])


def picks(stage: Stage, texts: tuple[str, ...], model: str = "pointsman") -> list[str]:
    """The worker that a router puts first for each text; `model` may name a version."""
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(partial(_pick, stage, model), texts))


def difference(new: Floats, old: Floats) -> tuple[float, float, float]:
    """(mean, low, high) of new - old, paired over requests."""
    found = paired_bootstrap(new, old, np.random.default_rng(5))
    return found.estimate, found.low, found.high


def _pick(stage: Stage, model: str, text: str) -> str:
    answer = stage.post("/v1/route", {"model": model, "messages": [{"role": "user", "content": text}]})
    scores = answer["scores"] or answer["probabilities"]
    return str(max(sorted(scores), key=lambda name: scores[name]))
