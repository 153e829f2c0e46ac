"""Files into the log: whole rows, once, whatever stands between them; nothing kept that redaction would not keep."""

from __future__ import annotations

import csv
import gzip
import json
import stat
from decimal import Decimal

import pyarrow
import pyarrow.parquet
import pytest
from sqlalchemy import text

from pointsman.errors import UserError
from pointsman.ids import content_id, time_of
from pointsman.intake.load import Wish, load, look
from pointsman.intake.maps import column_map
from pointsman.intake.reading import Source
from pointsman.intake.scores import read_scores
from pointsman.pool import Price, Worker
from pointsman.replay.summary import full_information_summary

PROJECT = content_id("test-project", "intake")


def entry(number: int, **more) -> dict:
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": f"question {number}, card 4111-1111"}]}
    return {
        "id": f"r{number}", "created_at": f"2026-03-0{number % 9 + 1}T12:00:00Z", "request": body, "model": "gpt-4o",
        "response": f"answer {number} to 4111-1111", "usage": {"prompt_tokens": 100, "completion_tokens": 10},
        "conversation_id": f"c{number // 2}", **more,
    }  # fmt: skip


@pytest.fixture
def wish(tmp_path):
    def make(rows, form="openai-jsonl", name="log", suffix="jsonl", **more) -> Wish:
        file = tmp_path / f"{name}.{suffix}"
        if suffix == "csv":
            with file.open("w", newline="") as stream:
                writer = csv.DictWriter(stream, list(rows[0]))
                writer.writeheader()
                writer.writerows(rows)
        elif suffix == "parquet":
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), file)
        else:
            data = "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows).encode()
            file.write_bytes(gzip.compress(data) if suffix.endswith("gz") else data)
        scores = more.pop("scores", None)
        source = Source(file, form, column_map(form), scores)
        return Wish(source, name, tmp_path / "rejects" / f"{name}.jsonl", **more)

    return make


def rows_of(engine, table: str) -> list:
    with engine.connect() as connection:
        found = connection.execute(text(f"SELECT * FROM {table} WHERE project_id = :p ORDER BY id"), {"p": PROJECT})
        return list(found)


def test_a_log_becomes_whole_rows_once(engine, empty_database, wish) -> None:
    first = load(empty_database, wish([entry(n) for n in range(8)]), PROJECT)
    assert {t: n for t, n in first.new_rows.items() if t in ("request", "decision", "call", "outcome", "episode")} == {
        "request": 8, "decision": 8, "call": 8, "outcome": 8, "episode": 4,
    }  # fmt: skip
    decisions, calls = rows_of(engine, "decision"), {row.decision_id: row for row in rows_of(engine, "call")}
    for row in decisions:
        assert (row.origin, row.chosen, row.probabilities, row.eligible) == ("replay", None, None, {"gpt-4o": None})
        assert time_of(str(row.id)) == row.decided_at and row.decided_at.year == 2026
        assert calls[row.id].purpose == "replay" and calls[row.id].input_tokens == 100
    outcomes = rows_of(engine, "outcome")
    assert {row.call_id for row in outcomes} == {row.id for row in calls.values()}
    again = load(empty_database, wish([entry(n) for n in range(9)], suffix="jsonl.gz"), PROJECT)
    assert {t: n for t, n in again.new_rows.items() if n} == {"request": 1, "decision": 1, "call": 1, "outcome": 1,
                                                             "episode": 1}  # fmt: skip


def test_bad_lines_are_kept_with_number_and_reason_and_stop_nothing(engine, empty_database, wish) -> None:
    lines = [entry(1), "{broken", entry(2, latency_ms="soon"), "[]", "", entry(3, model="no spaces please"), entry(4)]
    wanted = wish(lines)
    report = load(empty_database, wanted, PROJECT)
    assert (report.new_rows["decision"], report.rejects.count) == (2, 4)
    kept = [json.loads(line) for line in wanted.rejects.read_text().splitlines()]
    assert [row["line"] for row in kept] == [2, 3, 4, 6]
    assert kept[1]["reason"] == "latency_ms: expected a number of at least 0, got 'soon'"
    assert json.loads(kept[1]["row"])["id"] == "r2" and kept[0]["row"] == "{broken"
    assert "expected a worker's name" in kept[3]["reason"]
    assert stat.S_IMODE(wanted.rejects.stat().st_mode) == 0o600
    load(empty_database, wish([entry(n) for n in (1, 4)]), PROJECT)
    assert not wanted.rejects.exists()
    with pytest.raises(UserError, match="no row could be taken: 1 were rejected; the first: line 1: model: expected"):
        look(wish([{"id": 1}]))


def test_texts_are_redacted_and_with_store_text_off_none_is_kept(engine, empty_database, wish) -> None:
    load(empty_database, wish([entry(1, id="card 4111-1111")], redact=[r"\d{4}-\d{4}"]), PROJECT)
    (request,), (call,) = rows_of(engine, "request"), rows_of(engine, "call")
    assert request.text == "question 1, card [redacted]" and call.completion == "answer 1 to [redacted]"
    assert "4111" not in json.dumps([request.body, request.hints])
    load(empty_database, wish([entry(2)], name="dark", store_text=False), PROJECT)
    dark = [row for row in rows_of(engine, "request") if "dataset:dark" in row.tags]
    assert [(row.text, row.body, len(row.text_hash)) for row in dark] == [(None, None, 64)]
    assert [row.completion for row in rows_of(engine, "call") if row.request_id == dark[0].id] == [None]


def test_costs_come_from_the_file_else_from_the_configured_price(engine, empty_database, wish) -> None:
    price = Price(Decimal(2), Decimal(10), Decimal(1))
    known = {"gpt-4o": Worker("gpt-4o", "Good at sums.", "gpt-4o-2024", (), price)}
    cached = {"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 50}}
    rows = [entry(1, cost=0.5), entry(2), entry(3, usage=cached), entry(4, usage=None), entry(5, model="other")]
    report = load(empty_database, wish(rows, configured=known), PROJECT)
    assert [row.cost for row in rows_of(engine, "outcome")] == [
        Decimal("0.5"), Decimal("0.0003"), Decimal("0.00025"), None, None,
    ]  # fmt: skip
    assert (report.priced, report.survey.lacking["cost"], report.survey.lacking["tokens"]) == (2, 4, 1)
    assert report.pool.by_name["gpt-4o"].card == "Good at sums."


WIDE = [
    {"sample_id": f"q{n}", "prompt": f"question {n}", "eval_name": "sums", "big": 1.0, "small": n / 10,
     "big|total_cost": 0.002, "small|total_cost": 0.001} for n in range(5)
]  # fmt: skip


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_wide_and_long_tables_say_the_same(engine, empty_database, wish, suffix: str) -> None:
    load(empty_database, wish(WIDE, "scores", "wide", suffix), PROJECT)
    # Long, and in another order: the answers to one question are far apart, and one is missing.
    long = [
        {"query_id": row["sample_id"], "prompt": row["prompt"], "model": model, "score": row[model],
         "cost": row[f"{model}|total_cost"]}
        for model in ("small", "big") for row in WIDE if (model, row["sample_id"]) != ("big", "q4")
    ]  # fmt: skip
    load(empty_database, wish(long, "scores", "long", suffix), PROJECT)
    wide, other = (full_information_summary(engine, PROJECT, name) for name in ("wide", "long"))
    assert (wide.queries, wide.outcomes, wide.best_single, wide.oracle) == (5, 10, "big", 1.0)
    assert (other.outcomes, other.worker("small"), other.worker("big").queries) == (9, wide.worker("small"), 4)
    eligible = [row.eligible for row in rows_of(engine, "decision")]
    assert eligible.count({"big": "no recorded outcome", "small": None}) == 1 and len(eligible) == 10


def test_repeats_of_a_table_are_numbered_and_a_doubled_number_is_rejected(engine, empty_database, wish) -> None:
    row = {"prompt": "q", "model": "m", "score": 1}
    numbered = [{**row, "repeat": 5}, {**row, "repeat": 5}]
    report = load(empty_database, wish([row, {**row, "score": 0}, *numbered], "scores"), PROJECT)
    assert sorted(call.repeat for call in rows_of(engine, "call")) == [0, 1, 5]
    assert report.rejects.first[0].reason == "repeat: another row has repeat 5 of this question and m"
    assert len(rows_of(engine, "decision")) == 1


def test_scores_of_another_file_find_their_rows(engine, empty_database, wish, tmp_path) -> None:
    file = tmp_path / "scores.jsonl"
    lines = [
        {"id": "s1", "observation_id": "o1", "trace_id": "t1", "name": "helpful", "value": 1.0, "data_type": "BOOLEAN"},
        {"id": "s2", "observation_id": None, "trace_id": "t2", "name": "helpful", "value": 0.25},
        {"id": "s3", "observation_id": "o3", "trace_id": "t3", "name": "helpful", "value": 4},
        {"id": "s4", "observation_id": "o3", "trace_id": "t3", "name": "length", "value": 0.1},
    ]  # fmt: skip
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(UserError, match="holds the metrics helpful, length; name one with --metric"):
        read_scores(file, None)
    scores = read_scores(file, "helpful")
    rows = [{"id": f"o{n}", "trace_id": f"t{n}", "session_id": "s", "type": "GENERATION", "model": "m", "input": "q",
             "output": "a"} for n in (1, 2, 3)]  # fmt: skip
    rows.append({"id": "o9", "trace_id": "t1", "type": "SPAN"})
    report = load(empty_database, wish(rows, "langfuse", scores=scores), PROJECT)
    with engine.connect() as connection:
        found = connection.execute(
            text("SELECT r.hints->'replay'->>'query_id', o.score FROM outcome o JOIN decision d ON d.id = o.decision_id"
                 " JOIN request r ON r.id = d.request_id")
        )  # fmt: skip
        assert dict(found.fetchall()) == {"o1": 1.0, "o2": 0.25, "o3": None}
    assert report.survey.left_out == {"SPAN": 1} and scores.unused == {"no number from 0 to 1, no truth value": 1}


def test_what_may_not_be_learned_from_stays_so(engine, empty_database, wish) -> None:
    load(empty_database, wish([entry(1)], learn=False), PROJECT)
    assert load(empty_database, wish([entry(1), entry(2)]), PROJECT).learn is False
    assert {row.learn for row in rows_of(engine, "request")} == {False}
