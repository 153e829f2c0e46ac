"""The scenarios' oracle and verdicts themselves: what they must notice, and what they must not hold against a run."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from benchmarks.stress.client import Ask, Client, payload
from benchmarks.stress.load import Load
from benchmarks.stress.oracle import Match, match_calls, match_serials
from benchmarks.stress.scene import workers
from benchmarks.stress.steady import mb_per_minute
from benchmarks.stress.verdict import Verdict, quantile

DECISIONS = [("d1", "r1", "1", "ok"), ("d2", "r2", "2", "ok"), ("d3", "r3", "3", "abandoned"), ("d4", "r4", "", "ok")]


def call(decision: str, serial: int | None = None, status: str = "ok", fault: str | None = None) -> tuple[Any, ...]:
    return (decision, None if serial is None else f"chatcmpl-{serial}", status, fault, "north", 5, None)


def line(number: int | None, serial: int) -> dict[str, Any]:
    return {"number": number, "serial": serial}


@pytest.mark.parametrize(
    ("journal", "calls", "unlogged", "invented"),
    [
        ([line(1, 7), line(2, 8)], [call("d1", 7), call("d2", 8)], 0, 0),
        ([line(1, 7), line(2, 8)], [call("d1", 7)], 1, 0),
        ([line(1, 7), line(1, 8)], [call("d1", 7)], 1, 0),
        ([line(1, 7)], [call("d1", 7), call("d2", 8)], 0, 1),
        ([line(1, 7)], [call("d1", 7), call("d2", None, "cancelled")], 0, 0),  # left before it was sent
        ([line(1, 7)], [call("d1", None, "error", "connect"), call("d1", 7)], 0, 0),  # nobody listened
        ([line(3, 9)], [], 0, 0),  # the gateway was killed under it
        ([line(None, 9)], [call("d4", 9)], 0, 0),
    ],
)
def test_calls_are_matched(journal: list[Any], calls: list[Any], unlogged: int, invented: int) -> None:
    found = Match(journal, Counter(), calls, {row[0]: row[2] for row in DECISIONS})
    match_calls(found, DECISIONS)
    assert (found.unlogged_calls, found.invented_calls) == (unlogged, invented)
    assert found.sound == (unlogged == invented == 0)


@pytest.mark.parametrize(
    ("calls", "wrong"),
    [
        ([call("d1", 7)], 0),
        ([call("d1", None, "error"), call("d1", 7)], 0),
        ([call("d1", 8)], 1),
        ([call("d2", 7)], 1),
        ([call("d1", 7), call("d2", 7)], 1),
    ],
)
def test_serials_are_matched(calls: list[Any], wrong: int) -> None:
    found = Match([], Counter(), calls)
    match_serials(found, [Ask(1, False, decision="d1", serial=7, whole=True)])
    assert found.wrong_serials == wrong


def test_a_figure_beyond_its_limit_or_that_is_none_fails() -> None:
    verdict = Verdict()
    verdict.at_most("low", 1.0, 2)
    verdict.at_most("high", 3.0, 2)
    verdict.at_least("few", 1, 2)
    verdict.at_most("never", quantile([], 0.5), 2)
    verdict.is_("same", 503, 503)
    verdict.matched(Match([], Counter(ok=2), [], lost=1))
    result = verdict.as_dict()
    assert not result["pass"] and result["failed"] == ["high", "few", "never", "lost"]
    assert result["limits"]["few"] == ">= 2" and result["figures"]["rows"] == 2
    assert json.loads(json.dumps(result, allow_nan=False))["figures"]["never"] == "nan"


def test_growth_is_read_after_the_first_third() -> None:
    minutes = [(60.0 * n, 50.0 if n < 3 else 100.0 + 2 * n) for n in range(9)]
    assert mb_per_minute(minutes) == pytest.approx(2.0)


async def test_the_workers_keep_a_journal_of_what_they_did() -> None:
    with workers(pause=0.0, faults={"server": 1.0}) as upstream:
        load = Load(upstream.url)
        client = load.client()
        failed = await load.one(client, stream=False)
        whole = await client.send(Ask(2, True), payload(2, stream=True, play={"fault": "none", "pieces": 3}))
        left = Client(client.host, client.port, timeout=0.2)
        gone = await left.send(Ask(3, True), payload(3, stream=True, play={"fault": "none", "pieces": 9, "gap": 0.1}))
        refused = await client.send(Ask(4, False), payload(4, stream=False, play={"fault": "reset"}))
        client.close()
        journal = sorted(upstream.lines(), key=lambda entry: entry["serial"])
    assert (failed.status, failed.whole, failed.told) == (500, False, True)
    assert (whole.status, whole.whole, whole.serial) == (200, True, 2)
    assert (gone.whole, gone.error) == (False, "TimeoutError")
    assert (refused.status, refused.error is None) == (None, False)
    seen = [(entry["number"], entry["met"], entry["whole"], entry["left"]) for entry in journal[:3]]
    assert seen == [(1, "server", False, False), (2, "none", True, False), (3, "none", False, True)]
    assert journal[1]["pieces"] == 3 and 1 <= journal[2]["pieces"] <= 4
    assert {entry["number"] for entry in journal[3:]} == {4}  # and sent again, as the line was a kept one
