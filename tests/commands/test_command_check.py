"""`pointsman check`: every fault at once, the summary, warnings, and the reference of keys."""

from __future__ import annotations

import json

from pointsman.config import load_config
from pointsman.config.load import config_hash


def test_every_fault_is_a_line_with_file_key_and_expectation(run, config):
    file = config("[gateway]\nport = 0\n[exploration]\nepsilom = 0.1\n")
    result = run("check")
    assert result.exit_code == 2
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(f"{file}: gateway.port: input should be greater than or equal to 1")
    assert lines[1] == f"{file}: exploration.epsilom: no such key; remove it or see `pointsman check --keys`"


def test_faults_as_json(run, config):
    file = config('[router]\ndefault = "nobody"\n')
    result = run("check", "--json")
    assert result.exit_code == 2
    printed = json.loads(result.stdout)
    assert (printed["ok"], printed["file"]) == (False, str(file))
    assert printed["errors"] == [f"{file}: router.default: \"nobody\" is no worker, expected one of ['small', 'large']"]


def test_the_summary_shows_prices_windows_keys_and_warnings(run, config):
    file = config()
    result = run("check")
    assert result.exit_code == 0
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in result.stdout.splitlines() if "│" in line]
    assert rows[1] == ["small", "0.1 / 0.4", "8,192", "tools", "none needed"]
    assert rows[2] == ["large", "unknown", "–", "–", "LARGE_KEY unset"]
    assert f"{file}: right" in result.stdout
    for warning in (
        '$LARGE_KEY is not set, and named by workers "large".api_key_env',
        "no price: large; their costs are logged as unknown, never as 0",
        "router.model: not set; the prompted router is left out of the chain",
        "router.default: not set; the cheapest worker answers when nothing else decides",
    ):
        assert f"warning: {warning}" in result.stdout


def test_json_holds_whether_a_key_is_set_and_never_the_key(run, config):
    file = config()
    result = run("check", "--json", LARGE_KEY="sk-very-secret")
    printed = json.loads(result.stdout)
    assert printed["ok"] is True
    assert printed["hash"] == config_hash(load_config(file))
    assert [worker["keys"] for worker in printed["workers"]] == [{}, {"LARGE_KEY": True}]
    assert [worker["price"] for worker in printed["workers"]] == [{"input": "0.1", "output": "0.4"}, None]
    assert "sk-very-secret" not in result.stdout


def test_another_file_can_be_named(run, config, tmp_path):
    file = config().rename(tmp_path / "other.toml")
    assert run("check").exit_code == 2
    assert run("check", "--file", file).exit_code == 0


def test_the_hash_follows_content_not_layout(config):
    first = config_hash(load_config(config("# a comment\n")))
    assert first == config_hash(load_config(config("\n\n")))
    assert first != config_hash(load_config(config("[exploration]\nepsilon = 0.1\n")))


def test_keys_need_no_file(run):
    result = run("check", "--keys")
    assert result.exit_code == 0
    assert "[[workers]]" in result.stdout
    assert "max_in_flight" in result.stdout
    page = run("check", "--keys", "--markdown").stdout
    assert '| `scoring` | "auto" \\| "logprobs" \\| "structured" | `"auto"` |' in page
    sections = {section["name"]: section for section in json.loads(run("check", "--keys", "--json").stdout)}
    assert sections["exploration"]["keys"][0] == {
        "key": "epsilon",
        "type": "number, 0 to 1",
        "default": "0.05",
        "description": "0: no exploration, and the log cannot be learned from",
    }
