"""A label set as a folder: a file for each part (JSONL or Parquet), the manifest, a card."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

import numpy as np
from sqlalchemy import Connection, select

from distill.jobs.found import StoredLabels
from distill.labels.parts import Part
from distill.labels.store import LabelSet
from distill.outlet.cards import Source, labels_card
from distill.outlet.folders import new_folder
from pointsman.outlet.subjects import learnable
from pointsman.queries.scope import DECISION, REQUEST
from pointsman.redaction import Redactor

Form = Literal["jsonl", "parquet"]
PARTS: tuple[Part, ...] = ("train", "validation", "test")
_PAGE = 5_000


def export_labels(
    connection: Connection,
    stored: StoredLabels,
    data_hash: str,
    folder: Path,
    *,
    form: Form = "jsonl",
    redact: Sequence[str] = (),
    stated: Mapping[str, str] | None = None,
) -> dict[str, int]:
    """Writes the set; rows by part, and how many were left out. `UserError` where `folder` holds something.

    Left out is what may no longer be learned from. `stated` says a worker's licence, for the card.
    """
    labels = stored.labels
    withdrawn = _withdrawn(connection, labels.ids)
    redactor = Redactor(redact)
    written: dict[str, int] = {}
    with new_folder(folder) as place:
        for part in PARTS:
            rows = [_row(labels, int(n), redactor) for n in labels.of(part) if labels.ids[n] not in withdrawn]
            if rows:
                _write(place / f"{part}.{form}", rows, form)
            written[part] = len(rows)
        manifest = {**stored.manifest, "id": stored.id, "exported": written, "withdrawn": len(withdrawn)}
        (place / "labels.json").write_text(json.dumps(manifest, indent=1, ensure_ascii=False), encoding="utf-8")
        source = source_of(stored, data_hash)
        card = labels_card(source, sum(written.values()), len(withdrawn), form, stated or {})
        (place / "README.md").write_text(card, encoding="utf-8")
    return {**written, "left_out": len(withdrawn)}


def source_of(stored: StoredLabels, data_hash: str) -> Source:
    """What a card says of a label set."""
    labels = stored.labels
    known = np.isfinite(labels.rewards).sum(axis=0)
    return Source(
        label_set=stored.id,
        hash=labels.hash,
        data_hash=data_hash,
        parts={part: labels.parts.count(part) for part in PARTS},
        origins=dict(Counter(labels.origins)),
        answers={arm.worker: int(number) for arm, number in zip(labels.arms, known, strict=True) if number},
    )


def _row(labels: LabelSet, n: int, redactor: Redactor) -> dict[str, Any]:
    return {
        "id": labels.ids[n],
        "episode": labels.episodes[n],
        "text": redactor.text(labels.texts[n]),
        "task": redactor.text(labels.tasks[n]),
        "moment": labels.moments[n],
        "origin": labels.origins[n],
        "weight": float(labels.weights[n]),
        "best": labels.arms[int(labels.mean[n].argmax())].worker,
        "target": labels.targets[n].tolist(),
        "mean": labels.mean[n].tolist(),
        "deviation": labels.deviation[n].tolist(),
        "reward": [float(value) if np.isfinite(value) else None for value in labels.rewards[n]],
    }


def _write(file: Path, rows: list[dict[str, Any]], form: Form) -> None:
    if form == "jsonl":
        file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(rows), file, compression="zstd")


def _withdrawn(connection: Connection, ids: Sequence[str]) -> set[str]:
    """Decisions of the set whose request may not be learned from (any more)."""
    found: set[str] = set()
    for start in range(0, len(ids), _PAGE):
        known = [UUID(identity) for identity in ids[start : start + _PAGE] if _is_uuid(identity)]
        joined = DECISION.join(REQUEST, REQUEST.c.id == DECISION.c.request_id)
        query = select(DECISION.c.id).select_from(joined).where(DECISION.c.id.in_(known), ~learnable())
        found |= {str(identity) for identity in connection.scalars(query)}
    return found


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
