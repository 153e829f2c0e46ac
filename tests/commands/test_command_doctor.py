"""`pointsman doctor`: each check with what it finds and what to do."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from pointsman.commands.check_machine import python
from pointsman.config import load_config
from pointsman.config.load import config_hash
from pointsman.database.schema import head_revision


@pytest.fixture
def findings(run):
    """Runs `doctor --json`: the exit code, and findings by name (the last of a name)."""

    def look(*arguments, **variables):
        result = run("doctor", "--json", "--timeout", "1", *arguments, **variables)
        printed = json.loads(result.stdout)
        assert printed["ok"] is (result.exit_code == 0)
        return result.exit_code, {check["name"]: check for check in printed["checks"]}

    return look


@pytest.fixture
def whole(fake_server, config, empty_database):
    """A configuration on a running database, gateway and models, all well but for LARGE_KEY."""
    address = fake_server.address
    worker = (
        f'[[workers]]\nname = "a"\ndescription = "sums"\nmodel = "m-1"\nbase_url = "{address}/v1"\n'
        'api_key_env = "LARGE_KEY"\nprice = { input = 1, output = 2 }\n'
    )
    head = (
        f'[database]\nurl = "{empty_database}"\n[gateway]\nport = {fake_server.port}\n'
        f'[router]\nmodel = "r-1"\nbase_url = "{address}/v1"\napi_key_env = "LARGE_KEY"\ndefault = "a"\n'
    )
    file = config(head, worker + worker.replace('"a"', '"b"').replace("sums", "words"))
    ready = {"status": "ready", "database": "ok", "generation": 2, "configuration": config_hash(load_config(file))}
    fake_server.answers["GET /readyz"] = (200, ready)
    fake_server.answers["GET /v1/models"] = (200, {"data": [{"id": "m-1"}, {"id": "models/r-1"}]})
    return fake_server


def test_all_is_well(findings, whole):
    code, found = findings(LARGE_KEY="sk-1")
    assert code == 0
    assert {check["state"] for check in found.values()} == {"ok"}
    assert found["schema"]["message"] == f"at {head_revision()}, the newest revision"
    assert found["gateway"]["message"] == f"{whole.address} is ready, generation 2"
    assert found["models"]["message"] == f"{whole.address}/v1 has every model that is named (router LLM, a, b)"
    asked = [headers for line, headers, _ in whole.seen if line == "GET /v1/models"]
    assert [headers["authorization"] for headers in asked] == ["Bearer sk-1"]  # one address, asked once


def test_a_key_that_is_not_set_fails_and_is_named(findings, whole):
    code, found = findings()
    assert code == 1
    assert found["key"]["state"] == "fail"
    assert found["key"]["message"].startswith("$LARGE_KEY is not set (router.api_key_env, workers")
    assert found["configuration"]["state"] == "warn"


@pytest.mark.parametrize(
    ("answer", "state", "words"),
    [
        ((401, {}), "fail", "refuses the key (HTTP 401)"),
        ((503, b"no"), "fail", "answers HTTP 503"),
        ((404, b"no"), "ok", "answers, without a list of models (HTTP 404)"),
        ((200, {"data": [{"id": "m-1"}]}), "warn", "does not list r-1"),
        ((200, b"\xff"), "ok", "answers, without a list of models (HTTP 200)"),
    ],
)
def test_what_an_address_answers(findings, whole, answer, state, words):
    whole.answers["GET /v1/models"] = answer
    _, found = findings(LARGE_KEY="sk-1")
    assert found["models"]["state"] == state
    assert words in found["models"]["message"]


@pytest.mark.parametrize(
    ("status", "change", "state", "words", "advice"),
    [
        (503, {"status": "not ready"}, "fail", "is not ready", "see its log; GET /readyz says what is away"),
        (200, {"journal": {"rows_lost": 2}}, "fail", "it has lost 2 rows", "see its log"),
        (200, {"database": "away"}, "warn", "its database is away", "the log waits on disk until the database is back"),
        (200, {"configuration": "0" * 64}, "warn", "it serves an older configuration", "`pointsman reload`"),
    ],
)
def test_what_the_gateway_says_of_itself(findings, whole, status, change, state, words, advice):
    ready = whole.answers["GET /readyz"][1]
    whole.answers["GET /readyz"] = (status, ready | change)
    _, found = findings(LARGE_KEY="sk-1")
    assert found["gateway"]["state"] == state
    assert words in found["gateway"]["message"]
    assert found["gateway"]["advice"] == advice


def test_without_a_configuration_it_says_how_to_get_one(findings, tmp_path):
    code, found = findings()
    assert code == 1
    assert found["configuration"] == {
        "name": "configuration",
        "state": "fail",
        "message": f"{tmp_path / 'pointsman.toml'}: no such file; `pointsman init` writes one",
        "advice": "`pointsman init` writes one",
    }
    assert "gateway" not in found
    assert found["database"]["state"] == "ok"


def test_what_is_not_started_is_no_failure_but_a_worker_that_is_away_is(findings, config, home):
    config()
    code, found = findings(LARGE_KEY="x")
    assert code == 1
    assert found["gateway"]["state"] == "warn"
    assert found["models"]["message"] == "http://127.0.0.1:9/v1: connection refused (large)"
    assert found["database"]["message"] == "the embedded server's programs are here; it does not run now"
    assert list(home.iterdir()) == []  # looking changes nothing


def test_a_database_that_is_away_fails(findings, config):
    config('[database]\nurl = "postgresql://me:secret@127.0.0.1:1/x"\n')
    code, found = findings()
    assert code == 1
    assert found["database"]["state"] == "fail"
    assert "secret" not in json.dumps(found)
    assert "schema" not in found


def test_a_private_file_that_others_may_read_fails(findings, home):
    secret = home / "admin.key"
    secret.write_text("pm_x")
    secret.chmod(0o644)
    assert findings()[1]["data folder"]["message"] == f"others may read {secret}"
    assert findings()[1]["data folder"]["advice"] == f"chmod 600 {secret}"
    secret.chmod(0o600)
    assert findings()[1]["data folder"]["state"] == "ok"


def test_a_data_folder_that_is_a_file_fails(findings, tmp_path):
    (tmp_path / "file").write_text("")
    found = findings(POINTSMAN_HOME=str(tmp_path / "file"))[1]["data folder"]
    assert (found["state"], found["advice"]) == ("fail", "set POINTSMAN_HOME")


def test_rows_that_wait_or_were_refused_are_told(findings, config, home):
    config("[log]\nmax_bytes = 1000000\n")
    folder = home / "journal" / "0001"
    folder.mkdir(parents=True)
    (folder / "00000001.log").write_bytes(b"x" * 400)
    assert findings()[1]["journal"]["message"] == "400 bytes wait for Postgres"
    (folder / "00000001.log").write_bytes(b"x" * 600_000)
    assert findings()[1]["journal"]["state"] == "warn"
    (home / "journal" / "rejected.log").write_text("{}\n")
    assert "Postgres refused rows" in findings()[1]["journal"]["message"]


def test_an_old_python_fails():
    assert python((3, 10, 9)).state == "fail"
    assert python((3, 11, 0)).state == "ok"


def test_a_person_reads_one_line_each_and_what_to_do(run, whole):
    result = run("doctor", "--timeout", "1")
    assert result.exit_code == 1
    assert "ok   python " in result.stdout
    assert "FAIL key " in result.stdout
    assert "→ export LARGE_KEY=…" in result.stdout
    assert result.stdout.splitlines()[-1].endswith("1 to look at, 1 failed")


def test_rows_without_a_month_of_their_own_are_told(findings, whole, empty_database, seeding):
    seeding.seed(empty_database, until=datetime(2001, 1, 8, tzinfo=UTC), number=10)
    check = findings(LARGE_KEY="sk-1")[1]["partitions"]
    assert check["state"] == "warn"
    assert check["message"].endswith(" rows are in no month's partition")
    assert int(check["message"].split()[0]) >= 30  # requests, decisions, calls and outcomes
