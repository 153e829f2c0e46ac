"""Solves questions about the calendar."""

from __future__ import annotations

import re
from datetime import date, timedelta

from pointsman.sandbox.solvers.base import Answer, rule

_D = r"(\d{4}-\d\d-\d\d)"


def _moved(day: str, days: str, sign: int) -> Answer:
    return str(date.fromisoformat(day) + sign * timedelta(days=int(days))), "date"


def _between(match: re.Match[str]) -> Answer:
    start, end = (date.fromisoformat(group) for group in match.groups())
    return str((end - start).days), "number"


def _weekday(match: re.Match[str]) -> Answer:
    return f"{date.fromisoformat(match[1]):%A}", "weekday"


def _leap(match: re.Match[str]) -> Answer:
    year = int(match[1])
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return ("yes" if leap else "no"), "yes_no"


def _later(match: re.Match[str]) -> Answer:
    return _moved(match[1], match[2], 1)


def _later_count_first(match: re.Match[str]) -> Answer:
    return _moved(match[2], match[1], 1)


def _earlier_count_first(match: re.Match[str]) -> Answer:
    return _moved(match[2], match[1], -1)


RULES = (
    rule(rf"What date is (\d+) days after {_D}", _later_count_first),
    rule(rf"days are there between {_D} and {_D}", _between),
    rule(rf"Which day of the week was {_D}", _weekday),
    rule(rf"^{_D} \+ (\d+)d = \?", _later),
    rule(rf"From {_D} until {_D}, how long", _between),
    rule(rf"^{_D} → {_D}: how many nights", _between),
    rule(rf"rental began on {_D} and ran for (\d+) days", _later),
    rule(r"Was (\d{4}) a leap year", _leap),
    rule(rf"^{_D}: Mon, Tue, Wed", _weekday),
    rule(rf"Counting back (\d+) days from {_D}", _earlier_count_first),
)
