"""The arithmetic of leases, pure: one budget's account, and what a gateway's report does to it.

A lease is a slice of a budget that one gateway may spend without asking. All its figures are totals of
the period, so that a report or a grant that is sent twice, or whose answer is lost, changes nothing:

    spent by closed leases + Σ amounts of the leases ≤ limit

A lease that is not renewed in time lapses: its amount falls to what it had used and reserved when it
last reported, and the rest returns to the budget. Rates are token buckets of one minute's capacity,
filled evenly, from which gateways take whole tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import ROUND_UP, Decimal

from pointsman.budgets.terms import Budget, period_end, period_start

ZERO = Decimal(0)
SLICES = 20
"""A lease is at most this part of its budget, unless one request needs more."""
NEARING_THE_END = 4
"""…and at most this part of what is left, so that the last dollars are not stranded in leases."""
_LEAST = Decimal("1E-10")  # the tables keep money to ten places
FORGOTTEN = timedelta(days=1)
"""A lapsed lease is folded into `spent` after so long: its gateway will not report any more."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a gateway tells of one lease, and what it asks for.

    `need` is the least free amount it wants, 0 for the usual slice. `requests` and `tokens` are wanted
    from the buckets, or given back where negative. `closing` ends the lease, at once or, where something
    of it is still reserved, when it lapses.
    """

    lease_id: str
    budget_id: str
    period_start: datetime | None
    amount: Decimal = ZERO
    used: Decimal = ZERO
    reserved: Decimal = ZERO
    need: Decimal = ZERO
    requests: int = 0
    tokens: int = 0
    closing: bool = False


@dataclass(frozen=True, slots=True)
class Grant:
    """The answer: `amount` is the lease's new total, `slice` the free part that is fair without a special need.

    `spent` is what all have used as far as is known.

    `requests` and `tokens` are given on top; `requests_left` and `tokens_left` stay in the buckets.
    `reset_seconds` is None for a budget that never resets.
    """

    lease_id: str
    budget_id: str
    period_start: datetime
    amount: Decimal
    slice: Decimal
    spent: Decimal
    seconds: float
    reset_seconds: float | None
    requests: int
    tokens: int
    requests_left: float
    tokens_left: float


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease as its row has it."""

    id: str
    holder: str
    amount: Decimal
    used: Decimal
    reserved: Decimal
    expires_at: datetime


@dataclass
class Account:
    """One budget with its leases, held under its row's lock. `changed` and `gone` are leases to write."""

    budget: Budget
    period_start: datetime | None
    spent: Decimal
    requests_left: float | None
    tokens_left: float | None
    refilled_at: datetime | None
    leases: dict[str, Lease] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)

    def advance(self, now: datetime) -> None:
        """Brings it to `now`: a new period, lapsed leases, full buckets. Time never runs backwards here."""
        start = period_start(self.budget.period, now)
        if self.period_start is None or start > self.period_start:
            self.period_start, self.spent = start, ZERO
            self.gone |= set(self.leases)
            self.leases = {}
        for lease in list(self.leases.values()):
            self._lapse(lease, now)
        self._refill(now)

    def answer(self, report: Report, holder: str, now: datetime, ttl: timedelta) -> Grant:
        """Takes a report in and grants what can be granted."""
        if report.period_start != self.period_start:
            report = replace(report, period_start=self.period_start, amount=ZERO, used=ZERO, reserved=ZERO)
        amount, piece = self._money(report)
        if report.closing and not report.reserved:
            self._close(report)
        else:
            lease = Lease(report.lease_id, holder, amount, report.used, report.reserved, now + ttl)
            self.leases[lease.id] = lease
            self.changed.add(lease.id)
        requests, self.requests_left = _take(self.requests_left, self.budget.requests_per_minute, report.requests)
        tokens, self.tokens_left = _take(self.tokens_left, self.budget.tokens_per_minute, report.tokens)
        assert self.period_start is not None
        end = period_end(self.budget.period, self.period_start)
        return Grant(
            lease_id=report.lease_id,
            budget_id=self.budget.id,
            period_start=self.period_start,
            amount=amount,
            slice=piece,
            spent=self.spent + sum((lease.used for lease in self.leases.values()), ZERO),
            seconds=ttl.total_seconds(),
            reset_seconds=None if end is None else max((end - now).total_seconds(), 0.0),
            requests=requests,
            tokens=tokens,
            requests_left=self.requests_left or 0.0,
            tokens_left=self.tokens_left or 0.0,
        )

    def _money(self, report: Report) -> tuple[Decimal, Decimal]:
        """The lease's new amount, and the free part that is a fair slice now."""
        committed = report.used + report.reserved
        limit = self.budget.limit_usd
        if limit is None or report.closing:
            return committed, ZERO
        others = sum((lease.amount for lease in self.leases.values() if lease.id != report.lease_id), self.spent)
        room = limit - others
        # What was used is used, even where it is more than there was room for.
        kept = max(committed, min(report.amount, room))
        unspent = room - committed
        fair = max(min(limit / SLICES, unspent / NEARING_THE_END), ZERO)
        wanted = max(fair, min(report.need, unspent)).quantize(_LEAST, ROUND_UP)
        free = kept - committed
        if free < report.need or 2 * free < fair:
            kept = max(kept, min(room, committed + wanted))
        return kept, fair

    def _close(self, report: Report) -> None:
        """Folds a lease's use into the budget's. One that is not there was closed before."""
        if self.leases.pop(report.lease_id, None) is None:
            return
        self.gone.add(report.lease_id)
        self.changed.discard(report.lease_id)
        self.spent += report.used

    def _lapse(self, lease: Lease, now: datetime) -> None:
        if lease.expires_at > now:
            return
        committed = lease.used + lease.reserved
        if lease.expires_at + FORGOTTEN <= now:
            del self.leases[lease.id]
            self.gone.add(lease.id)
            self.spent += committed
        elif lease.amount > committed:
            self.leases[lease.id] = replace(lease, amount=committed)
            self.changed.add(lease.id)

    def _refill(self, now: datetime) -> None:
        elapsed = (now - self.refilled_at).total_seconds() if self.refilled_at else 0.0
        budget = self.budget
        self.requests_left = _filled(self.requests_left, budget.requests_per_minute, elapsed)
        self.tokens_left = _filled(self.tokens_left, budget.tokens_per_minute, elapsed)
        self.refilled_at = max(now, self.refilled_at or now)


def _filled(left: float | None, per_minute: int | None, elapsed: float) -> float | None:
    """A bucket after `elapsed` seconds; one that is new begins full."""
    if per_minute is None:
        return None
    return float(per_minute) if left is None else min(per_minute, left + max(elapsed, 0.0) * per_minute / 60)


def _take(left: float | None, per_minute: int | None, wanted: int) -> tuple[int, float | None]:
    """Whole tokens out of a bucket, or back into it where `wanted` is negative."""
    if left is None or per_minute is None:
        return 0, left
    if wanted <= 0:
        return 0, min(float(per_minute), left - wanted)
    taken = min(wanted, max(int(left), 0))
    return taken, left - taken
