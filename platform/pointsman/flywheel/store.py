"""The turn's row: read, opened, written. What a turn has come to is told to people from here."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, Table, insert, select, update

from pointsman.errors import UserError
from pointsman.flywheel.rule import Information
from pointsman.ids import is_uuid, new_id
from pointsman.tables import METADATA
from pointsman.words import GateMode, LinkState, TurnState

TURN: Table = METADATA.tables["flywheel_turn"]
OPEN: tuple[TurnState, ...] = ("running", "proposed")


@dataclass(frozen=True)
class LinkRecord:
    """One link of a turn as it stands. Times are ISO 8601 in UTC, `cost` is USD."""

    name: str
    state: LinkState
    began_at: str
    jobs: tuple[str, ...] = ()
    ended_at: str | None = None
    reason: str | None = None
    numbers: dict[str, Any] = field(default_factory=dict)
    cost: str = "0"

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name, "state": self.state, "began_at": self.began_at, "ended_at": self.ended_at,
            "jobs": list(self.jobs), "reason": self.reason, "numbers": self.numbers, "cost": self.cost,
        }  # fmt: skip

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> LinkRecord:
        return cls(**(raw | {"jobs": tuple(raw["jobs"])}))


@dataclass(frozen=True)
class Turn:
    """A turn's row."""

    id: str
    project_id: str
    state: TurnState
    mode: GateMode
    opened_by: str
    opened_because: str
    information: dict[str, Any]
    links: tuple[LinkRecord, ...]
    facts: dict[str, Any]
    reason: str | None
    candidate_id: str | None
    gate_id: str | None
    budget: Decimal | None
    opened_at: datetime
    ended_at: datetime | None

    @property
    def cost(self) -> Decimal:
        """What its links' jobs have cost, USD."""
        return sum((Decimal(link.cost) for link in self.links), Decimal(0))

    def link(self, name: str) -> LinkRecord | None:
        return next((link for link in self.links if link.name == name), None)

    def with_link(self, record: LinkRecord) -> Turn:
        """The same turn, with this link in place of the one of its name, or added."""
        if self.link(record.name) is None:
            return replace(self, links=(*self.links, record))
        return replace(self, links=tuple(record if link.name == record.name else link for link in self.links))

    @classmethod
    def of(cls, row: Any) -> Turn:
        return cls(
            str(row.id), str(row.project_id), row.state, row.mode, row.opened_by, row.opened_because,
            row.information, tuple(LinkRecord.from_json(link) for link in row.links), row.facts, row.reason,
            _text(row.candidate_id), _text(row.gate_id), row.budget, row.opened_at, row.ended_at,
        )  # fmt: skip


def open_turn(
    connection: Connection,
    project: str,
    mode: GateMode,
    by: str,
    because: str,
    information: Information,
    pool_epoch: str,
    budget: Decimal | None,
    now: datetime,
) -> Turn:
    """Opens a turn over the workers of `pool_epoch`. `UserError` where the project has one that has not ended."""
    if (other := current_turn(connection, project)) is not None:
        raise UserError(f"turn {other.id} is {other.state}; end it first: pointsman flywheel stop {other.id}")
    came = information.to_json() | {"pool_epoch": pool_epoch}
    values: dict[str, Any] = {
        "id": new_id(), "project_id": project, "state": "running", "mode": mode, "opened_by": by,
        "opened_because": because, "information": came, "links": [], "facts": {},
        "budget": budget, "opened_at": now,
    }  # fmt: skip
    return Turn.of(connection.execute(insert(TURN).values(values).returning(TURN)).one())


def current_turn(connection: Connection, project: str) -> Turn | None:
    """The project's turn that has not ended."""
    t = TURN.c
    row = connection.execute(select(TURN).where(t.project_id == project, t.state.in_(OPEN))).first()
    return None if row is None else Turn.of(row)


def last_turn(connection: Connection, project: str) -> Turn | None:
    """The newest turn, ended or not."""
    found = turns(connection, project, 1)
    return found[0] if found else None


def turns(connection: Connection, project: str, limit: int = 20) -> list[Turn]:
    """Newest first."""
    t = TURN.c
    rows = connection.execute(select(TURN).where(t.project_id == project).order_by(t.id.desc()).limit(limit))
    return [Turn.of(row) for row in rows]


def turn_of(connection: Connection, project: str, turn_id: str) -> Turn:
    """This turn. Raises `UserError` where there is none."""
    row = None
    if is_uuid(turn_id):
        row = connection.execute(select(TURN).where(TURN.c.id == turn_id, TURN.c.project_id == project)).first()
    if row is None:
        raise UserError(f"there is no turn {turn_id[:60]!r} here; `pointsman flywheel` lists them")
    return Turn.of(row)


def locked(connection: Connection, turn_id: str) -> Turn | None:
    """The turn, ours until the transaction ends; None where another process has it."""
    row = connection.execute(select(TURN).where(TURN.c.id == turn_id).with_for_update(skip_locked=True)).first()
    return None if row is None else Turn.of(row)


def write(connection: Connection, turn: Turn) -> None:
    """Keeps what a look has changed."""
    values: dict[str, Any] = {
        "state": turn.state, "links": [link.to_json() for link in turn.links], "facts": turn.facts,
        "reason": turn.reason, "candidate_id": turn.candidate_id, "gate_id": turn.gate_id, "ended_at": turn.ended_at,
    }  # fmt: skip
    connection.execute(update(TURN).where(TURN.c.id == turn.id).values(values))


def _text(value: object) -> str | None:
    return None if value is None else str(value)
