"""Values on their way into `jsonb`: cleaned, plain, and not too large for a row."""

from __future__ import annotations

from typing import Any

import msgspec

from pointsman.database.clean import clean_json
from pointsman.errors import BrokenInvariant

MAX_BYTES = 1_000_000


def storable(value: Any, what: str = "value") -> Any:
    """`value` as JSON that Postgres takes. Anything above a megabyte belongs in an artifact, and is refused."""
    cleaned = clean_json(value)
    if len(cleaned) > MAX_BYTES:
        raise BrokenInvariant(f"{what}: {len(cleaned)} bytes of JSON; above {MAX_BYTES} put it into an artifact")
    return msgspec.json.decode(cleaned)
