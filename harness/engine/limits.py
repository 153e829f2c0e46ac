"""What a whole tree may use, and what it has used: calls, tokens, money. One purse for all that runs at a time."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import msgspec

from pointsman.pool import Price, Worker
from pointsman.upstream.price import MILLION, add

OUTPUT_GUESS = 300
"""Tokens of output that a call is taken to need before it is made, where the request sets no limit."""


class Limits(msgspec.Struct, frozen=True):
    """None: no limit. `calls` are to workers, retries included; `money` in USD; `deadline` in the loop's time."""

    calls: int | None = None
    tokens: int | None = None
    money: Decimal | None = None
    deadline: float | None = None


@dataclass
class Totals:
    """What a run used. The visible tokens are those of the call that answered; all others are orchestration.

    `cost` is of workers, `router_cost` of routers and orchestrators; None where one part is unknown.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: Decimal | None = Decimal(0)
    router_input_tokens: int = 0
    router_output_tokens: int = 0
    router_cost: Decimal | None = Decimal(0)
    visible_input_tokens: int = 0
    visible_output_tokens: int = 0
    visible_cached_tokens: int = 0

    @property
    def tokens(self) -> int:
        """All tokens, in and out, routing included."""
        return self.input_tokens + self.output_tokens + self.router_input_tokens + self.router_output_tokens

    @property
    def orchestration(self) -> tuple[int, int]:
        """(in, out) of all that is not the answer itself, routing included."""
        return (
            self.input_tokens + self.router_input_tokens - self.visible_input_tokens,
            self.output_tokens + self.router_output_tokens - self.visible_output_tokens,
        )


class Purse:
    """Holds a run to its limits. Calls under way count with what they were taken to cost.

    An unknown price counts as the `dearest` of the pool: money that cannot be told is never taken for nothing.
    """

    def __init__(self, limits: Limits, workers: tuple[Worker, ...]) -> None:
        self.limits = limits
        self.totals = Totals()
        self.dearest = _dearest(workers)
        self._charged = Decimal(0)
        self._held: dict[str, tuple[int, Decimal]] = {}
        self._begun = 0

    def spent(self) -> str | None:
        """The limit that is reached already, None where there is room."""
        limits = self.limits
        if limits.calls is not None and max(self._begun, self.totals.calls) >= limits.calls:
            return "calls"
        if limits.tokens is not None and self.totals.tokens >= limits.tokens:
            return "tokens"
        if limits.money is not None and self._charged >= limits.money:
            return "money"
        return None

    def hold(self, key: str, worker: Worker, prompt_tokens: int, output_tokens: int) -> str | None:
        """Reserves for a call; the limit that it would break, if it would."""
        output = output_tokens or OUTPUT_GUESS
        tokens, money = prompt_tokens + output, _cost(worker.price or self.dearest, prompt_tokens, output)
        limits = self.limits
        if (reached := self.spent()) is not None:
            return reached
        if limits.tokens is not None and self.totals.tokens + sum(t for t, _ in self._held.values()) + tokens > (
            limits.tokens
        ):
            return "tokens"
        held = sum((m for _, m in self._held.values()), Decimal(0))
        if limits.money is not None and (money is None or self._charged + held + money > limits.money):
            return "money"
        self._held[key] = (tokens, money or Decimal(0))
        self._begun += 1
        return None

    def settle(self, key: str, calls: int, tokens: tuple[int, int, int], cost: Decimal | None) -> None:
        """A call is over: (in, out, cached) tokens and USD."""
        held = self._held.pop(key, (0, Decimal(0)))
        totals = self.totals
        totals.calls += calls
        totals.input_tokens += tokens[0]
        totals.output_tokens += tokens[1]
        totals.cached_tokens += tokens[2]
        totals.cost = add(totals.cost, cost)
        guess = _cost(self.dearest, tokens[0], tokens[1])
        self._charged += cost if cost is not None else guess if guess is not None else held[1]

    def routed(self, tokens: tuple[int, int], cost: Decimal | None) -> None:
        """A router or orchestrator was asked."""
        totals = self.totals
        totals.router_input_tokens += tokens[0]
        totals.router_output_tokens += tokens[1]
        totals.router_cost = add(totals.router_cost, cost)
        self._charged += cost or Decimal(0)


def _cost(price: Price | None, tokens_in: int, tokens_out: int) -> Decimal | None:
    return None if price is None else (tokens_in * price.input + tokens_out * price.output) / MILLION


def _dearest(workers: tuple[Worker, ...]) -> Price | None:
    prices = [worker.price for worker in workers if worker.price is not None]
    if not prices:
        return None
    return Price(
        max(price.input for price in prices),
        max(price.output for price in prices),
        max(price.cached_input for price in prices),
    )
