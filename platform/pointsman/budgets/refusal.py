"""What a caller is told whose budget or rate does not allow a request: 429, why, and when to come back."""

from __future__ import annotations

from decimal import Decimal

from pointsman.budgets.account import ZERO
from pointsman.budgets.hold import PAUSE, Hold, Kind
from pointsman.errors import RequestError

AWAY_RETRY = 2.0


def refusal(hold: Hold, kind: Kind, estimate: Decimal, tokens: int, now: float, *, away: bool) -> RequestError:
    """The error for a request that `hold` lacks something for."""
    code = "budget_exceeded" if kind == "money" else "rate_limit_exceeded"
    if away:
        message = f"the budget of {hold.budget.owner} cannot be read now and what was at hand is spent"
        return _error(message, code, AWAY_RETRY)
    if kind == "money":
        return _error(*_money(hold, estimate, now))
    return _error(*_rate(hold, kind, tokens, now))


def dollars(amount: Decimal) -> str:
    """`$5`, `$0.0123`: no more places than it has, and six at most."""
    return f"${round(amount, 6).normalize():f}"


def _money(hold: Hold, estimate: Decimal, now: float) -> tuple[str, str, float | None]:
    budget, heard = hold.budget, hold.heard
    limit = budget.limit_usd or ZERO
    per = "in all" if budget.period == "total" else f"a {budget.period}"
    terms = f"the budget of {budget.owner} is {dollars(limit)} {per}"
    if estimate > limit:
        return f"{terms}, and this request may cost up to {dollars(estimate)}", "budget_exceeded", None
    left = hold.left(now)
    if estimate <= left and left:
        return f"{terms}, and none of it is free just now", "budget_exceeded", PAUSE
    told = f"{terms}; {dollars(left)} of it is left, and this request may cost up to {dollars(estimate)}"
    if heard is None or heard.reset_seconds is None:
        return told, "budget_exceeded", None
    return told, "budget_exceeded", max(hold.heard_at + heard.reset_seconds - now, PAUSE)


def _rate(hold: Hold, kind: Kind, tokens: int, now: float) -> tuple[str, str, float | None]:
    budget = hold.budget
    if kind == "requests":
        message = f"the limit of {budget.owner} is {budget.requests_per_minute} requests a minute"
        return message, "rate_limit_exceeded", hold.wait("requests", 1, now)
    message = f"the limit of {budget.owner} is {budget.tokens_per_minute} tokens a minute"
    if hold.too_large("tokens", tokens, now):
        return f"{message}, and this request may take {tokens}", "rate_limit_exceeded", None
    return message, "rate_limit_exceeded", hold.wait("tokens", tokens, now)


def _error(message: str, code: str, retry_after: float | None) -> RequestError:
    return RequestError(message, status=429, type="rate_limit_error", code=code, retry_after=retry_after)
