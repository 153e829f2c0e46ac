"""Exam: percentages and money."""

from __future__ import annotations

from random import Random

from pointsman.sandbox.families.base import Asked, family, number


def share_of(rng: Random) -> Asked:
    p, a = rng.randint(3, 95), rng.randint(4, 90) * 20
    return {"p": p, "a": a}, number(p * a / 100, tolerance=0.01)


def after_discount(rng: Random) -> Asked:
    p, a = rng.choice((5, 10, 15, 20, 25, 30, 35, 40, 60)), rng.randint(4, 90) * 5
    return {"p": p, "a": a}, number(a * (100 - p) / 100, tolerance=0.01)


def growth(rng: Random) -> Asked:
    p, a = rng.randint(2, 90), rng.randint(2, 80) * 100
    return {"p": p, "a": a, "b": a * (100 + p) // 100}, number(p, tolerance=0.01)


def with_added(rng: Random) -> Asked:
    p, a = rng.randint(5, 25), rng.randint(4, 90) * 5
    return {"p": p, "a": a}, number(a * (100 + p) / 100, tolerance=0.01)


def interest(rng: Random) -> Asked:
    p, a, n = rng.randint(2, 9), rng.randint(3, 80) * 100, rng.randint(2, 9)
    return {"p": p, "a": a, "n": n}, number(a * p * n / 100, tolerance=0.01)


FAMILY = family(
    "percentages",
    {
        "What's {p}% of {a}?": share_of,
        "A jacket costs ${a} and is {p}% off in the sale. What do I pay?": after_discount,
        "Our revenue went from {a} to {b}. By what percent did it grow?": growth,
        "The bill is {a} euros and I want to leave a {p}% tip. What is the total?": with_added,
        "{a} € - {p} % = ?": after_discount,
    },
    {
        "{p}% × {a} = ?": share_of,
        "I put {a} dollars away at {p}% simple yearly interest. How much interest in {n} years?": interest,
        "Sticker says ${a} before {p}% VAT. And after?": with_added,
        "A share fell {p}% from ${a}. Where is it now?": after_discount,
        "They knocked {p}% off a sofa marked ${a}. Cost to me?": after_discount,
    },
)
