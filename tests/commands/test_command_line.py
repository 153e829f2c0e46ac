"""The command line as a whole: help, speed, entry points, exit codes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from importlib.metadata import EntryPoint

import pytest
from typer.testing import CliRunner

from pointsman.commands.app import GROUP, build_app

COMMANDS = (
    "init", "check", "doctor", "migrate", "reload", "route", "decisions", "feedback", "keys", "import", "sandbox",
)  # fmt: skip


def python(*arguments, **options):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "COLUMNS": "100"}
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=environment, timeout=30, **options
    )


def test_help_names_every_command_and_the_exit_codes(run):
    result = run("--help")
    assert result.exit_code == 0
    for command in COMMANDS:
        assert f"│ {command} " in result.stdout
    assert "Exit codes: 0 done" in result.stdout
    assert "POINTSMAN_HOME" in result.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_teaches_by_example(run, command):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert f"pointsman {command}" in result.stdout.split("Options")[0]
    assert "Example" in result.stdout


def test_help_loads_nothing_heavy():
    done = python("-m", "pointsman.commands", "--help")
    assert done.returncode == 0
    assert "pointsman init" in done.stdout
    heavy = [
        "numpy",
        "scipy",
        "sqlalchemy",
        "pydantic",
        "aiohttp",
        "starlette",
        "uvicorn",
        "alembic",
        "pyarrow",
        "psycopg",
    ]
    loaded = python(
        "-c",
        "import sys; from pointsman.commands.app import build_app; import typer.main;"
        f"typer.main.get_command(build_app([])); print([m for m in {heavy!r} if m in sys.modules])",
    )
    assert loaded.stdout.strip() == "[]", loaded.stderr


def test_version_is_one_line(run):
    result = run("--version")
    assert result.exit_code == 0
    assert result.stdout.startswith("pointsman")
    assert len(result.stdout.splitlines()) == 1


@pytest.mark.parametrize("arguments", [["nonsense"], ["check", "--nonsense"], ["route"]])
def test_a_wrong_use_ends_with_2(run, arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Usage: pointsman" in result.stderr


def test_a_mistake_of_the_user_is_a_message_and_2_without_a_traceback(tmp_path):
    done = python("-m", "pointsman.commands", "check", "--file", str(tmp_path / "none.toml"))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.strip() == f"{tmp_path / 'none.toml'}: no such file; `pointsman init` writes one"


def test_a_database_that_is_away_is_a_message_and_1(run, config):
    config('[database]\nurl = "postgresql://someone:secret@127.0.0.1:1/pointsman"\n')
    result = run("decisions")
    assert result.exit_code == 1
    assert result.stderr.startswith("the database does not answer: ")
    assert "secret" not in result.stderr


def test_a_database_address_that_is_none_is_a_mistake(run, config):
    config('[database]\nurl = "not an address"\n')
    result = run("decisions")
    assert result.exit_code == 2
    assert "database.url: expected postgresql://" in result.stderr


def test_a_port_that_is_none_is_a_mistake(run):
    result = run("check", POINTSMAN_PORT="many")
    assert result.exit_code == 2
    assert result.stderr.strip() == "POINTSMAN_PORT: expected a port from 1 to 65532, got 'many'"


def test_rooms_above_plug_in_by_entry_points(tmp_path, monkeypatch):
    module = "import typer\ndef register(app):\n    app.command('greet')(lambda: typer.echo('hello'))\n"
    (tmp_path / "plugged_in_for_a_test.py").write_text(module)
    monkeypatch.syspath_prepend(str(tmp_path))
    entry = EntryPoint("greet", "plugged_in_for_a_test:register", GROUP)
    result = CliRunner().invoke(build_app([entry]), ["greet"])
    assert (result.exit_code, result.stdout) == (0, "hello\n")


def test_an_entry_point_whose_package_is_absent_leaves_a_note(capsys):
    app = build_app([EntryPoint("trainer", "no_such_package_of_ours:register", GROUP)])
    assert (
        "commands of 'trainer' are not available: No module named 'no_such_package_of_ours'" in capsys.readouterr().err
    )
    assert CliRunner().invoke(app, ["--version"]).exit_code == 0


def test_ctrl_c_ends_with_130_and_no_traceback(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "POINTSMAN_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "pointsman.commands", "sandbox", "serve", "--port", str(port)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=tmp_path
    )
    try:
        _await_port(port)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=10)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    assert process.returncode == 130
    assert f"serving world 1 (a simulation) on http://127.0.0.1:{port}/v1" in errors
    assert "Traceback" not in errors


def _await_port(port: int) -> None:
    deadline = time.monotonic() + 15
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            assert time.monotonic() < deadline, "the sandbox did not start"
            time.sleep(0.05)
