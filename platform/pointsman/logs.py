"""Logging of our processes: one line each on standard error, never with the text of a request or a secret."""

from __future__ import annotations

import logging


def configure_logging(level: int = logging.INFO) -> None:
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for noisy in ("aiohttp", "alembic", "asyncio", "uvicorn", "httpx"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
