"""Importing into a real PostgreSQL: the rows, once only, and numbers equal to the file's."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from uuid import UUID

import pytest
from sqlalchemy import text

from pointsman.errors import UserError
from pointsman.hashing import text_hash
from pointsman.ids import content_id, time_of
from pointsman.replay.identities import UNDATED
from pointsman.replay.load import import_folder
from pointsman.replay.summary import differences, full_information_summary


@pytest.fixture
def project(request):
    """A project of this test's own."""
    return content_id("project", request.node.nodeid)


def rows(engine, sql, **parameters):
    with engine.connect() as connection:
        return [dict(row._mapping) for row in connection.execute(text(sql), parameters)]


def count(engine, table, project):
    return rows(engine, f"SELECT count(*) AS n FROM {table} WHERE project_id = :p", p=project)[0]["n"]


def test_a_query_becomes_one_full_information_row(database_url, engine, project, make_folder, models):
    report = import_folder(database_url, make_folder(models=models), project_id=project, name="small")
    request = rows(engine, "SELECT * FROM request WHERE project_id = :p AND text LIKE 'What%'", p=project)[0]
    assert (request["task"], request["split"], request["learn"]) == ("sums", "train", True)
    assert request["tags"] == ["dataset:small"]
    assert request["text_hash"] == text_hash("What is 2 + 2?")
    assert request["hints"] == {"replay": {"query_id": "1", "metric": "exact"}}
    (decision,) = rows(engine, "SELECT * FROM decision WHERE request_id = :r", r=request["id"])
    assert (decision["origin"], decision["chosen"], decision["probabilities"]) == ("replay", None, None)
    assert decision["eligible"] == {"big": None, "small": None}
    assert decision["pool_hash"] == report.pool.hash
    calls = rows(
        engine,
        "SELECT * FROM call WHERE decision_id = :d ORDER BY worker, repeat",
        d=decision["id"],
    )
    assert [(c["worker"], c["repeat"], c["completion"]) for c in calls] == [
        ("big", 0, "4"), ("small", 0, "four"), ("small", 1, "5"),
    ]  # fmt: skip
    assert {(c["purpose"], c["status"]) for c in calls} == {("replay", "ok")}
    assert (calls[0]["input_tokens"], calls[0]["output_tokens"], calls[0]["cost"]) == (6, 1, Decimal("0.0002"))
    outcomes = rows(
        engine,
        "SELECT * FROM outcome WHERE decision_id = :d ORDER BY worker, score DESC",
        d=decision["id"],
    )
    assert [(o["worker"], o["score"]) for o in outcomes] == [("big", 1.0), ("small", 0.7), ("small", 0.2)]
    assert [o["call_id"] for o in outcomes] == [o["id"] for o in outcomes] == [c["id"] for c in calls]
    assert {(o["origin"], o["status"], o["calls"]) for o in outcomes} == {("replay", "ok", 1)}


def test_a_worker_without_an_outcome_is_not_eligible_and_says_why(database_url, engine, project, make_folder):
    import_folder(database_url, make_folder(), project_id=project, name="small")
    sql = (
        "SELECT eligible FROM decision JOIN request ON request.id = request_id "
        "WHERE request.project_id = :p AND text LIKE 'Name%'"
    )
    assert rows(engine, sql, p=project) == [{"eligible": {"big": None, "small": "no recorded outcome"}}]


def test_the_pool_is_known_by_its_hashes(database_url, engine, project, make_folder, models):
    report = import_folder(database_url, make_folder(models=models), project_id=project, name="small")
    big = report.pool.by_name["big"]
    (snapshot,) = rows(engine, "SELECT content FROM pool_snapshot WHERE hash = :h", h=report.pool.hash)
    assert snapshot["content"]["big"] == {
        "endpoint": big.endpoint_hash, "card": big.card_hash, "price": big.price_hash,
    }  # fmt: skip
    (endpoint,) = rows(engine, "SELECT model, content FROM worker_endpoint WHERE hash = :h", h=big.endpoint_hash)
    assert endpoint == {"model": "vendor/big-70b", "content": big.endpoint_content}
    (price,) = rows(engine, "SELECT input, output FROM price WHERE hash = :h", h=big.price_hash)
    assert price == {"input": Decimal("2.5"), "output": Decimal(10)}
    assert rows(engine, "SELECT text FROM card WHERE hash = :h", h=big.card_hash) == [{"text": big.card}]
    (worker,) = rows(engine, "SELECT id FROM worker WHERE name = 'big'")
    assert worker["id"] == UUID(content_id("worker", "big"))


def test_importing_twice_inserts_once(database_url, engine, project, make_folder):
    folder = make_folder()
    first = import_folder(database_url, folder, project_id=project, name="small")
    again = import_folder(database_url, folder, project_id=project, name="small", batch=2)
    assert {t: first.new_rows[t] for t in ("request", "decision", "call", "outcome")} == {
        "request": 3, "decision": 3, "call": 6, "outcome": 6,
    }  # fmt: skip
    assert set(again.new_rows.values()) == {0}
    assert again.numbers == first.numbers
    assert count(engine, "outcome", project) == 6


def test_both_forms_and_any_order_of_rows_are_one_data_set(database_url, project, make_folder):
    queries = [{"id": i, "text": f"q{i}"} for i in range(4)]
    outcomes = [{"query_id": i, "model": m, "score": i / 7} for i in range(4) for m in ("a", "b")]
    import_folder(database_url, make_folder(queries, outcomes), project_id=project, name="s")
    turned = make_folder(queries[::-1], outcomes[::-1], form="jsonl", name="turned")
    again = import_folder(database_url, turned, project_id=project, name="s")
    assert set(again.new_rows.values()) == {0}


def test_two_projects_and_two_names_have_rows_of_their_own(database_url, engine, project, make_folder):
    other = content_id(project, "other")
    folder = make_folder()
    import_folder(database_url, folder, project_id=project, name="one")
    import_folder(database_url, folder, project_id=project, name="two")
    import_folder(database_url, folder, project_id=other, name="one")
    assert [count(engine, "decision", p) for p in (project, other)] == [6, 3]
    assert full_information_summary(engine, project, "one").queries == 3
    assert full_information_summary(engine, other, "two").queries == 0


class Interrupted(Exception):
    pass


def test_an_interrupted_import_is_completed_by_the_next(database_url, engine, project, make_folder):
    queries = [{"id": i, "text": f"q{i}"} for i in range(9)]
    outcomes = [{"query_id": i, "model": m, "score": i / 9} for i in range(9) for m in ("a", "b")]
    folder = make_folder(queries, outcomes)

    def stop(progress):
        if progress.phase == "outcomes" and progress.done == 8:
            raise Interrupted

    with pytest.raises(Interrupted):
        import_folder(database_url, folder, project_id=project, name="cut", batch=4, on_progress=stop)
    assert count(engine, "outcome", project) == 8
    assert count(engine, "decision", project) == 0  # a decision that is there has all its outcomes
    report = import_folder(database_url, folder, project_id=project, name="cut", batch=4)
    assert (report.new_rows["outcome"], report.new_rows["call"], report.new_rows["decision"]) == (10, 10, 9)
    assert full_information_summary(engine, project, "cut") == report.numbers


def test_numbers_of_file_and_database_are_equal_and_right(database_url, engine, project, make_folder):
    queries = [{"id": i, "text": f"q{i}"} for i in range(60)]
    outcomes = [
        {"query_id": i, "model": m, "score": ((i * 37 + k * 101) % 97) / 97, "cost": (i + 1) * (k + 1) / 1e6}
        for i in range(60)
        for k, m in enumerate(["a", "b", "c"])
    ]
    report = import_folder(database_url, make_folder(queries, outcomes), project_id=project, name="n", batch=7)
    summary = full_information_summary(engine, project, "n")
    assert summary == report.numbers
    assert differences(report.numbers, summary) == []

    by_query = [[Fraction(o["score"]) for o in outcomes if o["query_id"] == i] for i in range(60)]
    by_worker = {m: [Fraction(o["score"]) for o in outcomes if o["model"] == m] for m in "abc"}
    means = {m: float(sum(scores) / 60) for m, scores in by_worker.items()}
    assert {w.worker: w.mean_score for w in summary.workers} == pytest.approx(means, abs=1e-15)
    assert summary.best_single == max(means, key=means.__getitem__)
    assert summary.oracle == pytest.approx(float(sum(map(max, by_query)) / 60), abs=1e-15)
    assert summary.random == pytest.approx(float(sum(map(sum, by_query)) / 180), abs=1e-15)
    assert summary.worker("b").mean_cost == Decimal("0.000061")


def test_a_changed_file_is_told_from_the_database(database_url, engine, project, make_folder):
    outcomes = [{"query_id": 1, "model": "a", "score": 0.5}]
    import_folder(database_url, make_folder(outcomes=outcomes), project_id=project, name="c")
    changed = make_folder(outcomes=[{**outcomes[0], "score": 0.75}], name="changed")
    report = import_folder(database_url, changed, project_id=project, name="c")
    lines = differences(report.numbers, full_information_summary(engine, project, "c"))
    assert lines[0] == "oracle: 0.75 in the file, 0.5 in the database"
    assert lines[-1].startswith("a: WorkerNumbers(worker='a', outcomes=1, queries=1, mean_score=0.75")


def test_nothing_is_written_when_a_row_is_bad(database_url, engine, project, make_folder):
    outcomes = [{"query_id": 1, "model": "a", "score": s} for s in (0.5, 0.5, 2.0)]
    with pytest.raises(UserError, match="row 3: column 'score'"):
        import_folder(database_url, make_folder(outcomes=outcomes), project_id=project, name="b", batch=1)
    assert count(engine, "outcome", project) == 0


def test_what_was_marked_replay_only_stays_so(database_url, engine, project, make_folder):
    folder = make_folder()

    def learnable():
        found = rows(engine, "SELECT learn FROM request WHERE project_id = :p", p=project)
        return [row["learn"] for row in found]

    assert import_folder(database_url, folder, project_id=project, name="s").learn is True
    assert learnable() == [True] * 3
    assert import_folder(database_url, folder, project_id=project, name="s", learn=False).learn is False
    assert learnable() == [False] * 3
    assert import_folder(database_url, folder, project_id=project, name="s", learn=True).learn is False
    assert learnable() == [False] * 3


def test_ids_carry_the_time_of_the_query(database_url, engine, project, make_folder):
    queries = [{"id": 1, "text": "a", "asked_at": "2023-07-01T10:00:00+00:00"}, {"id": 2, "text": "b"}]
    outcomes = [{"query_id": i, "model": "a", "score": 1} for i in (1, 2)]
    import_folder(database_url, make_folder(queries, outcomes, form="jsonl"), project_id=project, name="t")
    found = rows(engine, "SELECT id, decided_at FROM decision WHERE project_id = :p ORDER BY id", p=project)
    assert [time_of(str(row["id"])) for row in found] == [UNDATED, datetime(2023, 7, 1, 10, tzinfo=UTC)]
    assert [row["decided_at"] for row in found] == [UNDATED, datetime(2023, 7, 1, 10, tzinfo=UTC)]


def test_hostile_text_is_kept_as_far_as_postgres_can(database_url, engine, project, make_folder):
    queries = [{"id": "a\x1fb", "text": "nul\x00 and ☃", "note": {"deep": ["\x00"]}}]
    outcomes = [{"query_id": "a\x1fb", "model": "a", "score": 0.5, "response": "\x00"}]
    report = import_folder(database_url, make_folder(queries, outcomes, form="jsonl"), project_id=project, name="h")
    assert full_information_summary(engine, project, "h") == report.numbers
    (row,) = rows(engine, "SELECT text, hints FROM request WHERE project_id = :p", p=project)
    assert row["text"] == "nul\ufffd and ☃"
    assert row["hints"]["replay"]["note"] == {"deep": ["\ufffd"]}


def test_a_name_that_cannot_be_a_tag_is_refused(database_url, project, make_folder):
    with pytest.raises(UserError, match="data set name: expected letters, digits"):
        import_folder(database_url, make_folder(), project_id=project, name="two words")


def test_empty_tables_are_refused(database_url, project, make_folder):
    with pytest.raises(UserError, match=r"queries\.jsonl: holds no queries"):
        import_folder(database_url, make_folder([], [], form="jsonl"), project_id=project, name="e")
    with pytest.raises(UserError, match=r"outcomes\.jsonl: holds no outcomes"):
        import_folder(database_url, make_folder(outcomes=[], form="jsonl"), project_id=project, name="e")
