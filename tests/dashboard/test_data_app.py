"""The data page: filters kept and exported, imports, and the record of who did what; exports cannot run formulas."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow.parquet as pq
import pytest
from sqlalchemy import text

from dashboard import exports
from pointsman.queries import DecisionFilter
from pointsman.queries.sets import EXPORTED, exported, saved_sets


@pytest.fixture
def page(page_of, configure, log, database_url, engine):
    with engine.begin() as connection:
        connection.execute(text("TRUNCATE saved_set, actor_log"))
    configure(database_url)
    made = page_of("data_sets")
    made.session_state["person"] = "ana"
    return made


def button(page, label):
    return next(item for item in page.button if item.label == label)


def test_a_filter_is_kept_found_and_forgotten_with_a_record(page, page_of, log, engine):
    decisions = page_of("decisions")
    decisions.session_state["person"] = "ana"
    decisions.run()
    decisions.selectbox(key="filter-worker").set_value("brook")
    button(decisions, "Apply").click().run()
    decisions.text_input(key="set-name").set_value("brook's")
    button(decisions, "Keep").click().run()
    assert not decisions.exception
    (kept,) = saved_sets(engine, log.project)
    assert (kept.name, kept.filters, kept.made_by) == ("brook's", DecisionFilter(worker="brook"), "ana")
    page.run()
    assert not page.exception
    assert page.dataframe[0].value["Name"][0] == "brook's"
    button(page, "Forget").click().run()
    assert saved_sets(engine, log.project) == ()
    done = page.dataframe[0].value
    assert list(done["What"]) == ["set drop", "set save"]
    assert set(done["Who"]) == {"ana"}


def test_exports_hold_every_row_in_each_format(log, engine):
    def rows():
        return exported(engine, log.project, DecisionFilter(), 120)

    ids = [row["id"] for row in reversed(log.decisions)][:120]
    lines = [json.loads(line) for line in exports.jsonl_bytes(EXPORTED, rows()).decode().splitlines()]
    assert [line["id"] for line in lines] == ids
    table = pq.read_table(io.BytesIO(exports.parquet_bytes(EXPORTED, rows()))).to_pylist()
    assert [row["id"] for row in table] == ids
    assert json.loads(table[0]["scores"]) == log.decisions[-1]["scores"]
    read = list(csv.DictReader(io.StringIO(exports.csv_bytes(EXPORTED, rows()).decode("utf-8-sig"))))
    assert [row["id"] for row in read] == ids
    assert read[0]["ask"] == log.requests[log.decisions[-1]["request_id"]]["text"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("=1+1", "'=1+1"), ("+1", "'+1"), ("-1", "'-1"), ("@SUM(A1)", "'@SUM(A1)"), ("\t=1", "'\t=1"),
        ("  =1", "'  =1"), ("\r\n=1", "'\r\n=1"), ("a=1", "a=1"), ("", ""), (None, ""), (-1.5, "-1.5"), (True, "True"),
        (Decimal("-2"), "'-2"), ({"a": 1}, '{"a": 1}'), ("=שלום", "'=שלום"),
    ],
)  # fmt: skip
def test_a_cell_that_a_spreadsheet_could_run_is_text(value, shown):
    assert exports.cell(value) == shown


def test_a_viewer_only_reads(page, configure, database_url):
    configure(database_url, '[dashboard]\nrole = "viewer"')
    page.run()
    assert not page.exception
    assert [item.label for item in page.button] == []


def test_an_upload_is_imported_with_a_record(page, log, engine, tmp_path):
    row = {
        "id": "a1", "created_at": datetime.now(UTC).isoformat(),
        "request": {"model": "other-model", "messages": [{"role": "user", "content": "imported ask"}]},
        "response": {"model": "other-model", "choices": [{"message": {"content": "an answer"}}]},
    }  # fmt: skip
    page.run()
    page.file_uploader(key="import-file").set_value(("log.jsonl", json.dumps(row).encode(), "application/jsonl"))
    page.selectbox(key="import-format").set_value("openai-jsonl")
    page.text_input(key="import-name").set_value("elsewhere")
    button(page, "Import").click().run()
    assert not page.exception
    assert page.success[0].value.startswith("Imported 1 records as elsewhere"), [c.value for c in page.code]
    assert page.dataframe[0].value["What"][0] == "import"
    found = exported(engine, log.project, DecisionFilter(search="imported", origin=None), 5)
    assert [line["ask"] for line in found] == ["imported ask"]


def test_a_name_that_is_a_path_is_refused(page):
    page.run()
    page.file_uploader(key="import-file").set_value(("log.jsonl", b"{}", "application/jsonl"))
    page.text_input(key="import-name").set_value("../../x")
    button(page, "Import").click().run()
    assert page.error[0].value == "That was refused."
