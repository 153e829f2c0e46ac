"""Equality of texts, after the normalisation that the spec asks for.

Options: `value` or `values` (any of them), `case` (true: letters' case counts), `spaces` (false: spaces
are removed, true: runs are one space), `punctuation` (true: it counts).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from pointsman.verifiers import spec as read
from pointsman.verifiers.extract import final_answer


def exact(spec: Mapping[str, Any], answer: str) -> float:
    read.only(spec, ("value", "values", "case", "spaces", "punctuation"))
    wanted = read.texts(spec, "values") if "values" in spec else [read.text(spec, "value")]
    case, spaces = read.flag(spec, "case", False), read.flag(spec, "spaces", True)
    punctuation = read.flag(spec, "punctuation", False)
    given = normalise(final_answer(answer), case=case, spaces=spaces, punctuation=punctuation)
    accepted = {normalise(value, case=case, spaces=spaces, punctuation=punctuation) for value in wanted}
    return float(given in accepted)


def normalise(text: str, *, case: bool = False, spaces: bool = True, punctuation: bool = False) -> str:
    """One form for texts that the options call equal; a text of punctuation alone is kept as it is."""
    text = unicodedata.normalize("NFKC", text)
    text = text if case else text.casefold()
    if not punctuation:
        text = re.sub(r"[^\w\s+/@.:-]", "", text).strip(".:- ") or text
    return " ".join(text.split()) if spaces else "".join(text.split())
