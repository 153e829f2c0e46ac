"""The kill rounds of `benchmarks/jobs.py` leave no kind of job out unnoticed."""

from __future__ import annotations

from benchmarks.jobwork.kinds import ELSEWHERE, KINDS, kinds_of
from pointsman.jobs.kinds import KINDS as ALL


def test_every_kind_runs_in_the_kill_rounds_or_says_why_not() -> None:
    assert sorted({kind.name for kind in KINDS} | set(ELSEWHERE)) == sorted(ALL)
    assert {kind.name for number in range(len(KINDS)) for kind in kinds_of(number)} == {kind.name for kind in KINDS}
