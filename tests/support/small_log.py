"""A small log that a test fills by hand, written the way the shipper writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import psycopg

from pointsman.database.copy import copy_rows
from pointsman.database.engine import psycopg_url
from pointsman.ids import content_id, id_at, new_id

START = datetime(2026, 5, 1, 12, tzinfo=UTC)


class Log:
    """`decision` gives a decision's id; times are minutes after `START`."""

    start = START

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(psycopg_url(url))
        self._held: dict[str, list[dict]] | None = None
        self.project = content_id("test-project", "rewards")

    def at(self, minutes: float) -> datetime:
        return START + timedelta(minutes=minutes)

    def write(self, table: str, *rows: dict) -> None:
        if self._held is not None:
            self._held.setdefault(table, []).extend(rows)
            return
        with self._connection.transaction():
            copy_rows(self._connection, table, rows)
        self._connection.commit()

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """What is written within the block is written at its end, together."""
        self._held = {}
        yield
        held, self._held = self._held, None
        for table, rows in held.items():
            self.write(table, *rows)

    def close(self) -> None:
        self._connection.close()

    def decision(
        self,
        minutes=0.0,
        *,
        chosen="a",
        answered="a",
        status="ok",
        project=None,
        episode=None,
        eligible=None,
        **outcome,
    ):
        """A traffic decision with its outcome, which ends when it begins."""
        moment, project = self.at(minutes), project or self.project
        identity, request = id_at(moment), id_at(moment)
        common = {"project_id": project, "episode_id": episode}
        self.write("request", {"id": request, **common, "received_at": moment, "text": "?"})
        self.write(
            "decision",
            {"id": identity, **common, "request_id": request, "decided_at": moment,
             "eligible": eligible or {"a": None, "b": None}, "chosen": chosen,
             "probabilities": {"a": 0.9, "b": 0.1} if chosen else None},
        )  # fmt: skip
        self.write(
            "outcome",
            {"id": identity, **common, "decision_id": identity, "status": status, "worker": answered,
             "ended_at": moment, **outcome},
        )  # fmt: skip
        return identity

    def full(self, minutes=0.0, *, origin="probe", cells=(), learn=True, episode=None, eligible=None, **request):
        """A full-information row; a cell is (worker, repeat, outcome's columns)."""
        moment = self.at(minutes)
        identity, asked = id_at(moment), id_at(moment)
        common = {"project_id": self.project}
        self.write("request", {"id": asked, **common, "received_at": moment, "learn": learn, **request})
        self.write(
            "decision",
            {"id": identity, **common, "request_id": asked, "origin": origin, "decided_at": moment,
             "eligible": eligible or {},
             "episode_id": episode},
        )  # fmt: skip
        for worker, repeat, columns in cells:
            call = id_at(moment)
            more = dict(columns)
            endpoint = more.pop("endpoint", f"endpoint-{worker}")
            status = more.get("status", "ok")
            self.write(
                "call",
                {"id": call, **common, "decision_id": identity, "worker": worker, "endpoint_hash": endpoint,
                 "purpose": origin, "repeat": repeat, "started_at": moment,
                 "status": "ok" if status == "ok" else "error", "completion": f"{worker} says"},
            )  # fmt: skip
            self.write(
                "outcome",
                {"id": call, **common, "decision_id": identity, "call_id": call, "origin": origin, "status": status,
                 "worker": worker, "ended_at": moment + timedelta(seconds=repeat), **more},
            )  # fmt: skip
        return identity

    def id(self) -> str:
        return id_at(START)

    def word(self, decision=None, value=True, minutes=1.0, *, project=None, **more):
        identity = more.pop("id", new_id())
        row = {"id": identity, "project_id": project or self.project, "decision_id": decision, "metric": "correct",
               "value": value, "source": "person", "created_at": self.at(minutes), **more}  # fmt: skip
        self.write("feedback", row)
        return identity
