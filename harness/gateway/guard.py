"""Nothing in a request may name an address, a key, a header set or a proxy for an upstream (S1)."""

from __future__ import annotations

import re
from collections.abc import Mapping
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
_FORBIDDEN = re.compile(
    r"(?i)^(?:.*_)?(?:api_?base|base_?url|api_?key|api_?keys|endpoint|api_?endpoint|api_?version|azure_endpoint|"
    r"extra_headers?|headers?|default_headers|authorization|proxy|proxies|http_proxy|https_proxy|"
    r"api_?token|access_?token|vertex_credentials|aws_\w+|custom_llm_provider|url_override)$"
)
MAX_DEPTH = 20


def refuse_addresses(fields: Mapping[str, msgspec.Raw]) -> None:
    """Raises a 400 that names the field, at the top level or inside any object that is not the conversation."""
    for name, raw in fields.items():
        if _FORBIDDEN.match(name):
            raise _refusal(name)
        if name in PLAIN or name in CONTENT:
            continue
        if bytes(raw)[:1] in (b"{", b"["):
            _walk(msgspec.json.decode(raw), name, 0)


def _walk(value: Any, path: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise RequestError(f"{path}: nested deeper than {MAX_DEPTH} levels", param=path)
    if isinstance(value, dict):
        for name, item in value.items():
            if _FORBIDDEN.match(name):
                raise _refusal(f"{path}.{name}")
            _walk(item, f"{path}.{name}", depth + 1)
    elif isinstance(value, list):
        for item in value:
            _walk(item, path, depth + 1)


def _refusal(path: str) -> RequestError:
    return RequestError(
        f"{path}: a request may not set an upstream's address, key, headers or proxy; workers are declared in "
        "pointsman.toml",
        param=path,
        code="field_not_allowed",
    )
