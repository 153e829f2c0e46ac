"""Plausible wrong answers, made from right ones."""

from __future__ import annotations

import json
from datetime import date, timedelta
from random import Random

from pointsman.sandbox.solvers import Solved
from pointsman.sandbox.solvers.base import plain

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def mistaken(solved: Solved, rng: Random) -> str:
    """A wrong answer of the same form, the kind of slip that a model makes."""
    answer = solved.answer
    match solved.form:
        case "number":
            return _number(answer, rng)
        case "date":
            return str(date.fromisoformat(answer) + timedelta(days=rng.choice((-2, -1, 1, 2, 30))))
        case "weekday":
            return rng.choice([day for day in _WEEKDAYS if day != answer])
        case "yes_no":
            return "no" if answer == "yes" else "yes"
        case "true_false":
            return "false" if answer == "true" else "true"
        case "word":
            return rng.choice([other for other in solved.others if other != answer])
        case "list":
            return _swapped_items(answer, rng)
        case "json":
            return _json(answer, rng)
        case "letters" | "token":
            return _slip(answer, rng)


def _number(answer: str, rng: Random) -> str:
    """Off by a little or by a factor; always by 1 and by 7%, more than any tolerance forgives."""
    value = float(answer)
    if 0 < abs(value) < 1:
        return plain(value * rng.choice((10, 100)))
    sign = rng.choice((-1, 1))
    if value.is_integer():
        least = max(1, -(-abs(value) * 7 // 100))
        return plain(value + sign * (least + rng.randrange(3)))
    return plain(round(value + sign * (1 + abs(value) * rng.uniform(0.07, 0.2)), 2))


def _swapped_items(answer: str, rng: Random) -> str:
    items = answer.split(", ")
    left = rng.randrange(len(items) - 1)
    items[left], items[left + 1] = items[left + 1], items[left]
    return ", ".join(items)


def _json(answer: str, rng: Random) -> str:
    value = json.loads(answer)
    if not value:
        return '{"name": null}'
    key = rng.choice(sorted(value))
    value[key] = value[key] + 1 if isinstance(value[key], int) else _slip(value[key], rng)
    return json.dumps(value)


def _slip(answer: str, rng: Random) -> str:
    """One character too few, too many, or exchanged with its neighbour."""
    places = [i for i, character in enumerate(answer) if character.isalnum()]
    if not places:
        return answer + "e"
    at = rng.choice(places)
    neighbours = [i for i in places if i + 1 in places and answer[i].lower() != answer[i + 1].lower()]
    kind = rng.randrange(3)
    if kind == 0 and len(answer) > 2:
        return answer[:at] + answer[at + 1 :]
    if kind == 1 and neighbours:
        i = rng.choice(neighbours)
        return answer[:i] + answer[i + 1] + answer[i] + answer[i + 2 :]
    return answer[:at] + answer[at] + answer[at:]
