"""One gateway's side of one budget: its slice of the money, and the tokens it took from the buckets.

No lock and no clock here: the ledger holds the lock and says what time it is (seconds, monotonic).
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Literal

from pointsman.budgets.account import SLICES, ZERO, Grant, Report
from pointsman.budgets.terms import Budget
from pointsman.ids import new_id

Kind = Literal["money", "requests", "tokens"]
NEVER = float("-inf")
PAUSE = 1.0
"""Seconds for which a budget that could not give enough is not asked again by requests."""


class Purse:
    """The money of one lease in one period. A reservation settles on the purse it was taken from."""

    __slots__ = ("amount", "lease_id", "period_start", "reserved", "used")

    def __init__(self, lease_id: str, period_start: datetime | None) -> None:
        self.lease_id = lease_id
        self.period_start = period_start
        self.amount = ZERO
        self.used = ZERO
        self.reserved = ZERO

    @property
    def committed(self) -> Decimal:
        return self.used + self.reserved

    @property
    def free(self) -> Decimal:
        return self.amount - self.used - self.reserved


class Hold:
    """What may be spent of a budget here and now, what is asked for next, and what was last heard of it."""

    def __init__(self, budget: Budget, now: float) -> None:
        self.budget = budget
        self.purse = Purse(new_id(), None)
        self.until = NEVER
        self.requests = 0
        self.tokens = 0
        self.touched = now
        self.heard: Grant | None = None
        self.heard_at = now
        self._renew_at = NEVER
        self._told: tuple[Decimal, Decimal] = (ZERO, ZERO)
        self._telling = self._told
        self._needs: dict[Kind, Decimal | int] = {}
        self._asked: dict[Kind, Decimal | int] = {}
        self._dry: dict[Kind, tuple[float, Decimal | int]] = {}

    def lacks(self, estimate: Decimal, tokens: int, now: float) -> Kind | None:
        """What a request would want that is not at hand."""
        budget, purse = self.budget, self.purse
        if budget.limit_usd is not None and (
            now >= self.until or purse.amount - purse.used - purse.reserved < estimate
        ):
            return "money"
        if budget.requests_per_minute is not None and self.requests < 1:
            return "requests"
        if budget.tokens_per_minute is not None and self.tokens < tokens:
            return "tokens"
        return None

    def take(self, estimate: Decimal, tokens: int, now: float) -> Purse:
        """Takes what `lacks` found to be there."""
        self.touched = now
        self.purse.reserved += estimate
        if self.budget.requests_per_minute is not None:
            self.requests -= 1
        if self.budget.tokens_per_minute is not None:
            self.tokens -= tokens
        return self.purse

    def note(self, kind: Kind, estimate: Decimal, tokens: int, now: float) -> bool:
        """Notes what was missing, for the next renewal. False where asking now would bring nothing."""
        self.touched = now
        amount: Decimal | int = estimate if kind == "money" else 1 if kind == "requests" else tokens
        until, least = self._dry.get(kind, (NEVER, 0))
        if self.too_large(kind, amount, now) or (now < until and amount >= least):
            return False
        self._needs[kind] = self._needs.get(kind, 0) + amount
        return True

    def too_large(self, kind: Kind, amount: Decimal | int, now: float) -> bool:
        """Whether a request is larger than the whole budget, or than what is known to be left of it."""
        per_minute = self.budget.tokens_per_minute
        if kind == "money":
            return amount > self.left(now)
        return kind == "tokens" and per_minute is not None and amount > per_minute

    def left(self, now: float) -> Decimal:
        """What nobody had spent when the budget was last heard of; all of it once a new period began."""
        limit, heard = self.budget.limit_usd or ZERO, self.heard
        if heard is None or (heard.reset_seconds is not None and now >= self.heard_at + heard.reset_seconds):
            return limit
        return max(limit - heard.spent, ZERO)

    def change(self, budget: Budget) -> None:
        """Other terms for the same budget: the lease is renewed under them at once."""
        self.budget = budget
        self._renew_at, self._dry = NEVER, {}

    @property
    def wanting(self) -> bool:
        return bool(self._needs)

    def report(self, now: float) -> Report | None:
        """What to tell and to ask now; None where nothing has changed and nothing is wanted."""
        purse, needs = self.purse, self._needs
        piece = self.heard.slice if self.heard else ZERO
        before = purse.amount
        if now >= self.until:
            purse.amount = purse.committed
        elif purse.free > 2 * max(piece, Decimal(needs.get("money", 0))):
            purse.amount = purse.committed + piece
        requests = self._wanted("requests", self.requests, self.budget.requests_per_minute)
        tokens = self._wanted("tokens", self.tokens, self.budget.tokens_per_minute)
        low = self.budget.limit_usd is not None and 2 * purse.free < piece
        telling = (purse.used, purse.reserved)
        changed = telling != self._told or purse.amount != before
        if not (needs or requests or tokens or low or changed or now >= self._renew_at):
            return None
        self._needs, self._asked, self._telling = {}, needs, telling
        self.requests += min(requests, 0)
        self.tokens += min(tokens, 0)
        need = Decimal(needs.get("money", 0))
        return Report(
            purse.lease_id, self.budget.id, purse.period_start, purse.amount, *telling, need, requests, tokens
        )

    @property
    def at_rest(self) -> bool:
        """Nothing is reserved, and Postgres knows all that was used."""
        return not self.purse.reserved and (self.purse.used, ZERO) == self._told

    def last_report(self) -> Report:
        """Gives everything back that is not reserved; what is reserved stays until the lease lapses."""
        purse = self.purse
        purse.amount = purse.committed
        requests, self.requests = self.requests, 0
        tokens, self.tokens = self.tokens, 0
        return Report(
            purse.lease_id,
            self.budget.id,
            purse.period_start,
            purse.amount,
            purse.used,
            purse.reserved,
            requests=-max(requests, 0),
            tokens=-max(tokens, 0),
            closing=True,
        )

    def hear(self, grant: Grant, sent: float) -> None:
        """Takes a grant in. `sent` is when its report left, so that a deadline here is before the database's."""
        purse = self.purse
        if grant.period_start != purse.period_start:
            # What is under way settles on the old period's purse, which nobody reports any more.
            if purse.period_start is not None:
                purse = self.purse = Purse(purse.lease_id, grant.period_start)
            self._told = (ZERO, ZERO)
            purse.period_start = grant.period_start
        else:
            self._told = self._telling
        purse.amount = grant.amount
        self.requests += grant.requests
        self.tokens += grant.tokens
        self.heard, self.heard_at = grant, sent
        reset = grant.seconds if grant.reset_seconds is None else grant.reset_seconds
        self.until = sent + min(grant.seconds, reset)
        self._renew_at = sent + (self.until - sent) / 2
        self._dry = {kind: dry for kind in self._asked if (dry := self._still_short(kind, sent)) is not None}
        self._asked = {}

    def _still_short(self, kind: Kind, now: float) -> tuple[float, Decimal | int] | None:
        asked = self._asked[kind]
        if kind == "money":
            return (now + PAUSE, asked) if self.purse.free < asked else None
        have = self.requests if kind == "requests" else self.tokens
        return (now + min(self.wait(kind, 1, now), PAUSE), 0) if have < asked else None

    def wait(self, kind: Kind, amount: int, now: float) -> float:
        """Seconds until a bucket holds `amount` more than what is at hand, if nobody else takes from it."""
        limits = self.budget
        rate = ((limits.requests_per_minute if kind == "requests" else limits.tokens_per_minute) or 0) / 60
        if self.heard is None or rate <= 0:
            return PAUSE
        left = self.heard.requests_left if kind == "requests" else self.heard.tokens_left
        have = self.requests if kind == "requests" else self.tokens
        return max((amount - have - left) / rate - (now - self.heard_at), 0.0)

    def _wanted(self, kind: Kind, have: int, per_minute: int | None) -> int:
        """What to take from a bucket, a slice or what requests lacked; negative: what is put back into it."""
        if per_minute is None:
            return 0
        target = max(-(-per_minute // SLICES), int(self._needs.get(kind, 0)))
        return target - have if 2 * have < target or have > 2 * target else 0
