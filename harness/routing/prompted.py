"""The prompted router: a router LLM reads the ask and the cards, and scores every offered worker.

Serving fills a compiled template; DSPy takes no part. The scores are the log-probabilities of the
option letters where the provider gives them, else points from a structured reply. The router LLM is
reached through a function, so this module opens no connection.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from harness.routing.base import Ask, RouterFailed, RouterUsage, RouterVersion, Scored
from harness.routing.completion import content_of, usage_of
from harness.routing.logprobs import has_logprobs, letter_logprobs
from harness.routing.options import options
from harness.routing.parse import parse_pick
from harness.routing.parse_scores import parse_scores
from harness.routing.slots import ask_slots, workers_slot
from harness.routing.template import Mode, Template, fill, rendered_instructions
from pointsman.errors import UpstreamError
from pointsman.pool import Price, Worker
from pointsman.words import ParseStatus, RouterKind

Scoring = Literal["auto", "logprobs", "structured"]
Lm = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
RAW_REPLY_CHARS = 4000
_PICK_TOKENS = 64
_TOKENS_PER_OPTION = 16


class PromptedRouter:
    """Scores workers by asking a router LLM.

    `lm` sends a chat-completions body and gives the decoded reply, or raises `UpstreamError`. `cards`
    are the version's own; a worker without one there (added since) is shown with its declared card.
    With scoring `auto` the first call asks for log-probabilities, and where the provider gives none,
    or refuses to, later calls ask for a structured reply.
    """

    kind: RouterKind = "harness"

    def __init__(
        self,
        template: Template,
        lm: Lm,
        *,
        model: str,
        cards: Mapping[str, str],
        deadline: float,
        instructions: str | None = None,
        scoring: Scoring = "auto",
        price: Price | None = None,
        base_url: str | None = None,
        max_top_logprobs: int = 20,
        parent_id: str | None = None,
        template_body: Mapping[str, Any] | None = None,
    ) -> None:
        self.template = template
        self.instructions = template.instructions if instructions is None else instructions
        rendered_instructions(self.instructions)
        self.cards = dict(cards)
        self.model = model
        self.deadline = deadline
        self.price = price
        self.top_logprobs = max_top_logprobs
        self._lm = lm
        self._auto = scoring == "auto"
        self._mode: Mode = "scores" if scoring == "structured" else "option"
        config: dict[str, Any] = {
            "template": template.hash,
            "instructions": self.instructions,
            "cards": self.cards,
            "scoring": scoring,
            "model": model,
            "base_url": base_url,
        }
        if template_body is not None:  # a template that does not ship stands whole in its version
            config["template_body"] = dict(template_body)
        self.version = RouterVersion("harness", config, parent_id)

    async def score(self, ask: Ask, workers: tuple[Worker, ...], seed: int) -> Scored:
        """Scores for `workers` on the scale of the mode: log-probabilities, 0 to 100, or 1 for a mere pick."""
        offer = _Offer(options(workers, seed), self.template.hash)
        try:
            return await self._scored(self._mode, ask, workers, offer)
        except UpstreamError as error:
            if error.fault != "bad_request" or not self._auto or self._mode == "scores":
                raise
        # The provider may refuse `logprobs`; that is known once the same ask succeeds without.
        scored = await self._scored("scores", ask, workers, offer)
        self._mode = "scores"
        return scored

    async def _scored(self, mode: Mode, ask: Ask, workers: tuple[Worker, ...], offer: _Offer) -> Scored:
        reply = await self._lm(self._body(mode, ask, workers, offer))
        answer = _Answer(content_of(reply), usage_of(reply, self.price))
        if mode == "scores":
            return _from_points(answer, offer)
        if self._auto and not has_logprobs(reply):
            self._mode = "scores"
        return _from_option(reply, answer, offer)

    def _body(self, mode: Mode, ask: Ask, workers: tuple[Worker, ...], offer: _Offer) -> dict[str, Any]:
        declared = {worker.name: worker.card for worker in workers}
        cards = {letter: self.cards.get(name, declared[name]) for letter, name in offer.options.items()}
        slots = {**ask_slots(ask), "workers": workers_slot(cards)}
        messages = fill(self.template, mode, slots, self.instructions)
        body: dict[str, Any] = {"model": self.model, "messages": messages, "temperature": 0}
        if mode == "scores":
            return {**body, "max_tokens": _PICK_TOKENS + _TOKENS_PER_OPTION * len(cards)}
        return {**body, "max_tokens": _PICK_TOKENS, "logprobs": True, "top_logprobs": self.top_logprobs}


@dataclass(frozen=True, slots=True)
class _Offer:
    """What one prompt offered: workers by option letter, in the order shown."""

    options: dict[str, str]
    template_hash: str

    @property
    def order(self) -> tuple[str, ...]:
        return tuple(self.options.values())


@dataclass(frozen=True, slots=True)
class _Answer:
    """What came back."""

    text: str | None
    usage: RouterUsage

    @property
    def raw(self) -> str | None:
        return None if self.text is None else self.text[:RAW_REPLY_CHARS]


def _from_option(reply: Any, answer: _Answer, offer: _Offer) -> Scored:
    pick = parse_pick(answer.text, offer.options)
    if pick.worker is None:
        raise _unusable(pick.status, answer, offer)
    read = letter_logprobs(reply, tuple(offer.options))
    # A letter at the start of prose ("A good choice is ...") is no answer: text and token must agree.
    if read is None or offer.options[read.answer] != pick.worker:
        scores = {name: float(name == pick.worker) for name in offer.order}
        return _scored(scores, pick.status, answer, offer, ("pick_only",))
    scores = {name: read.by_letter[letter] for letter, name in offer.options.items()}
    return _scored(scores, pick.status, answer, offer, ("floored",) if read.floored else ())


def _from_points(answer: _Answer, offer: _Offer) -> Scored:
    points = parse_scores(answer.text, offer.options)
    if points.scores is None:
        raise _unusable(points.status, answer, offer)
    return _scored(points.scores, points.status, answer, offer, points.flags)


def _scored(
    scores: dict[str, float], status: ParseStatus, answer: _Answer, offer: _Offer, flags: tuple[str, ...]
) -> Scored:
    best = max(scores.values())
    ties = ("ties",) if sum(score == best for score in scores.values()) > 1 else ()
    return Scored(
        scores=scores,
        parse_status=status,
        raw_reply=answer.raw,
        card_order=offer.order,
        template_hash=offer.template_hash,
        flags=flags + ties,
        usage=answer.usage,
    )


def _unusable(status: ParseStatus, answer: _Answer, offer: _Offer) -> RouterFailed:
    return RouterFailed(
        f"reply_{status}", parse_status=status, raw_reply=answer.raw, card_order=offer.order, usage=answer.usage
    )
