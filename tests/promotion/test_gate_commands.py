"""The commands around gates: what they print, in words and as JSON, and how they end."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pointsman.commands.app import build_app
from pointsman.drift.alarms import raise_alarm

WORKERS = """
[[workers]]
name = "alpha"
description = "Alpha."
model = "m-alpha"
base_url = "http://127.0.0.1:9/v1"
[[workers]]
name = "beta"
description = "Beta."
model = "m-beta"
base_url = "http://127.0.0.1:9/v1"
"""


@pytest.fixture
def run(tmp_path: Path, database_url: str) -> Callable[..., Any]:
    """Runs the command line on the test's database, without a gateway."""
    file = tmp_path / "pointsman.toml"
    file.write_text(f'[database]\nurl = "{database_url}"\n{WORKERS}')
    environment = {
        "POINTSMAN_HOME": str(tmp_path), "POINTSMAN_PORT": "1", "POINTSMAN_CONFIG": str(file), "COLUMNS": "140",
        "TERM": "dumb",
    }  # fmt: skip

    def invoke(*arguments: object, code: int = 0) -> Any:
        given = [str(argument) for argument in arguments]
        result = CliRunner(env=environment).invoke(build_app(plugged_in=[]), given, prog_name="pointsman")
        assert result.exit_code == code, (result.stdout, result.stderr, result.exception)
        return result

    return invoke


def as_json(result: Any) -> Any:
    return json.loads(result.stdout)


def test_a_gates_life_on_the_command_line(synthetic: Callable[..., Any], run: Callable[..., Any]) -> None:
    log_ = synthetic()
    assert "no gates" in run("gate").stdout
    refused = run("gate", "start", log_.candidate, code=2).stderr
    assert "it is not known which router serves: no request was decided by the first router" in refused
    started = run("gate", "start", log_.candidate[:13], "--incumbent", log_.incumbent, "--even", "--mode", "propose")
    gate = started.stdout.strip()
    assert "registered with α = 0.0125" in started.stderr
    assert "name:\n  - served\n  + better\n" in started.stderr
    (changed,) = as_json(run("gate", "diff", log_.candidate, "--against", log_.incumbent[:8], "--json"))
    assert changed == {"part": "name", "before": "served", "after": "better"}
    assert "nothing is different" in run("gate", "diff", log_.candidate, "--against", log_.candidate).stdout
    assert "no row yet" in run("gate", "show", gate).stdout
    log_.traffic(gate, 200, {"candidate": 0.9, "incumbent": 0.4})
    assert log_.look(gate).state == "ready"
    shown = run("gate", "show", gate).stdout
    for part in (
        f"gate {gate}: ready", "to show: better, with error 0.0125", "50% after 0 rows", "200 rows,",
        "200 with a reward", "before its first row", "of 4.38 to pass",
    ):  # fmt: skip
        assert part in shown, shown
    (listed,) = as_json(run("gate", "list", "--json"))
    assert (listed["id"], listed["state"], listed["evidence_share"]) == (gate, "ready", 1.0)
    assert len(as_json(run("gate", "show", gate, "--json"))["steps"]) == 200

    versions = {row["id"]: row for row in as_json(run("gate", "versions", "--json"))}
    assert versions[log_.candidate]["certified"] and not versions[log_.incumbent]["certified"]
    assert f"harness@{log_.candidate} serves" in run("promote", log_.candidate, "--reason", "passed").stdout
    (certificate,) = as_json(run("certify", "--json"))
    checked = run("certify", certificate["id"]).stdout
    assert "better than the incumbent: it holds" in checked and "episodes do not influence one another" in checked
    assert "the routers of pointsman.toml serve again" in run("rollback").stdout
    assert "nothing was promoted here" in run("rollback", code=2).stderr


def test_what_cannot_be_done_is_said(synthetic: Callable[..., Any], run: Callable[..., Any]) -> None:
    log_ = synthetic()
    assert "expected a router version's id" in run("promote", "x", code=2).stderr
    assert "no certificate says that" in run("promote", log_.candidate, code=2).stderr
    assert "there is no gate 'x' here" in run("gate", "show", "x", code=2).stderr
    assert (
        "--mode: expected one of auto, propose, got 'fast'"
        in run("gate", "start", log_.candidate, "--mode", "fast", code=2).stderr
    )
    assert "there is no certificate 'x' here" in run("certify", "x", code=2).stderr
    assert "there is no [dial] in the configuration" in run("dial", "calibrate", code=2).stderr
    assert "no dial is in force: the router decides alone" in run("dial").stdout
    assert "no dial was in force" in run("dial", "off").stdout


def test_a_certificate_that_does_not_hold_ends_with_1(synthetic: Callable[..., Any], run: Callable[..., Any]) -> None:
    log_ = synthetic()
    gate = log_.gate()
    log_.traffic(gate, 200, {"candidate": 0.9, "incumbent": 0.4})
    log_.look(gate)
    with log_.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE gate_row SET utility = 0.5 WHERE seq = 1")
    identity = as_json(run("certify", "--json"))[0]["id"]
    result = run("certify", identity, code=1)
    assert "it does not hold" in result.stdout and "against it: row 1: the log says" in result.stdout


def test_shadow_stop_and_alarms(synthetic: Callable[..., Any], run: Callable[..., Any]) -> None:
    log_ = synthetic()
    gate = log_.gate()
    assert "what serves now serves on, and the gate's α stays spent" in run("gate", "stop", gate).stdout
    assert "is a shadow: its picks are logged" in run("gate", "shadow", log_.candidate).stdout
    assert "only a candidate can become shadow" in run("gate", "shadow", log_.candidate, code=2).stderr
    assert "is no shadow any more" in run("gate", "shadow", log_.candidate, "--off").stdout
    assert "no alarm is on" in run("alarms").stdout
    with log_.engine.begin() as connection:
        alarm = raise_alarm(connection, log_.project, "input_mix", "it changed", log_.clock)
    assert "it changed" in run("alarms").stdout
    run("alarms", "acknowledge", alarm)
    assert "seen by" in run("alarms").stdout
    run("alarms", "resolve", alarm, "--reason", "known")
    assert as_json(run("alarms", "--json")) == []
    assert [row.action for row in log_.sql("SELECT action FROM actor_log ORDER BY id")] == [
        "gate_start", "gate_stop", "shadow_on", "shadow_off", "alarm_acknowledge", "alarm_resolve",
    ]  # fmt: skip
