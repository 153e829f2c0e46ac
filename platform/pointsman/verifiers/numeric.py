"""A number within a tolerance. Reads separators of thousands, signs, currency, units and fractions.

Options: `value`, `tolerance` (absolute, 0 by default), `relative` (a share of `value`). Where the reply
marks its answer, the first number there counts; else the last number of the reply.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from pointsman.verifiers import spec as read
from pointsman.verifiers.extract import after_marker, bounded, final_answer

_NUMBER = re.compile(
    r"(?<![\w.])[-+]?[ ]?(?:[$€£][ ]?)?[-+]?"
    r"(?:\d{1,3}(?:[,_ \u00a0\u202f']\d{3})+|\d{1,40})(?:\.\d{1,40})?(?:[eE][-+]?\d{1,3})?"
    r"(?:[ ]?/[ ]?\d{1,12})?"
)
_ROUNDING = Decimal("1e-9")


def numeric(spec: Mapping[str, Any], answer: str) -> float:
    read.only(spec, ("value", "tolerance", "relative"))
    wanted = read.decimal(spec, "value")
    tolerance = read.decimal(spec, "tolerance", "0")
    relative = read.decimal(spec, "relative", "0")
    if tolerance < 0 or relative < 0:
        raise read.fault(spec, "tolerance" if tolerance < 0 else "relative", "0 or more")
    given = answered_number(answer)
    if given is None:
        return 0.0
    return float(abs(given - wanted) <= max(tolerance, relative * abs(wanted), _ROUNDING))


def answered_number(answer: str) -> Decimal | None:
    """The number that the reply gives as its answer."""
    final = final_answer(answer)
    if numbers := numbers_in(final):
        text = bounded(answer)
        marked = after_marker(text) is not None or text.startswith(("{", "```"))
        return numbers[0] if marked else numbers[-1]
    numbers = numbers_in(bounded(answer))
    return numbers[-1] if numbers else None


def numbers_in(text: str) -> list[Decimal]:
    """Every number of a text, in order."""
    text = text.replace("\u2212", "-").replace("\\,", ",").replace("−", "-")
    found = (_value(match.group()) for match in _NUMBER.finditer(text))
    return [number for number in found if number is not None]


def _value(token: str) -> Decimal | None:
    plain = re.sub(r"[,_\s\u00a0\u202f'$€£]", "", token)
    over, _, under = plain.partition("/")
    if under and not int(under):
        return None
    return Decimal(over) / Decimal(under) if under else Decimal(over)
