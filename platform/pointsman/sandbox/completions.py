"""OpenAI's shapes: a completion, the chunks of a stream, usage."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pointsman.sandbox.prompts import count_tokens
from pointsman.sandbox.worker_program import Reply

FINGERPRINT = "pointsman-sandbox-simulation"
MAX_DELTAS = 6

_WORDS = re.compile(r"\s*\S+\s*$|\s*\S+(?=\s)|\s+$")


@dataclass(frozen=True)
class Completion:
    """All that is said about one answered request."""

    id: str
    model: str
    created: int
    choices: Sequence[Reply]
    prompt_tokens: int
    logprobs: Mapping[str, Any] | None = None
    completion_tokens: int = field(default=0)

    @property
    def usage(self) -> dict[str, Any]:
        output = self.completion_tokens or sum(_tokens(choice) for choice in self.choices)
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": output,
            "total_tokens": self.prompt_tokens + output,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0},
        }

    def body(self) -> dict[str, Any]:
        """The whole answer, without a stream."""
        choices = [
            {"index": i, "message": _message(c), "logprobs": self.logprobs, "finish_reason": c.finish}
            for i, c in enumerate(self.choices)
        ]
        return self._frame("chat.completion") | {"choices": choices, "usage": self.usage}

    def chunks(self) -> Iterator[dict[str, Any]]:
        """The chunks of a stream, choice by choice: role, content in pieces, finish reason."""
        for index, choice in enumerate(self.choices):
            yield self.chunk(index, {"role": "assistant", "content": "" if choice.text is not None else None})
            for position, delta in enumerate(_deltas(choice)):
                yield self.chunk(index, delta, logprobs=self.logprobs if position == 0 else None)
            yield self.chunk(index, {}, finish=choice.finish)

    def chunk(
        self,
        index: int,
        delta: Mapping[str, Any],
        *,
        finish: str | None = None,
        logprobs: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        choice = {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
        return self._frame("chat.completion.chunk") | {"choices": [choice]}

    def usage_chunk(self) -> dict[str, Any]:
        """The last chunk of a stream whose client asked for usage."""
        return self._frame("chat.completion.chunk") | {"choices": [], "usage": self.usage}

    def _frame(self, kind: str) -> dict[str, Any]:
        frame = {"id": self.id, "object": kind, "created": self.created, "model": self.model}
        return frame | {"system_fingerprint": FINGERPRINT}


def content_pieces(text: str) -> list[str]:
    """A text in at most `MAX_DELTAS` pieces, cut between words."""
    words = _WORDS.findall(text)
    if not words:
        return [text] if text else []
    size = -(-len(words) // MAX_DELTAS)
    return ["".join(words[start : start + size]) for start in range(0, len(words), size)]


def _tokens(choice: Reply) -> int:
    called = sum(count_tokens(call["function"]["name"] + call["function"]["arguments"]) for call in choice.tool_calls)
    return max(1, count_tokens(choice.text or "") + called)


def _message(choice: Reply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": choice.text, "refusal": None}
    if choice.tool_calls:
        message["tool_calls"] = list(choice.tool_calls)
    return message


def _deltas(choice: Reply) -> Iterator[dict[str, Any]]:
    for piece in content_pieces(choice.text or ""):
        yield {"content": piece}
    for index, call in enumerate(choice.tool_calls):
        function, arguments = call["function"], call["function"]["arguments"]
        head = {"index": index, "id": call["id"], "type": "function"}
        yield {"tool_calls": [head | {"function": {"name": function["name"], "arguments": ""}}]}
        middle = len(arguments) // 2
        for part in (arguments[:middle], arguments[middle:]):
            if part:
                yield {"tool_calls": [{"index": index, "function": {"arguments": part}}]}
