"""Nothing in a request may name an address, a key, a header set or a proxy for an upstream (S1)."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from pointsman.errors import RequestError

# Fields whose content is the conversation itself, where any word may stand.
CONTENT = frozenset({"messages", "input", "tools", "response_format", "functions", "prompt", "system", "instructions"})
# OpenAI's own fields with plain values: nothing to look for inside.
PLAIN = frozenset(
    {
        "model",
        "stream",
        "n",
        "stop",
        "temperature",
        "top_p",
        "max_tokens",
        "max_completion_tokens",
        "seed",
        "user",
        "store",
        "logprobs",
        "top_logprobs",
        "presence_penalty",
        "frequency_penalty",
        "parallel_tool_calls",
        "service_tier",
        "reasoning_effort",
        "verbosity",
        "prompt_cache_key",
        "safety_identifier",
    }
)
# Looked for at the end of a name whose letters are lower case and whose other signs are gone.
_FORBIDDEN = re.compile(
    r"(?:apibase|baseurl|baseuri|apikeys?|apiurl|apiuri|apihost|hosturl|endpoint|endpoints|endpointurl|apiversion|"
    r"headers?|authorization|bearer|prox(?:y|ies)|proxyurl|apitokens?|accesstokens?|authtokens?|credentials|"
    r"customllmprovider|urloverride|azureadtoken)$|^aws(?:access|secret|session|region|profile|role|bedrock|sts|web)"
)
_SIGNS = re.compile(r"[\W_]+")


def refuse_addresses(fields: Mapping[str, msgspec.Raw]) -> None:
    """Raises a 400 that names the field, at the top level or inside any object that is not the conversation."""
    for name, raw in fields.items():
        if name in PLAIN or name in CONTENT:
            continue
        if _names_upstream(name):
            raise _refusal(name)
        if bytes(raw)[:1] in (b"{", b"[", b'"'):
            _walk(_decoded(raw, name), name)


def _names_upstream(name: str) -> bool:
    plain = _SIGNS.sub("", unicodedata.normalize("NFKC", name)).lower()
    return _FORBIDDEN.search(plain) is not None


def _walk(value: Any, path: str) -> None:
    """Objects at any depth, and objects written as a string, as metadata's values often are."""
    if isinstance(value, dict):
        for name, item in value.items():
            if _names_upstream(name):
                raise _refusal(f"{path}.{name}")
            _walk(item, f"{path}.{name}")
    elif isinstance(value, list):
        for item in value:
            _walk(item, path)
    elif isinstance(value, str) and value.lstrip()[:1] == "{":
        with suppress(ValueError, RecursionError):  # a text that is no JSON holds no fields
            _walk(json.loads(value), path)


def _decoded(raw: msgspec.Raw, name: str) -> Any:
    """With the standard parser, which takes every number that may be forwarded."""
    try:
        return json.loads(bytes(raw), parse_int=str, parse_float=str)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"{name}: not valid JSON here: {error}", param=name) from None


def _refusal(path: str) -> RequestError:
    return RequestError(
        f"{path}: a request may not set an upstream's address, key, headers or proxy; workers are declared in "
        "pointsman.toml",
        param=path,
        code="field_not_allowed",
    )
