"""Public reports of faults in other gateways, by what was wrong, and the tests that hold the right value here."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STREAMS, SHAPES = "gateway/test_chat_streams.py::", "gateway/test_chat_shapes.py::"
FAULTS, LEAVING = "gateway/test_chat_faults.py::", "gateway/test_chat_leaving.py::"
REQUESTS, LOG = "gateway/test_public_reports_requests.py::", "gateway/test_public_reports_log.py::"
PARSE, PARTS = "routing/test_parse.py::", "upstream/test_upstream_parts.py::"
COST, SHIPPER = "gateway/test_gateway_cost.py::", "journal/test_shipper.py::"
REPORTS = {
    "A2 no `usage: null` on the other chunks": [f"{STREAMS}test_usage_is_read_anywhere_and_told_only_when_asked"],
    "A4 usage before an empty last chunk": [f"{STREAMS}test_usage_is_read_anywhere_and_told_only_when_asked"],
    "A6 empty choices skipped, and usage with them": [f"{STREAMS}test_usage_is_read_anywhere_and_told_only_when_asked"],
    "A8 a comment told as data": ["gateway/test_openai_sdk.py::test_a_stream_with_comments_and_usage"],
    "A10 a keep-alive that breaks a client": ["gateway/test_keep_alive.py::test_openais_sdk_survives"],
    "A12 characters cut between packets": [f"{STREAMS}test_any_cut_gives_the_same_bytes"],
    "A14 events cut between packets": [
        f"{STREAMS}test_one_event_cut_at_every_byte",
        f"{PARTS}test_any_cut_of_any_line_ends_gives_the_same_events",
    ],
    "A16 [DONE] without a finish_reason": [f"{STREAMS}test_how_a_stream_ended"],
    "A18 a stall logged as the client's leaving": [
        f"{REQUESTS}test_a_stall_is_the_workers_though_the_client_lost_its_patience"
    ],
    "A20 an error event told as an empty answer": [
        f"{FAULTS}test_a_fault_before_content_goes_to_the_next_worker",
        f"{FAULTS}test_a_fault_before_content",
    ],
    "A22 fallbacks forbidden, and made": [
        f"{REQUESTS}test_without_fallbacks_an_error_in_a_stream_is_one_call",
        f"{FAULTS}test_fallbacks_can_be_forbidden",
    ],
    "A24 200 before the worker's 429": [f"{FAULTS}test_a_fault_before_content"],
    "A26 leaving after a tool call": [f"{LEAVING}test_leaving_right_after_a_tool_call_keeps_usage_and_the_worker"],
    "A28 leaving before an answer": [f"{LEAVING}test_leaving_before_a_json_answer"],
    "A30 every tool call at index 0": [f"{STREAMS}test_fragments_of_tool_calls"],
    "A32 a tool's name in pieces": [f"{STREAMS}test_fragments_of_tool_calls"],
    "A34 content of null refused": [f"{SHAPES}test_assistant_turn_with_null_content_and_tool_calls_is_replayed"],
    "A36 optional fields of null refused": [f"{SHAPES}test_null_for_every_optional_field"],
    "A38 the wrong name for the limit": [f"{SHAPES}test_limits_go_by_the_name_a_worker_knows"],
    "A40 unknown fields of a delta lost": [f"{STREAMS}test_unknown_fields_and_late_empty_reasoning_pass"],
    "A42 reasoning under its other name lost": [
        f"{STREAMS}test_only_reasoning_is_content",
        f"{STREAMS}test_reasoning_under_both_names_is_kept_apart",
    ],
    "A44 empty reasoning after content": [f"{STREAMS}test_unknown_fields_and_late_empty_reasoning_pass"],
    "A46 a chunk without the first choice": [
        f"{REQUESTS}test_a_stream_whose_only_choice_has_another_index",
        f"{STREAMS}test_several_choices_do_not_mix",
    ],
    "A48 log-probabilities that are no number": [f"{STREAMS}test_numbers_and_surrogates_that_are_no_json"],
    "A50 an image alone": [f"{REQUESTS}test_an_image_alone_is_routed_to_a_worker_that_sees"],
    "A52 only the last part of text read": [
        f"{REQUESTS}test_several_parts_of_text_all_reach_the_router",
        f"{SHAPES}test_content_of_every_shape",
    ],
    "A54 fields lost on the way to a fallback": [f"{FAULTS}test_the_fallback_gets_the_same_body"],
    "A56 a setting of the wrong type ignored": [f"{REQUESTS}test_a_value_of_another_type_is_said_at_the_start"],
    "A developer, stop, null choices, BOM, empty bodies": [
        f"{SHAPES}test_system_role_goes_by_the_name_a_worker_knows",
        f"{SHAPES}test_stop_of_every_shape_is_forwarded",
        f"{STREAMS}test_a_bom_before_the_first_event_is_dropped",
        f"{REQUESTS}test_choices_of_null_are_no_end",
        f"{REQUESTS}test_an_empty_body_is_no_answer",
    ],
    "B58 JSON without a fence": [f"{PARSE}test_repaired"],
    "B60 a router that says nothing": [
        f"{PARSE}test_empty",
        "routing/test_prompted.py::test_a_reply_of_another_shape_is_empty",
    ],
    "B62 a backtick in a string": [f"{PARSE}test_repaired"],
    "B64 a line break in a string": [f"{PARSE}test_repaired"],
    "B66 another fence before the JSON": [f"{PARSE}test_repaired"],
    "B68 an answer that a chat front end cannot read": [
        f"{REQUESTS}test_a_client_that_merges_chunks_by_hand_gets_the_answer"
    ],
    "B names, look-alikes, prose, refusals, prefixes": [
        f"{PARSE}test_unknown",
        f"{PARSE}test_ambiguous",
        f"{PARSE}test_repaired",
    ],
    "C70 all at their limit, no Retry-After": [f"{FAULTS}test_all_at_their_limit_says_when_the_first_is_free"],
    "C72 Retry-After as a date": [f"{PARTS}test_retry_after"],
    "C74 context errors in other words": [f"{FAULTS}test_a_prompt_that_does_not_fit_goes_to_a_larger_window_only"],
    "C76 a fallback to a smaller window": [f"{REQUESTS}test_a_substitute_with_a_smaller_window_is_never_asked"],
    "C78 a long prompt that opens the breaker": [f"{REQUESTS}test_prompts_that_do_not_fit_never_open_the_breaker"],
    "C80 a timeout longer than the client's": [
        f"{REQUESTS}test_a_deadline_ends_the_call_upstream",
        f"{FAULTS}test_a_deadline_of_the_client_is_kept",
    ],
    "C82 cached tokens added to the input": [f"{COST}test_usage_and_cost"],
    "C84 cached tokens ignored": [f"{COST}test_usage_and_cost"],
    "C86 prices fetched, guessed, removed": [
        f"{REQUESTS}test_a_price_that_is_taken_out_is_unknown_from_then_on",
        f"{COST}test_an_unknown_price_is_null_and_never_zero",
        "security/test_s06_supply_chain.py::test_importing_reaches_nothing_and_starts_nothing",
        "upstream/test_litellm_sdk.py::test_the_price_is_ours",
    ],
    "C parts, absent usage, sums": [f"{COST}test_without_usage_an_estimate_is_flagged", f"{COST}test_money_is_exact"],
    "D88 NUL in a prompt": [f"{LOG}test_nul_is_replaced_and_its_six_characters_are_left_alone"],
    "D90 the six characters of NUL": [f"{LOG}test_nul_is_replaced_and_its_six_characters_are_left_alone"],
    "D92 rows lost between queue and commit": [
        f"{SHIPPER}test_a_crash_between_commit_and_cursor_sends_again_to_no_effect"
    ],
    "D94 rows lost or doubled by a short outage": [
        "processes/test_database_away.py::test_connections_ended_by_the_server_cost_nothing",
        f"{SHIPPER}test_a_connection_that_ends_in_the_middle_is_opened_again",
    ],
    "D96 connections that run out": [f"{LOG}test_connections_to_the_database_stay_few_under_load"],
    "D98 a lone surrogate of a model": [
        f"{STREAMS}test_numbers_and_surrogates_that_are_no_json",
        f"{SHIPPER}test_hostile_values_round_trip_as_far_as_postgres_can_hold_them",
    ],
    "D100 a surrogate that breaks an export": [
        f"{LOG}test_a_lone_surrogate_of_a_model_reads_alike_from_memory_from_postgres_and_in_an_export"
    ],
    "D102 times without a zone": [
        "database/test_migrations.py::test_every_time_has_its_zone",
        f"{LOG}test_times_are_moments_wherever_the_process_stands",
    ],
    "D columns of json, indexes on text": [
        f"{LOG}test_no_column_takes_json_that_cannot_be_read",
        "database/test_migrations.py::test_no_index_holds_peoples_text",
    ],
}


@pytest.mark.parametrize("report", REPORTS)
def test_every_test_that_is_named_is_there(report):
    missing = []
    for place in REPORTS[report]:
        name, _, function = place.partition("::")
        file = ROOT / "tests" / name
        found = set()
        if file.is_file():
            found = {node.name for node in ast.walk(ast.parse(file.read_text())) if hasattr(node, "name")}
        if function not in found:
            missing.append(place)
    assert missing == []
