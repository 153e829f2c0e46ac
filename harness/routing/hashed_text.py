"""Hashed TF-IDF of a text: the features of classic routers, one code for training and serving.

Tokens are runs of letters, runs of digits (every digit counts as 0, so that `17` and `23` are one token)
and single marks; features are tokens and pairs of neighbours, hashed by CRC-32 into 2^bits buckets. A
text's values are (1 + ln count) · idf, scaled to length 1. Only the head and tail of a long text are read.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Indices = NDArray[np.int64]
    Floats = NDArray[np.float64]

MAX_CHARS = 600
_PAIR = 0x9E3779B1  # Knuth's multiplicative constant: the pair (a, b) is not the pair (b, a)
_TOKEN = re.compile(rb"[a-z\x80-\xff]+|0+|[^\sa-z0\x80-\xff]")
_FOLD = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ123456789", b"abcdefghijklmnopqrstuvwxyz000000000")


@dataclass(frozen=True)
class HashedText:
    """How texts are hashed. `max_chars`: two thirds of it are a long text's head, the rest its tail."""

    bits: int = 14
    max_chars: int = MAX_CHARS

    @property
    def buckets(self) -> int:
        return 1 << self.bits

    def counts(self, text: str) -> tuple[Indices, Indices]:
        """The buckets that the text fills, ascending, and how often each."""
        import numpy as np

        tokens = _TOKEN.findall(self._read(text))
        size = len(tokens)
        if not size:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        filled = np.empty(2 * size - 1, np.uint32)
        filled[:size] = np.fromiter(map(zlib.crc32, tokens), np.uint32, size)
        filled[size:] = filled[: size - 1] * np.uint32(_PAIR) ^ filled[1:size]
        filled >>= np.uint32(32 - self.bits)
        filled.sort()
        edges = np.empty(len(filled) + 1, np.bool_)
        edges[0] = edges[-1] = True
        np.not_equal(filled[1:], filled[:-1], out=edges[1:-1])
        starts = np.flatnonzero(edges)
        return filled[starts[:-1]].astype(np.int64), starts[1:] - starts[:-1]

    def _read(self, text: str) -> bytes:
        if len(text) > self.max_chars:
            head = self.max_chars * 2 // 3
            text = f"{text[:head]} {text[head - self.max_chars :]}"
        if not text.isascii():
            text = text.lower()
        return text.encode("utf-8", "surrogatepass").translate(_FOLD)


def tf_idf(counts: Indices, idf: Floats) -> Floats:
    """(1 + ln count) · idf over the filled buckets, scaled to length 1; empty stays empty."""
    import numpy as np

    values: Floats = (np.log(counts) + 1) * idf
    norm = np.sqrt(np.dot(values, values))
    return values / norm if norm > 0 else values
