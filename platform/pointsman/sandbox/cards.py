"""The wording of a world's cards.

    truthful   every worker by the skills that it is best at
    world      the same, but for one or two workers that are described by skills they lack
    false      every worker by skills that it lacks: routing by them is worse than chance
    nonsense   cards of the same length that say nothing about skills: routing by them is chance

This is the one author who reads the skill table, because someone has to describe it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import Literal

from pointsman.errors import UserError
from pointsman.sandbox.roster import SandboxWorker, workers, world_rng
from pointsman.sandbox.truth import truth
from pointsman.words import members

CardKind = Literal["world", "truthful", "nonsense", "false"]

_PHRASES: Mapping[str, tuple[str, ...]] = {
    "arithmetic": (
        "plain arithmetic with whole numbers",
        "sums, products and other exact calculation",
        "multiplying, adding, subtracting and dividing without slips",
        "mental maths: squares, remainders, large sums",
        "working out one number plus, minus or times another",
    ),
    "percentages": (
        "percentages, discounts and interest",
        "prices after tax, tips and sales",
        "money matters such as rebates and how revenue grows",
        "bills in dollars or euros, with a percent added or knocked off",
        "what a shop price costs in the end",
    ),
    "dates": (
        "calendar questions",
        "dates, weekdays and deadlines",
        "how many days lie between two dates, and leap years",
        "scheduling: which day of the week, how many nights",
        "counting days forward and back on the calendar",
    ),
    "units": (
        "unit conversion",
        "metric and imperial measures",
        "converting lengths, weights and temperatures",
        "measurements: litres, grams, miles and the like",
        "expressing a quantity in another unit",
    ),
    "text": (
        "text manipulation such as spelling backwards and casing",
        "edits to strings, character by character",
        "spelling, capitals and vowels",
        "counting and swapping letters in a phrase",
        "words taken apart letter by letter",
    ),
    "ordering": (
        "sorting and ranking lists",
        "putting items in order",
        "alphabetical and numerical ordering",
        "arranging values by size, smallest or largest first",
        "what comes second, third or last in a list",
    ),
    "logic": (
        "deduction and logic puzzles",
        "reasoning from premises to conclusions",
        "syllogisms, liars and truth values",
        "inferring who is tallest, who won, what is true",
        "logical inference, answered by yes or no",
    ),
    "extraction": (
        "pulling fields out of messages",
        "information extraction from prose",
        "finding names, email addresses and amounts in notes",
        "extracting contact details and references from correspondence",
        "reading a message and returning its fields as JSON",
    ),
    "lookup": (
        "reading tables",
        "look-ups across rows and columns",
        "questions over CSV and other tabular data",
        "spreadsheets: highest, lowest and total of a column",
        "finding the right row of a table",
    ),
    "codes": (
        "ciphers and encodings",
        "Caesar shifts, Morse and hexadecimal",
        "decoding secret strings",
        "binary, decimal and hexadecimal codes",
        "Morse code: dots and dashes",
    ),
    "stories": (
        "word problems in several steps",
        "story problems about everyday life",
        "little stories: friends who share evenly, trains, ages",
        "narrative maths problems, such as how far and how many are left",
        "how much everyone has after some was handed out or shared",
    ),
}
_OPENINGS = (
    "Strong at {}.",
    "Best used for {}.",
    "Does well on {}.",
    "Known for {}.",
    "Tuned for {}.",
)
_CLOSINGS = (
    "Less sure elsewhere.",
    "Mediocre at anything else.",
    "A modest generalist otherwise.",
    "Beyond that, unremarkable.",
)
_NONSENSE = (
    "a calm temper and an unhurried tone",
    "being courteous at dawn and dusk",
    "a gentle manner, much praised",
    "polished brass and a crimson lid",
    "careful manufacture in a quiet valley",
    "a motto in a forgotten dialect",
    "its founder's fondness for porcelain",
    "an heirloom finish and a soothing voice",
    "a loyal following and discreet charm",
    "a fine view over the estuary",
    "being neither loud nor shy",
    "a cheerful disposition despite drizzle",
    "heritage, grace and a firm handshake",
    "a pedigree that poets admire",
    "its elegant packaging",
    "modesty, patience and soft lighting",
)


@lru_cache(maxsize=128)
def cards(seed: int, kind: CardKind) -> Mapping[str, str]:
    """A card for every worker of the world."""
    if kind not in members(CardKind):
        raise UserError(f"cards: expected world, truthful, nonsense or false, got {kind!r}")
    rng = world_rng(seed, f"cards/{kind}")
    if kind == "nonsense":
        return _nonsense_cards(rng, [worker.name for worker in workers(seed)])
    wrong = misdescribed(seed) if kind == "world" else _lacking(rng, seed) if kind == "false" else {}
    strengths = _strengths(seed)
    return {worker.name: _card(rng, wrong.get(worker.name) or strengths[worker.name]) for worker in workers(seed)}


@lru_cache(maxsize=64)
def misdescribed(seed: int) -> Mapping[str, tuple[str, ...]]:
    """The workers that the world's own cards describe wrongly: by which skills, none of them theirs."""
    rng = world_rng(seed, "misdescribed")
    chosen: Sequence[SandboxWorker] = rng.sample(workers(seed), rng.choice((1, 2)))
    return _lacking(rng, seed, [worker.name for worker in chosen])


def _lacking(rng: Random, seed: int, names: Sequence[str] | None = None) -> dict[str, tuple[str, ...]]:
    """For each of these workers (None: all) as many skills as it is best at, none of them its own."""
    strengths, skills = _strengths(seed), sorted(_PHRASES)
    wrong = {}
    for name in names if names is not None else list(strengths):
        own = strengths[name]
        wrong[name] = tuple(rng.sample([s for s in skills if s not in own], max(2, len(own))))
    return wrong


def _strengths(seed: int) -> dict[str, tuple[str, ...]]:
    experts = truth(seed).experts
    return {
        worker.name: tuple(sorted(skill for skill, names in experts.items() if worker.name in names))
        for worker in workers(seed)
    }


def _card(rng: Random, skills: tuple[str, ...]) -> str:
    phrases = [" and ".join(rng.sample(_PHRASES[skill], 2)) for skill in rng.sample(skills, len(skills))]
    return f"{rng.choice(_OPENINGS).format('; '.join(phrases))} {rng.choice(_CLOSINGS)}"


def _nonsense_cards(rng: Random, names: Sequence[str]) -> dict[str, str]:
    phrases = rng.sample(_NONSENSE, 2 * len(names))
    pairs = zip(phrases[::2], phrases[1::2], strict=True)
    texts = (f"Known for {one}; appreciated for {other}. Beyond that, unremarkable." for one, other in pairs)
    return dict(zip(names, texts, strict=True))
