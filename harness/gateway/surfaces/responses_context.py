"""What the Responses surface keeps between a request and its answer, and how its ids are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from pointsman.errors import RequestError

RESPONSE = "resp_"
_PARAMS = {
    "messages": "input",
    "max_completion_tokens": "max_output_tokens",
    "response_format": "text.format",
    "reasoning_effort": "reasoning.effort",
    "verbosity": "text.verbosity",
}


@dataclass(frozen=True, slots=True)
class ResponsesContext:
    """`echo` holds the fields of a Response object that repeat the request, or the API's defaults.

    `custom_tools` names the free-form tools, which workers see as functions with one text argument.
    `summary` says that the client reads reasoning as a summary rather than as text of its own.
    """

    model: str
    stream: bool
    echo: Mapping[str, Any]
    custom_tools: frozenset[str] = frozenset()
    summary: bool = False


@dataclass(frozen=True, slots=True)
class ChatBody:
    """`body` is the JSON of the equivalent chat-completions request."""

    body: bytes
    context: ResponsesContext


@dataclass(frozen=True, slots=True)
class Naming:
    """The ids of one answer, all derived from the id of its decision."""

    identity: str

    @property
    def response(self) -> str:
        return RESPONSE + self._stem

    def item(self, prefix: str, number: int) -> str:
        """The id of the item at `number` in the output; `prefix` says its kind."""
        return f"{prefix}_{self._stem}{number:02x}"

    @property
    def _stem(self) -> str:
        return self.identity.replace("-", "")


def decision_id(response_id: str) -> str | None:
    """The decision behind a Response's id, None where the id is none of ours; feedback may name either."""
    try:
        return str(UUID(hex=response_id.removeprefix(RESPONSE))) if response_id.startswith(RESPONSE) else None
    except ValueError:
        return None


def in_own_words(error: RequestError) -> RequestError:
    """The core's refusal with its parameter under the Responses API's name."""
    given = error.param or ""
    name = given.split("[")[0].split(".")[0]
    if name not in _PARAMS:
        return error
    own = _PARAMS[name] + given.removeprefix(name)
    message = error.message
    if message.startswith(f"{given}:"):
        message = own + message.removeprefix(given)
    return RequestError(
        message,
        status=error.status,
        type=error.type,
        code=error.code,
        param=own,
        retry_after=error.retry_after,
    )
