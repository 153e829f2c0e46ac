"""Exam: plain calculation with integers."""

from __future__ import annotations

from random import Random

from pointsman.sandbox.families.base import Asked, family, number


def product(rng: Random) -> Asked:
    a, b = rng.randint(12, 99), rng.randint(12, 99)
    return {"a": a, "b": b}, number(a * b)


def sum_of_three(rng: Random) -> Asked:
    a, b, c = (rng.randint(100, 9_999) for _ in range(3))
    return {"a": a, "b": b, "c": c}, number(a + b + c)


def difference_times(rng: Random) -> Asked:
    a, b, c = rng.randint(60, 400), rng.randint(10, 59), rng.randint(3, 19)
    return {"a": a, "b": b, "c": c}, number((a - b) * c)


def remainder(rng: Random) -> Asked:
    a, b = rng.randint(200, 9_999), rng.randint(7, 97)
    return {"a": a, "b": b}, number(a % b)


def difference(rng: Random) -> Asked:
    a, b = rng.randint(1_000, 9_999), rng.randint(100, 999)
    return {"a": a, "b": b}, number(a - b)


def minus_plus(rng: Random) -> Asked:
    a, b, c = (rng.randint(100, 2_000) for _ in range(3))
    return {"a": a, "b": b, "c": c}, number(a - b + c)


def square(rng: Random) -> Asked:
    a = rng.randint(13, 120)
    return {"a": a}, number(a * a)


def product_minus(rng: Random) -> Asked:
    a, b, c = rng.randint(12, 99), rng.randint(3, 99), rng.randint(10, 500)
    return {"a": a, "b": b, "c": c}, number(a * b - c)


FAMILY = family(
    "arithmetic",
    {
        "What is {a} times {b}?": product,
        "{a} + {b} + {c} = ?": sum_of_three,
        "Work out ({a} - {b}) * {c} for me.": difference_times,
        "I need the remainder when {a} is divided by {b}.": remainder,
        "Add up {a}, {b} and {c}, please.": sum_of_three,
    },
    {
        "{a} x {b}?": product,
        "Could you subtract {b} from {a}?": difference,
        "How much is {a} minus {b} plus {c}?": minus_plus,
        "Square {a} and tell me the result.": square,
        "Evaluate: {a} * {b} - {c}": product_minus,
    },
)
