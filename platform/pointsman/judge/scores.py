"""All answers to one request scored by one judge: each alone, or every pair in both orders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from pointsman.judge.judging import Judge
from pointsman.upstream.record import CallRecord


@dataclass(frozen=True)
class Scores:
    """By the key of each answer, in judge units, None where nothing could be read; `detail` says how each came."""

    scores: Mapping[str, float | None]
    records: list[CallRecord]
    detail: Mapping[str, dict[str, Any]] = field(default_factory=dict)


async def score_answers(judge: Judge, request: str, answers: Mapping[str, str]) -> Scores:
    """Pair by pair, an answer's score is its mean over the others; equal answers tie without a call."""
    if judge.spec.mode == "grade" or len(answers) < 2:
        return await _graded(judge, request, answers)
    return await _compared(judge, request, answers)


async def _graded(judge: Judge, request: str, answers: Mapping[str, str]) -> Scores:
    scores: dict[str, float | None] = {}
    records: list[CallRecord] = []
    detail: dict[str, dict[str, Any]] = {}
    for key, answer in answers.items():
        judged = await judge.grade(request, answer)
        scores[key] = judged.score
        detail[key] = {"calls": [record.id for record in judged.records]}
        records += judged.records
    return Scores(scores, records, detail)


async def _compared(judge: Judge, request: str, answers: Mapping[str, str]) -> Scores:
    wins: dict[str, list[float]] = {key: [] for key in answers}
    records: list[CallRecord] = []
    detail: dict[str, dict[str, Any]] = {key: {"against": {}, "calls": []} for key in answers}
    for first, second in combinations(answers, 2):
        if answers[first] == answers[second]:
            score: float | None = 0.5
        else:
            judged = await judge.compare(request, answers[first], answers[second])
            score = judged.score
            records += judged.records
            for key in (first, second):
                detail[key]["calls"] += [record.id for record in judged.records]
        if score is not None:
            wins[first].append(score)
            wins[second].append(1 - score)
            detail[first]["against"][second], detail[second]["against"][first] = score, 1 - score
    scores = {key: sum(won) / len(won) if won else None for key, won in wins.items()}
    return Scores(scores, records, detail)
