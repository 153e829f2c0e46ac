"""`/v1/jobs` end to end: started, read, cancelled, tried again, removed; each project's own; mistakes told."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from harness.gateway.management import Management
from pointsman.config import Settings
from pointsman.database.engine import make_engine, psycopg_url
from pointsman.ids import new_id
from pointsman.jobs.runner import Runner
from pointsman.jobs.workplace import Workplace, new_owner

QUICK = {"kind": "self-test", "params": {"steps": 2, "seconds": 0, "chunks": 0}}


@pytest.fixture(scope="module")
def gateway(make_gateway: Callable[..., Any]) -> Any:
    return make_gateway()


@pytest.fixture(scope="module")
def keys(gateway: Any) -> dict[str, dict[str, str]]:
    """Headers of two projects' keys, and of one that may do everything."""
    made = {
        "ours": gateway.key(project="ours", scopes=("jobs",)),
        "theirs": gateway.key(project="theirs", scopes=("jobs",)),
        "admin": gateway.key(project="ours", scopes=("admin",)),
    }
    return {name: {"authorization": f"Bearer {key}"} for name, key in made.items()}


@pytest.fixture
def ask(gateway: Any, keys: Any) -> Callable[..., Any]:
    """`ask("GET", path, status, body, key=…)`: the answer's JSON."""

    def send(method: str, path: str, status: int, body: Any = None, key: str = "ours") -> Any:
        answer = gateway.client.request(method, f"/v1/jobs{path}", json=body, headers=keys[key])
        assert answer.status_code == status, answer.text
        return answer.json()

    return send


@pytest.fixture
def run(gateway: Any, database_url: str) -> Callable[[str], str | None]:
    """Runs a job as a worker would; the state it then has."""
    settings = Settings.read({"POINTSMAN_HOME": str(gateway.home), "POINTSMAN_CONFIG": str(gateway.file)})
    runner = Runner(Workplace.read(settings, database_url=database_url), new_owner())
    return runner.run


def test_a_job_from_its_start_to_its_removal(ask: Any, run: Any, gateway: Any) -> None:
    started = ask("POST", "", 202, QUICK | {"priority": 3, "budget": 1.5})
    assert (started["object"], started["state"], started["priority"]) == ("job", "queued", 3)
    assert started["budget"] == "1.5" and started["asked_by"].startswith("key ")
    assert started["params"]["seed"] == 1  # as they will be used, defaults included
    assert started["estimate"] == {"seconds": 0, "cost_usd": "0", "basis": "its parameters, with one worker"}
    assert not {"checkpoint", "effects", "fence"} & set(started)
    job_id = started["id"]
    assert run(job_id) == "done"
    job = ask("GET", f"/{job_id}", 200)
    assert (job["state"], job["stages_done"], job["attempt"]) == ("done", ["steps", "chunks", "publish"], 1)
    (file,) = job["artifacts"]
    assert (file["name"], file["hash"]) == ("self-test.json", job["result"]["file"])
    lines = ask("GET", f"/{job_id}/logs", 200)["data"]
    assert "self-test published" in [line["message"] for line in lines]
    assert ask("GET", f"/{job_id}/logs?after={lines[-1]['id']}", 200)["data"] == []
    assert [point["step"] for point in ask("GET", f"/{job_id}/metrics", 200)["data"]] == [0, 1]
    stored = list((gateway.home / "artifacts").rglob(f"{file['hash']}*"))
    assert len(stored) == 1
    assert ask("DELETE", f"/{job_id}", 200) == {"id": job_id, "deleted": True}
    assert not stored[0].exists()
    assert ask("GET", f"/{job_id}", 404)["error"]["code"] == "job_not_found"


def test_delete_cancels_what_has_not_ended(ask: Any) -> None:
    job_id = ask("POST", "", 202, QUICK)["id"]
    assert ask("DELETE", f"/{job_id}", 202)["state"] == "cancelled"
    assert ask("POST", f"/{job_id}/retry", 202)["state"] == "queued"
    assert ask("POST", f"/{job_id}/cancel", 202)["state"] == "cancelled"
    assert ask("POST", f"/{job_id}/cancel", 202)["state"] == "cancelled"  # again changes nothing


def test_only_what_ended_badly_is_tried_again(ask: Any, run: Any) -> None:
    job_id = ask("POST", "", 202, QUICK)["id"]
    refused = ask("POST", f"/{job_id}/retry", 409)["error"]
    assert refused["code"] == "job_state" and "is queued; only a failed, cancelled or dead job" in refused["message"]
    assert run(job_id) == "done"
    assert ask("POST", f"/{job_id}/retry", 409)["error"]["code"] == "job_state"


def test_a_double_click_is_one_job_and_a_job_is_announced(ask: Any, database_url: str) -> None:
    body = QUICK | {"dedupe_key": "button"}
    with psycopg.connect(psycopg_url(database_url), autocommit=True) as listener:
        listener.execute("LISTEN pointsman_jobs")
        first = ask("POST", "", 202, body)["id"]
        (heard,) = listener.notifies(timeout=5, stop_after=1)
    assert heard.payload == first
    assert ask("POST", "", 202, body)["id"] == first
    assert ask("POST", "", 202, body, key="theirs")["id"] != first
    ask("DELETE", f"/{first}", 202)
    assert ask("POST", "", 202, body)["id"] != first


def test_pages_filters_and_what_admin_sees(ask: Any) -> None:
    ids = [ask("POST", "", 202, QUICK)["id"] for _ in range(3)]
    theirs = ask("POST", "", 202, QUICK, key="theirs")["id"]
    page = ask("GET", "?limit=2", 200)
    assert ([job["id"] for job in page["data"]], page["has_more"]) == ([ids[2], ids[1]], True)
    rest = ask("GET", f"?limit=500&before={ids[1]}", 200)
    assert rest["data"][0]["id"] == ids[0] and rest["has_more"] is False
    ask("DELETE", f"/{ids[0]}", 202)
    assert ids[0] in [job["id"] for job in ask("GET", "?state=cancelled&kind=self-test", 200)["data"]]
    assert theirs not in [job["id"] for job in ask("GET", "?limit=500", 200)["data"]]
    assert ask("GET", "?limit=1", 200, key="admin")["data"][0]["id"] == theirs
    assert ask("GET", f"/{theirs}", 200, key="admin")["id"] == theirs


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", ""), ("DELETE", ""), ("POST", "/cancel"), ("POST", "/retry"), ("GET", "/logs"), ("GET", "/metrics")],
)
def test_another_projects_job_is_not_there(ask: Any, method: str, path: str) -> None:
    theirs = ask("POST", "", 202, QUICK, key="theirs")["id"]
    refused = ask(method, f"/{theirs}{path}", 404)["error"]
    assert (refused["code"], refused["message"]) == ("job_not_found", f"there is no job {theirs} here")
    for strange in (new_id(), "nonsense", "%00", "..%2f.."):
        assert ask(method, f"/{strange}{path}", 404)["error"]["code"] in ("job_not_found", "not_found")
    assert ask("GET", f"/{theirs}", 200, key="theirs")["state"] == "queued"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"kind": "nope"}, "kind: no job kind 'nope', expected one of self-test, "),
        ({}, "Object missing required field `kind`"),
        ({"kind": "self-test", "params": {"steps": "5"}}, "params.steps: expected a whole number from 0 to 1e+06, "),
        ({"kind": "self-test", "params": {"stops": 5}}, "params.stops: no such parameter, expected steps, "),
        ({"kind": "self-test", "params": [1]}, "Expected `object`, got `array` - at `$.params`"),
        ({"kind": "self-test", "priority": 10**9}, "priority: expected a whole number from -1000 to 1000, got "),
        ({"kind": "self-test", "budget": -1}, "budget: expected USD from 0"),
        ({"kind": "self-test", "budget": "NaN"}, "budget: expected an amount of USD"),
        ({"kind": "self-test", "dedupe_key": "a\0b"}, "dedupe_key: expected 1 to 200 printable characters"),
        ({"kind": "self-test", "queue": "train"}, "Object contains unknown field `queue`"),
    ],
)  # fmt: skip
def test_mistakes_are_told(ask: Any, body: dict[str, Any], message: str) -> None:
    error = ask("POST", "", 400, body)["error"]
    assert error["message"].startswith(message) and error["code"] == "invalid_job"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("?state=odd", "state: expected one of queued, running, "),
        ("?kind=odd%00", "kind: no job kind "),
        ("?before=x", "before: expected the id of a job, got 'x'"),
        ("?limit=0", "limit: expected a whole number from 1, got '0'"),
        ("?limit=-1", "limit: expected a whole number from 1, got '-1'"),
        ("?limit=1e9", "limit: expected a whole number from 1, got '1e9'"),
    ],
)
def test_a_strange_filter_is_told(ask: Any, query: str, message: str) -> None:
    assert ask("GET", query, 400)["error"]["message"].startswith(message)


def test_a_strange_place_in_a_log_is_told(ask: Any) -> None:
    job_id = ask("POST", "", 202, QUICK)["id"]
    assert ask("GET", f"/{job_id}/logs?after=x", 400)["error"]["message"] == "after: expected the id of a line, got 'x'"


def test_without_a_key_nothing_is_shown_or_started(gateway: Any) -> None:
    for method, path in (("GET", "/v1/jobs"), ("POST", "/v1/jobs"), ("DELETE", f"/v1/jobs/{new_id()}")):
        answer = gateway.client.request(method, path, json=QUICK if method == "POST" else None)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "missing_scope")


async def test_while_postgres_is_away_it_says_so(make_gateway: Callable[..., Any], keys: Any) -> None:
    gateway = make_gateway()
    absent = gateway.engine.url.set(query={"host": "/nowhere"})
    gateway.state.engine = make_engine(absent.render_as_string(hide_password=False))
    transport = httpx.ASGITransport(app=Management(gateway.state).app, client=("127.0.0.1", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        answer = await client.get("/v1/jobs", headers=keys["ours"])
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "database_unavailable")
    assert answer.headers["retry-after"] == "2"


def test_the_gateway_knows_no_broker() -> None:
    code = "import sys, harness.gateway.process; print([m for m in ('celery', 'kombu', 'redis') if m in sys.modules])"
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=True)
    assert done.stdout.strip() == "[]"
