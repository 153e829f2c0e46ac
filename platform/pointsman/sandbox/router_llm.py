"""The stand-in router LLM: reads a routing prompt, answers from the overlap of request and cards.

It may read only the messages that it is sent, so better cards really do route better and cards that say
nothing route by chance. It answers with the letter of an option, log-probabilities included where asked,
or with scores by letter, in the layout of DSPy's chat adapter, and with a plan or a role where it is asked for one
(`planning`). It stands for a small instruction-following LLM; no figure made with it says how well a real one routes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Any

from pointsman.sandbox import prompts
from pointsman.sandbox.overlap import overlaps
from pointsman.sandbox.planning import plan, plan_text, role_scores, scored_for_role

MODEL = "stand-in-router"
SHARPNESS = 4.0
"""Log-probabilities are `SHARPNESS` times the overlap, normalised."""

_SECTION = re.compile(r"^\[\[ ## (\w+) ## \]\][ \t]*\n?", re.MULTILINE)
_ASKED = re.compile(r"\[\[ ## (option|scores|plan) ## \]\]")
_TOKEN = re.compile(r"\s*[A-Za-z]+|\s*\d|\n+|\s*[^\sA-Za-z\d]+|\s+")
_SURE = -1e-6


@dataclass(frozen=True)
class Token:
    """A token of the reply with its alternatives, most likely first (itself among them, or not)."""

    text: str
    logprob: float = _SURE
    alternatives: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class RouterReply:
    tokens: tuple[Token, ...]

    @property
    def text(self) -> str:
        return "".join(token.text for token in self.tokens)

    def limited(self, tokens: int | None) -> RouterReply:
        return self if tokens is None else RouterReply(self.tokens[:tokens])


@dataclass(frozen=True)
class Routing:
    """A routing prompt, read: letters in the order shown, and their cards (or roles, where those are the options)."""

    request: str
    context: str
    letters: tuple[str, ...]
    cards: tuple[str, ...]
    asked: str
    of_roles: bool = False


def reply(messages: list[dict[str, Any]]) -> RouterReply:
    """The router LLM's answer to a chat."""
    routing = read(prompts.last_user_text(messages))
    if routing is None:
        return RouterReply(_plain_tokens("I only choose between options, and I was not shown any."))
    if routing.asked == "plan":
        return RouterReply(_plain_tokens(plan_text(plan(routing.request, routing.letters, routing.cards))))
    scores = _scores(routing)
    if routing.asked == "scores":
        return RouterReply(_score_tokens(routing.letters, scores))
    return RouterReply(_letter_tokens(routing.letters, scores))


def read(prompt: str) -> Routing | None:
    """The sections of a routing prompt; None where it shows no options.

    Only a header at the start of a line opens a section, and what is asked for is what the end of the
    prompt names: a request that holds either inside its JSON text changes nothing.
    """
    heads = list(_SECTION.finditer(prompt))
    ends = [head.start() for head in heads[1:]] + [len(prompt)]
    sections = {head[1]: prompt[head.end() : end].strip() for head, end in zip(heads, ends, strict=False)}
    options = _options(sections.get("workers", sections.get("roles", "")))
    asked = _ASKED.findall(prompt)
    if not options or not asked:
        return None
    return Routing(
        request=_string(sections.get("request", "")),
        context=_string(sections.get("context", "")),
        letters=tuple(letter for letter, _ in options),
        cards=tuple(card for _, card in options),
        asked=asked[-1],
        of_roles="workers" not in sections,
    )


def _options(section: str) -> list[tuple[str, str]]:
    """(letter, description) of every object of the first JSON list in a section."""
    start = section.find("[")
    try:
        value = json.JSONDecoder().raw_decode(section, start)[0] if start >= 0 else []
    except (ValueError, RecursionError):
        value = []
    objects = value if isinstance(value, list) else []
    return [
        (str(item["option"]), str(item.get("description", "")))
        for item in objects
        if isinstance(item, dict) and "option" in item
    ]


def _string(section: str) -> str:
    """The first JSON string of a section, or the section as it is."""
    try:
        value = json.JSONDecoder().raw_decode(section)[0]
    except (ValueError, RecursionError):
        return section
    return value if isinstance(value, str) else section


def _scores(routing: Routing) -> list[float]:
    """By the ask; where that meets no card, by what surrounds it."""
    if routing.of_roles:
        return role_scores(routing.request, routing.context, routing.cards)
    for_role = scored_for_role(routing.request, routing.context, routing.cards)
    if for_role is not None and any(for_role):
        return for_role
    scores = overlaps(routing.request, routing.cards)
    if not any(scores) and routing.context:
        scores = [0.5 * score for score in overlaps(routing.context, routing.cards)]
    return scores


def _letter_tokens(letters: Sequence[str], scores: Sequence[float]) -> tuple[Token, ...]:
    logprobs = _log_softmax([SHARPNESS * score for score in scores])
    ranked = sorted(zip(letters, logprobs, strict=True), key=lambda pair: -pair[1])
    letter, logprob = ranked[0]
    chosen = Token(letter, logprob, tuple(ranked))
    return (*_plain_tokens("[[ ## option ## ]]\n"), chosen, *_plain_tokens("\n\n[[ ## completed ## ]]"))


def _score_tokens(letters: Sequence[str], scores: Sequence[float]) -> tuple[Token, ...]:
    by_letter = {letter: round(100 * (1 - exp(-score)), 1) for letter, score in zip(letters, scores, strict=True)}
    return _plain_tokens(f"[[ ## scores ## ]]\n{json.dumps(by_letter)}\n\n[[ ## completed ## ]]")


def _plain_tokens(text: str) -> tuple[Token, ...]:
    return tuple(Token(piece, _SURE, ((piece, _SURE),)) for piece in _TOKEN.findall(text))


def _log_softmax(values: Sequence[float]) -> list[float]:
    top = max(values)
    total = top + log(sum(exp(value - top) for value in values))
    return [value - total for value in values]


def openai_logprobs(answer: RouterReply, top: int) -> Mapping[str, Any]:
    """`choices[0].logprobs` with the `top` likeliest alternatives of each token: the rest is not told."""
    return {
        "content": [
            {
                "token": token.text,
                "logprob": token.logprob,
                "bytes": list(token.text.encode()),
                "top_logprobs": [
                    {"token": text, "logprob": value, "bytes": list(text.encode())}
                    for text, value in token.alternatives[:top]
                ],
            }
            for token in answer.tokens
        ],
        "refusal": None,
    }
