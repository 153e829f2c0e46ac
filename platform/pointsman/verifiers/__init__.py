"""Verifiers: a JSON spec that says how right an answer is, from 0 to 1.

    {"kind": "exact",   "value": "blue"}                     text, case and spacing ignored unless asked
    {"kind": "numeric", "value": 42, "tolerance": 0.01}      a number, absolute or `relative` tolerance
    {"kind": "choice",  "value": "B"}                        the letter of a multiple choice
    {"kind": "regex",   "pattern": "colou?r"}                a bounded regular expression
    {"kind": "json",    "value": {...}}                      parsed JSON; or `required`: {key: type}
    {"kind": "items",   "value": ["a", "b"], "ordered": true}  a list or a set of short items

Each kind is a file. A verifier reads only the answer's text: what counts as the final answer is in
`extract`. Judging by an LLM and running code are no verifiers of this package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pointsman.errors import UserError
from pointsman.verifiers.choice import choice
from pointsman.verifiers.code import code
from pointsman.verifiers.exact import exact
from pointsman.verifiers.items import items
from pointsman.verifiers.numeric import numeric
from pointsman.verifiers.parsed import parsed_json
from pointsman.verifiers.pattern import regex
from pointsman.verifiers.schema import schema

__all__ = ["KINDS", "verify"]

KINDS: Mapping[str, Callable[[Mapping[str, Any], str], float]] = {
    "exact": exact,
    "numeric": numeric,
    "choice": choice,
    "regex": regex,
    "json": parsed_json,
    "items": items,
    "schema": schema,
    "code": code,
}


def verify(spec: Mapping[str, Any], answer: str) -> float:
    """How right `answer` is under `spec`, in [0, 1]; raises `UserError` for a spec that says nothing."""
    if not isinstance(spec, Mapping):
        raise UserError(f"verifier: expected an object with a kind, got {type(spec).__name__}")
    kind = spec.get("kind")
    check = KINDS.get(kind) if isinstance(kind, str) else None
    if check is None:
        raise UserError(f"verifier: kind: expected one of {', '.join(KINDS)}, got {kind!r}")
    return check(spec, answer)
