"""A label set on disk: `labels.parquet`, a row per request, and `labels.json`, the manifest that names its hash.

The set's hash is of what is in it (requests, texts, parts, arms by endpoint, numbers), not of the file's bytes, so
another version of the Parquet library gives the same set the same name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from io import BytesIO
from typing import Any, cast

import numpy as np

from distill.arrays import Floats, Integers
from distill.labels.parts import Part
from distill.table import Arm, RewardTable
from pointsman.errors import UserError
from pointsman.hashing import content_hash, text_hash

FORMAT = 1
_TEXTS = ("id", "episode", "text", "task", "moment", "origin", "split")
_NUMBERS = ("mean", "deviation", "target", "reward")


@dataclass(frozen=True, eq=False)
class LabelSet:
    """n requests, k arms. `targets` rows sum to 1; `rewards` are what was known, NaN elsewhere, all [n, k].

    `weights` [n] are what a request counts in training. `moments` are ISO texts. `notes` is the rest of the manifest:
    parameters, data report, method.
    """

    ids: tuple[str, ...]
    episodes: tuple[str, ...]
    texts: tuple[str, ...]
    tasks: tuple[str | None, ...]
    moments: tuple[str, ...]
    origins: tuple[str, ...]
    parts: tuple[Part, ...]
    arms: tuple[Arm, ...]
    mean: Floats
    deviation: Floats
    targets: Floats
    rewards: Floats
    weights: Floats
    notes: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def hash(self) -> str:
        digest = sha256()
        for array in (self.mean, self.deviation, self.targets, self.rewards, self.weights):
            digest.update(np.ascontiguousarray(array, np.float64).tobytes())
        rows = [
            [i, e, text_hash(t), p] for i, e, t, p in zip(self.ids, self.episodes, self.texts, self.parts, strict=True)
        ]
        return content_hash([FORMAT, rows, [arm.endpoint for arm in self.arms], digest.hexdigest()])

    def of(self, *parts: Part) -> Integers:
        """The numbers of the rows in these parts."""
        return np.array([n for n, part in enumerate(self.parts) if part in parts], np.int64)

    def without(self, endpoint: str) -> LabelSet:
        """The same requests, all arms but one; the others share its part of every target."""
        kept = [number for number, arm in enumerate(self.arms) if arm.endpoint != endpoint]
        targets = self.targets[:, kept]
        mass = targets.sum(axis=1, keepdims=True)
        return replace(
            self,
            arms=tuple(self.arms[number] for number in kept),
            mean=self.mean[:, kept],
            deviation=self.deviation[:, kept],
            targets=np.where(mass > 1e-9, targets / np.maximum(mass, 1e-9), 1 / len(kept)),
            rewards=self.rewards[:, kept],
        )

    def table(self) -> RewardTable:
        """What was known, as a reward table; its splits are the parts."""
        return RewardTable(self.ids, self.texts, self.arms, self.rewards, self.tasks, self.parts)

    def manifest(self) -> dict[str, Any]:
        counts = {part: self.parts.count(part) for part in ("train", "validation", "test")}
        return {
            "format": FORMAT, "hash": self.hash, "requests": len(self), "parts": counts,
            "arms": [asdict(arm) for arm in self.arms], **self.notes,
        }  # fmt: skip


def to_files(labels: LabelSet) -> tuple[bytes, bytes]:
    """The Parquet file and the manifest."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns: dict[str, Any] = {
        "id": list(labels.ids), "episode": list(labels.episodes), "text": list(labels.texts),
        "task": list(labels.tasks), "moment": list(labels.moments), "origin": list(labels.origins),
        "split": list(labels.parts), "weight": labels.weights,
    }  # fmt: skip
    numbers = (labels.mean, labels.deviation, labels.targets, labels.rewards)
    for name, array in zip(_NUMBERS, numbers, strict=True):
        columns[name] = pa.array(array.tolist(), pa.list_(pa.float64()))
    target = BytesIO()
    pq.write_table(pa.table(columns), target, compression="zstd")
    manifest = json.dumps(labels.manifest(), indent=1, sort_keys=True, ensure_ascii=False)
    return target.getvalue(), manifest.encode()


def from_files(data: bytes, manifest: bytes) -> LabelSet:
    """Raises `UserError` where the two do not belong together or the numbers are not those that were written."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        told = json.loads(manifest)
        table = pq.read_table(BytesIO(data))
        columns = {name: table.column(name).to_pylist() for name in (*_TEXTS, *_NUMBERS, "weight")}
        arms = tuple(Arm(**arm) for arm in told["arms"])
    except (ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise UserError(f"not a label set of ours ({error})") from error
    arrays = {name: np.array(columns[name], np.float64).reshape(len(columns["id"]), len(arms)) for name in _NUMBERS}
    own = ("format", "hash", "requests", "parts", "arms")
    labels = LabelSet(
        ids=tuple(columns["id"]),
        episodes=tuple(columns["episode"]),
        texts=tuple(columns["text"]),
        tasks=tuple(columns["task"]),
        moments=tuple(columns["moment"]),
        origins=tuple(columns["origin"]),
        parts=cast(tuple[Part, ...], tuple(columns["split"])),
        arms=arms,
        mean=arrays["mean"],
        deviation=arrays["deviation"],
        targets=arrays["target"],
        rewards=arrays["reward"],
        weights=np.array(columns["weight"], np.float64),
        notes={name: value for name, value in told.items() if name not in own},
    )
    if labels.hash != told.get("hash"):
        raise UserError("the label set's rows are not those that its manifest names")
    return labels
