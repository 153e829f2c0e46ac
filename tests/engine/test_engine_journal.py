"""A tree through the journal into Postgres, and back as the record of one decision."""

from __future__ import annotations

import psycopg
import pytest

from harness.engine.events import Done
from harness.engine.log import JournalLog
from harness.engine.patterns.trinity import Trinity
from harness.engine.patterns.workflow import Workflow
from pointsman.database.engine import psycopg_url
from pointsman.errors import StoreError
from pointsman.journal import Journal
from pointsman.journal.shipper import Shipper
from pointsman.queries.record import decision_record


@pytest.fixture
def shipped(empty_database, engine, tmp_path):
    """Closes a journal, ships it, and reads records back."""

    def ship(journal):
        journal.close()
        shipper = Shipper(tmp_path, lambda: psycopg.connect(psycopg_url(empty_database), autocommit=True))
        while shipper.ship():
            pass
        return lambda identity, project=None: decision_record(engine, project, identity)

    return ship


async def test_a_tree_reads_back_from_postgres(team, kit, tmp_path, shipped):
    journal = Journal(tmp_path, max_bytes=10_000_000)
    one = team(lambda name, text: f"{name}!", plans=[kit.plan(("ada", "SUB1", "none"), ("bob", "SUB2", "all"))])
    one.log = JournalLog(journal)
    request = one.request()
    done = await one.run(Workflow(), request)
    assert isinstance(done, Done)
    record = shipped(journal)
    whole = record(request.root_id, one.project)
    assert (whole["decision"]["kind"], whole["decision"]["chosen"]) == ("pattern", "workflow")
    assert (whole["outcome"]["status"], whole["outcome"]["calls"], whole["outcome"]["worker"]) == ("ok", 2, "bob")
    (plan,) = whole["children"]
    assert plan["decision"]["kind"] == "delegate"
    assert [step["subtask"] for step in plan["decision"]["plan"]["steps"]] == ["SUB1", "SUB2"]
    steps = [child["decision"] for child in plan["children"]]
    assert [(step["step"], step["chosen"], step["forced"]) for step in steps] == [
        (1, "ada", "plan"),
        (2, "bob", "plan"),
    ]
    second = record(steps[1]["id"])
    (call,) = second["calls"]
    assert call["completion"] == "bob!" and "ada!" in call["messages"][-1]["content"]
    assert second["outcome"]["status"] == "ok"
    assert record(request.root_id, "00000000-0000-7000-8000-000000000000") is None


async def test_roles_and_their_draws_read_back(team, tmp_path, shipped):
    journal = Journal(tmp_path, max_bytes=10_000_000)
    replies = iter(["Suggestion: x\nNext role: solver", "mine", "ACCEPT"])
    one = team(lambda name, text: next(replies), log=JournalLog(journal))
    request = one.request()
    await one.run(Trinity(), request)
    turns = [child["decision"] for child in shipped(journal)(request.root_id)["children"]]
    assert [(turn["role"], turn["roles"]["forced"]) for turn in turns] == [
        ("thinker", "rule"), ("solver", "suggested"), ("verifier", "rule"),
    ]  # fmt: skip
    assert all(sum(turn["probabilities"].values()) == pytest.approx(1) for turn in turns)


async def test_rows_are_cleaned_before_the_journal(team, tmp_path, shipped):
    journal = Journal(tmp_path, max_bytes=10_000_000)

    def clean(table, row):
        return {**row, "messages": None, "completion": None} if table == "call" else row

    seen = []
    one = team(lambda name, text: "SECRET", log=JournalLog(journal, clean, seen.extend))
    request = one.request()
    await one.run(Trinity(), request)
    files = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert b"SECRET" not in files and b"decision" in files
    assert {table for table, _ in seen} == {"decision", "call", "outcome"}
    turn = shipped(journal)(request.root_id)["children"][0]["decision"]
    assert turn["role"] == "thinker"


async def test_what_a_dead_process_left_open_is_known_to_the_shipper(team, tmp_path, shipped):
    class Dying(JournalLog):
        """Of a process that dies before any end is written."""

        def outcome(self, row):
            return

    journal = Journal(tmp_path, max_bytes=10_000_000)
    one = team(lambda name, text: "x", log=Dying(journal))
    request = one.request()
    await one.run(Trinity(), request)
    whole = shipped(journal)(request.root_id)
    assert whole["outcome"]["status"] == "abandoned"
    assert len(whole["children"]) == 5


async def test_a_journal_that_is_closed_refuses_the_run(team, tmp_path):
    journal = Journal(tmp_path, max_bytes=10_000_000)
    journal.close()
    one = team(lambda name, text: "x", log=JournalLog(journal))
    with pytest.raises(StoreError, match="the journal is closed"):
        await one.run(Trinity())
    assert one.seen == []
