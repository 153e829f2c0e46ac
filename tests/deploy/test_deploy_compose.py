"""`docker-compose.yml` and what belongs to it: right by the specification, complete, and without a secret.

No Docker engine is here: the files are read as Compose reads them. That the commands they name work is
shown in test_deploy_processes.py.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pointsman.config import Settings, load_config
from pointsman.config.home import EXAMPLE
from pointsman.errors import ConfigError

ROOT = Path(__file__).parents[2]
COMPOSE = ROOT / "docker-compose.yml"
RABBIT = ROOT / "deploy" / "rabbitmq.yml"
OWN = {
    "POSTGRES_PASSWORD": "p1",
    "REDIS_PASSWORD": "p2",
    "DASHBOARD_PASSWORD": "p3",
    "PROVIDER_API_KEY": "p4",
    "RABBITMQ_PASSWORD": "p5",
}
QUEUES = {"default", "probe", "train"}


@pytest.fixture(scope="module", params=["redis", "rabbitmq"])
def model(request: pytest.FixtureRequest, compose: Any) -> dict[str, Any]:
    """The whole file, with each broker."""
    files = [COMPOSE] if request.param == "redis" else [COMPOSE, RABBIT]
    return compose.read(files, OWN | {"broker": request.param}) | {"x-broker-name": request.param}


def problems(model: dict[str, Any]) -> list[str]:
    """What the specification would not have, a line each."""
    schema = json.loads((Path(__file__).parent / "compose_schema.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    return [f"{'.'.join(map(str, error.path))}: {error.message}" for error in validator.iter_errors(model)]


def test_it_is_right_by_the_specification(model: dict[str, Any]) -> None:
    assert problems(model) == []


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"healthcheck": {"test": ["CMD", "x"], "interval": "5"}}, "services.gateway.healthcheck.interval"),
        ({"healthcheck": {"test": "x"}}, "services.gateway.healthcheck.test"),
        ({"depends_on": {"postgres": {"condition": "healthy"}}}, "services.gateway.depends_on.postgres.condition"),
        ({"restart": "sometimes"}, "services.gateway.restart"),
        ({"ports": ["eighty:80"]}, "services.gateway.ports.0"),
        ({"volumes": ["../out:/in"]}, "services.gateway.volumes.0"),
        ({"comand": ["serve"]}, "services.gateway"),
    ],
)
def test_the_check_sees_faults(compose: Any, change: dict[str, Any], where: str) -> None:
    model = compose.read([COMPOSE], OWN)
    model["services"]["gateway"] |= change
    assert [line.partition(": ")[0] for line in problems(model)] == [where]


def test_every_name_that_is_used_is_there(model: dict[str, Any]) -> None:
    services, volumes = model["services"], model["volumes"]
    for name, service in services.items():
        for other, needed in service.get("depends_on", {}).items():
            assert other in services, f"{name} depends on {other}"
            if needed["condition"] == "service_healthy":
                assert "healthcheck" in services[other], f"{name} waits for {other} to be healthy"
        for mount in service.get("volumes", []):
            source = mount.partition(":")[0]
            if source.startswith("./"):
                assert (ROOT / source).is_file(), f"{name} mounts {source}"
            elif ":" in mount:
                assert source in volumes, f"{name} mounts the volume {source}"


def test_it_has_every_part_and_each_queue_is_served(model: dict[str, Any]) -> None:
    services, broker = model["services"], model["x-broker-name"]
    parts = {"postgres", broker, "migrate", "gateway", "proxy", "dispatcher", "dashboard"}
    workers = {name for name in services if name.startswith("worker-")}
    assert set(services) == parts | workers
    served = {services[name]["command"][services[name]["command"].index("--queues") + 1] for name in workers}
    assert served == QUEUES
    assert services["gateway"]["deploy"]["replicas"] == 2 and "ports" not in services["gateway"]
    lasting = set(services) - {"migrate"}
    assert all("healthcheck" in services[name] and "restart" in services[name] for name in lasting)
    address = services["worker-train"]["environment"]["POINTSMAN_BROKER"]
    assert address == {"redis": "redis://:p2@redis:6379/0", "rabbitmq": "amqp://pointsman:p5@rabbitmq:5672//"}[broker]
    assert broker in services["dispatcher"]["depends_on"]


def test_a_service_is_given_longer_to_stop_than_it_takes(model: dict[str, Any], compose: Any) -> None:
    config = load_config(ROOT / "deploy" / "pointsman.toml")
    stop = {
        name: compose.seconds(service.get("stop_grace_period", "10s")) for name, service in model["services"].items()
    }
    assert stop["gateway"] > config.gateway.grace + 5
    assert all(stop[name] > 20 for name in stop if name.startswith("worker-") or name == "dispatcher")
    assert compose.seconds("1m30s") == 90


def test_only_this_machine_can_reach_it_unless_it_is_told_otherwise(model: dict[str, Any], compose: Any) -> None:
    published = [port for service in model["services"].values() for port in service.get("ports", [])]
    assert sorted(published) == ["127.0.0.1:8790:8080", "127.0.0.1:8791:8791"]
    shown = compose.read([COMPOSE], OWN | {"GATEWAY_PUBLISH": "0.0.0.0:443"})
    assert shown["services"]["proxy"]["ports"] == ["0.0.0.0:443:8080"]


def test_no_secret_stands_in_a_file_and_none_may_be_left_out(compose: Any) -> None:
    for name in ("POSTGRES_PASSWORD", "REDIS_PASSWORD", "DASHBOARD_PASSWORD"):
        with pytest.raises(compose.Missing, match=name):
            compose.read([COMPOSE], {key: value for key, value in OWN.items() if key != name})
    example = compose.env_file(ROOT / ".env.example")
    secret = {name for name in example if name.endswith(("PASSWORD", "KEY"))}
    assert secret == set(OWN) - {"RABBITMQ_PASSWORD"} and {example[name] for name in secret} == {EXAMPLE}
    used = set(re.findall(r"\$\{(\w+)", COMPOSE.read_text()))
    assert used == set(example), "every variable is in .env.example, and no other"


def test_the_examples_secrets_are_refused_before_anything_starts(compose: Any, pointsman: Any) -> None:
    example = compose.env_file(ROOT / ".env.example")
    for name, service in compose.read([COMPOSE], example)["services"].items():
        if service["image"].startswith("pointsman:"):
            with pytest.raises(ConfigError, match=r"PGPASSWORD has the value of \.env\.example") as refused:
                Settings.read(service["environment"])
            assert len(refused.value.problems) == 4, f"{name}: each of the four is named"
    for command in (["check"], ["worker"]):
        done = pointsman(command, {"POINTSMAN_BROKER": f"redis://:{EXAMPLE}@redis/0"})
        assert done.returncode == 2 and "$POINTSMAN_BROKER has the value of .env.example" in done.stderr
        assert EXAMPLE not in done.stderr


def test_the_images_hold_what_their_services_need() -> None:
    """The Dockerfile's targets: the one that serves installs no torch, and every path and extra is there."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    stages = dict(re.findall(r"^FROM \S+ AS (\w+)\n(.*?)(?=^FROM |\Z)", text, re.M | re.S))
    assert list(stages) == ["base", "serve", "distill"]
    assert "torch" not in stages["base"] + stages["serve"] and "[distill]" not in stages["serve"]
    assert "torch" in stages["distill"] and "[distill]" in stages["distill"]
    for line in re.findall(r"^COPY (.*)$", text, re.M):
        for source in line.split()[:-1]:
            assert (ROOT / source).exists(), source
            assert f"!{source}" in (ROOT / ".dockerignore").read_text().splitlines(), f"{source} is left out"
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    wanted = {name for found in re.findall(r"'\.\[([\w,]+)\]'", text) for name in found.split(",")}
    assert wanted <= set(extras) and {"jobs", "dashboard"} <= wanted
    assert "USER pointsman" in stages["serve"] and 'ENTRYPOINT ["pointsman"]' in stages["serve"]
    assert stages["distill"].rindex("USER pointsman") > stages["distill"].rindex("RUN")


def test_nginx_takes_the_proxys_configuration(tmp_path: Path, nginx: str) -> None:
    assert shutil.which(nginx) or Path(nginx).exists()
    done = subprocess.run(
        [nginx, "-t", "-q", "-c", str(ROOT / "deploy" / "nginx.conf")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
