"""Exam: units of measure. Answers within half a per cent count."""

from __future__ import annotations

from random import Random

from pointsman.sandbox.families.base import Asked, family, number

# name, symbol, size in the base unit of its quantity
_LENGTH = (
    ("kilometres", "km", 1000.0),
    ("metres", "m", 1.0),
    ("centimetres", "cm", 0.01),
    ("miles", "mi", 1609.344),
    ("feet", "ft", 0.3048),
    ("inches", "in", 0.0254),
)
_MASS = (
    ("kilograms", "kg", 1000.0),
    ("grams", "g", 1.0),
    ("pounds", "lb", 453.59237),
    ("ounces", "oz", 28.349523),
)
_VOLUME = (("litres", "l", 1000.0), ("millilitres", "ml", 1.0), ("gallons", "gal", 3785.411784))


def _pair(rng: Random, quantity: tuple[tuple[str, str, float], ...]) -> Asked:
    (u, us, size), (v, vs, other) = rng.sample(quantity, 2)
    x = rng.randint(2, 400)
    return {"x": x, "u": u, "us": us, "v": v, "vs": vs}, number(round(x * size / other, 9), relative=0.005)


def any_quantity(rng: Random) -> Asked:
    return _pair(rng, rng.choice((_LENGTH, _MASS, _VOLUME)))


def mass(rng: Random) -> Asked:
    return _pair(rng, _MASS)


def to_celsius(rng: Random) -> Asked:
    x = rng.randint(20, 480)
    return {"x": x}, number(round((x - 32) * 5 / 9, 4), tolerance=0.6)


def to_fahrenheit(rng: Random) -> Asked:
    x = rng.randint(-20, 220)
    return {"x": x}, number(round(x * 9 / 5 + 32, 4), tolerance=0.6)


FAMILY = family(
    "units",
    {
        "Convert {x} {u} to {v}.": any_quantity,
        "How many {v} are there in {x} {u}?": any_quantity,
        "{x} {us} -> {vs}": any_quantity,
        "My oven dial says {x} °F. What is that in Celsius?": to_celsius,
        "I only know {u}. The label reads {x} {us}; what would that be in {v} ({vs})?": any_quantity,
    },
    {
        "{x} {us} = ? {vs}": any_quantity,
        "A recipe calls for {x} {u}; my scale only shows {v}. What should it read?": mass,
        "It is {x} °C outside. How would an American thermometer show that?": to_fahrenheit,
        "Express {x} {u} in {v}, will you?": any_quantity,
        "{x}°C in °F?": to_fahrenheit,
    },
)
