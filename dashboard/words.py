"""Numbers and values as people read them. No Markdown comes out of here unescaped: see `plain`."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from pointsman.queries import Proportion, Word

NOTHING = "–"
LONGEST = 20_000  # characters of one text that a page shows; the download has all
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~:$^&@/])")


def plain(text: str) -> str:
    """`text` for places that read Markdown: every mark is escaped, so that text stays text."""
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def clipped(text: str) -> str:
    """A text as pages show it: its first `LONGEST` characters, and how many there are where that is not all."""
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}\n… the first {LONGEST:,} of {len(text):,} characters"


def percent(part: Proportion | float | None) -> str:
    """A share as `87.5 %`; never rounded to 100 % or 0 % when it is neither."""
    share = part.share if isinstance(part, Proportion) else part
    if share is None:
        return NOTHING
    shown = f"{100 * share:.1f} %"
    if share < 1 and shown == "100.0 %":
        return "> 99.9 %"
    return "< 0.1 %" if share > 0 and shown == "0.0 %" else shown


def interval(part: Proportion) -> str:
    """The 95% Wilson interval, in percent."""
    bounds = part.wilson()
    return NOTHING if bounds is None else f"{100 * bounds[0]:.0f} to {100 * bounds[1]:.0f} %"


def dollars(amount: Decimal | str | None) -> str:
    """USD with about three significant digits; small amounts keep theirs."""
    if amount is None:
        return NOTHING
    value = Decimal(amount)
    if value == 0:
        return "$0"
    if value >= 100:
        return f"${value:,.0f}"
    if value >= 1:
        return f"${value:,.2f}"
    places = 2 - value.adjusted()
    return f"${value:.{min(places, 10)}f}"


def milliseconds(value: float | None) -> str:
    """`850 µs`, `12 ms`, `1.24 s`: the unit that reads best."""
    if value is None:
        return NOTHING
    if value < 1:
        return f"{1000 * value:.0f} µs"
    if value < 10:
        return f"{value:.1f} ms"
    return f"{value:.0f} ms" if value < 1000 else f"{value / 1000:.2f} s"


def moment(value: datetime | str | None) -> str:
    """UTC to the second."""
    if value is None:
        return NOTHING
    time = datetime.fromisoformat(value) if isinstance(value, str) else value
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def number(value: float | None, digits: int = 3) -> str:
    return NOTHING if value is None else f"{value:.{digits}f}"


def said(value: Any) -> str:
    """A feedback's value: yes, no, a number, or its JSON."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def summary(words: tuple[Word, ...]) -> str:
    return ", ".join(f"{word.metric}: {said(word.value)}" for word in words)


def duration(seconds: float | None) -> str:
    """`4.2 s`, `3 min 20 s`, `5 h 12 min`."""
    if seconds is None:
        return NOTHING
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60:,} h {minutes % 60} min"
