"""Scenarios 7 and 11 scaled down, and one round of harm, on Redis as a process: what `benchmarks/jobs.py` measures."""

from __future__ import annotations

from benchmarks.jobwork.drain import drain
from benchmarks.jobwork.scenarios import broker_away
from benchmarks.jobwork.scene import scene
from benchmarks.stress.verdict import Size


def test_a_broker_that_is_away_and_comes_back_empty_loses_no_job_and_no_request() -> None:
    found = broker_away(Size(quick=True))
    assert found["failed"] == [], found
    assert found["figures"]["jobs_done_once"] == 20 and found["figures"]["asks"] > 20


def test_duplicates_collapse_and_an_urgent_job_overtakes_a_long_queue() -> None:
    with scene("redis", notes=False, sandbox=False) as at:
        found = drain(at, 2_000)
    assert (found["lost"], found["doubled"], found["duplicates_made"], found["exit_codes"]) == (0, 0, 0, [0, 0])
    assert found["urgent_s"] is None or found["urgent_s"] < 5
