"""Every incident of the field that this product could have, S1 to S19, and the tests that stand against it.

A test that is renamed or removed fails here. `NOT_BUILT` are incidents of parts that do not exist yet, each with
the file whose coming makes this page due.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = {
    "S1 an address in a request": [
        "security/test_s01_addresses.py::test_every_endpoint_refuses_it",
        "gateway/test_chat_guard.py::test_a_field_that_names_an_upstream_is_refused_anywhere",
        "gateway/test_chat_guard.py::test_a_redirect_is_not_followed",
        "gateway/test_anthropic_workers.py::test_a_chat_client_cannot_write_headers",
        "upstream/test_litellm_sdk.py::test_the_sdks_own_arguments_are_not_a_clients_to_give",
        "upstream/test_litellm_sdk.py::test_nothing_is_fetched_for_a_client",
    ],
    "S2 SQL": [
        "security/test_s02_sql.py::test_no_statement_of_ours_is_built_of_pieces",
        "security/test_s02_sql.py::test_filters_take_it_as_text",
        "gateway/test_gateway_keys.py::test_a_bad_key_is_401_everywhere_and_at_once",
    ],
    "S3 keys that collide": [
        "gateway/test_gateway_keys.py::test_two_keys_that_share_a_beginning_are_two",
        "gateway/test_gateway_keys.py::test_a_revoked_key_is_refused_within_two_seconds",
        "database/test_identity.py::test_a_part_of_a_key_or_one_with_its_prefix_finds_nothing",
    ],
    "S4 routes without a key": [
        "security/test_s04_no_key.py::test_a_stranger_needs_a_key",
        "security/test_s04_no_key.py::test_what_claims_to_come_from_here_does_not",
        "gateway/test_gateway_keys.py::test_every_route_needs_its_scope",
        "gateway/test_gateway_keys.py::test_every_route_is_in_this_table",
        "gateway/test_openapi.py::test_every_route_is_in_the_document",
    ],
    "S5 text that is run": [
        "security/test_s05_execution.py::test_nothing_of_ours_runs_what_it_is_given",
        "routing/test_template.py::test_fill_puts_values_in_their_places_untouched",
        "optimise/test_fill_equals_dspy.py::test_hostile_cards",
    ],
    "S6 the supply chain": [
        "security/test_s06_supply_chain.py::test_no_unknown_file_runs_code_at_start",
        "security/test_s06_supply_chain.py::test_importing_reaches_nothing_and_starts_nothing",
        "security/test_s06_supply_chain.py::test_everything_that_comes_with_us_is_pinned_at_the_version_that_is_here",
        "upstream/test_optional_imports.py::test_only_what_the_configuration_asks_for_is_imported_and_nothing_is_fetched",
    ],
    "S7 secrets in logs": [
        "gateway/test_chat_guard.py::test_secrets_are_in_no_answer_row_journal_or_log",
        "gateway/test_traces.py::test_a_decision_and_its_call",
        "security/test_s07_secrets.py::test_parameters_stand_in_no_error",
        "security/test_s07_secrets.py::test_a_database_that_is_away_is_named_without_its_password",
        "words/test_log_lines.py::test_neither_keys_nor_an_exceptions_text_are_written",
        "dashboard/test_overview_app.py::test_a_database_that_is_away_is_explained",
    ],
    "S8 pickles in a cache": [
        "security/test_s08_cache_pickles.py::test_what_is_planted_in_the_cache_does_not_run",
        "security/test_s08_cache_pickles.py::test_where_dspy_asks_a_model_its_cache_on_disk_is_off",
        "optimise/test_program.py::test_serving_does_not_import_dspy",
    ],
    "S9 checkpoints that run": [
        "security/test_s05_execution.py::test_nothing_of_ours_runs_what_it_is_given",
        "security/test_s05_execution.py::test_no_format_that_can_run_code_is_an_artifact",
    ],
    "S10 paths of artifacts": [
        "security/test_s10_artifact_paths.py::test_another_name_is_refused_by_everything",
        "security/test_s10_artifact_paths.py::test_a_link_that_was_put_in_its_place_is_not_believed",
    ],
    "S11 the dashboard": [
        "security/test_s11_dashboard.py::test_no_path_leads_out_of_its_files",
        "security/test_s11_dashboard.py::test_the_floor_is_the_release_that_mended_the_last_known_hole",
        "security/test_s11_dashboard.py::test_no_page_lets_markup_through",
        "dashboard/test_decisions_app.py::test_what_people_wrote_never_reaches_markdown",
        "dashboard/test_dashboard_launch.py::test_open_to_others_without_a_password_is_refused",
    ],
    "S12 pickled messages": [
        "security/test_s05_execution.py::test_a_pickled_message_is_refused_by_the_jobs_broker_client",
    ],
    "S14 prompts that order the router": [
        "security/test_s14_prompt_injection.py::test_all_but_one_line_of_the_prompt_is_that_of_any_request",
        "security/test_s14_prompt_injection.py::test_a_router_llm_that_obeyed_still_chooses_nobody_who_was_not_offered",
        "routing/test_template.py::test_no_request_opens_a_section_or_turn_of_the_default_template",
    ],
    "S16 denial of wallet": [
        "budgets/test_budget_pricing.py::test_a_worker_without_a_price_is_blocked_long_before_a_thousand_calls",
        "gateway/test_spending.py::test_a_worker_without_a_price_spends_at_the_dearest",
        "gateway/test_spending.py::test_many_at_once_never_overspend",
    ],
    "S17 slow clients": [
        "gateway/test_request_protocol.py::test_dripping_bytes_do_not_lengthen_the_time",
        "gateway/test_request_protocol.py::test_empty_lines_do_not_hold_a_connection",
        "gateway/test_body_reading.py::test_a_body_that_does_not_come_is_408",
        "scenarios/test_scenarios.py::test_slow_readers_are_cut_and_half_bodies_hold_nobody_up",
    ],
    "S18 JSON bombs": [
        "gateway/test_chat_hostile.py::test_refused_with_an_openai_error",
        "gateway/test_chat_hostile.py::test_the_process_goes_on_after_all_of_it",
        "gateway/test_body_reading.py::test_depth",
    ],
    "S19 headers of a client": [
        "security/test_s19_headers.py::test_a_clients_ids_overwrite_nothing",
        "security/test_s19_headers.py::test_a_strange_header_is_no_fault_and_comes_back_in_nothing",
        "gateway/test_chat_guard.py::test_headers_of_a_client_do_not_reach_the_worker",
    ],
}
NOT_BUILT = {
    "S13 rerouting gadgets": "benchmarks/rerouting.py",
    "S15 a poisoned flywheel": "benchmarks/poisoning.py",
}
"""Attacks on what is learned: each is tried by the benchmark of that name, when the part it attacks is there."""


def functions_of(file: Path) -> set[str]:
    tree = ast.parse(file.read_text())
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


@pytest.mark.parametrize("incident", TESTS)
def test_every_test_that_is_named_is_there(incident):
    missing = []
    for place in TESTS[incident]:
        name, _, function = place.partition("::")
        file = ROOT / "tests" / name
        if not file.is_file() or function not in functions_of(file):
            missing.append(place)
    assert missing == []


def test_every_incident_is_here_once():
    numbers = sorted(int(incident.split(" ")[0][1:]) for incident in (*TESTS, *NOT_BUILT))
    assert numbers == list(range(1, 20))
    assert all(TESTS.values())


@pytest.mark.parametrize("incident", NOT_BUILT)
def test_what_is_not_built_is_still_not_built(incident):
    assert not (ROOT / NOT_BUILT[incident]).exists(), f"it is there now: name the tests against {incident}"


def test_every_test_of_this_folder_is_named():
    named = {place.partition("::")[0] for places in TESTS.values() for place in places}
    here = {f"security/{file.name}" for file in (ROOT / "tests" / "security").glob("test_s[0-9]*.py")}
    assert here <= named
