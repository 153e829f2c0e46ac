"""Rows in the shape in which other systems export them, as records: what is read, left out, refused."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from pointsman.errors import UserError
from pointsman.intake.logs import NotAnAnswer, record_of
from pointsman.intake.maps import BUILT_IN, FIELDS, column_map
from pointsman.intake.score_tables import Shape, records_of, shape_of
from pointsman.intake.values import Unreadable, Values, read_score, status_of

ASKED = datetime(2026, 3, 1, 12, tzinfo=UTC)
MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is 2 + 2?"}]
COMPLETION = {
    "id": "chatcmpl-1", "object": "chat.completion", "created": 1772366400, "model": "gpt-4o-2024-08-06",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "4"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 20, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 8}},
}  # fmt: skip


def read(form: str, row: dict):
    return record_of(row, column_map(form))


def test_a_pair_of_bodies_of_openais_api() -> None:
    request = {"model": "gpt-4o", "messages": MESSAGES, "temperature": 0}
    record = read("openai-jsonl", {"request": request, "response": COMPLETION, "latency_ms": 840})
    assert (record.query, record.model, record.text, record.body) == ("chatcmpl-1", "gpt-4o-2024-08-06",
                                                                     "What is 2 + 2?", request)  # fmt: skip
    assert (record.completion, record.finish_reason, record.status) == ("4", "stop", "ok")
    assert (record.input_tokens, record.cached_tokens, record.output_tokens) == (20, 8, 1)
    assert (record.asked_at, record.latency_ms, record.cost, record.score) == (ASKED, 840, None, None)


def test_batch_and_fine_tuning_files_of_openai() -> None:
    batch = {"custom_id": "q-1", "body": {"model": "gpt-4o", "messages": MESSAGES},
             "response": {"status_code": 200, "request_id": "r", "body": COMPLETION}, "error": None}  # fmt: skip
    record = read("openai-jsonl", batch)
    assert (record.query, record.completion, record.http_status, record.output_tokens) == ("q-1", "4", 200, 1)
    tuned = read("openai-jsonl", {"model": "mine", "messages": [*MESSAGES, {"role": "assistant", "content": "4"}]})
    assert (tuned.completion, tuned.text, len(tuned.body["messages"])) == ("4", "What is 2 + 2?", 2)
    failed = read("openai-jsonl", {"request": {"model": "m", "messages": MESSAGES}, "error": {"message": "overloaded"},
                                   "status_code": 529})  # fmt: skip
    assert (failed.status, failed.http_status, failed.error, failed.completion) == ("error", 529, "overloaded", None)


def test_rows_without_an_id_are_named_by_their_content() -> None:
    row = {"model": "m", "messages": MESSAGES, "completion": "4"}
    assert read("openai-jsonl", row).query == read("openai-jsonl", dict(reversed(row.items()))).query
    assert read("openai-jsonl", row).query != read("openai-jsonl", {**row, "completion": "5"}).query


def test_spend_logs_and_the_standard_payload_of_litellm() -> None:
    spend = {
        "request_id": "chatcmpl-9", "call_type": "acompletion", "api_key": "88dc28", "spend": 0.000175,
        "total_tokens": 21, "prompt_tokens": 20, "completion_tokens": 1, "startTime": "2026-03-01T12:00:00+00:00",
        "endTime": "2026-03-01T12:00:01.500000+00:00", "model": "openai/gpt-4o", "model_group": "gpt-4o",
        "session_id": "s1", "status": "success", "cache_hit": "False", "metadata": {"status": "success"},
        "messages": '[{"role": "user", "content": "What is 2 + 2?"}]', "response": COMPLETION,
    }  # fmt: skip
    record = read("litellm", spend)
    assert (record.query, record.model, record.provider_model) == ("chatcmpl-9", "gpt-4o", "openai/gpt-4o")
    assert (record.cost, record.latency_ms, record.episode) == (Decimal("0.000175"), 1500, "s1")
    assert (record.text, record.completion, record.asked_at) == ("What is 2 + 2?", "4", ASKED)
    payload = {
        "id": "x", "trace_id": "t", "call_type": "completion", "response_cost": 0.1, "status": "failure",
        "startTime": 1772366400.0, "endTime": 1772366402.0, "model": "gpt-4o", "model_group": None,
        "messages": MESSAGES, "response": {}, "error_str": "RateLimitError", "prompt_tokens": 0, "completion_tokens": 0,
    }  # fmt: skip
    failed = read("litellm", payload)
    assert (failed.status, failed.error, failed.latency_ms, failed.trace) == ("error", "RateLimitError", 2000, "t")
    with pytest.raises(NotAnAnswer, match="aembedding"):
        read("litellm", {**spend, "call_type": "aembedding"})


def test_observations_of_langfuse() -> None:
    row = {
        "id": "o1", "trace_id": "t1", "type": "GENERATION", "start_time": "2026-03-01 12:00:00.000000",
        "end_time": "2026-03-01 12:00:02.000000", "name": "answer", "level": "DEFAULT", "status_message": "",
        "input": '{"messages": [{"role": "user", "content": "What is 2 + 2?"}]}',
        "output": '{"role": "assistant", "content": "4"}', "provided_model_name": "gpt-4o",
        "usage_details": {"input": 20, "output": 1, "total": 21}, "cost_details": {"input": 0.00005},
        "total_cost": 0.00006, "latency": 2.0, "time_to_first_token": 0.4, "session_id": "s1", "user_id": "ada",
    }  # fmt: skip
    record = read("langfuse", row)
    assert (record.text, record.completion, record.model, record.task) == ("What is 2 + 2?", "4", "gpt-4o", "answer")
    assert (record.latency_ms, record.first_token_ms, record.cost) == (2000, 400, Decimal("0.00006"))
    assert (record.trace, record.episode, record.asked_at, record.status) == ("t1", "s1", ASKED, "ok")
    camel = {"id": "o2", "traceId": "t2", "type": "GENERATION", "startTime": "2026-03-01T12:00:00Z", "model": "m",
             "input": "plain", "output": "text", "level": "ERROR", "statusMessage": "boom",
             "usageDetails": {"input": 3, "output": 2}}  # fmt: skip
    record = read("langfuse", camel)
    assert (record.text, record.completion, record.status, record.error) == ("plain", "text", "error", "boom")
    with pytest.raises(NotAnAnswer, match="SPAN"):
        read("langfuse", {**row, "type": "SPAN"})


def test_inferences_of_tensorzero() -> None:
    identity = "0195518b-5400-7000-8000-000000000001"  # 2026-ish: the time is in the id
    blocks = [{"type": "text", "text": "4"}]
    chat = {
        "id": identity, "function_name": "sums", "variant_name": "gpt_4o", "episode_id": identity,
        "input": '{"system": "Be brief.", "messages": [{"role": "user",'
        ' "content": [{"type": "text", "value": "2+2?"}]}]}',
        "output": '[{"type": "text", "text": "4"}]', "processing_time_ms": 700, "ttft_ms": None,
    }  # fmt: skip
    record = read("tensorzero", chat)
    assert (record.text, record.completion, record.model, record.task) == ("2+2?", "4", "gpt_4o", "sums")
    assert record.body["messages"][0] == {"role": "system", "content": "Be brief."}
    assert (record.latency_ms, record.asked_at.year) == (700, 2025)
    model = {"id": identity, "inference_id": "0195518b-5400-7000-8000-000000000002", "model_name": "gpt-4o",
             "input_messages": [{"role": "user", "content": [{"type": "text", "text": "2+2?"}]}], "output": blocks,
             "input_tokens": 9, "output_tokens": 1, "response_time_ms": 650}  # fmt: skip
    record = read("tensorzero", model)
    assert (record.query[-1], record.text, record.completion, record.input_tokens) == ("2", "2+2?", "4", 9)


def test_a_wide_table_names_its_models_by_bars_objects_or_the_map() -> None:
    columns = column_map("scores")
    barred = {"sample_id": "mmlu.1", "prompt": "2+2?", "eval_name": "mmlu", "gpt-4": 1.0, "tiny": "0.25",
              "gpt-4|total_cost": 0.002, "gpt-4|model_response": "4", "tiny|total_cost": "0.0001",
              "oracle_model_to_route_to": "gpt-4"}  # fmt: skip
    shape = shape_of(barred, columns)
    assert shape == Shape(False, ("gpt-4", "tiny"))
    records = list(records_of(barred, columns, shape))
    assert [(r.query, r.model, r.score, r.cost, r.completion, r.task) for r in records] == [
        ("mmlu.1", "gpt-4", 1.0, Decimal("0.002"), "4", "mmlu"),
        ("mmlu.1", "tiny", 0.25, Decimal("0.0001"), None, "mmlu"),
    ]  # fmt: skip
    assert [r.model for r in records_of({**barred, "tiny": None}, columns, shape)] == ["gpt-4"]
    objects = {"prompt": "2+2?", "scores": {"a": True, "b": 0.5}, "costs": {"a": 0.1}}
    found = list(records_of(objects, columns, shape_of(objects, columns)))
    assert [(r.model, r.score, r.cost) for r in found] == [("a", 1.0, Decimal("0.1")), ("b", 0.5, None)]
    with pytest.raises(Unreadable, match=r"\[wide\] models"):
        shape_of({"prompt": "2+2?", "x": 1.0}, columns)
    with pytest.raises(Unreadable, match="tiny: score: expected a number from 0 to 1, got 7"):
        list(records_of({**barred, "tiny": 7}, columns, shape))


def test_a_map_file_replaces_fields_and_names_models(tmp_path) -> None:
    file = tmp_path / "map.toml"
    file.write_text('[fields]\nmodel = "meta.who"\nscore = ["human", "auto"]\n[wide]\nmodels = ["a"]\n')
    columns = column_map("openai-jsonl", file)
    record = record_of({"meta": '{"who": "mine"}', "messages": MESSAGES, "auto": "true"}, columns)
    assert (record.model, record.score, columns.models) == ("mine", 1.0, ("a",))
    file.write_text('[fields]\nmodle = "x"\n')
    with pytest.raises(UserError, match="no field 'modle'; the fields are id, "):
        column_map("openai-jsonl", file)
    with pytest.raises(UserError, match="expected one of openai-jsonl"):
        column_map("csv")


def test_every_built_in_map_names_known_fields_only() -> None:
    assert {name for columns in BUILT_IN.values() for name in columns.fields} == set(FIELDS)


@pytest.mark.parametrize(
    ("value", "expected"),
    [("2026-03-01T12:00:00Z", ASKED), ("2026-03-01 12:00:00", ASKED), (1772366400, ASKED), (1772366400000, ASKED),
     ("1772366400.0", ASKED), ("soon", None), (-5, None), ("9999-01-01", None), (True, None),
     ("0195518b-5400-4000-8000-000000000001", None)],
)  # fmt: skip
def test_times(value: object, expected: datetime | None) -> None:
    values = Values({"t": value}, {"asked_at": ("t",)})
    if expected is None:
        with pytest.raises(Unreadable, match="asked_at: expected a time"):
            values.moment("asked_at")
    else:
        assert values.moment("asked_at") == expected


def test_scores_and_words_of_an_end() -> None:
    assert [read_score(value) for value in (True, "false", "0.5", 1)] == [1.0, 0.0, 0.5, 1.0]
    for value in ("great", 1.01, -0.1, float("nan"), None):
        with pytest.raises(Unreadable):
            read_score(value)
    assert status_of(200) == ("ok", 200) and status_of("504") == ("timeout", 504)
    assert status_of("failure") == ("error", None) and status_of("DEFAULT") == ("ok", None)
