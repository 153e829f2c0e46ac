"""Reading recorded data sets: both forms, optional columns, and what each fault's message names."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pyarrow
import pyarrow.parquet
import pytest

from pointsman.errors import UserError
from pointsman.replay.models import cost_of, read_models, replay_pool
from pointsman.replay.source import Folder, Query, RecordedOutcome


def read(folder):
    source = Folder(folder)
    queries = list(source.queries())
    numbers = {query.id: number for number, query in enumerate(queries)}
    return queries, list(source.outcomes(numbers))


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_both_forms_give_the_same_values(make_folder, form):
    queries, outcomes = read(make_folder(form=form))
    assert queries[0] == Query("1", "What is 2 + 2?", "sums", "train", None, {"metric": "exact"})
    assert queries[2] == Query("3", "Translate « été ».", "words", "test", None, {})
    assert outcomes[0] == RecordedOutcome("2", "big", 0.1, "97", 7, 1, Decimal("0.0003000000"), None, 0)
    assert outcomes[5].response is None


def test_repeats_are_counted_in_the_order_of_the_rows(make_folder):
    _, outcomes = read(make_folder())
    assert [(o.score, o.repeat) for o in outcomes if (o.query_id, o.model) == ("1", "small")] == [
        (0.7, 0),
        (0.2, 1),
    ]


def test_given_repeats_are_kept(make_folder):
    rows = [{"query_id": 1, "model": "a", "score": 1, "repeat": r} for r in (2, 0, 7)]
    _, outcomes = read(make_folder(outcomes=rows))
    assert [o.repeat for o in outcomes] == [2, 0, 7]


def test_only_the_required_columns_are_needed(make_folder):
    folder = make_folder([{"id": "a", "text": "hello"}], [{"query_id": "a", "model": "m", "score": True}], form="jsonl")
    queries, outcomes = read(folder)
    assert queries == [Query("a", "hello")]
    assert outcomes == [RecordedOutcome("a", "m", 1.0)]


def test_float32_scores_keep_their_exact_value(make_folder):
    folder = make_folder()
    table = pyarrow.table(
        {
            "query_id": pyarrow.array([1], pyarrow.int32()),
            "model": pyarrow.array(["a"]).dictionary_encode(),
            "score": pyarrow.array([0.1], pyarrow.float32()),
        }
    )
    pyarrow.parquet.write_table(table, folder / "outcomes.parquet")
    assert read(folder)[1][0].score == 13421773 / 2**27


def test_pandas_holes_are_not_values(make_folder):
    nan = float("nan")
    row = {"query_id": 1, "model": "a", "score": 0.5, "cost": nan, "input_tokens": nan, "output_tokens": 3.0}
    outcome = read(make_folder(outcomes=[row]))[1][0]
    assert (outcome.cost, outcome.input_tokens, outcome.output_tokens) == (None, None, 3)


def test_time_is_utc_whatever_its_zone(make_folder):
    moment = datetime(2024, 5, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    folder = make_folder(
        [{"id": 1, "text": "a", "asked_at": moment}, {"id": 2, "text": "b", "asked_at": None}],
        [{"query_id": 1, "model": "a", "score": 1}],
    )
    queries, _ = read(folder)
    assert [query.asked_at for query in queries] == [datetime(2024, 5, 1, 10, tzinfo=UTC), None]


BAD_OUTCOMES = [
    ({"score": 1.5}, "column 'score': expected a number from 0 to 1, got 1.5"),
    ({"score": -0.1}, "column 'score': expected a number from 0 to 1, got -0.1"),
    ({"score": None}, "column 'score': expected a number from 0 to 1, got None"),
    ({"score": float("nan")}, "column 'score': expected a number from 0 to 1, got nan"),
    ({"query_id": 99}, "column 'query_id': expected an id that stands in queries.parquet, got 99"),
    ({"query_id": None}, "column 'query_id': expected a text or a whole number, got None"),
    ({"model": "two words"}, "column 'model': expected a worker's name"),
    ({"model": "pointsman"}, "column 'model': expected a name that is not reserved, got 'pointsman'"),
    ({"model": ""}, "column 'model': expected a text that is not empty, got ''"),
    ({"input_tokens": -1}, "column 'input_tokens': expected a whole number from 0 to"),
    ({"output_tokens": 2.5}, "column 'output_tokens': expected a whole number from 0 to"),
    ({"cost": -1.0}, "column 'cost': expected USD from 0 to"),
    ({"cost": float("inf")}, "column 'cost': expected USD from 0 to"),
    ({"cost": "cheap"}, "column 'cost': expected a number or null, got 'cheap'"),
    ({"latency_ms": float("inf")}, "column 'latency_ms': expected a number of at least 0"),
    ({"response": 7}, "column 'response': expected a text or null, got 7"),
    ({"repeat": 0}, "column 'repeat': expected a number that no other row of this query and model has, got 0"),
]


@pytest.mark.parametrize(("change", "message"), BAD_OUTCOMES)
def test_a_bad_outcome_is_named_by_file_row_and_column(make_folder, change, message):
    first = {"query_id": 1, "model": "a", "score": 1.0}
    second = {**first, **change}
    folder = make_folder(outcomes=[{**dict.fromkeys(second), **first}, second])
    with pytest.raises(UserError) as caught:
        read(folder)
    assert str(caught.value).startswith(f"{folder / 'outcomes.parquet'}: row 2: {message}")


BAD_QUERIES = [
    ({"id": 1}, "row 2: column 'id': expected an id of its own (row 1 has this one), got 1"),
    ({"id": 1.5}, "row 2: column 'id': expected a text or a whole number, got 1.5"),
    ({"text": ""}, "row 2: column 'text': expected a text that is not empty, got ''"),
    ({"task": 3}, "row 2: column 'task': expected a text or null, got 3"),
    ({"asked_at": "soon"}, "row 2: column 'asked_at': expected a timestamp or ISO 8601 text, from 1971 on"),
]


@pytest.mark.parametrize(("change", "message"), BAD_QUERIES)
def test_a_bad_query_is_named_by_file_row_and_column(make_folder, change, message):
    folder = make_folder([{"id": 1, "text": "a"}, {"id": 2, "text": "b", **change}], form="jsonl")
    with pytest.raises(UserError) as caught:
        read(folder)
    assert str(caught.value).startswith(f"{folder / 'queries.jsonl'}: {message}")


def test_missing_columns_and_files_are_named(make_folder, tmp_path):
    folder = make_folder(outcomes=[{"query_id": 1, "model": "a"}])
    with pytest.raises(UserError, match=r"outcomes\.parquet: no column 'score'; found model, query_id"):
        read(folder)
    lines = make_folder([{"id": 1, "text": "a"}, {"id": 2}], form="jsonl", name="lines")
    with pytest.raises(UserError, match=r"queries\.jsonl: row 2: no column 'text'; found id"):
        read(lines)
    (folder / "outcomes.parquet").unlink()
    with pytest.raises(UserError, match=r"no outcomes\.parquet and no outcomes\.jsonl; one of them is needed"):
        Folder(folder)
    with pytest.raises(UserError, match="absent: no such folder"):
        Folder(tmp_path / "absent")


def test_two_forms_of_one_table_are_refused(make_folder):
    make_folder(form="parquet")
    folder = make_folder(form="jsonl")
    with pytest.raises(UserError, match=r"holds both queries\.parquet and queries\.jsonl; keep one"):
        Folder(folder)


def test_files_that_are_no_tables_are_refused(make_folder):
    folder = make_folder()
    (folder / "queries.parquet").write_bytes(b"not a table")
    with pytest.raises(UserError, match=r"queries\.parquet: not a Parquet file that can be read"):
        read(folder)
    lines = make_folder(form="jsonl", name="lines")
    (lines / "queries.jsonl").write_bytes(b'{"id": 1, "text": "a"}\n\n["b"]\n')
    with pytest.raises(UserError, match=r"queries\.jsonl: row 3: expected one JSON object"):
        read(lines)


def test_parquet_without_pyarrow_says_what_to_install(make_folder, monkeypatch):
    folder, lines = make_folder(), make_folder(form="jsonl", name="lines")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        UserError, match=r"queries\.parquet: reading Parquet needs pyarrow: pip install 'pointsman\[data\]'"
    ):
        read(folder)
    assert len(read(lines)[1]) == 6


def test_models_become_workers_with_their_prices(make_folder, models):
    entries = read_models(make_folder(models=models))
    pool = replay_pool(["small", "big"], entries, "set")
    big, small = pool.workers
    assert (big.name, big.model, big.price.input, big.price.output) == (
        "big", "vendor/big-70b", Decimal("2.5"), Decimal(10),
    )  # fmt: skip
    assert big.card == "big (70B): a model whose answers are recorded in the data set set."
    assert (small.model, small.price, small.endpoints) == ("small", None, ())


def test_cost_is_the_recorded_one_else_that_of_the_tokens(make_folder, models):
    price = replay_pool(["big"], read_models(make_folder(models=models)), "set").workers[0].price
    counted = RecordedOutcome("1", "big", 1.0, input_tokens=1000, output_tokens=10)
    assert cost_of(counted, price) == Decimal("0.0026")
    assert cost_of(RecordedOutcome("1", "big", 1.0, input_tokens=1, cost=Decimal("0.5")), price) == Decimal("0.5")
    assert cost_of(counted, None) is None
    assert cost_of(RecordedOutcome("1", "big", 1.0, input_tokens=1000), price) is None


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"input_price": -1, "output_price": 1}, "big.input_price: expected USD per million tokens, got -1"),
        ({"input_price": 1}, "big: expected both input_price and output_price, or neither"),
        ({"context_window": 0}, "big.context_window: expected at least 1, got 0"),
        ({"size": 7}, r"expected an object of models: Expected `str \| null`, got `int`"),
    ],
)
def test_a_bad_models_file_is_named(make_folder, entry, message):
    folder = make_folder(models={"big": entry})
    with pytest.raises(UserError, match=rf"models\.json: {message}"):
        read_models(folder)
