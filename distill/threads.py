"""One thread for small fits: scikit-learn's OpenMP loops wait by spinning, which on a busy machine costs minutes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_thread() -> Iterator[None]:
    """OpenMP and BLAS use one thread inside."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        yield
