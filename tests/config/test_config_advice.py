"""Warnings about a configuration that is right."""

from __future__ import annotations

import pytest

from pointsman.config import Settings, load_text
from pointsman.config.advice import key_variables, warnings

WORKER = '[[workers]]\nname = "{0}"\ndescription = "{1}"\nmodel = "m"\nbase_url = "http://127.0.0.1:9/v1"\n'
PRICED = "price = { input = 1, output = 2 }\n"
ROUTER = '[router]\nmodel = "r"\nbase_url = "http://127.0.0.1:9/v1"\ndefault = "a"\n'
PAIR = WORKER.format("a", "sums") + PRICED + WORKER.format("b", "words") + PRICED


def advice(text, tmp_path, **environment):
    return warnings(load_text(text), Settings.read(environment, cwd=tmp_path))


def test_nothing_is_said_of_a_file_that_is_well(tmp_path):
    assert advice(ROUTER + PAIR, tmp_path) == []


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ('[router]\ndefault = "a"\n' + PAIR, "router.model: not set; the prompted router is left out of the chain"),
        (ROUTER.replace('default = "a"\n', "") + PAIR,
         "router.default: not set; the cheapest worker answers when nothing else decides"),
        ('[router]\nchain = ["default"]\ndefault = "a"\n' + PAIR,
         'router.chain: no "harness"; no router LLM reads the cards, so requests are not told apart by them'),
        (ROUTER + WORKER.format("a", "sums") + PRICED, "workers: only one; there is nothing to choose between"),
        (ROUTER + PAIR.replace("words", " SUMS "),
         "workers a, b: one description for all; a router cannot tell them apart"),
        (ROUTER + WORKER.format("a", "sums") + WORKER.format("b", "words"),
         "no price: a, b; their costs are logged as unknown, never as 0"),
    ],
)  # fmt: skip
def test_each_oddity_is_one_line(tmp_path, text, warning):
    assert advice(text, tmp_path) == [warning]


def test_an_unset_variable_is_named_once_with_all_that_need_it(tmp_path):
    text = ROUTER + 'api_key_env = "K"\n' + PAIR.replace("[[workers]]", '[[workers]]\napi_key_env = "K"')
    said = '$K is not set, and named by router.api_key_env, workers "a".api_key_env, workers "b".api_key_env'
    assert advice(text, tmp_path) == [said]
    assert advice(text, tmp_path, K="") == [said]
    assert advice(text, tmp_path, K="x") == []


def test_variables_of_endpoints_and_of_the_dashboard_count(tmp_path):
    endpoints = 'endpoints = [{ base_url = "http://127.0.0.1:9/v1", api_key_env = "E" }]\n'
    text = '[dashboard]\nauth = "password"\npassword_env = "P"\n' + WORKER.format("a", "sums").replace(
        'base_url = "http://127.0.0.1:9/v1"\n', endpoints
    )
    assert list(key_variables(load_text(text))) == [
        ('workers "a".api_key_env', "E"),
        ("dashboard.password_env", "P"),
    ]
