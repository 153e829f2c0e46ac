"""A team's answer in the words of chat completions: whole, as chunks, and what it is at for clients that ask.

Its usage is the answering call's; everything else that the tree took stands apart, as orchestration.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from harness.engine.events import CallEnded, CallStarted, Decided, Done, Event, Progress
from harness.engine.limits import Totals
from harness.engine.state import Node
from pointsman.ids import is_uuid

ANSWER = "chatcmpl-pm-"
"""Before the root decision's id: the answer's own id, by which feedback may name it."""

ProgressForm = Literal["comments", "events"]


class Telling:
    """One answer. `trace`: the client asked for the tree beside it."""

    def __init__(self, decision_id: str, model: str, pattern: str, *, trace: bool) -> None:
        self.decision_id = decision_id
        self.model = model
        self.pattern = pattern
        self.trace = trace
        self._created = int(time.time())
        self._begun = False

    def whole(self, done: Done) -> bytes:
        message: dict[str, Any] = {"role": "assistant", "content": done.answer}
        if done.tool_calls:
            message["tool_calls"] = done.tool_calls
        choice = {"index": 0, "message": message, "finish_reason": done.finish_reason, "logprobs": None}
        return msgspec.json.encode(
            self._base("chat.completion") | {"choices": [choice], "usage": usage(done.totals)} | self._about(done)
        )

    def piece(self, text: str) -> bytes:
        """A chunk of the answer; the first one names the role."""
        return self._chunk({"content": text})

    def last(self, done: Done) -> list[bytes]:
        """The chunks behind the text: tool calls, then why it ended."""
        chunks = []
        if done.tool_calls:
            calls = [{"index": index, **call} for index, call in enumerate(done.tool_calls)]
            chunks.append(self._chunk({"tool_calls": calls}))
        chunks.append(self._chunk({}, done.finish_reason, self._about(done)))
        return chunks

    def used(self, done: Done) -> bytes:
        """The chunk that tells usage and nothing else."""
        return msgspec.json.encode(self._base("chat.completion.chunk") | {"choices": [], "usage": usage(done.totals)})

    def progress(self, event: Event, form: ProgressForm) -> bytes:
        """A whole server-sent event about what goes on, or nothing: a comment, or a typed chunk without choices."""
        said = _said(event)
        if said is None:
            return b""
        if form == "comments":
            return b": pointsman " + msgspec.json.encode(said) + b"\n\n"
        chunk = self._base("chat.completion.chunk") | {"choices": [], "pointsman": said}
        return b"event: pointsman.progress\ndata: " + msgspec.json.encode(chunk) + b"\n\n"

    def _chunk(self, delta: dict[str, Any], finish: str | None = None, more: dict[str, Any] | None = None) -> bytes:
        if not self._begun:
            self._begun = True
            delta = {"role": "assistant", **delta}
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return msgspec.json.encode(self._base("chat.completion.chunk") | {"choices": [choice]} | (more or {}))

    def _base(self, object_: str) -> dict[str, Any]:
        return {
            "id": f"{ANSWER}{self.decision_id}", "object": object_, "created": self._created, "model": self.model,
        }  # fmt: skip

    def _about(self, done: Done) -> dict[str, Any]:
        if not self.trace:
            return {}
        return {"pointsman": {"pattern": self.pattern, "reason": done.reason, "tree": tree(done.tree)}}


def usage(totals: Totals) -> dict[str, Any]:
    """OpenAI's usage object: the visible tokens, what was cached of them, and the orchestration apart."""
    given, answered = totals.visible_input_tokens, totals.visible_output_tokens
    apart = totals.orchestration
    return {
        "prompt_tokens": given,
        "completion_tokens": answered,
        "total_tokens": given + answered,
        "prompt_tokens_details": {
            "cached_tokens": totals.visible_cached_tokens,
            "orchestration_input_tokens": apart[0],
        },
        "completion_tokens_details": {"orchestration_output_tokens": apart[1]},
    }


def tree(nodes: Sequence[Node]) -> list[dict[str, Any]]:
    """Every decision of the run in the order in which it was begun, without texts."""
    return [
        {
            "decision_id": node.id,
            "key": node.key,
            "parent": node.parent,
            "kind": node.kind,
            "chosen": node.chosen,
            "role": node.role,
            "worker": node.answered_by,
            "turn": node.turn,
            "step": node.step,
            "status": node.status,
            "reason": node.reason,
            "input_tokens": node.input_tokens,
            "output_tokens": node.output_tokens,
            "cost_usd": None if node.cost is None else format(node.cost, "f"),
        }
        for node in nodes
    ]


def decision_of_team(answer_id: str) -> str | None:
    """The root decision that a team's answer is named by; None for other ids."""
    identity = answer_id.removeprefix("msg_").removeprefix(ANSWER)
    return identity if identity != answer_id and is_uuid(identity) else None


def _said(event: Event) -> dict[str, Any] | None:
    match event:
        case Progress():
            return {"type": "progress", "key": event.key, "text": event.text}
        case Decided():
            return {
                "type": "decided", "key": event.key, "decision_id": event.decision_id, "kind": event.kind,
                "chosen": event.chosen, "role": event.role, "propensity": event.propensity, "turn": event.turn,
                "step": event.step,
            }  # fmt: skip
        case CallStarted():
            return {"type": "call_started", "key": event.key, "worker": event.worker}
        case CallEnded():
            return {
                "type": "call_ended", "key": event.key, "worker": event.worker, "fault": event.fault,
                "input_tokens": event.input_tokens, "output_tokens": event.output_tokens, "ms": event.milliseconds,
            }  # fmt: skip
        case _:
            return None
