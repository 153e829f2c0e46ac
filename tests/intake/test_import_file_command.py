"""`pointsman import FILE` as a person runs it: what it says, its exit codes, its messages."""

from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner

from pointsman.commands.import_ import register

ROW = {"id": "a", "model": "gpt-4o", "messages": [{"role": "user", "content": "2+2?"}], "completion": "4"}


@pytest.fixture
def run(database_url, tmp_path, request):
    app = typer.Typer()
    app.callback()(lambda: None)
    register(app)
    config = tmp_path / "pointsman.toml"
    worker = '[[workers]]\nname = "w"\ndescription = "w"\nmodel = "w"\nbase_url = "http://127.0.0.1:1/v1"\n'
    config.write_text(f'[database]\nurl = "{database_url}"\n{worker}')
    common = ["--config", str(config), "--project", request.node.name]
    environment = {"COLUMNS": "100", "POINTSMAN_HOME": str(tmp_path / "home")}
    return lambda *arguments: CliRunner(env=environment).invoke(app, ["import", *map(str, arguments), *common])


@pytest.fixture
def file(tmp_path):
    def make(*rows: object):
        made = tmp_path / "requests.jsonl"
        made.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
        return made

    return make


def test_it_says_what_came_in_and_what_is_not_known(run, file) -> None:
    result = run(file(ROW, {**ROW, "id": "b", "cost": 0.1}), "--format", "openai-jsonl")
    assert result.exit_code == 0, result.output
    assert "requests: 2 answers of 1 workers" in result.stdout
    assert "not in the file, so not known: propensities: another system decided" in result.stdout
    assert "what it cost: of 1 of 2 answers" in result.stdout and "a score: of 2 of 2 answers" in result.stdout
    assert "new rows, of origin replay: " in result.stdout
    assert "none, all were there" in run(file(ROW), "--format", "openai-jsonl").stdout


def test_rejected_lines_end_with_1_and_json_names_the_file(run, file, tmp_path) -> None:
    result = run(file(ROW, "nonsense", {"id": "c"}), "--format", "openai-jsonl", "--json", "--dry-run")
    assert result.exit_code == 1, result.output
    printed = json.loads(result.stdout)
    assert (printed["answers"], printed["rejected"], printed["new_rows"]) == (1, 2, None)
    assert printed["lacking"] == {"propensity": 1, "text": 0, "asked_at": 1, "score": 1, "cost": 1, "tokens": 1,
                                  "latency_ms": 1, "completion": 0}  # fmt: skip
    assert printed["rejects_file"] == str(tmp_path / "home" / "imports" / "requests.jsonl")
    assert [fault["line"] for fault in printed["first_rejects"]] == [2, 3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--format: say what requests.jsonl is: openai-jsonl, scores, litellm, langfuse, tensorzero"),
        (("--format", "openai"), "--format: expected one of openai-jsonl, scores, litellm"),
        (("--format", "openai-jsonl", "--metric", "m"), "--metric: names a metric of --scores FILE"),
        (("--format", "openai-jsonl", "--serve", "8795"), "--serve: not for this import"),
        (("--format", "openai-jsonl", "--map", "absent.toml"), "absent.toml: cannot be read: No such file"),
    ],
)
def test_mistakes_end_with_2_and_say_what_to_do(run, file, arguments: tuple[str, ...], message: str) -> None:
    result = run(file(ROW), *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_folder_takes_no_options_of_files(run, tmp_path) -> None:
    result = run(tmp_path, "--dry-run")
    assert result.exit_code == 2 and "--dry-run: not for this import" in result.stderr
