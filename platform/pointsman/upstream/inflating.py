"""Bodies that a worker compressed although nobody asked for it: gzip and deflate, never more in memory than allowed."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from pointsman.errors import UpstreamError

PART_BYTES = 64 * 1024
_EITHER = zlib.MAX_WBITS | 32  # gzip or zlib, whichever the first bytes say


def inflater(encoding: str) -> Inflater | None:
    """For a `Content-Encoding`; None where it says none. Raises `UpstreamError` for what cannot be read here."""
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return None
    if name in ("gzip", "x-gzip", "deflate"):
        return Inflater()
    raise UpstreamError("malformed", "the reply is compressed in a way that was not asked for")


class Inflater:
    """One body. Some servers send `deflate` without zlib's head (RFC 9110 §8.4.1.2 notes it): that is read too."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(_EITHER)
        self._begun = False

    def feed(self, data: bytes, limit: int) -> bytes:
        """What `data` gives, cut at `limit` bytes."""
        parts: list[bytes] = []
        size = 0
        for part in self.parts(data):
            parts.append(part)
            size += len(part)
            if size >= limit:
                break
        return b"".join(parts)

    def parts(self, data: bytes) -> Iterator[bytes]:
        """What `data` gives, in parts of bounded size."""
        while data:
            part = self._inflated(data)
            self._begun = True
            if part:
                yield part
            data = self._zlib.unconsumed_tail

    def _inflated(self, data: bytes) -> bytes:
        try:
            return self._zlib.decompress(data, PART_BYTES)
        except zlib.error as error:
            if not self._begun:
                self._begun, self._zlib = True, zlib.decompressobj(-zlib.MAX_WBITS)
                return self._inflated(data)
            raise UpstreamError("malformed", "the reply is compressed and cannot be read") from error
