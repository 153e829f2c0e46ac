"""Vectors kept on disk by the hash of their text, one safetensors file per space.

A space is everything that decides a vector besides the text (model hash, pooling, code version); its
name is the file's, so a change of any of it starts an empty cache.

    vectors = VectorCache(folder, space).through(texts, encode)

What is left out: eviction. A space of 5,000 texts at 384 dimensions is 8 MB; delete the folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from distill.arrays import Floats
from pointsman.errors import UserError
from pointsman.hashing import content_hash, text_hash

Encode = Callable[[Sequence[str]], Floats]


class VectorCache:
    """Rows of float32 by text; `folder` is made when first written to."""

    def __init__(self, folder: Path, space: object) -> None:
        self.file = folder / f"{content_hash(space)[:32]}.safetensors"

    def through(self, texts: Sequence[str], encode: Encode) -> Floats:
        """One row per text, in order; only the texts not seen before are encoded, each once."""
        hashes = [text_hash(text) for text in texts]
        known = self._read()
        missing = {key: text for key, text in zip(hashes, texts, strict=True) if key not in known}
        if missing:
            fresh = encode(list(missing.values()))
            known |= dict(zip(missing, np.asarray(fresh, np.float32), strict=True))
            self._write(known)
        return np.stack([known[key] for key in hashes]) if hashes else np.empty((0, 0), np.float32)

    def _read(self) -> dict[str, Floats]:
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        if not self.file.exists():
            return {}
        try:
            stored = load_file(self.file)
            keys, vectors = stored["keys"], stored["vectors"]
        except (SafetensorError, KeyError) as error:
            raise UserError(f"{self.file}: not a cache of vectors ({error}); delete it") from error
        return {bytes(key).hex(): vector for key, vector in zip(keys, vectors, strict=True)}

    def _write(self, known: dict[str, Floats]) -> None:
        from safetensors.numpy import save_file

        self.file.parent.mkdir(parents=True, exist_ok=True)
        keys = np.stack([np.frombuffer(bytes.fromhex(key), np.uint8) for key in known])
        waiting = self.file.with_suffix(f".{os.getpid()}.new")
        save_file({"keys": keys, "vectors": np.stack(list(known.values()))}, waiting)
        waiting.replace(self.file)
