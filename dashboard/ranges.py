"""The time ranges that a page offers, and the width of a bar for each span of time."""

from __future__ import annotations

from datetime import timedelta

RANGES: dict[str, timedelta | None] = {
    "Last hour": timedelta(hours=1),
    "Last day": timedelta(days=1),
    "7 days": timedelta(days=7),
    "30 days": timedelta(days=30),
    "All": None,
}
DEFAULT = "Last day"

MAX_BARS = 60
LADDER = (
    timedelta(minutes=1),
    timedelta(minutes=2),
    timedelta(minutes=5),
    timedelta(minutes=10),
    timedelta(minutes=30),
    timedelta(hours=1),
    timedelta(hours=3),
    timedelta(hours=6),
    timedelta(hours=12),
    timedelta(days=1),
    timedelta(days=7),
)


def bucket_for(span: timedelta) -> timedelta:
    """The narrowest step of the ladder that shows `span` in at most `MAX_BARS` bars, or the widest."""
    return next((step for step in LADDER if span <= step * MAX_BARS), LADDER[-1])


def words(step: timedelta) -> str:
    """`5 minutes`, `1 hour`, `7 days`."""
    minutes = int(step.total_seconds() // 60)
    for size, unit in ((1440, "day"), (60, "hour"), (1, "minute")):
        if minutes % size == 0:
            count = minutes // size
            return f"{count} {unit}{'s' if count > 1 else ''}"
    return f"{minutes} minutes"
