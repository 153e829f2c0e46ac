"""Exam: deduction from a few premises."""

from __future__ import annotations

from random import Random

from pointsman.sandbox.families.base import PEOPLE, Asked, family, text

_KINDS = ("blick", "dorp", "fenk", "grol", "marn", "plim", "snark", "tove", "wug", "zindle")


def _three(rng: Random) -> dict[str, str]:
    return dict(zip("abc", rng.sample(PEOPLE, 3), strict=True))


def last_of_three(rng: Random) -> Asked:
    names = _three(rng)
    return names, text(names["c"])


def first_of_three(rng: Random) -> Asked:
    names = _three(rng)
    return names, text(names["a"])


def race(rng: Random) -> Asked:
    names = _three(rng)
    return names, text(names["c"])


def syllogism(rng: Random) -> Asked:
    x, y, z = rng.sample(_KINDS, 3)
    forward = rng.random() < 0.5
    fields = {"x": x, "y": y, "z": z, "p": x if forward else z, "q": z if forward else x}
    return fields, text("yes" if forward else "no")


def excluded(rng: Random) -> Asked:
    x, y, z = rng.sample(_KINDS, 3)
    return {"x": x, "y": y, "z": z}, text("no")


def modus(rng: Random) -> Asked:
    off = rng.random() < 0.5
    fields = {"event": "off" if off else "on", "not": "" if off else "no "}
    return fields | {"q": rng.choice(("rain", "snow", "hail"))}, text("no" if off else "yes")


def liar(rng: Random) -> Asked:
    names = _three(rng)
    said, liar_speaks = rng.random() < 0.5, rng.random() < 0.5
    speaker = names["a"] if liar_speaks else names["b"]
    thing = rng.choice(("door", "shop", "safe"))
    fields = names | {"s": speaker, "said": "yes" if said else "no", "thing": thing}
    return fields, text("yes" if said != liar_speaks else "no")


def boolean(rng: Random) -> Asked:
    p, q, r = (rng.random() < 0.5 for _ in range(3))
    fields = {name: str(value).lower() for name, value in zip("pqr", (p, q, r), strict=True)}
    return fields, text(str((p and q) or not r).lower())


FAMILY = family(
    "logic",
    {
        "{a} is taller than {b}. {b} is taller than {c}. Who is the shortest?": last_of_three,
        "All {x}s are {y}s. All {y}s are {z}s. Must every {p} be a {q}? Answer yes or no.": syllogism,
        "{a}, {b} and {c} raced. {a} beat {b}, and {c} beat {a}. Who won?": race,
        "{a} always lies and {b} never does. Asked whether the {thing} is open, {s} says {said}. "
        "Is it open? Yes or no.": liar,
        "P = {p}, Q = {q}, R = {r}. P & Q | ~R = ? (true/false)": boolean,
    },
    {
        "p:={p} q:={q} r:={r} ; (p ∧ q) ∨ ¬r ?": boolean,
        "{a} is older than {b}; {c} is younger than {b}. Who is the oldest?": first_of_three,
        "No {x} is a {y}. Every {z} is a {y}. Can a {z} be a {x}? Yes or no.": excluded,
        "If there is {q}, the match is always off. Today it is {event}. Can we be sure "
        "there is {not}{q}? Yes or no.": modus,
        "{a} sits left of {b}, who sits left of {c}. Who is furthest right?": last_of_three,
    },
)
