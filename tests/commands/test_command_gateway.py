"""The commands that talk to a gateway: route, feedback, reload; and how it is found and greeted."""

from __future__ import annotations

import json
import os
import signal

import pytest

from pointsman.commands.client import GatewayClient, GatewayError, gateway_address
from pointsman.commands.feedback import read_value
from pointsman.commands.reload import Clock, reload
from pointsman.config import Settings, load_config, load_text
from pointsman.config.load import config_hash
from pointsman.errors import UserError

DECISION = "0198c5a2-3f10-7c1e-9a53-0242ac120002"
ROUTED = {
    "dry_run": True,
    "decision_id": DECISION,
    "worker": "large",
    "probabilities": {"small": 0.025, "large": 0.975},
    "scores": {"small": -1.5, "large": -0.25},
    "eligible": {"small": None, "large": None, "blind": "the request has an image"},
    "expected": {
        "small": {"cost_usd": "0.0000123", "latency_ms": 840.0},
        "large": {"cost_usd": None, "latency_ms": None},
    },
    "explored": False,
    "forced": None,
    "router": "harness",
    "fail_open": [],
}


@pytest.fixture
def gateway(fake_server, config):
    """A fake gateway on the port that this test's configuration names."""
    config(f"[gateway]\nport = {fake_server.port}\n")
    fake_server.answers["POST /v1/route"] = (200, ROUTED)
    fake_server.answers["POST /v1/feedback"] = (200, {"id": "f1", "decision_id": DECISION, "joined": True})
    return fake_server


def test_route_shows_every_worker_and_why(run, gateway):
    result = run("route", "What is 2 + 2?", "--tag", "school", "--tag", "sums")
    assert result.exit_code == 0
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in result.stdout.splitlines() if "│" in line]
    assert rows[1:] == [
        ["large", "-0.250", "97.5%", "–", "–", ""],
        ["small", "-1.500", "2.5%", "$0.0000123", "840 ms", ""],
        ["blind", "–", "–", "–", "–", "the request has an image"],
    ]
    assert result.stdout.startswith("large  (the router's pick)\n")
    line, headers, body = gateway.seen[-1]
    assert line == "POST /v1/route"
    assert headers["content-type"] == "application/json"
    assert body == {
        "model": "pointsman",
        "messages": [{"role": "user", "content": "What is 2 + 2?"}],
        "metadata": {"pointsman": {"tags": ["school", "sums"]}},
    }


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"forced": "only_one"}, "no choice: only_one"),
        ({"explored": True}, "explored: drawn at random, not the router's pick"),
        ({"fail_open": ["harness: timeout"]}, "after a router failed: harness: timeout"),
    ],
)
def test_route_says_why_it_was_no_pick(run, gateway, change, words):
    gateway.answers["POST /v1/route"] = (200, ROUTED | change)
    assert f"large  ({words})" in run("route", "hello").stdout


def test_route_as_json_is_the_gateways_answer(run, gateway):
    assert json.loads(run("route", "hello", "--model", "small", "--json").stdout) == ROUTED
    assert gateway.seen[-1][2]["model"] == "small"


def test_route_reads_standard_input(run, gateway):
    assert run("route", "-", stdin="from a pipe").exit_code == 0
    assert gateway.seen[-1][2]["messages"][0]["content"] == "from a pipe"
    result = run("route", "-", stdin=" \n")
    assert (result.exit_code, result.stderr) == (2, "TEXT: expected a text to route, got nothing\n")


def test_the_homes_key_is_sent(run, gateway, home):
    run("route", "hello")
    assert "authorization" not in gateway.seen[-1][1]
    (home / "admin.key").write_text("pm_secret\n")
    run("route", "hello")
    assert gateway.seen[-1][1]["authorization"] == "Bearer pm_secret"


def test_without_a_gateway_it_says_how_to_start_one(run, config):
    config()
    result = run("route", "hello")
    assert result.exit_code == 1
    assert result.stderr == (
        "no gateway answers at http://127.0.0.1:1 (connection refused); "
        "start it with `pointsman up` or `pointsman serve`\n"
    )


@pytest.mark.parametrize(
    ("status", "code", "said"),
    [
        (400, 2, "the message"),
        (404, 2, "the message"),
        (422, 2, "the message"),
        (429, 1, "the gateway answered 429: the message"),
        (503, 1, "the gateway answered 503: the message"),
    ],
)
def test_a_refusal_is_told_as_the_gateway_told_it(run, gateway, status, code, said):
    gateway.answers["POST /v1/route"] = (status, {"error": {"message": "the message", "type": "x"}})
    result = run("route", "hello")
    assert (result.exit_code, result.stderr) == (code, said + "\n")


def test_another_program_on_the_port_is_told_apart(run, gateway):
    gateway.answers["POST /v1/route"] = (200, b"<html>")
    result = run("route", "hello")
    assert result.exit_code == 1
    assert result.stderr == f"what answers at {gateway.address} is no Pointsman gateway (HTTP 200)\n"
    gateway.answers["POST /v1/route"] = (500, b"Internal Server Error")
    assert run("route", "hello").stderr == "the gateway answered 500; its own log says why\n"


@pytest.mark.parametrize(
    ("host", "port", "address"),
    [
        ("127.0.0.1", None, "http://127.0.0.1:8790"),
        ("0.0.0.0", 9000, "http://127.0.0.1:9000"),
        ("::", 9000, "http://[::1]:9000"),
        ("10.1.2.3", 9000, "http://10.1.2.3:9000"),
    ],
)
def test_the_gateways_address(config, tmp_path, host, port, address):
    head = f'[gateway]\nhost = "{host}"\n' + (f"port = {port}\n" if port else "")
    settings = Settings.read({}, cwd=tmp_path)
    assert gateway_address(settings, load_text(config(head).read_text())) == address


@pytest.mark.parametrize(
    ("arguments", "body"),
    [
        ([DECISION, "--value", "true"], {"decision_id": DECISION, "metric": "correct", "value": True}),
        (["chatcmpl-8", "--value", "0.8"], {"completion_id": "chatcmpl-8", "metric": "score", "value": 0.8}),
        ([DECISION, "--metric", "tone", "--value", "no"], {"decision_id": DECISION, "metric": "tone", "value": False}),
        (["trip-7", "--episode", "--comment", "fine"],
         {"episode_id": "trip-7", "metric": "comment", "comment": "fine"}),
        ([DECISION, "--better-worker", "large", "--rater", "ana"],
         {"decision_id": DECISION, "metric": "better_worker", "better_worker": "large", "rater": "ana"}),
    ],
)  # fmt: skip
def test_feedback_is_sent_as_the_gateway_reads_it(run, gateway, arguments, body):
    result = run("feedback", *arguments)
    assert (result.exit_code, result.stdout) == (0, f"logged: {body['metric']} (feedback f1)\n")
    assert gateway.seen[-1][0] == "POST /v1/feedback"
    assert gateway.seen[-1][2] == body | {"source": "person"}


def test_feedback_on_a_young_decision_is_accepted(run, gateway):
    gateway.answers["POST /v1/feedback"] = (202, {"id": "f2", "decision_id": DECISION, "joined": False})
    said = run("feedback", DECISION, "--value", "true").stdout
    assert said == "accepted; it is joined when the decision's row arrives (feedback f2)\n"
    assert json.loads(run("feedback", DECISION, "--value", "true", "--json").stdout)["joined"] is False


def test_feedback_needs_a_word(run, gateway):
    result = run("feedback", DECISION)
    assert result.exit_code == 2
    assert result.stderr == "nothing to say: expected --value, --comment or --better-worker\n"
    result = run("feedback", DECISION, "--value", "perhaps")
    assert result.stderr == "--value: expected true, false or a number, got 'perhaps'\n"
    assert gateway.seen == []


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "", "1,5"])
def test_a_value_is_finite(text):
    with pytest.raises(UserError, match="expected true, false or a number"):
        read_value(text)


class Gateway:
    """Stands for `serve` in this process: takes the file anew at SIGHUP, after some polls of /readyz."""

    def __init__(self, file, polls: int = 2) -> None:
        self.file, self.polls = file, polls
        self.configuration, self.generation, self.signals = config_hash(load_config(file)), 3, 0
        self.pending = False

    def hang_up(self, number, frame) -> None:
        self.signals += 1
        self.pending = True

    def readyz(self, body) -> tuple[int, dict]:
        if self.pending:
            self.polls -= 1
        if self.pending and self.polls <= 0:
            fresh = config_hash(load_config(self.file))
            self.generation += fresh != self.configuration
            self.configuration, self.pending = fresh, False
        return 200, {"status": "ready", "generation": self.generation, "configuration": self.configuration}


@pytest.fixture
def serving(gateway, config, home):
    """A gateway of this home that serves the file as it is now."""
    head = f"[gateway]\nport = {gateway.port}\n"
    stands_for = Gateway(config(head))
    stands_for.head = head
    gateway.answers["GET /readyz"] = stands_for.readyz
    before = signal.signal(signal.SIGHUP, stands_for.hang_up)
    (home / "serve.pid").write_text(f"{os.getpid()}\n")
    yield stands_for
    signal.signal(signal.SIGHUP, before)


def test_reload_signals_and_waits_until_the_new_file_serves(run, serving, config):
    config(serving.head + "[exploration]\nepsilon = 0.1\n")
    result = run("reload")
    assert (result.exit_code, result.stdout) == (0, "generation 3 → 4: the gateway serves the new file\n")
    assert serving.signals == 1
    config(serving.head + "[exploration]\nepsilon = 0.2\n")
    assert json.loads(run("reload", "--json").stdout) == {
        "old": 4, "new": 5, "configuration": config_hash(load_config(serving.file)),
    }  # fmt: skip


def test_reload_of_the_same_file_says_so(run, serving):
    assert run("reload").stdout == "generation 3: the gateway serves this file already\n"


def test_reload_of_a_file_with_faults_sends_nothing(run, serving, gateway, config):
    config(serving.head + "[exploration]\nepsilon = 2\n")
    result = run("reload")
    assert result.exit_code == 2
    assert "exploration.epsilon: input should be less than or equal to 1" in result.stderr
    assert (serving.signals, gateway.seen) == (0, [])


def test_reload_that_is_not_taken_ends_with_an_error(serving, environment, config):
    serving.polls = 10**6
    file = config(serving.head + "[exploration]\nepsilon = 0.1\n")
    settings = Settings.read({name: value for name, value in environment.items() if value}, config=file)
    moments = iter(range(100))
    clock = Clock(now=lambda: float(next(moments)), sleep=lambda seconds: None)
    with pytest.raises(GatewayError, match="did not take the new configuration within 10 s; its own log says why"):
        reload(settings, clock)
    assert serving.signals == 1


def test_with_several_processes_all_must_agree(serving, gateway, environment, config):
    file = config(f"[gateway]\nport = {gateway.port}\nworkers = 2\n")
    settings = Settings.read({name: value for name, value in environment.items() if value}, config=file)
    serving.polls = 1
    assert reload(settings, Clock(sleep=lambda seconds: None)).new == 4
    assert [line for line, _, _ in gateway.seen].count("GET /readyz") >= 1 + 3 * 2


@pytest.mark.parametrize(
    ("pid", "said"),
    [
        (None, "no gateway of this data folder runs"),
        ("0", "expected a process id, got '0'"),
        ("-1", "expected a process id, got '-1'"),
        ("soon", "expected a process id, got 'soon'"),
        ("999999999", "names a process that has ended"),
    ],
)
def test_reload_never_signals_what_is_no_gateway(run, serving, home, pid, said):
    (home / "serve.pid").unlink()
    if pid is not None:
        (home / "serve.pid").write_text(pid)
    result = run("reload")
    assert result.exit_code == 1
    assert said in result.stderr
    assert serving.signals == 0


def test_readiness_of_no_gateway_is_none():
    assert GatewayClient("http://127.0.0.1:1").readiness() is None
