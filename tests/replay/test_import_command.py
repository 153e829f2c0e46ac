"""`pointsman import` as a person runs it: numbers, JSON, a configuration, exit codes and messages."""

from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner

from pointsman.commands.import_ import register
from pointsman.config import load_config

QUERY = {"id": 1, "text": "hello"}
OUTCOME = {"query_id": 1, "model": "a", "score": 0.5, "cost": 0.002}


@pytest.fixture
def run(database_url, tmp_path, request):
    """Runs the command against the test database, in a project of this test's own."""
    app = typer.Typer()
    app.callback()(lambda: None)
    register(app)
    config = tmp_path / "pointsman.toml"
    worker = '[[workers]]\nname = "w"\ndescription = "w"\nmodel = "w"\nbase_url = "http://127.0.0.1:1/v1"\n'
    config.write_text(f'[database]\nurl = "{database_url}"\n{worker}')
    common = ["--config", str(config), "--project", request.node.name]
    environment = {"COLUMNS": "100", "POINTSMAN_PORT": "8790"}
    return lambda *arguments: CliRunner(env=environment).invoke(app, ["import", *map(str, arguments), *common])


def test_it_prints_the_numbers_and_that_the_database_agrees(run, make_folder):
    result = run(make_folder(), "--name", "shown")
    assert result.exit_code == 0, result.output
    assert "shown: 3 queries, 6 outcomes of 2 workers" in result.stdout
    assert "0.4667 │" in result.stdout  # big: (1 + 0.1 + 0.3) / 3
    assert "3 request, 3 decision" in result.stdout
    assert result.stdout.rstrip().endswith("database agrees with file")
    again = run(make_folder(), "--name", "shown")
    assert "new rows: none, all were there" in again.stdout


def test_json_is_one_object_with_unrounded_numbers(run, make_folder):
    result = run(make_folder([QUERY], [OUTCOME, {**OUTCOME, "model": "b", "score": 0.1}]), "--json", "--no-learn")
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert printed["dataset"] == "small-set"
    assert printed["learn"] is False
    assert (printed["best_single"], printed["best_single_score"], printed["oracle"], printed["random"]) == (
        "a", 0.5, 0.5, 0.3,
    )  # fmt: skip
    assert printed["workers"][1] == {
        "worker": "b", "outcomes": 1, "queries": 1, "mean_score": 0.1, "costed": 1, "mean_cost": "0.0020000000",
    }  # fmt: skip
    assert (printed["database_agrees"], printed["differences"]) == (True, [])


def test_a_changed_file_ends_with_1_and_says_what_differs(run, make_folder):
    run(make_folder([QUERY], [OUTCOME]))
    result = run(make_folder([QUERY], [{**OUTCOME, "score": 0.25}]))
    assert result.exit_code == 1
    assert "database does not agree with file:" in result.stdout
    assert "oracle: 0.25 in the file, 0.5 in the database" in result.stdout


def test_a_bad_folder_ends_with_2_and_names_the_fault(run, make_folder):
    folder = make_folder([QUERY], [{**OUTCOME, "score": 3}], form="jsonl")
    result = run(folder)
    assert result.exit_code == 2
    expected = f"{folder}/outcomes.jsonl: row 1: column 'score': expected a number from 0 to 1, got 3"
    assert result.stderr.strip() == expected
    assert result.stdout == ""


def test_it_writes_a_configuration_of_replay_workers_and_never_over_a_file(run, make_folder, tmp_path):
    file = tmp_path / "replay.toml"
    result = run(make_folder([QUERY], [OUTCOME]), "--write-config", file)
    assert result.exit_code == 0, result.output
    assert [(w.name, w.base_url) for w in load_config(file).workers] == [("a", "http://127.0.0.1:8794/v1")]
    again = run(make_folder([QUERY], [OUTCOME]), "--write-config", file)
    assert again.exit_code == 2
    assert "replay.toml: exists already" in again.stderr


def test_help_teaches_the_columns_and_the_exit_codes(run):
    result = run("--help")
    assert result.exit_code == 0
    assert "needs query_id, model, score (0 to 1)" in result.stdout
    assert "Exit codes: 0 done" in result.stdout
