"""What the engine is given to answer: one request, as plain JSON values, so that a state can be kept and resumed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from harness.routing.base import Ask
from pointsman.database.clean import clean_json
from pointsman.words import Origin

Message = dict[str, Any]
"""A chat message as OpenAI writes it."""

_OF_THE_ANSWER = (
    "response_format", "stop", "max_tokens", "max_completion_tokens", "logprobs", "top_logprobs", "modalities",
    "audio", "prediction", "verbosity",
)  # fmt: skip
_OF_TOOLS = ("tools", "tool_choice", "parallel_tool_calls", "functions", "function_call")
_OF_THE_ENGINE = ("model", "messages", "stream", "stream_options", "n", "metadata", "store")


class Request(msgspec.Struct, frozen=True):
    """One request of one episode. `root_id` is the id of the tree's first decision, made before anything is sent.

    `messages` are the client's own, without what UTF-8 cannot say (`plain`); `fields` are the other fields of its chat
    completion, `tools` among them.
    `ask` is what routers see. `seed` makes every draw of the run: each node's is a function of it and the node's
    key, whatever finishes first. `store` false: nothing of it is remembered beyond the resumption of a tool call.
    """

    id: str
    project_id: str
    episode_id: str
    root_id: str
    messages: list[Message]
    ask: Ask
    fields: dict[str, Any] = {}
    origin: Origin = "traffic"
    seed: int = 0
    output_tokens: int = 0
    store: bool = True

    @property
    def tools(self) -> list[dict[str, Any]]:
        tools = self.fields.get("tools")
        return tools if isinstance(tools, list) else []

    def fields_for(self, *, answers: bool, tools: bool) -> dict[str, Any]:
        """The client's fields that a call takes: those about the answer's form go to calls that may become it."""
        left_out = (*_OF_THE_ENGINE, *(() if answers else _OF_THE_ANSWER), *(() if tools else _OF_TOOLS))
        return {name: value for name, value in self.fields.items() if name not in left_out}


def plain(value: Any) -> Any:
    """A JSON value fit for a request: NUL and lone surrogates, which neither Postgres nor UTF-8 has, become U+FFFD."""
    return msgspec.json.decode(clean_json(value))


def seed_of(seed: int, key: str) -> int:
    """64 bits for the node `key`, a function of both."""
    return int.from_bytes(hashlib.blake2b(f"{seed}/{key}".encode(), digest_size=8).digest())


def tokens_of(messages: list[Message], fields: Mapping[str, Any]) -> int:
    """An estimate of what a prompt takes, from the length of its JSON."""
    size = len(msgspec.json.encode(messages)) + (len(msgspec.json.encode(fields["tools"])) if "tools" in fields else 0)
    return size // 4
