"""What a request may spend: reserved from the caller's budgets before it is logged, settled when it has ended.

A caller without a budget pays for none of this but one look-up.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from harness.gateway.access import Caller
from harness.gateway.decide import Decision
from harness.gateway.request import ChatRequest
from pointsman.budgets import FREE, Ledger, Reservation, dearest, estimate
from pointsman.budgets.pricing import ASSUMED_OUTPUT
from pointsman.pool import Price
from pointsman.upstream.price import add, cost
from pointsman.upstream.record import CallRecord


async def reserve(ledger: Ledger, caller: Caller, request: ChatRequest, decision: Decision) -> Reservation:
    """What the dearest worker that may answer would cost. Raises 429 where a budget or a rate is used up."""
    budgets = ledger.budgets_of(caller.project_id, caller.key_id)
    if not budgets:
        return FREE
    top = _dearest(decision)
    candidates = decision.candidates(fallbacks=not request.hints.disable_fallbacks)
    amount = max(estimate(request.prompt_tokens, request.output_tokens, w.price, top) for w in candidates)
    tokens = request.prompt_tokens + (request.output_tokens or ASSUMED_OUTPUT)
    return await ledger.ensure(budgets, amount + (decision.router_cost or Decimal(0)), tokens)


def settle(reservation: Reservation, decision: Decision, records: Sequence[CallRecord]) -> None:
    """What was used, once; a call whose cost is unknown is charged at the dearest price of the pool."""
    if reservation is FREE:
        return
    used = [record for record in records if record.usage is not None]
    if not used:
        reservation.release()
        return
    top = _dearest(decision)
    actual, most, tokens = decision.router_cost, decision.router_cost or Decimal(0), 0
    for record in used:
        assert record.usage is not None
        actual = add(actual, record.cost)
        most += cost(record.usage, record.worker.price or top) or Decimal(0)
        tokens += record.usage.input + record.usage.output
    reservation.settle(actual, most, tokens)


def _dearest(decision: Decision) -> Price:
    return dearest(worker.price for worker in decision.generation.pool.workers)
