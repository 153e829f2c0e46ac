"""Exam: the calendar."""

from __future__ import annotations

import calendar
from datetime import date, timedelta
from random import Random

from pointsman.sandbox.families.base import Asked, family, number, text

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _day(rng: Random) -> date:
    return date(2001, 1, 1) + timedelta(days=rng.randrange(11_000))


def later(rng: Random) -> Asked:
    day, n = _day(rng), rng.randint(9, 140)
    return {"d": day, "n": n}, text(str(day + timedelta(days=n)))


def earlier(rng: Random) -> Asked:
    day, n = _day(rng), rng.randint(9, 140)
    return {"d": day, "n": n}, text(str(day - timedelta(days=n)))


def between(rng: Random) -> Asked:
    day, n = _day(rng), rng.randint(9, 300)
    return {"d": day, "e": day + timedelta(days=n)}, number(n)


def weekday(rng: Random) -> Asked:
    day = _day(rng)
    return {"d": day}, text(_DAYS[day.weekday()])


def leap(rng: Random) -> Asked:
    year = rng.randint(1, 55) * 4 + 1896 + rng.choice((0, 0, 1, 2))
    return {"y": year}, text("yes" if calendar.isleap(year) else "no")


FAMILY = family(
    "dates",
    {
        "What date is {n} days after {d}? Write it as YYYY-MM-DD.": later,
        "How many days are there between {d} and {e}?": between,
        "Which day of the week was {d}?": weekday,
        "{d} + {n}d = ? (YYYY-MM-DD)": later,
        "From {d} until {e}, how long do I have to wait, counted in nights?": between,
    },
    {
        "{d} → {e}: how many nights?": between,
        "My rental began on {d} and ran for {n} days. When did it end? Use YYYY-MM-DD.": later,
        "Was {y} a leap year? Yes or no.": leap,
        "{d}: Mon, Tue, Wed, ...? Full name please.": weekday,
        "Counting back {n} days from {d}, where do you land (YYYY-MM-DD)?": earlier,
    },
)
