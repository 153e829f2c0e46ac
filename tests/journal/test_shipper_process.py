"""The shipper's process: `[log] retention` is read anew at a reload, and a faulty file leaves the old one in force."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pointsman.journal.rejected import REJECTED, Tally, keep_line, keep_row

ROOT = Path(__file__).parents[2]
TOML = """
[database]
url = "{url}"
[log]
retention = {days}
format = "json"
[[workers]]
name = "a"
description = "d"
model = "m"
base_url = "http://127.0.0.1:9"
"""


def entries(root: Path) -> int:
    tally = Tally(root)
    tally.read()
    return tally.lines


def wait_for(there: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not there():
        assert time.monotonic() < until, "it did not come"
        time.sleep(0.05)


def test_a_reload_takes_the_new_retention_at_once(tmp_path, empty_database):
    file, journal = tmp_path / "pointsman.toml", tmp_path / "journal"
    file.write_text(TOML.format(url=empty_database, days=90))
    journal.mkdir()
    now = datetime.now(UTC)
    for days in (200, 40, 0):
        keep_line(journal, now - timedelta(days=days), b"x")
    environment = {**os.environ, "POINTSMAN_HOME": str(tmp_path), "POINTSMAN_CONFIG": str(file)}
    log = tmp_path / "stderr"
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "pointsman.journal.process"],
            stdin=subprocess.PIPE, stderr=stderr, env=environment, cwd=ROOT,
        )  # fmt: skip
    try:
        wait_for(lambda: entries(journal) == 2)  # those of 90 days
        file.write_text("[log]\nretention = 0\n")
        process.send_signal(signal.SIGHUP)
        wait_for(lambda: b'"logger":"pointsman.shipper","message":"not reloaded: ' in log.read_bytes())
        file.write_text(TOML.format(url=empty_database, days=30))
        process.send_signal(signal.SIGHUP)
        wait_for(lambda: entries(journal) == 1)
    finally:
        process.terminate()
        process.communicate(timeout=20)
    assert process.returncode == 0


def test_the_tally_tells_rows_from_lines_and_reads_only_what_changed(tmp_path):
    tally = Tally(tmp_path)
    tally.read()
    assert (tally.rows, tally.lines) == (0, 0)
    now = datetime.now(UTC)
    keep_row(tmp_path, now, "call", {"id": 1, "table": None}, "22003", "NumericValueOutOfRange")
    keep_line(tmp_path, now, b'{"table": "x"}')
    keep_line(tmp_path, now, b"\xff")
    tally.read()
    assert (tally.rows, tally.lines) == (1, 2)
    file = tmp_path / REJECTED
    stat = file.stat()
    file.write_bytes(b"x" * stat.st_size)
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    tally.read()
    assert (tally.rows, tally.lines) == (1, 2)  # the same file by all signs: it is not read each second
    file.unlink()
    tally.read()
    assert (tally.rows, tally.lines) == (0, 0)
