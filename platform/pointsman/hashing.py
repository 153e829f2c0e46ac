"""Content hashes: one canonical form of JSON, one digest, and the three hashes of a worker.

Endpoint, card and price are hashed apart because a change of each invalidates something else:
a new endpoint is a new arm and retires its rewards, a new card is only another router input, a
new price re-computes cost.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any


def canonical(value: Any) -> bytes:
    """JSON with sorted keys, no spaces, as UTF-8: equal values give equal bytes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str).encode(
        "utf-8", "surrogatepass"
    )


def content_hash(value: Any) -> str:
    """SHA-256 of the canonical form, as 64 hexadecimal digits."""
    return sha256(canonical(value)).hexdigest()


def text_hash(text: str) -> str:
    """SHA-256 of a text as it is."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
