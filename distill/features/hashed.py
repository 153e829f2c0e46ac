"""Hashed TF-IDF of many texts as a sparse matrix, with the very counts that the gateway computes.

The hashing is the gateway's (`harness.routing.hashed_text`), the weights are scikit-learn's
`TfidfTransformer(sublinear_tf=True)`; what is trained on these rows is served by numpy alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from distill.arrays import Floats
from harness.routing.hashed_text import HashedText


def count_matrix(texts: Sequence[str], text: HashedText) -> Any:
    """A scipy CSR matrix [texts, buckets] of counts."""
    from scipy.sparse import csr_matrix

    rows = [text.counts(item) for item in texts]
    starts = np.cumsum([0, *(len(buckets) for buckets, _ in rows)])
    buckets = np.concatenate([buckets for buckets, _ in rows]) if rows else np.empty(0, np.int64)
    counts = np.concatenate([counts for _, counts in rows]) if rows else np.empty(0, np.int64)
    return csr_matrix((counts.astype(np.float64), buckets, starts), shape=(len(rows), text.buckets))


@dataclass(frozen=True, eq=False)
class TfIdf:
    """A fitted weighting: `idf` [buckets]."""

    text: HashedText
    idf: Floats

    @classmethod
    def fit(cls, counts: Any, text: HashedText) -> TfIdf:
        return cls(text, _transformer().fit(counts).idf_)

    def rows(self, counts: Any) -> Any:
        """Weighted rows of length 1, sparse."""
        from sklearn.preprocessing import normalize

        weighted = counts.copy()
        weighted.data = (np.log(weighted.data) + 1) * self.idf[weighted.indices]
        return normalize(weighted, copy=False)


def _transformer() -> Any:
    from sklearn.feature_extraction.text import TfidfTransformer

    return TfidfTransformer(sublinear_tf=True)


@dataclass(frozen=True, eq=False)
class Projection:
    """A truncated SVD of TF-IDF rows: `matrix` [buckets, d]; rows come out scaled to length 1."""

    matrix: Floats

    @classmethod
    def fit(cls, rows: Any, dimensions: int, seed: int) -> Projection:
        from sklearn.decomposition import TruncatedSVD

        width = min(dimensions, min(rows.shape) - 1)
        svd = TruncatedSVD(width, random_state=seed, n_iter=3).fit(rows)
        return cls(np.ascontiguousarray(svd.components_.T))

    def points(self, rows: Any) -> Floats:
        from sklearn.preprocessing import normalize

        points: Floats = normalize(rows @ self.matrix)
        return points
