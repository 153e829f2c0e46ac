"""`Retry-After`, in seconds or as a date (RFC 9110 §10.2.3)."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

LONGEST = 86_400.0


def parse_retry_after(value: str | None, now: datetime | None = None) -> float | None:
    """Seconds to wait, between 0 and a day; None where the header is absent or means nothing."""
    if not value or len(value) > 100:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            moment = parsedate_to_datetime(value)
        except (ValueError, OverflowError):
            return None
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        seconds = (moment - (now or datetime.now(UTC))).total_seconds()
        return min(max(seconds, 0.0), LONGEST)
    return min(seconds, LONGEST) if seconds >= 0 else None
