"""Logging of our processes: one line each on standard error, never with the text of a request or a secret.

A line is text, or with `[log] format = "json"` a JSON object: `at, level, logger, message`, and `fault` where an
exception came with it. Of an exception only its type and place are written, since its text may quote a request.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from types import TracebackType
from typing import Literal

import msgspec

from pointsman.upstream.faults import without_secrets

Format = Literal["text", "json"]
NOISY = ("aiohttp", "alembic", "asyncio", "uvicorn", "httpx")

_Raised = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


def configure_logging(level: int = logging.INFO, form: Format = "text") -> None:
    """Sets up the root logger, in place of what an earlier call set up."""
    root = logging.getLogger()
    for old in [handler for handler in root.handlers if isinstance(handler.formatter, TextLines | JsonLines)]:
        root.removeHandler(old)
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    root.addHandler(handler)
    root.setLevel(level)
    for name in NOISY:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("opentelemetry").setLevel(logging.ERROR)  # it warns of every try that it makes again


class TextLines(logging.Formatter):
    """`2026-01-02 03:04:05,678 INFO pointsman.gateway: …`."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        line = f"{self.formatTime(record)} {record.levelname} {record.name}: {_message(record)}"
        fault = _fault(record)
        return f"{line} ({fault})" if fault else line


class JsonLines(logging.Formatter):
    """One JSON object a line; `at` is in UTC."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": _message(record),
        }
        if fault := _fault(record):
            fields["fault"] = fault
        return msgspec.json.encode(fields).decode()


def place(error: BaseException) -> str:
    """The type of an exception, and where it was raised."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else "?"
    return f"{type(error).__name__} at {where}"


def _message(record: logging.LogRecord) -> str:
    """One line, without what looks like a key, and without what JSON cannot hold."""
    text = without_secrets(record.getMessage()).encode("utf-8", "replace").decode()
    return " ".join(text.splitlines())


def _fault(record: logging.LogRecord) -> str | None:
    raised: _Raised | None = record.exc_info
    return place(raised[1]) if raised and raised[1] is not None else None
