"""Score tables as records: what each model scored on each question, in a long or a wide shape.

long    a row for each question and model: `model` and `score` are columns
wide    a row for each question: the models are columns. Which they are is read from columns such as
        `gpt-4|total_cost` and `gpt-4|model_response` (RouterBench), or from objects
        {"scores": {model: score}, "costs": {…}, "responses": {…}}, or is said by the map
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pointsman.hashing import text_hash
from pointsman.intake.maps import ColumnMap
from pointsman.intake.record import Record
from pointsman.intake.values import Unreadable, Values, from_json

BAR = "|"
_COST, _RESPONSE, _TOKENS_IN, _TOKENS_OUT, _MS = (
    ("total_cost", "cost"), ("model_response", "response"), ("input_tokens", "prompt_tokens"),
    ("output_tokens", "completion_tokens"), ("latency_ms",),
)  # fmt: skip
_OBJECTS = {"scores": "score", "costs": "cost", "responses": "response"}


@dataclass(frozen=True)
class Shape:
    """Whether a table is long, and else which columns are models."""

    long: bool
    models: tuple[str, ...] = ()


def shape_of(row: Mapping[str, Any], columns: ColumnMap) -> Shape:
    """The shape of a table, by its first row. `Unreadable` says how to name the models where nothing tells them."""
    if columns.models:
        return Shape(False, columns.models)
    barred = {name.partition(BAR)[0] for name in row if BAR in name}
    if models := tuple(sorted(name for name in barred if name in row)):
        return Shape(False, models)
    if isinstance(from_json(row.get("scores")), Mapping):
        return Shape(False)
    if any(path in row for path in columns.fields["model"]):
        return Shape(True)
    raise Unreadable(
        "columns: no column says which model answered, and none is known to be a model; "
        'name them in a map file: [wide] models = ["…"]'
    )


def records_of(row: Mapping[str, Any], columns: ColumnMap, shape: Shape) -> Iterator[Record]:
    """The records of one row. Raises `Unreadable`: then none of them may be kept."""
    values = Values(row, columns.fields)
    text = values.text("text")
    if not text:
        raise Unreadable("text: expected the question")
    whole = Record(
        query=values.text("id") or text_hash(text),
        model="",
        text=text,
        asked_at=values.moment("asked_at"),
        task=values.text("task"),
        split=values.text("split"),
    )
    if shape.long:
        yield _long(whole, values)
        return
    cells = _objects(row) if not shape.models else {model: _barred(row, model) for model in shape.models}
    scored = [_wide(whole, model, cell) for model, cell in cells.items()]
    known = [record for record in scored if record is not None]
    if not known:
        raise Unreadable("score: expected a score of at least one model")
    yield from known


def _long(whole: Record, values: Values) -> Record:
    model, score = values.text("model"), values.score("score")
    if not model or score is None:
        raise Unreadable("model, score: expected both")
    return replace(
        whole,
        model=model,
        score=score,
        completion=values.text("response"),
        input_tokens=values.count("input_tokens"),
        output_tokens=values.count("output_tokens"),
        cost=values.cost("cost"),
        latency_ms=values.milliseconds("latency"),
        repeat=values.count("repeat"),
    )


def _wide(whole: Record, model: str, cell: Mapping[str, Any]) -> Record | None:
    """A model's record, None where it has no score on this question."""
    fields = {
        "score": ("score",), "cost": _COST, "response": _RESPONSE, "input_tokens": _TOKENS_IN,
        "output_tokens": _TOKENS_OUT, "latency_ms": _MS,
    }  # fmt: skip
    values = Values(cell, fields)
    try:
        score = values.score("score")
        if score is None:
            return None
        return replace(
            whole,
            model=model,
            score=score,
            completion=values.text("response"),
            input_tokens=values.count("input_tokens"),
            output_tokens=values.count("output_tokens"),
            cost=values.cost("cost"),
            latency_ms=values.number("latency_ms"),
        )
    except Unreadable as error:
        raise Unreadable(f"{model}: {error}") from None


def _barred(row: Mapping[str, Any], model: str) -> dict[str, Any]:
    mine = f"{model}{BAR}"
    return {
        "score": row.get(model),
        **{name[len(mine) :]: value for name, value in row.items() if name[: len(mine)] == mine},
    }


def _objects(row: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    cells: dict[str, dict[str, Any]] = {}
    for column, field in _OBJECTS.items():
        held = from_json(row.get(column))
        for model, value in held.items() if isinstance(held, Mapping) else ():
            cells.setdefault(str(model), {})[field] = value
    return cells
