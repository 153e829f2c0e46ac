"""Exam: finding a detail in prose."""

from __future__ import annotations

from random import Random
from typing import Any

from pointsman.sandbox.families.base import PEOPLE, Asked, family, number, text

_CITIES = ("Lisbon", "Turin", "Bergen", "Krakow", "Ghent", "Graz", "Malmo", "Porto", "Leeds", "Basel")
_GOODS = ("desk lamps", "tea towels", "bike pumps", "paint rollers", "door hinges", "wool hats")
_SITES = ("northwind", "bluefern", "oldmill", "redkite", "stonepath", "brightside")


def _note(rng: Random) -> dict[str, Any]:
    person, other = rng.sample(PEOPLE, 2)
    site = rng.choice(_SITES)
    fields: dict[str, Any] = {
        "person": person,
        "other": other,
        "city": rng.choice(_CITIES),
        "good": rng.choice(_GOODS),
        "count": rng.randint(2, 60),
        "ref": f"{rng.choice('ABCDEFGH')}{rng.choice('KLMNPQ')}-{rng.randint(1000, 9999)}",
        "mail": f"{person.lower()}@{site}.example",
        "site": f"https://www.{site}.example/{rng.choice(('help', 'shop', 'news'))}",
        "phone": f"0{rng.randint(20, 99)}-555-{rng.randint(1000, 9999)}",
        "due": rng.randint(40, 4_000),
    }
    fields["t"] = _body(rng, fields)
    return fields


def _body(rng: Random, f: dict[str, Any]) -> str:
    sentences = [
        f"This is {f['person']} from {f['city']}.",
        f"I bought {f['count']} {f['good']} under {f['ref']}.",
        f"Write to {f['mail']} or ring {f['phone']}.",
        f"The page at {f['site']} would not load.",
        f"You billed me {f['due']} EUR.",
    ]
    rng.shuffle(sentences)
    return f"Dear {f['other']}, {' '.join(sentences)} Thanks!"


def mail(rng: Random) -> Asked:
    note = _note(rng)
    return note, text(note["mail"])


def reference(rng: Random) -> Asked:
    note = _note(rng)
    return note, text(note["ref"])


def sender(rng: Random) -> Asked:
    note = _note(rng)
    return note, {"kind": "json", "value": {"name": note["person"], "city": note["city"]}}


def phone(rng: Random) -> Asked:
    note = _note(rng)
    return note, text(note["phone"])


def addressee(rng: Random) -> Asked:
    note = _note(rng)
    return note, text(note["other"])


def amount(rng: Random) -> Asked:
    note = _note(rng)
    return note, number(note["due"])


def site(rng: Random) -> Asked:
    note = _note(rng)
    return note, text(note["site"])


def goods(rng: Random) -> Asked:
    note = _note(rng)
    return note, {"kind": "json", "value": {"product": note["good"], "quantity": note["count"]}}


FAMILY = family(
    "extraction",
    {
        'Which email address do you see here? "{t}"': mail,
        "Pull the order reference out of this note: {t}": reference,
        "From this message, give the sender's name and city as JSON with keys name and city.\n\n{t}": sender,
        '"{t}" - what number should I ring back?': phone,
        '"{t}" → @?': mail,
    },
    {
        '"{t}" - to whom is this written?': addressee,
        "{t}\n\nHow much did they bill?": amount,
        "Give me only the web link that turns up in: {t}": site,
        "Read this and return JSON with keys product and quantity.\n\n{t}": goods,
        "My colleague left this: {t} What reference did they quote?": reference,
    },
)
