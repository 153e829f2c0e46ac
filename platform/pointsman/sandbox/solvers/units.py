"""Solves conversions between units of measure."""

from __future__ import annotations

import re

from pointsman.sandbox.solvers.base import Answer, plain, rule

_SIZES = {
    "kilometres km": 1000.0,
    "metres m": 1.0,
    "centimetres cm": 0.01,
    "miles mi": 1609.344,
    "feet ft": 0.3048,
    "inches in": 0.0254,
    "kilograms kg": 1000.0,
    "grams g": 1.0,
    "pounds lb": 453.59237,
    "ounces oz": 28.349523125,
    "litres l": 1.0,
    "millilitres ml": 0.001,
    "gallons gal": 3.785411784,
}
_SIZE = {name: size for names, size in _SIZES.items() for name in names.split(" ")}
_U = "(" + "|".join(sorted(_SIZE, key=len, reverse=True)) + r")\b"


def _converted(amount: str, unit: str, other: str) -> Answer:
    return plain(float(amount) * _SIZE[unit] / _SIZE[other]), "number"


def _given_first(match: re.Match[str]) -> Answer:
    return _converted(match[1], match[2], match[3])


def _wanted_first(match: re.Match[str]) -> Answer:
    return _converted(match[2], match[3], match[1])


def _celsius(match: re.Match[str]) -> Answer:
    return plain((float(match[1]) - 32) / 1.8), "number"


def _fahrenheit(match: re.Match[str]) -> Answer:
    return plain(float(match[1]) * 1.8 + 32), "number"


RULES = (
    rule(rf"Convert (\d+) {_U} to {_U}", _given_first),
    rule(rf"How many {_U} are there in (\d+) {_U}", _wanted_first),
    rule(rf"^(\d+) {_U} -> {_U}", _given_first),
    rule(r"oven dial says (-?\d+) °F", _celsius),
    rule(rf"The label reads (\d+) {_U}; what would that be in {_U}", _given_first),
    rule(rf"^(\d+) {_U} = \? {_U}", _given_first),
    rule(rf"recipe calls for (\d+) {_U}; my scale only shows {_U}", _given_first),
    rule(r"It is (-?\d+) °C outside", _fahrenheit),
    rule(rf"Express (\d+) {_U} in {_U}", _given_first),
    rule(r"^(-?\d+)°C in °F\?", _fahrenheit),
)
