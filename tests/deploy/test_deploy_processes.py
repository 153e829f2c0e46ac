"""The very commands of `docker-compose.yml`, as processes: PostgreSQL, Redis or RabbitMQ, proxy, gateways, workers.

What differs from containers is where things are: every service gets ports and folders of its own on
loopback, so addresses in the configuration and in health checks are rewritten, and nothing else is.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy.engine import make_url

from benchmarks.jobwork.servers import RabbitServer, RedisServer, await_port, free_port
from pointsman.database.engine import psycopg_url
from pointsman.ids import new_id

ROOT = Path(__file__).parents[2]
SECRETS = {
    "POSTGRES_PASSWORD": "unused-by-the-socket",
    "REDIS_PASSWORD": "of-the-broker",
    "DASHBOARD_PASSWORD": "of-the-dashboard",
    "RABBITMQ_PASSWORD": "of-the-other-broker",
    "PROBE_CONCURRENCY": "1",
    "DEFAULT_CONCURRENCY": "1",
}
PATIENCE = 120.0
START = 90.0


class Stack:
    """The services of a file as processes, by the service's name (`gateway-2` for the second of several)."""

    def __init__(self, model: dict[str, Any], database: str, broker: str, stack: ExitStack) -> None:
        self.model = model
        self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pm-stack-")))
        self.database = database
        self.broker = broker
        self.ports: dict[str, int] = {}
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.server: RedisServer | None = None
        stack.callback(self._end)

    def settings(self, name: str) -> dict[str, str]:
        """The environment of a service, with a home and a configuration for this process."""
        service = name.partition("#")[0]
        home = self.folder / name.replace("#", "-")
        home.mkdir(exist_ok=True)
        port = self.ports.setdefault(name, free_port())
        text = (ROOT / "deploy" / "pointsman.toml").read_text()
        rewritten = {
            "postgresql://pointsman@postgres:5432/pointsman": self.database,
            'host = "0.0.0.0"': 'host = "127.0.0.1"',
            "port = 8790": f"port = {port}",
            "port = 8791": f"port = {port}",
            '"/artifacts"': f'"{self.folder}/artifacts"',
        }
        for before, after in rewritten.items():
            assert before in text, f"deploy/pointsman.toml no longer has {before}"
            text = text.replace(before, after)
        (home / "pointsman.toml").write_text(text)
        given: dict[str, str] = self.model["services"][service]["environment"]
        return {
            **{key: value for key, value in os.environ.items() if not key.startswith("POINTSMAN_")},
            **given,
            "HOME": str(home),
            "POINTSMAN_HOME": str(home),
            "POINTSMAN_CONFIG": str(home / "pointsman.toml"),
            "POINTSMAN_BROKER": self.broker,
        }

    def start(self, name: str) -> None:
        """The service's own command."""
        command = self.model["services"][name.partition("#")[0]]["command"]
        with (self.folder / f"{name}.log").open("wb") as log:
            self.running[name] = subprocess.Popen(
                [sys.executable, "-m", "pointsman.commands", *command], env=self.settings(name),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def run(self, name: str, *command: str) -> subprocess.CompletedProcess[str]:
        """Another command in the container of a service."""
        words = command or self.model["services"][name]["command"]
        return subprocess.run(
            [sys.executable, "-m", "pointsman.commands", *words], env=self.settings(name),
            capture_output=True, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip

    def healthy(self, name: str) -> bool:
        """What the service's health check says."""
        kind, *words = self.model["services"][name.partition("#")[0]]["healthcheck"]["test"]
        assert kind == "CMD"
        port = str(self.ports[name])
        words = [word.replace("8790", port).replace("8791", port).replace("8080", port) for word in words]
        words[:1] = {"pointsman": [sys.executable, "-m", "pointsman.commands"], "python": [sys.executable]}.get(
            words[0], words[:1]
        )
        env = None if name == "proxy" else self.settings(name)
        return subprocess.run(words, env=env, capture_output=True, timeout=60, check=False).returncode == 0

    def await_healthy(self, *names: str) -> None:
        until = time.monotonic() + PATIENCE
        for name in names:
            while not self.healthy(name):
                log = self.folder / f"{name}.log"
                assert self.running[name].poll() is None and time.monotonic() < until, log.read_text()[-3000:]
                time.sleep(0.3)

    def proxy(self, nginx: str, gateways: list[str]) -> str:
        """nginx before these gateways, by its own command; its address."""
        self.ports["proxy"] = port = free_port()
        text = (ROOT / "deploy" / "nginx.conf").read_text()
        servers = "".join(f"server 127.0.0.1:{self.ports[name]}; " for name in gateways)
        rewritten = {
            '"gateway:8790"': '"gateways"',
            "listen 8080;": f"listen 127.0.0.1:{port};",
            "    server {": f"    upstream gateways {{ {servers} }}\n    server {{",
            "/tmp/nginx": f"{self.folder}/nginx",
        }
        for before, after in rewritten.items():
            assert before in text, f"deploy/nginx.conf no longer has {before}"
            text = text.replace(before, after)
        if os.getuid() == 0:
            text = f"user root;\n{text}"  # its processes write into this folder
        file = self.folder / "nginx.conf"
        file.write_text(text)
        program, *words = self.model["services"]["proxy"]["command"]
        assert program == "nginx"
        with (self.folder / "proxy.log").open("wb") as log:
            self.running["proxy"] = subprocess.Popen(
                [nginx, "-c", str(file), *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        await_port(port, self.running["proxy"])
        return f"http://127.0.0.1:{port}"

    def stop(self, name: str, within: float) -> int:
        """The exit code; TimeoutExpired where it takes longer than the file allows."""
        process = self.running.pop(name)
        process.send_signal(signal.SIGTERM)
        return process.wait(within)

    def _end(self) -> None:
        for process in self.running.values():
            if process.poll() is None:
                process.terminate()
        for process in self.running.values():
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def ask(url: str, key: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """An answer's JSON; HTTPError where it is none."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=30) as reply:
        found: dict[str, Any] = json.load(reply)
        return found


def ended(url: str, key: str, job_id: str) -> dict[str, Any]:
    until = time.monotonic() + PATIENCE
    while (job := ask(f"{url}/v1/jobs/{job_id}", key))["state"] in ("queued", "running"):
        assert time.monotonic() < until, (
            job["state"],
            job["reason"],
            job["attempt"],
            job["sent_at"],
            job["started_at"],
        )
        time.sleep(0.2)
    return job


@pytest.fixture
def database(database_url: str) -> str:
    """A new, empty database."""
    name = f"stack_{new_id().replace('-', '')[-16:]}"
    with psycopg.connect(psycopg_url(database_url), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return make_url(database_url).set(database=name).render_as_string(hide_password=False)


@pytest.fixture
def on_redis(compose: Any, database: str) -> Iterator[Stack]:
    with ExitStack() as stack:
        model = compose.read([ROOT / "docker-compose.yml"], SECRETS)
        server = RedisServer(model["services"]["redis"]["command"], SECRETS["REDIS_PASSWORD"])
        stack.callback(server.close)
        address = model["services"]["dispatcher"]["environment"]["POINTSMAN_BROKER"]
        found = Stack(model, database, address.replace("redis:6379", server.address), stack)
        found.server = server
        yield found


@pytest.fixture
def on_rabbitmq(compose: Any, database: str) -> Iterator[Stack]:
    with ExitStack() as stack:
        files = [ROOT / "docker-compose.yml", ROOT / "deploy" / "rabbitmq.yml"]
        server = RabbitServer()
        stack.callback(server.close)
        yield Stack(compose.read(files, SECRETS), database, server.url, stack)


def test_the_stack_on_redis_serves_runs_jobs_and_rolls(on_redis: Stack, nginx: str) -> None:
    migrated = on_redis.run("migrate")
    assert migrated.returncode == 0, migrated.stderr
    gateways = ["gateway", "gateway#2"]
    for name in [*gateways, "dispatcher", "worker-default", "dashboard"]:
        on_redis.start(name)
    on_redis.await_healthy(*gateways)
    url = on_redis.proxy(nginx, gateways)
    on_redis.await_healthy("proxy")
    made = on_redis.run("gateway", "keys", "create", "--scope", "serve", "--scope", "jobs")
    key = made.stdout.strip()
    with pytest.raises(urllib.error.HTTPError, match="401"):
        ask(f"{url}/v1/jobs", "of nobody")
    on_redis.await_healthy("dispatcher", "worker-default", "dashboard")
    job = ask(f"{url}/v1/jobs", key, {"kind": "self-test", "params": {"steps": 2, "seconds": 0, "chunks": 2}})
    assert ended(url, key, job["id"])["state"] == "done"

    # Redis goes and comes back empty: what is asked for meanwhile is taken, and runs.
    assert on_redis.server is not None
    on_redis.server.kill()
    meanwhile = ask(f"{url}/v1/jobs", key, {"kind": "self-test", "params": {"steps": 1, "small": True}})
    on_redis.server.start()
    assert ended(url, key, meanwhile["id"])["state"] == "done"

    # One gateway leaves while others ask: nobody is refused.
    codes: list[int] = []
    stopping = threading.Event()
    asking = threading.Thread(target=_ask_on, args=(f"{url}/v1/models", key, codes, stopping))
    asking.start()
    time.sleep(0.5)
    grace = 30.0
    assert on_redis.stop("gateway", grace) == 0
    time.sleep(0.5)
    stopping.set()
    asking.join()
    assert len(codes) > 10 and set(codes) == {200}

    ends = {name: on_redis.stop(name, 40) for name in ("gateway#2", "worker-default", "dispatcher")}
    assert set(ends.values()) == {0}
    assert "of-the-broker" not in "".join(file.read_text(errors="replace") for file in on_redis.folder.glob("*.log"))


def test_the_workers_of_every_queue_run_on_rabbitmq(on_rabbitmq: Stack) -> None:
    assert on_rabbitmq.run("migrate").returncode == 0
    names = ["dispatcher", "worker-probe", "worker-train"]
    for name in names:
        on_rabbitmq.start(name)
    on_rabbitmq.await_healthy(*names)
    with psycopg.connect(psycopg_url(on_rabbitmq.database), autocommit=True) as connection:
        for queue in ("probe", "train"):
            connection.execute(
                "INSERT INTO job (id, project_id, kind, params, queue, state, created_at) VALUES"
                " (gen_random_uuid(), gen_random_uuid(), 'self-test', %s, %s, 'queued', now())",
                (json.dumps({"steps": 1, "seconds": 0, "chunks": 0}), queue),
            )
        until = time.monotonic() + PATIENCE
        while (states := _states(connection)) != ["done", "done"]:
            assert time.monotonic() < until and set(states) <= {"queued", "running", "done"}, states
            time.sleep(0.2)
    assert {on_rabbitmq.stop(name, 40) for name in names} == {0}


def _states(connection: psycopg.Connection[Any]) -> list[str]:
    return [row[0] for row in connection.execute("SELECT state FROM job")]


def _ask_on(url: str, key: str, codes: list[int], stopping: threading.Event) -> None:
    while not stopping.is_set():
        try:
            ask(url, key)
            codes.append(200)
        except urllib.error.HTTPError as error:
            codes.append(error.code)
        time.sleep(0.02)
