"""Who may ask: keys, scopes, projects, and what loopback may do without a key."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest

from harness.gateway.access import Known, identify
from harness.gateway.state import REFRESH_SECONDS, STRANGERS_EVERY
from pointsman.budgets.manage import set_budget
from pointsman.errors import RequestError
from pointsman.identity import (
    Directory,
    KeyEntry,
    create_key,
    find_project,
    hash_key,
    list_keys,
    read_directory,
    revoke_key,
)

JSON = [(b"content-type", b"application/json"), (b"host", b"localhost:8790")]
ROUTES = [
    ("GET", "/v1/models", "serve"),
    ("GET", "/v1/models/alpha", "serve"),
    ("POST", "/v1/route", "serve"),
    ("POST", "/v1/feedback", "feedback"),
    ("GET", "/v1/decisions/{decision}", "serve"),
    ("POST", "/v1/chat/completions", "serve"),
    ("POST", "/v1/responses", "serve"),
    ("POST", "/v1/messages", "serve"),
    ("POST", "/v1/messages/count_tokens", "serve"),
    ("POST", "/v1/embeddings", "serve"),
    ("POST", "/v1/reload", "admin"),
    ("GET", "/metrics", "serve"),
    ("GET", "/openapi.json", "serve"),
]

JOBS = [
    ("GET", "/v1/jobs", 200),
    ("POST", "/v1/jobs", 400),
    ("GET", "/v1/jobs/{decision}", 404),
    ("DELETE", "/v1/jobs/{decision}", 404),
    ("POST", "/v1/jobs/{decision}/cancel", 404),
    ("POST", "/v1/jobs/{decision}/retry", 404),
    ("GET", "/v1/jobs/{decision}/logs", 404),
    ("GET", "/v1/jobs/{decision}/metrics", 404),
]
"""What a key with the scope `jobs` gets for a body that is no job, and an id that is none."""


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def body_for(path: str, decision: str) -> dict:
    if path == "/v1/feedback":
        return {"decision_id": decision, "comment": "fine"}
    if path in ("/v1/responses", "/v1/embeddings"):
        return {"model": "pointsman", "input": "x"}
    return {"model": "pointsman", "messages": [{"role": "user", "content": "x"}], "max_tokens": 10}


def call(gateway, method, path, decision, headers):
    path = path.format(decision=decision)
    content = json.dumps(body_for(path, decision)) if method == "POST" else None
    return gateway.client.request(
        method, path, content=content, headers={"content-type": "application/json", **headers}
    )


@pytest.fixture(scope="module")
def gateway(make_gateway, shared_upstream):
    """With a worker for every route."""
    embedder = '[[workers]]\nname = "embedder"\ndescription = "E"\nmodel = "m-e"\ncapabilities = ["embeddings"]\n'
    return make_gateway(more=f'{embedder}base_url = "{shared_upstream.url}"\n')


def refusal_of(answer) -> str:
    """The error's code, or its type where the API has no codes."""
    error = answer.json()["error"]
    return error.get("code") or error["type"]


@pytest.fixture(scope="module")
def keys(gateway):
    """A key for every single scope, all of one project."""
    return {scope: gateway.key(project="keyed", scopes=(scope,)) for scope in ("serve", "feedback", "jobs", "admin")}


@pytest.fixture(scope="module")
def decision(gateway, keys):
    return gateway.chat("x", headers=bearer(keys["serve"])).headers["x-pointsman-decision-id"]


@pytest.mark.parametrize(("method", "path", "scope"), ROUTES, ids=lambda value: str(value))
@pytest.mark.parametrize("held", ["serve", "feedback", "jobs", "admin"])
def test_every_route_needs_its_scope(gateway, keys, decision, method, path, scope, held):
    answer = call(gateway, method, path, decision, bearer(keys[held]))
    if held in (scope, "admin"):
        assert answer.status_code == 200, answer.text
    else:
        assert answer.status_code == 403
        assert refusal_of(answer) == ("permission_error" if "messages" in path else "missing_scope")


@pytest.mark.parametrize(("method", "path", "scope"), ROUTES, ids=lambda value: str(value))
def test_without_a_key_loopback_has_neither_jobs_nor_admin(gateway, decision, method, path, scope):
    answer = call(gateway, method, path, decision, {})
    foreign = "{decision}" in path or path == "/v1/feedback"  # the decision is another project's
    assert answer.status_code == (404 if foreign else 403 if scope == "admin" else 200), answer.text


@pytest.mark.parametrize(("method", "path", "scope"), ROUTES, ids=lambda value: str(value))
@pytest.mark.parametrize(
    "given",
    ["Bearer pm_unknown", "Bearer x' OR '1'='1", "Bearer '; select pg_sleep(3)--", "Basic abc", "Bearer", "pm_x"],
)
def test_a_bad_key_is_401_everywhere_and_at_once(gateway, decision, method, path, scope, given):
    began = time.monotonic()
    answer = call(gateway, method, path, decision, {"authorization": given})
    assert answer.status_code == 401
    assert answer.json()["error"]["type"] == "authentication_error"
    assert given.split(" ")[-1] not in answer.text or given == "Bearer"
    assert time.monotonic() - began < 2


def test_every_route_is_in_this_table(gateway):
    from harness.gateway.management import Management

    open_to_all = {"/healthz", "/readyz"}
    paths = {
        route.path.replace("{name:path}", "alpha").replace("{id}", "{decision}")
        for route in Management(gateway.state).app.routes
    }
    assert paths - open_to_all == {path for _, path, _ in (*ROUTES, *JOBS)}


@pytest.mark.parametrize(("method", "path", "status"), JOBS, ids=lambda value: str(value))
def test_jobs_need_a_key_of_their_own(gateway, keys, decision, method, path, status):
    for held in ("serve", "feedback"):
        answer = call(gateway, method, path, decision, bearer(keys[held]))
        assert (answer.status_code, refusal_of(answer)) == (403, "missing_scope")
    assert call(gateway, method, path, decision, {}).status_code == 403  # on loopback too
    assert call(gateway, method, path, decision, bearer("pm_unknown")).status_code == 401
    for held in ("jobs", "admin"):
        assert call(gateway, method, path, decision, bearer(keys[held])).status_code == status


def test_other_projects_ids_are_not_there(gateway, keys, decision):
    other = gateway.key(project="other", scopes=("serve", "feedback"))
    gateway.record(decision)
    assert gateway.client.get(f"/v1/decisions/{decision}", headers=bearer(other)).status_code == 404
    feedback = {"decision_id": decision, "metric": "correct", "value": True}
    answer = gateway.client.post("/v1/feedback", json=feedback, headers=bearer(other))
    assert answer.status_code == 404
    completion = {"completion_id": gateway.record(decision)["calls"][0]["completion_id"], "comment": "x"}
    answer = gateway.client.post("/v1/feedback", json=completion, headers=bearer(other))
    assert answer.json()["decision_id"] != decision
    admin = gateway.client.get(f"/v1/decisions/{decision}", headers=bearer(keys["admin"]))
    assert admin.json()["decision"]["id"] == decision


def test_two_keys_that_share_a_beginning_are_two(gateway):
    first, second = "pm_" + "a" * 32 + "X", "pm_" + "a" * 32 + "Y"
    entry = KeyEntry("id", "project", frozenset({"serve"}))
    directory = Directory({hash_key(first): entry}, {})
    assert (
        identify([(b"authorization", b"Bearer " + first.encode()), *JSON], None, directory, has_body=True).key_id
        == "id"
    )
    for other in (second, first[:-1], first + "Z"):
        with pytest.raises(RequestError, match="not known, or was revoked"):
            identify([(b"authorization", b"Bearer " + other.encode())], None, directory, has_body=False)


def test_a_caller_is_known_by_its_header_only_while_the_directory_stands():
    key, other = "pm_" + "a" * 43, "pm_" + "b" * 43
    directory = Directory({hash_key(k): KeyEntry(k, "project", frozenset({"serve"})) for k in (key, other)}, {})
    known = Known()

    def who(*headers, directory=directory):
        return known.identify([*headers, *JSON], ("127.0.0.1", 1), directory, has_body=True).key_id

    def bearer_of(token):
        return (b"authorization", b"Bearer " + token.encode())

    assert [who(bearer_of(key)), who(bearer_of(other)), who(bearer_of(key))] == [key, other, key]
    # A token that is not of our form says nothing: another header does, and it may change.
    login = bearer_of("sk-of-somebody-else")
    assert [who(login, (b"x-api-key", k.encode())) for k in (key, other)] == [key, other]
    assert who(login, (b"host", b"localhost")) is None
    with pytest.raises(RequestError, match="not known, or was revoked"):
        who(bearer_of(key), directory=Directory({}, {}))
    assert who(bearer_of(key)) == key


def test_a_revoked_key_is_refused_within_two_seconds(gateway):
    key = gateway.key(project="short", scopes=("serve",))
    assert gateway.chat("x", headers=bearer(key)).status_code == 200
    with gateway.engine.begin() as connection:
        revoke_key(connection, list_keys(connection)[0].id)
    revoked = time.monotonic()
    while gateway.chat("x", headers=bearer(key)).status_code == 200:
        assert time.monotonic() - revoked < 2
        time.sleep(0.05)
    assert gateway.chat("x", headers=bearer(key)).status_code == 401


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/models"])
@pytest.mark.parametrize("header", ["authorization", "x-api-key"])
def test_a_key_that_was_made_elsewhere_works_from_its_first_request(gateway, upstream, path, header):
    for _ in range(5):
        with gateway.engine.begin() as connection:
            key = create_key(connection, project="elsewhere", scopes=("serve",))
        method = "POST" if "chat" in path else "GET"
        given = bearer(key) if header == "authorization" else {header: key}
        assert call(gateway, method, path, "", given).status_code == 200


def test_a_key_that_was_made_elsewhere_never_serves_without_its_budget(gateway, upstream):
    with gateway.engine.begin() as connection:
        key = create_key(connection, project="spent", scopes=("serve",))
        row = list_keys(connection)[0]
        project = find_project(connection, row.project)
        set_budget(connection, project_id=project, key_id=row.id, limit_usd=Decimal("0.000000001"))
    assert gateway.chat("x", headers=bearer(key)).status_code == 429


def test_guessing_keys_does_not_keep_postgres_busy(gateway, monkeypatch):
    reads = []
    monkeypatch.setattr(
        "harness.gateway.state.read_directory", lambda engine: reads.append(1) or read_directory(engine)
    )
    began = time.monotonic()
    with ThreadPoolExecutor(16) as threads:
        tried = list(threads.map(lambda n: gateway.chat("x", headers=bearer(f"pm_{n}")).status_code, range(200)))
    assert set(tried) == {401}
    assert len(reads) <= 2 + (time.monotonic() - began) * (1 / STRANGERS_EVERY + 1 / REFRESH_SECONDS)
    assert len(reads) < len(tried) / 4


def test_a_new_key_works_within_two_seconds_and_its_project_is_on_every_row(gateway, upstream):
    key = gateway.key(project="rows", scopes=("serve",))
    answer = gateway.chat("x", headers={"x-api-key": key})
    record = gateway.record(answer)
    project = record["decision"]["project_id"]
    assert {record[name]["project_id"] for name in ("request", "outcome")} == {project}
    assert record["calls"][0]["project_id"] == project
    assert record["request"]["key_id"] is not None


def test_a_key_without_learning_is_not_explored(gateway, make_gateway, upstream):
    exploring = make_gateway("[router]\nchain = ['default']\n[exploration]\nepsilon = 1.0\n")
    for flag in ("learn", "explore"):
        key = exploring.key(project="quiet", scopes=("serve",), **{flag: False})
        records = [exploring.record(exploring.chat("x", headers=bearer(key))) for _ in range(6)]
        assert not any(record["decision"]["explored"] for record in records)
        assert {record["request"]["learn"] for record in records} == {flag != "learn"}
    exploring.close()


@pytest.mark.parametrize("key", ["sk-anything", "EMPTY", "not-needed", "x" * 200])
def test_a_placeholder_key_counts_as_none_on_loopback(gateway, upstream, key):
    assert gateway.chat("x", headers=bearer(key)).status_code == 200


@pytest.mark.parametrize(
    ("client", "headers", "status"),
    [
        (("127.0.0.1", 1), JSON, None),
        (("127.8.8.8", 1), JSON, None),
        (("::1", 1), [JSON[0], (b"host", b"[::1]:8790")], None),
        (("::ffff:127.0.0.1", 1), JSON, None),
        (("127.0.0.1", 1), [JSON[0], (b"host", b"LOCALHOST")], None),
        (("10.0.0.5", 1), JSON, 401),
        (("::ffff:10.0.0.5", 1), JSON, 401),
        (None, JSON, 401),
        (("127.0.0.1", 1), [JSON[0], (b"host", b"evil.example")], 403),
        (("127.0.0.1", 1), [JSON[0], (b"host", b"localhost.evil.example:8790")], 403),
        (("127.0.0.1", 1), [JSON[0], (b"host", b"127.0.0.1.nip.io")], 403),
        (("127.0.0.1", 1), [JSON[0], (b"host", b"")], 403),
        (("127.0.0.1", 1), [JSON[0]], 403),
        (("127.0.0.1", 1), [JSON[1]], 415),
        (("127.0.0.1", 1), [JSON[1], (b"content-type", b"text/plain")], 415),
        (("127.0.0.1", 1), [JSON[1], (b"content-type", b"text/plain; application/json")], 415),
        (("127.0.0.1", 1), [JSON[1], (b"content-type", b"application/json-seq")], 415),
        (("127.0.0.1", 1), [JSON[1], (b"content-type", b"Application/JSON; charset=utf-8")], None),
        (("10.0.0.5", 1), [*JSON, (b"authorization", b"Bearer sk-placeholder")], 401),
    ],
)
def test_what_is_served_without_a_key(client, headers, status):
    if status is None:
        assert identify(headers, client, None, has_body=True).scopes == {"serve", "feedback"}
        return
    with pytest.raises(RequestError) as refused:
        identify(headers, client, None, has_body=True)
    assert refused.value.status == status


def test_no_cross_origin_headers_are_sent(gateway, upstream):
    answer = gateway.chat("x", headers={"origin": "https://evil.example"})
    asked = gateway.client.options("/v1/chat/completions", headers={"origin": "https://evil.example"})
    assert asked.status_code == 405
    for headers in (answer.headers, asked.headers):
        assert not [name for name in headers if name.startswith("access-control")]


def test_keys_are_checked_from_the_saved_directory_while_postgres_is_away(make_gateway, running, tmp_path, upstream):
    from harness.gateway.state import State

    gateway = make_gateway()
    key = gateway.key(project="saved", scopes=("serve",))
    gateway.stop()
    away = State(gateway.settings, gateway.config, "postgresql://nobody@127.0.0.1:1/none")
    assert away.directory is not None and away.directory.find(key) is not None
    assert (gateway.home / "directory.json").stat().st_mode & 0o777 == 0o600
    assert key.encode() not in (gateway.home / "directory.json").read_bytes()
    away.engine.dispose()
    gateway.engine.dispose()
