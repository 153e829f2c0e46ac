"""The sidekick's own message list: it outlives turns and requests, so that its prompt cache is not lost each time.

Kept by (episode, worker) as what each request added; a compaction begins it anew with a summary. Only there may the
worker behind it change, because only there is the cache lost anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.engine.memory import Item
from harness.engine.patterns.ownership import context_item
from harness.engine.request import Message, tokens_of
from harness.engine.state import Node, State

SIDEKICK = """\
You are the sidekick of another worker, who leads. Do the task that you are given, and only that; say what you found \
and what you are not sure of, in few words. The lead sees your reply and nothing else of your work."""
COMPACT = """\
Your notes are getting long. Write down all that you will need of the above for further tasks of this work: facts, \
decisions, results. Nothing above stays but what you write now."""
SUMMARY = "What you noted of your work so far:\n"


@dataclass
class SideContext:
    """`kept` messages are remembered from earlier requests; `compaction` is what the newest one here came down to."""

    messages: list[Message]
    worker: str | None = None
    kept: int = 0
    compaction: dict[str, Any] | None = field(default=None)
    choose_anew: bool = True

    @property
    def tokens(self) -> int:
        return tokens_of(self.messages, {})


def side_context(state: State) -> SideContext:
    """As it is now: what is remembered, then what this run added, node by node."""
    now = SideContext([{"role": "system", "content": SIDEKICK}])
    for item in state.recalled:
        content = item.content
        if item.kind == "context" and content.get("pattern") == state.name and "messages" in content:
            now.messages = [*([] if content.get("restart") else now.messages), *content["messages"]]
            now.worker, now.choose_anew = item.worker, False
    now.kept = 0 if now.worker is None else len(now.messages)
    for node in state.nodes.values():
        if node.key.startswith("compact:") and node.said:
            _compacted(now, node)
        elif node.key.startswith("side:") and node.status == "done":
            now.messages = [*node.messages, {"role": "assistant", "content": node.text or ""}]
            now.worker, now.choose_anew = node.answered_by, False
    return now


def side_items(state: State) -> Sequence[Item]:
    """What is to be remembered of this run."""
    now = side_context(state)
    added = now.messages[now.kept :]
    if now.worker is None or not added:
        return ()
    content = {"messages": added, "restart": now.kept == 0}
    return (context_item(state, now.worker, content),)


def _compacted(now: SideContext, node: Node) -> None:
    before = now.tokens
    now.messages = [now.messages[0], {"role": "user", "content": SUMMARY + node.said}]
    now.compaction = {"before": now.worker, "tokens_before": before, "prefill_tokens": now.tokens}
    now.kept, now.choose_anew = 0, True
