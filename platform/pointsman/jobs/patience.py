"""Waiting out a Postgres that restarts: what failed for want of a connection is done again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy.exc import DBAPIError, OperationalError

T = TypeVar("T")

SECONDS = 60.0
_PAUSE = 0.2
_AGAIN = ("40001", "40P01", "57P01", "57P02", "57P03")  # conflicts of transactions; the server stops or starts


def patiently(action: Callable[[], T], seconds: float = SECONDS, check: Callable[[], None] = lambda: None) -> T:
    """The value of `action`, which is done again while Postgres is away, up to `seconds`; then its error.

    It may have been committed although its answer was lost, so `action` must bear being done twice.
    `check` may raise to end the wait.
    """
    until = time.monotonic() + seconds
    while True:
        try:
            return action()
        except DBAPIError as error:
            if not passing(error) or time.monotonic() > until:
                raise
        check()
        time.sleep(_PAUSE)


def passing(error: DBAPIError) -> bool:
    """Whether an error says nothing about the statement: no connection, or a conflict that a new try may not have."""
    state = getattr(error.orig, "sqlstate", None)
    if state is not None:
        return state in _AGAIN or state.startswith("08")
    return error.connection_invalidated or isinstance(error, OperationalError)
