"""`pointsman sandbox`: what a world shows, and traffic driven through real HTTP."""

from __future__ import annotations

import json

import pytest

from pointsman.sandbox.serve import serving
from pointsman.sandbox.world import World


@pytest.fixture(scope="module")
def served():
    """World 3's workers on loopback, at once."""
    with serving(3) as address:
        yield address


def test_show_prints_the_world_as_anyone_may_know_it(run, config):
    config()
    result = run("sandbox", "show", "--seed", 3, COLUMNS="300")
    world = World(3)
    assert result.exit_code == 0
    for worker in world.workers:
        assert worker.name in result.stdout
        assert world.cards()[worker.name] in result.stdout


def test_show_takes_the_configurations_world_and_the_cards_that_are_asked_for(run, config):
    config("[sandbox]\nseed = 5\n")
    printed = json.loads(run("sandbox", "show", "--json", "--cards", "nonsense").stdout)
    assert printed["seed"] == 5
    assert {worker["name"]: worker["card"] for worker in printed["workers"]} == dict(World(5).cards("nonsense"))
    assert sum(printed["mix"].values()) == pytest.approx(1)
    assert run("sandbox", "show", "--cards", "true").exit_code == 2


def test_drive_reports_what_was_answered(run, config, served):
    config("[sandbox]\nseed = 3\n")
    worker = World(3).names[0]
    result = run(
        "sandbox", "drive", "-n", 24, "--base-url", f"{served}/v1", "--model", worker, "--feedback-share", 0, "--json"
    )
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert (printed["requests"], printed["ok"], printed["failed"], printed["feedback"]) == (24, 24, {}, {})
    low, high = printed["interval"]
    assert low <= printed["correct"] <= high


def test_drive_of_requests_that_fail_ends_with_1(run, config, served):
    config()
    result = run("sandbox", "drive", "-n", 5, "--base-url", f"{served}/v1", "--model", "nobody")
    assert result.exit_code == 1
    assert result.stdout.startswith("0 of 5 answered")
    assert "5 failed: 404" in result.stdout


def test_drive_says_first_that_no_gateway_answers(run, config):
    config()
    result = run("sandbox", "drive", "-n", 1000)
    assert result.exit_code == 1
    assert result.stderr.startswith("no gateway answers at http://127.0.0.1:1 ")


def test_drive_sends_the_homes_key_to_the_homes_gateway_only(run, config, home, fake_server):
    config(f"[gateway]\nport = {fake_server.port}\n")
    (home / "admin.key").write_text("pm_admin")
    fake_server.answers["GET /readyz"] = (200, {"status": "ready"})
    run("sandbox", "drive", "-n", 1, "--stream-share", 0)
    assert fake_server.seen[-1][0] == "POST /v1/chat/completions"
    assert fake_server.seen[-1][1]["authorization"] == "Bearer pm_admin"
    run("sandbox", "drive", "-n", 1, "--base-url", f"{fake_server.address}/v1")
    assert "authorization" not in fake_server.seen[-1][1]
    run("sandbox", "drive", "-n", 1, "--base-url", f"{fake_server.address}/v1", "--api-key-env", "K", K="sk-2")
    assert fake_server.seen[-1][1]["authorization"] == "Bearer sk-2"


def test_serve_says_that_its_port_is_taken(run, config, fake_server):
    config()
    result = run("sandbox", "serve", "--port", fake_server.port)
    assert result.exit_code == 2
    assert result.stderr == (
        f"cannot listen on 127.0.0.1:{fake_server.port} (address already in use); --port names another port\n"
    )
