"""What a vote counts: replies that say the same are one group, whoever gave them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from harness.engine.state import Node
from harness.routing.parse import visible_text

_MARKED = re.compile(r"\banswer\b[*_` ]{0,4}[:=][*_` ]{0,4}(.+)", re.IGNORECASE)
_EDGES = " \t\r\n*_`\"'.!"


@dataclass(frozen=True)
class Ballots:
    """`groups` in the order of their first reply, each the replies of it in theirs."""

    groups: tuple[tuple[Node, ...], ...]

    @classmethod
    def of(cls, nodes: Sequence[Node]) -> Ballots:
        """Of the replies that there are; one without words has no vote."""
        grouped: dict[str, list[Node]] = {}
        for node in nodes:
            if node.said:
                grouped.setdefault(counted_as(node.said), []).append(node)
        return cls(tuple(map(tuple, grouped.values())))

    @property
    def winner(self) -> Node | None:
        """The first reply of the largest group; of equal ones the group that came first."""
        return max(self.groups, key=len)[0] if self.groups else None

    def group_of(self, key: str) -> int | None:
        return next((n for n, group in enumerate(self.groups) if any(node.key == key for node in group)), None)


def counted_as(reply: str) -> str:
    """What a reply counts as: what stands behind its last "Answer:", else all of it, whatever case and spaces."""
    text = visible_text(reply)
    marked = _MARKED.findall(text)
    return " ".join((marked[-1] if marked else text).casefold().split()).strip(_EDGES)
