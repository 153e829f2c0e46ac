"""`pointsman doctor` asks each worker in its own API, and says which optional part is missing."""

from __future__ import annotations

import json

from pointsman.commands import check_addresses
from pointsman.config.load import load_text
from pointsman.upstream.anthropic import VERSION

WORKER = '[[workers]]\nname = "{name}"\ndescription = "{name}"\nmodel = "{model}"\nbase_url = "{url}"\n'
KEY = 'api_key_env = "LARGE_KEY"\n'


def asked_of(server) -> list[dict[str, str]]:
    return [headers for line, headers, _ in server.seen if line == "GET /v1/models"]


def test_a_worker_of_anthropics_api_is_asked_with_its_version(run, config, fake_server):
    url = f"{fake_server.address}/v1"
    fake_server.answers["GET /v1/models"] = (200, {"data": [{"id": "claude-x"}, {"id": "m"}]})
    plain = WORKER.format(name="plain", model="m", url=url) + KEY
    native = WORKER.format(name="native", model="claude-x", url=url) + KEY + 'quirks = { api = "anthropic" }\n'
    config(workers=plain + native)
    checks = json.loads(run("doctor", "--json", "--timeout", "2", LARGE_KEY="sk-1").stdout)["checks"]
    models = [check["message"] for check in checks if check["name"] == "models"]
    assert models == [f"{url} has every model that is named ({name})" for name in ("plain", "native")]
    openais, anthropics = sorted(asked_of(fake_server), key=lambda headers: "x-api-key" in headers)
    assert openais["authorization"] == "Bearer sk-1" and "anthropic-version" not in openais
    assert anthropics["x-api-key"] == "sk-1" and anthropics["anthropic-version"] == VERSION
    assert "authorization" not in anthropics


def test_a_worker_behind_litellms_sdk_is_not_asked(run, config, fake_server):
    sdk = WORKER.format(name="sdk", model="openai/m", url=f"{fake_server.address}/v1")
    config(workers=sdk + 'quirks = { api = "litellm" }\n')
    checks = json.loads(run("doctor", "--json", "--timeout", "2").stdout)["checks"]
    assert [check for check in checks if check["name"] in ("models", "extra")] == []
    assert asked_of(fake_server) == []


def test_a_part_that_is_missing_is_a_finding():
    traced = '[tracing]\nendpoint = "http://127.0.0.1:9/v1/traces"\n'
    config = load_text(traced + WORKER.format(name="a", model="m", url="http://127.0.0.1:9"))
    (found,) = check_addresses.extras(config, find=lambda name: None)
    assert (found.name, found.state) == ("extra", "fail")
    assert found.message == "tracing.endpoint: the OpenTelemetry SDK is not installed"
    assert found.advice == "`pip install 'pointsman[tracing]'`"
    assert list(check_addresses.extras(config)) == []
