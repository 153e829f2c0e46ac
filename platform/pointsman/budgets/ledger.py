"""Budgets on the hot path: reservations from the slices at hand, with no query and in microseconds.

    ledger = Ledger(Store(engine, holder), home=settings.home)
    reservation = await ledger.ensure(ledger.budgets_of(project_id, key_id), estimate, tokens)   # or 429
    reservation.settle(actual, dearest, tokens)          # once it is known; `release()` where nothing was used
    await ledger.refresh()                               # each second, in the background

What holds:

* Money: what is settled never passes the limit as long as no request costs more than its estimate; by the
  overrun of the requests under way if some do. A gateway that is killed returns its lease but for what it
  told within the last second, so at most what it reserved in that second may be spent twice. One that is
  cut off from Postgres stops spending before its lease lapses for the others.
* Rates: in any t seconds all gateways together let at most N + N·t/60 through (N a minute, a bucket that
  holds one minute's worth), and for each gateway one slice (N/20) more that it had taken before.
* While Postgres is away a gateway spends what it holds, then answers 429 to callers that have a budget;
  those without one never touch any of this.

All methods may be called from any thread.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from sqlalchemy.exc import SQLAlchemyError

from pointsman.budgets.account import Grant, Report
from pointsman.budgets.hold import Hold
from pointsman.budgets.refusal import refusal
from pointsman.budgets.reservation import FREE, Reservation
from pointsman.budgets.store import Store
from pointsman.budgets.terms import Budget, Catalogue
from pointsman.errors import RequestError

IDLE_SECONDS = 60.0
"""A slice that nobody has used for so long is given back."""
PATIENCE = 1.5
"""Seconds that a request may wait for a slice."""
ROUNDS = 3
"""Renewals that a request may wait for: others may take from the one it waited for."""

log = logging.getLogger("pointsman.budgets")


class Short(NamedTuple):
    """A reservation that could not be made. `asking` is whether a renewal may help."""

    error: RequestError
    asking: bool


class Ledger:
    """`home` keeps the catalogue for a start while Postgres is away. `clock` is monotonic seconds."""

    def __init__(self, store: Store, *, home: Path | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.away = False
        self.catalogue = Catalogue.saved(home) if home else None
        self._store = store
        self._home = home
        self._clock = clock
        self._lock = Lock()
        self._renewing = Lock()
        self._holds: dict[str, Hold] = {}
        self._closing: list[Hold] = []
        self._renewal: asyncio.Future[bool] | None = None

    def budgets_of(self, project_id: str, key_id: str | None) -> tuple[Budget, ...]:
        """The budgets that bind a caller. 503 for a key whose budgets could never be read."""
        if self.catalogue is not None:
            return self.catalogue.of(project_id, key_id)
        if key_id is None:
            return ()
        message = "budgets cannot be checked: Postgres is away and no earlier catalogue of them is at hand"
        raise RequestError(message, status=503, type="server_error", retry_after=2)

    def reserve(self, budgets: Sequence[Budget], estimate: Decimal, tokens: int = 0) -> Reservation:
        """Takes from what is at hand, or raises 429. `tokens` is what the request may take of them in all."""
        tried = self._attempt(budgets, estimate, tokens, asking=False)
        if isinstance(tried, Short):
            raise tried.error
        return tried

    async def ensure(self, budgets: Sequence[Budget], estimate: Decimal, tokens: int = 0) -> Reservation:
        """As `reserve`, but asks Postgres for a larger slice where the one at hand is too small."""
        for _ in range(ROUNDS):
            tried = self._attempt(budgets, estimate, tokens)
            if isinstance(tried, Reservation):
                return tried
            if not tried.asking:
                raise tried.error
            if not await self._renewed():
                break
        return self.reserve(budgets, estimate, tokens)

    def take(self, budgets: Sequence[Budget], estimate: Decimal, tokens: int = 0) -> Reservation:
        """As `ensure`, for threads: it blocks."""
        for _ in range(ROUNDS):
            tried = self._attempt(budgets, estimate, tokens)
            if isinstance(tried, Reservation):
                return tried
            if not tried.asking:
                raise tried.error
            if not self._renew(every=False):
                break
        return self.reserve(budgets, estimate, tokens)

    async def refresh(self) -> bool:
        """Reads the catalogue, tells what was used, renews what runs low. False while Postgres is away."""
        return await asyncio.to_thread(self._renew, every=True)

    async def close(self) -> bool:
        """Gives every slice back. What is still reserved returns when its lease lapses."""
        return await asyncio.to_thread(self._give_back)

    def _attempt(
        self, budgets: Sequence[Budget], estimate: Decimal, tokens: int, *, asking: bool = True
    ) -> Reservation | Short:
        if not budgets:
            return FREE
        now = self._clock()
        with self._lock:
            holds = [self._holds.get(budget.id) or self._open(budget, now) for budget in budgets]
            short = [(hold, kind) for hold in holds if (kind := hold.lacks(estimate, tokens, now)) is not None]
            if not short:
                taken = [(hold, hold.take(estimate, tokens, now)) for hold in holds]
                return Reservation(self._lock, taken, estimate, tokens)
            asked = asking and not self.away
            helped = [asked and hold.note(kind, estimate, tokens, now) for hold, kind in short]
            # One budget that cannot give makes it pointless to ask the others.
            hold, kind = short[helped.index(False) if False in helped else 0]
            return Short(refusal(hold, kind, estimate, tokens, now, away=self.away), all(helped))

    def _open(self, budget: Budget, now: float) -> Hold:
        return self._holds.setdefault(budget.id, Hold(budget, now))

    async def _renewed(self) -> bool:
        """One renewal for all requests that wait here. A request may join one that began before it."""
        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.ensure_future(asyncio.to_thread(self._renew, every=False))
        try:
            async with asyncio.timeout(PATIENCE):
                return await asyncio.shield(self._renewal)
        except TimeoutError:
            return False

    def _renew(self, *, every: bool) -> bool:
        """One exchange with Postgres: for all slices, or for those that requests found too small."""
        with self._renewing:
            sent = self._clock()
            try:
                if every:
                    self._learn(self._store.catalogue())
                with self._lock:
                    reports = self._reports(sent, every=every)
                grants = self._store.renew(reports) if reports else []
            except SQLAlchemyError as error:
                if not self.away:
                    log.warning("budgets cannot be renewed (%s)", type(error).__name__)
                self.away = True
                return False
            with self._lock:
                heard = {grant.lease_id: grant for grant in grants}
                for report in reports:
                    self._hear(report, heard, sent)
                self._closing = []
            self.away = False
            return True

    def _reports(self, now: float, *, every: bool) -> list[Report]:
        if every and not self.away:
            for identity, hold in list(self._holds.items()):
                if now - hold.touched > IDLE_SECONDS and hold.at_rest:
                    self._closing.append(self._holds.pop(identity))
        reports = [hold.last_report() for hold in self._closing]
        for hold in self._holds.values():
            if (every or hold.wanting) and (report := hold.report(now)) is not None:
                reports.append(report)
        return reports

    def _hear(self, report: Report, heard: dict[str, Grant], sent: float) -> None:
        hold = self._holds.get(report.budget_id)
        if hold is None or hold.purse.lease_id != report.lease_id:
            return  # a slice that was given back
        if (grant := heard.get(report.lease_id)) is None:
            del self._holds[report.budget_id]  # its budget is gone
        else:
            hold.hear(grant, sent)

    def _learn(self, catalogue: Catalogue) -> None:
        """Takes in budgets that were made, changed or ended."""
        known = self.catalogue
        if known is not None and known.budgets == catalogue.budgets:
            return
        terms = {budget.id: budget for budget in catalogue.budgets}
        with self._lock:
            for identity, hold in list(self._holds.items()):
                if identity not in terms:
                    del self._holds[identity]
                elif hold.budget != terms[identity]:
                    hold.change(terms[identity])
            self.catalogue = catalogue
        try:
            if self._home is not None:
                catalogue.save(self._home)
        except OSError as error:
            log.error("the catalogue of budgets cannot be kept on disk (%s)", error.strerror)

    def _give_back(self) -> bool:
        with self._renewing:
            with self._lock:
                holds = [*self._closing, *self._holds.values()]
                reports = [hold.last_report() for hold in holds]
                self._closing, self._holds = [], {}
            try:
                self._store.renew(reports)
            except SQLAlchemyError as error:
                log.warning("budgets cannot be given back (%s); they lapse", type(error).__name__)
                return False
            return True
