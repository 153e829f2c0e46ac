"""Rows that Postgres refused, and lines that cannot be read, are counted where an operator looks."""

from __future__ import annotations

from datetime import UTC, datetime

from pointsman.journal.rejected import keep_line, keep_row


def test_rejected_rows_and_damaged_lines_are_metrics(make_gateway):
    gateway = make_gateway()
    assert "pointsman_rows_rejected 0.0" in gateway.client.get("/metrics").text
    journal, now = gateway.home / "journal", datetime.now(UTC)
    keep_row(journal, now, "call", {"id": 1}, "22003", "NumericValueOutOfRange")
    keep_row(journal, now, "call", {"id": 2}, "22003", "NumericValueOutOfRange")
    keep_line(journal, now, b"dead")
    gateway.refresh()
    told = gateway.client.get("/metrics").text
    assert "pointsman_rows_rejected 2.0" in told and "pointsman_journal_lines_damaged 1.0" in told
