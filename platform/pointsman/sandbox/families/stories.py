"""Exam: story problems, a few steps of reasoning in everyday words."""

from __future__ import annotations

from random import Random

from pointsman.sandbox.families.base import PEOPLE, Asked, family, number


def _two(rng: Random) -> dict[str, object]:
    a, b = rng.sample(PEOPLE, 2)
    return {"A": a, "B": b}


def marbles(rng: Random) -> Asked:
    a, b = rng.randint(20, 200), rng.randint(5, 80)
    c = rng.randint(3, a)
    return _two(rng) | {"a": a, "b": b, "c": c}, number(a + b - c)


def journey(rng: Random) -> Asked:
    v, t = rng.randint(40, 160), rng.randint(2, 9)
    return {"v": v, "t": t}, number(v * t)


def ages(rng: Random) -> Asked:
    gap, younger = rng.randint(2, 30), rng.randint(5, 50)
    return _two(rng) | {"a": gap, "s": 2 * younger + gap}, number(younger)


def boxes(rng: Random) -> Asked:
    n, k = rng.randint(3, 20), rng.randint(6, 30)
    m = rng.randint(2, n * k - 1)
    return {"n": n, "k": k, "m": m}, number(n * k - m)


def sweets(rng: Random) -> Asked:
    k, each = rng.randint(3, 9), rng.randint(6, 30)
    m = rng.randint(1, each - 1)
    return {"k": k, "n": k * each, "m": m}, number(each - m)


def tank(rng: Random) -> Asked:
    a, minutes = rng.randint(3, 25), rng.randint(4, 60)
    return {"a": a, "b": a * minutes}, number(minutes)


def outing(rng: Random) -> Asked:
    a, x, b, y = rng.randint(2, 5), rng.randint(8, 30), rng.randint(1, 6), rng.randint(3, 12)
    return {"a": a, "x": x, "b": b, "y": y}, number(a * x + b * y)


def reading(rng: Random) -> Asked:
    a, days, page = rng.randint(8, 40), rng.randint(3, 20), rng.randint(10, 200)
    return _two(rng) | {"a": a, "b": page + a * days, "c": page}, number(days)


FAMILY = family(
    "stories",
    {
        "{A} has {a} marbles. {B} hands over {b} more, then {c} roll away. How many remain?": marbles,
        "A train runs at {v} km per hour for {t} hours. How far does it get?": journey,
        "{A} is {a} years older than {B}. Together they are {s}. How old is {B}?": ages,
        "{n} boxes hold {k} pencils each. After handing out {m}, how many pencils are left?": boxes,
        "{k} children share {n} sweets evenly, then each one eats {m}. What does each still have?": sweets,
    },
    {
        "{k} friends split {n} cookies evenly and each gobbles {m}. How many does each keep?": sweets,
        "A tap gives {a} litres a minute. How many minutes until a tank of {b} litres is full?": tank,
        "Tickets for the zoo: {a} adults at {x} each, {b} kids at {y} each. What did we hand over?": outing,
        "{A} gets through {a} pages a day, is on page {c}; the book has {b}. How many days to go?": reading,
        "A cyclist keeps up {v} km per hour for {t} hours. How far?": journey,
    },
)
