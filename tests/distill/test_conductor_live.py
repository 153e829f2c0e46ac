"""Rollouts against workers over HTTP: capped, paid for, and a fault is no verdict; tasks come from a file."""

from __future__ import annotations

import importlib.util
import json
import math
import sys
from pathlib import Path

import pytest

from distill.conductor.live import LiveWorkers, file_items
from distill.conductor.rollouts import Item, Scene
from harness.routing.base import RouterUsage
from pointsman.config.model import Config
from pointsman.errors import UserError
from pointsman.pool import Pool

PLAN = """workers = ["A", "B"]
subtasks = ["Do part 1 of the request.", "Do part 2 of the request."]
access = ["none", [1]]"""
ITEM = Item("1", "First add, then halve", {"kind": "exact", "value": "right"}, ("ada", "bob"), 1)


@pytest.fixture(scope="module")
def fake():
    name = "pointsman_tests_fake_upstream"
    if name not in sys.modules:
        file = Path(__file__).parent.parent / "support" / "fake_upstream.py"
        spec = importlib.util.spec_from_file_location(name, file)
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@pytest.fixture(scope="module")
def upstream(fake):
    made = fake.Upstream()
    yield made
    made.close()


@pytest.fixture
def scene(upstream):
    upstream.clear()
    price = {"input": 1, "output": 2}
    workers = [
        {
            "name": name,
            "description": f"Card of {name}.",
            "model": f"m-{name}",
            "base_url": upstream.url,
            "price": price,
        }
        for name in ("ada", "bob")
    ]
    config = Config.model_validate({"workers": workers, "retries": {"attempts": 1}})
    return Scene(Pool.of(config), LiveWorkers(config, lambda name: None), max_worker_tokens=50)


def test_a_plan_is_carried_out_by_the_configured_workers(scene, upstream, fake):
    for name in ("ada", "bob"):
        upstream.script(f"m-{name}", fake.text("right"), fake.text("right"))
    once, again = (scene.roll([(ITEM, PLAN, RouterUsage(10, 2))])[0] for _ in range(2))  # two event loops
    assert once.earned.outcome == again.earned.outcome == 1.0 and once.steps == 2
    assert once.cost > (10 * 0.05 + 2 * 0.2) / 1e6 > 0
    asked = [call.json for name in ("ada", "bob") for call in upstream.of(f"m-{name}")]
    assert len(asked) == 4 and {body["max_tokens"] for body in asked} == {50}


def test_a_worker_that_is_down_is_no_verdict(scene, upstream, fake):
    for name in ("ada", "bob"):
        upstream.script(f"m-{name}", *[fake.reply({"error": {"message": "down"}}, status=500)] * 2)
    (rolled,) = scene.roll([(ITEM, PLAN, RouterUsage(10, 2))])
    assert math.isnan(rolled.earned.total)


def test_tasks_of_a_file_become_requests_with_pools(tmp_path):
    file = tmp_path / "tasks.jsonl"
    lines = [{"id": n, "prompt": f"What is {n}?", "verifier": {"kind": "exact", "value": "x"}} for n in range(60)]
    file.write_text("\n".join(map(json.dumps, lines)))
    asked, looked = file_items(file, ["ada", "bob", "cyd"], 1)
    assert len(asked) + len(looked) == 60 and 1 <= len(looked) < 20
    assert {len(item.names) for item in asked} == {2, 3}
    assert file_items(file, ["ada", "bob", "cyd"], 1) == (asked, looked)
    file.write_text(json.dumps(lines[0]))
    with pytest.raises(UserError, match="enough for training and validation"):
        file_items(file, ["ada"], 1)
