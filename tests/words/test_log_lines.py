"""Our processes' own lines: text or JSON, one each, without keys and without the text of an exception."""

from __future__ import annotations

import json
import logging
import sys

import pytest

from pointsman.logs import JsonLines, TextLines, configure_logging


def written(formatter, message, *arguments, exc_info=None):
    """A record as a format writes it."""
    record = logging.LogRecord("pointsman.test", logging.ERROR, __file__, 1, message, arguments, exc_info)
    line = formatter.format(record)
    assert "\n" not in line and line.encode()
    return line


def test_a_line_of_json():
    line = json.loads(written(JsonLines(), "%s of %d\nrows \ud83d é", "two", 3))
    assert line.pop("at").endswith("+00:00")
    assert line == {"level": "ERROR", "logger": "pointsman.test", "message": "two of 3 rows ? é"}


def test_a_line_of_text():
    line = written(TextLines(), "one\nline")
    assert line.endswith(" ERROR pointsman.test: one line")


@pytest.mark.parametrize("formatter", [JsonLines(), TextLines()], ids=["json", "text"])
def test_neither_keys_nor_an_exceptions_text_are_written(formatter):
    try:
        raise ValueError("the prompt was: my secret question")
    except ValueError:
        raised = sys.exc_info()
    line = written(formatter, "went wrong with %s", "Bearer sk-CANARY0123456789abcdef", exc_info=raised)
    assert "CANARY" not in line and "secret" not in line
    assert f"ValueError at {__file__}:" in line


def test_configuring_twice_leaves_one_handler_and_others_alone():
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    try:
        configure_logging()
        configure_logging(form="json")
        added = [handler for handler in root.handlers if handler not in before]
        assert [type(handler.formatter) for handler in added] == [JsonLines]
        assert all(handler in root.handlers for handler in before)
    finally:
        for handler in [handler for handler in root.handlers if handler not in before]:
            root.removeHandler(handler)
        root.setLevel(level)
