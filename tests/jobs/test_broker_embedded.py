"""The embedded broker: one owner at a time, taken over when it was killed, out of others' reach, nothing on disk."""

from __future__ import annotations

import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import redis

from pointsman.config import Settings, load_text
from pointsman.errors import BrokerAway, StoreError, UserError
from pointsman.jobs.broker import Wire, broker_url, configured_broker
from pointsman.jobs.celery_app import make_app
from pointsman.jobs.embedded_broker import EmbeddedBroker

WORKER = '[[workers]]\nname = "a"\ndescription = "d"\nmodel = "m"\nbase_url = "http://127.0.0.1:9/v1"\n'


@pytest.fixture
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="pm-broker-") as folder:
        yield Path(folder)
        broker = EmbeddedBroker(Path(folder))
        if broker.running():
            broker.keep()
            broker.stop()


def client(broker: EmbeddedBroker) -> redis.Redis:
    return redis.Redis(unix_socket_path=str(broker.socket))


def server(broker: EmbeddedBroker) -> psutil.Process:
    return psutil.Process(client(broker).info()["process_id"])


def test_it_has_one_owner_and_others_only_use_it(home: Path) -> None:
    owner, other = EmbeddedBroker(home), EmbeddedBroker(home)
    url = owner.start()
    assert other.start() == url == f"redis+socket://{home}/broker/broker.sock"
    client(other).set("x", 1)
    other.stop()
    assert owner.running() and client(owner).get("x") == b"1"
    owner.stop()
    assert not other.running()
    owner.start()
    assert client(owner).get("x") is None  # Postgres is the truth: nothing is kept here
    assert sorted(file.name for file in owner.folder.iterdir()) == ["broker.lock", "broker.sock", "server.log"]
    owner.stop()


def test_nobody_else_may_reach_it(home: Path) -> None:
    broker = EmbeddedBroker(home)
    broker.start()
    assert stat.S_IMODE(broker.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(broker.socket.stat().st_mode) == 0o700
    assert server(broker).net_connections("inet") == []
    broker.stop()


def test_a_server_that_died_is_started_again_by_its_owner_alone(home: Path) -> None:
    owner, other = EmbeddedBroker(home), EmbeddedBroker(home)
    owner.start()
    first = server(owner)
    first.kill()
    first.wait()
    other.keep()
    assert not owner.running()
    owner.start()
    assert server(owner).pid != first.pid
    owner.stop()


def test_what_a_killed_owner_left_running_is_taken_over(home: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from pointsman.jobs.embedded_broker import EmbeddedBroker;"
        "broker = EmbeddedBroker(Path(sys.argv[1])); broker.start(); print(flush=True); time.sleep(60)"
    )
    owner = subprocess.Popen([sys.executable, "-c", code, str(home)], stdout=subprocess.PIPE)
    assert owner.stdout is not None and owner.stdout.readline()
    heir = EmbeddedBroker(home)
    heir.keep()
    left = server(heir)
    heir.stop()
    assert heir.running()  # its owner lives
    owner.kill()
    owner.wait()
    owner.stdout.close()
    heir.start()
    assert server(heir).pid == left.pid
    heir.stop()
    assert not heir.running()


def test_a_path_too_long_for_a_socket_is_served_from_elsewhere(home: Path) -> None:
    deep = home / ("d" * 90)
    broker = EmbeddedBroker(deep)
    broker.start()
    assert broker.socket.parent.parent == Path("/tmp") and len(str(broker.socket)) < 100
    assert Wire(make_app(broker.url)).waiting("default") == 0
    broker.stop()
    broker.socket.parent.rmdir()


def test_a_folder_of_somebody_else_is_refused(home: Path) -> None:
    (home / "elsewhere").mkdir()
    (home / "broker").symlink_to(home / "elsewhere")
    with pytest.raises(StoreError, match="belongs to somebody else"):
        EmbeddedBroker(home).start()


def test_the_wire_counts_and_says_when_the_broker_is_away(home: Path) -> None:
    broker = EmbeddedBroker(home)
    broker.start()
    wire = Wire(make_app(broker.url))
    assert wire.waiting("probe") == 0
    wire.send("probe", "pointsman.wake", ["one", "two"])
    assert (wire.waiting("probe"), wire.waiting("default")) == (2, 0)
    client(broker).flushall()
    wire.send("probe", "pointsman.wake", ["three"])  # no binding was lost with the rest
    assert wire.waiting("probe") == 1
    broker.stop()
    with pytest.raises(BrokerAway, match="the broker does not answer"):
        wire.waiting("probe")
    broker.start()
    assert wire.waiting("probe") == 0
    wire.close()
    broker.stop()


def test_messages_are_json_with_an_id_and_no_more(home: Path) -> None:
    import base64
    import json

    broker = EmbeddedBroker(home)
    broker.start()
    wire = Wire(make_app(broker.url))
    wire.send("default", "pointsman.wake", ["the-id"])
    (raw,) = client(broker).lrange("pointsman.default", 0, -1)
    message = json.loads(raw)
    assert message["content-type"] == "application/json"
    arguments, keywords, _ = json.loads(base64.b64decode(message["body"]))
    assert (arguments, keywords) == (["the-id"], {})
    wire.close()
    broker.stop()


@pytest.mark.parametrize(
    ("text", "environment", "expected"),
    [
        ("", {}, None),
        ('[jobs]\nbroker = "redis://broker:6379/1"\n', {}, "redis://broker:6379/1"),
        ('[jobs]\nbroker_env = "BROKER"\n', {"BROKER": "amqp://me:secret@rabbit//"}, "amqp://me:secret@rabbit//"),
    ],
)
def test_which_broker_is_configured(tmp_path: Path, text: str, environment: dict[str, str], expected: str) -> None:
    settings = Settings.read(environment, cwd=tmp_path)
    config = load_text(text + WORKER)
    assert configured_broker(settings, config) == expected
    assert broker_url(settings, config) == (expected or EmbeddedBroker(settings.home).url)


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({}, r"\$BROKER is not set; \[jobs\] broker_env names it"),
        ({"BROKER": "http://x"}, r"\$BROKER: expected an address of redis, rediss, redis\+socket, amqp, amqps"),
    ],
)
def test_a_broker_that_is_named_by_a_variable_must_be_there(
    tmp_path: Path, environment: dict[str, str], message: str
) -> None:
    config = load_text('[jobs]\nbroker_env = "BROKER"\n' + WORKER)
    with pytest.raises(UserError, match=message):
        configured_broker(Settings.read(environment, cwd=tmp_path), config)
