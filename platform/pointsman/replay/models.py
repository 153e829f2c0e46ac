"""`models.json` and the pool of a data set's models.

    {"gpt-4o": {"input_price": 2.5, "output_price": 10, "model": "gpt-4o-2024-08-06", ...}}

Prices are USD per million tokens, as everywhere in Pointsman. Every key may be absent; keys not
named in `ModelEntry` are ignored. A model of the file that has no outcome is no worker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path

import msgspec

from pointsman.errors import UserError
from pointsman.pool import Pool, Price, Worker
from pointsman.replay.cells import COST_PLACES
from pointsman.replay.source import RecordedOutcome

MILLION = 1_000_000
MAX_CARD_CHARS = 4000


class ModelEntry(msgspec.Struct, frozen=True):
    """What `models.json` may say of one model."""

    input_price: Decimal | None = None
    output_price: Decimal | None = None
    cached_input_price: Decimal | None = None
    model: str | None = None
    size: str | None = None
    description: str | None = None
    context_window: int | None = None


def read_models(folder: Path) -> dict[str, ModelEntry]:
    """The entries of `models.json`, none where there is no such file."""
    file = folder / "models.json"
    try:
        raw = file.read_bytes()
    except FileNotFoundError:
        return {}
    try:
        entries = msgspec.json.decode(raw, type=dict[str, ModelEntry])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{file}: expected an object of models: {error}") from None
    for name, entry in entries.items():
        _check(f"{file}: {name}", entry)
    return entries


def _check(place: str, entry: ModelEntry) -> None:
    for key in ("input_price", "output_price", "cached_input_price"):
        value: Decimal | None = getattr(entry, key)
        if value is not None and not (value.is_finite() and 0 <= value <= MILLION):
            raise UserError(f"{place}.{key}: expected USD per million tokens, got {value}")
    if (entry.input_price is None) != (entry.output_price is None):
        raise UserError(f"{place}: expected both input_price and output_price, or neither")
    if entry.context_window is not None and entry.context_window < 1:
        raise UserError(f"{place}.context_window: expected at least 1, got {entry.context_window}")
    if entry.description is not None and len(entry.description) > MAX_CARD_CHARS:
        raise UserError(f"{place}.description: expected {MAX_CARD_CHARS} characters at most")


def card_text(name: str, entry: ModelEntry, dataset: str) -> str:
    """A neutral card: it says what the model is, and nothing of how it scored."""
    size = f" ({entry.size})" if entry.size else ""
    return entry.description or f"{name}{size}: a model whose answers are recorded in the data set {dataset}."


def replay_pool(names: Iterable[str], entries: Mapping[str, ModelEntry], dataset: str) -> Pool:
    """The recorded models as workers, by name. They have no address: only their record is known."""
    return Pool(tuple(_worker(name, entries.get(name, ModelEntry()), dataset) for name in sorted(names)))


def cost_of(outcome: RecordedOutcome, price: Price | None) -> Decimal | None:
    """The recorded cost in USD; else what the recorded tokens cost at the model's price; else None."""
    if outcome.cost is not None:
        return outcome.cost
    if price is None or outcome.input_tokens is None or outcome.output_tokens is None:
        return None
    dollars = price.input * outcome.input_tokens + price.output * outcome.output_tokens
    return (dollars / MILLION).quantize(COST_PLACES)


def _worker(name: str, entry: ModelEntry, dataset: str) -> Worker:
    return Worker(
        name=name,
        card=card_text(name, entry, dataset),
        model=entry.model or name,
        endpoints=(),
        price=_price(entry),
        context_window=entry.context_window,
    )


def _price(entry: ModelEntry) -> Price | None:
    if entry.input_price is None or entry.output_price is None:
        return None
    cached = entry.input_price if entry.cached_input_price is None else entry.cached_input_price
    return Price(entry.input_price, entry.output_price, cached)
