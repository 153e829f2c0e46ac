"""The log as files: every row once, values as they are, texts redacted, nothing that a spreadsheet would run."""

from __future__ import annotations

import csv
import gzip
import json
import stat
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from pointsman.commands.app import build_app
from pointsman.errors import UserError
from pointsman.outlet.export import export
from pointsman.outlet.reading import Selection, columns_of, pages
from pointsman.outlet.subjects import SUBJECTS, TEXTS, subject
from pointsman.outlet.writing import neutral, write_rows

UNTIL = datetime(2026, 6, 15, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def seeded(database_url, empty, seeding):
    empty()
    seeding.seed(database_url, until=UNTIL, number=20, project="other", rng_seed=2)
    return seeding.seed(database_url, until=UNTIL, number=120)


def mine(seeded, **more) -> Selection:
    return Selection(seeded.project, **more)


def test_every_decision_of_the_project_is_there_once_with_request_and_end(engine, seeded, tmp_path) -> None:
    written = export(engine, "decisions", mine(seeded), tmp_path / "d.jsonl")
    rows = [json.loads(line) for line in written.file.read_text().splitlines()]
    assert [row["id"] for row in rows] == [row["id"] for row in seeded.decisions]
    assert (written.rows, written.bytes) == (120, written.file.stat().st_size)
    row, put = rows[7], seeded.decisions[7]
    outcome = seeded.outcomes[put["id"]]
    assert row["probabilities"] == put["probabilities"] and row["eligible"] == put["eligible"]
    assert row["request_text"] == seeded.requests[put["request_id"]]["text"]
    assert (row["outcome_status"], row["outcome_latency_ms"]) == (outcome["status"], outcome["latency_ms"])
    assert Decimal(row["router_cost"]) == put["router_cost"]
    assert stat.S_IMODE(written.file.stat().st_mode) == 0o600


def test_pages_join_without_a_gap_or_a_double(engine, seeded) -> None:
    found = [row["id"] for page in pages(engine, subject("decisions"), mine(seeded), size=7) for row in page]
    assert [str(identity) for identity in found] == [row["id"] for row in seeded.decisions]


def test_filters(engine, seeded) -> None:
    def count(name="decisions", **more) -> int:
        return sum(len(page) for page in pages(engine, subject(name), mine(seeded, **more)))

    since = UNTIL - timedelta(days=3)
    assert count(since=since) == sum(row["decided_at"] >= since for row in seeded.decisions)
    assert count(until=since) == 120 - count(since=since)
    assert count(worker="brook") == sum(row["chosen"] == "brook" for row in seeded.decisions)
    assert count(origins=("replay",)) == 0 and count(origins=("traffic",)) == 120 == count(learnable=True)
    assert count("calls", worker="atlas") == sum(row["worker"] == "atlas" for row in seeded.rows["call"])
    assert count("outcomes") == 120 and count("feedback") == len(seeded.rows["feedback"])
    assert sum(len(page) for page in pages(engine, subject("decisions"), Selection())) == 140


def test_parquet_has_types_and_equals_jsonl(engine, seeded, tmp_path) -> None:
    export(engine, "decisions", mine(seeded), tmp_path / "d.parquet")
    export(engine, "decisions", mine(seeded), tmp_path / "d.jsonl.gz")
    table = pyarrow.parquet.read_table(tmp_path / "d.parquet")
    with gzip.open(tmp_path / "d.jsonl.gz") as stream:
        lines = [json.loads(line) for line in stream]
    assert str(table.schema.field("decided_at").type) == "timestamp[us, tz=UTC]"
    assert str(table.schema.field("router_cost").type) == "decimal128(20, 10)"
    rows = table.to_pylist()
    assert [row["id"] for row in rows] == [line["id"] for line in lines]
    assert json.loads(rows[3]["probabilities"]) == lines[3]["probabilities"]
    assert [row["outcome_cost"] is None for row in rows] == [line["outcome_cost"] is None for line in lines]


@pytest.mark.parametrize("name", SUBJECTS)
def test_csv_reads_back_and_no_cell_is_a_formula(engine, seeded, tmp_path, name: str) -> None:
    written = export(engine, name, mine(seeded), tmp_path / f"{name}.csv")
    with written.file.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == written.rows > 0
    assert list(rows[0]) == [column.name for column in subject(name).columns]
    texts = [row[column] for row in rows for column in TEXTS & row.keys()]
    assert not any(text.startswith(("=", "+", "@", "\t")) for text in texts)


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "＝1"])
def test_formulas_are_neutralised_and_numbers_left(text: str, tmp_path) -> None:
    class Column:
        name = "c"

    assert neutral(text) == "'" + text and neutral("a=1") == "a=1"
    written = write_rows(tmp_path / "x.csv", [Column()], [[{"c": text}, {"c": -1.5}, {"c": {"a": 1}}]])
    with written.file.open(newline="") as stream:
        assert [row["c"] for row in csv.DictReader(stream)] == ["'" + text, "-1.5", '{"a":1}']


def test_patterns_of_today_black_out_what_was_logged_before_them(engine, seeded, tmp_path) -> None:
    written = export(engine, "decisions", mine(seeded), tmp_path / "d.jsonl", redact=["sonnet"])
    assert "sonnet" not in written.file.read_text() and "[redacted]" in written.file.read_text()
    plain = export(engine, "decisions", mine(seeded, texts=False), tmp_path / "e.jsonl")
    row = json.loads(plain.file.read_text().splitlines()[0])
    assert not TEXTS & row.keys() and "request_text_hash" in row and "sonnet" not in plain.file.read_text()
    assert len(columns_of(subject("decisions"), Selection(texts=False))) == len(row)


def test_no_half_file_and_no_file_replaced_unasked(engine, seeded, tmp_path) -> None:
    def breaks():
        yield [{"c": 1}]
        raise KeyError("the database went away")

    class Column:
        name = "c"

    with pytest.raises(KeyError):
        write_rows(tmp_path / "x.jsonl", [Column()], breaks())
    assert list(tmp_path.iterdir()) == []
    first = export(engine, "outcomes", mine(seeded), tmp_path / "o.jsonl.gz")
    with pytest.raises(UserError, match="exists already; name another file, or give --force"):
        export(engine, "outcomes", mine(seeded), tmp_path / "o.jsonl.gz")
    assert export(engine, "outcomes", mine(seeded), tmp_path / "o.jsonl.gz", replace=True).sha256 == first.sha256


def test_the_command(database_url, seeded, tmp_path) -> None:
    config = tmp_path / "pointsman.toml"
    worker = '[[workers]]\nname = "w"\ndescription = "w"\nmodel = "w"\nbase_url = "http://127.0.0.1:1/v1"\n'
    config.write_text(f'[database]\nurl = "{database_url}"\n[log]\nredact = ["rivers"]\n{worker}')

    def run(*arguments):
        return CliRunner().invoke(build_app([]), ["export", *map(str, arguments), "--config", str(config)])

    done = run("decisions", tmp_path / "d.jsonl", "--project", "main", "--since", "2026-06-14", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["rows"] == sum(row["decided_at"] >= datetime(2026, 6, 14, tzinfo=UTC) for row in seeded.decisions)
    assert "rivers" not in (tmp_path / "d.jsonl").read_text()
    for arguments, message in (
        (("decisions", tmp_path / "d.xlsx"), "expected a name that ends in .jsonl, .csv"),
        (("decisions", tmp_path / "e.csv", "--since", "soon"), "--since: expected a time such as"),
        (("calls", tmp_path / "e.csv", "--project", "absent"), "no project 'absent' is in the log"),
        (("calls", tmp_path / "e.csv", "--origin", "heaven"), "--origin: expected one of traffic"),
    ):
        failed = run(*arguments)
        assert failed.exit_code == 2 and message in failed.stderr, failed.output


def test_what_was_withdrawn_is_not_learnable_even_by_its_key(engine, log) -> None:
    log.decision(0)
    log.full(1, learn=False)
    key = {"project_id": log.project, "hash": "h", "prefix": "p", "scopes": ["serve"], "created_at": log.at(0)}
    log.write("project", {"id": log.project, "name": "p", "secret": "00", "created_at": log.at(0)})
    withdrawn = "0198c5a2-3f10-7c1e-9a53-0242ac120002"
    log.write("api_key", {"id": withdrawn, "learn": False, **key})
    log.full(2, key_id=withdrawn)
    selection = Selection(log.project, learnable=True)
    assert [len(page) for page in pages(engine, subject("decisions"), selection)] == [1]
    assert [len(page) for page in pages(engine, subject("decisions"), Selection(log.project))] == [3]
