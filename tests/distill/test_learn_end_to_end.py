"""A rating changes a label, the label changes a trained router, the router changes a route: on a sandbox, over HTTP."""

from __future__ import annotations

import importlib.util
import sys
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from distill.jobs.found import read_labels
from pointsman.actions.actor import Actor
from pointsman.actions.routers import promote
from pointsman.config import load_text
from pointsman.identity import DEFAULT_PROJECT_ID as PROJECT
from pointsman.sandbox.serve import serving
from pointsman.sandbox.setup import toml_text
from pointsman.sandbox.tasks import tasks
from pointsman.verifiers import verify

SEED, REQUESTS = 7, 160
FAMILIES = ("ordering", "arithmetic")
SPEC = '\n[reward.default]\nquality = ["feedback"]\n'


def support(name):
    """A module of tests/support, loaded by path: tests are no package."""
    full = f"pointsman_tests_{name}"
    if full not in sys.modules:
        file = Path(__file__).parent.parent / "support" / f"{name}.py"
        spec = importlib.util.spec_from_file_location(full, file)
        module = importlib.util.module_from_spec(spec)
        sys.modules[full] = module
        spec.loader.exec_module(module)
    return sys.modules[full]


@pytest.fixture
def gateway(empty_database, run_job):
    """A gateway over a sandbox that draws every worker alike; it shares its data folder with the jobs."""
    home = run_job.place.settings.home
    home.mkdir(parents=True, exist_ok=True)
    with serving(SEED) as url:
        toml = toml_text(SEED, int(url.rpartition(":")[2]), "nonsense") + SPEC
        toml = toml.replace('chain = ["harness", "rule", "default"]', 'chain = ["default"]')
        made = support("running_gateway").RunningGateway(
            toml.replace("epsilon = 0.05", "epsilon = 1.0\nseed = 3"), home, empty_database, {}
        )
        made.greedy = load_text(toml.replace("epsilon = 0.05", "epsilon = 0.0"))
        yield made
        made.close()


def rate(gateway, decision, value, rater):
    body = {"decision_id": decision, "metric": "correct", "value": value, "source": "person", "rater": rater}
    assert gateway.client.post("/v1/feedback", json=body).status_code < 300


def learned(gateway, run_job, engine):
    """Labels of the log, a classic router of the labels, promoted; what it is and what the labels say."""
    gateway.ship()
    made = run_job("labels", {"toy": True, "encoder": "text", "origins": ["traffic"]}, PROJECT)
    assert made.state == "done", made.reason
    done = run_job("train", {"labels": made.result["label_set"], "method": "clusters"}, PROJECT)
    assert done.state == "done", done.reason
    with engine.begin() as connection:
        promote(
            connection, Actor("ana", "operator"), PROJECT, done.result["router_version"], datetime.now(UTC),
            uncertified=True,
        )  # fmt: skip
    gateway.refresh()
    with engine.connect() as connection:
        stored = read_labels(connection, run_job.place.files(), PROJECT, made.result["label_set"])
    return done.result["router_version"], stored.labels


def said(labels, texts):
    """The worker that the labels of these texts say is best on average."""
    rows = [text in texts for text in labels.texts]
    return labels.arms[int(labels.mean[rows].mean(axis=0).argmax())].worker


def test_a_rating_changes_a_label_the_label_a_router_and_the_router_a_route(gateway, run_job, engine):
    drawn = (task for task in tasks(SEED, "train") if task.family in FAMILIES)
    asked = []
    for number, task in enumerate(islice(drawn, REQUESTS)):
        answer = gateway.chat(task.prompt)
        right = verify(task.verifier, answer.json()["choices"][0]["message"]["content"]) >= 0.5
        decision = answer.headers["x-pointsman-decision-id"]
        rate(gateway, decision, right, f"rater {number % 10}")
        asked.append((task, decision, right))
    sums = {task.prompt for task, _, _ in asked if task.family == FAMILIES[0]}
    probes = [task.prompt for task in islice((t for t in tasks(SEED, "validation") if t.family == FAMILIES[0]), 9)]

    version, labels = learned(gateway, run_job, engine)
    gateway.stop()
    gateway.config = gateway.greedy
    gateway.start()
    gateway.refresh()
    before = [gateway.chat(prompt) for prompt in probes]
    assert all(version in answer.headers["x-pointsman-router"] for answer in before)
    routes = [answer.headers["x-pointsman-worker"] for answer in before]
    assert max(set(routes), key=routes.count) == said(labels, sums)

    for number, (task, decision, right) in enumerate(asked):
        if task.family == FAMILIES[0]:
            for again in range(3):
                rate(gateway, decision, not right, f"another {(number + again) % 11}")
    second, relabelled = learned(gateway, run_job, engine)
    after = [gateway.chat(prompt).headers["x-pointsman-worker"] for prompt in probes]
    assert second != version and said(relabelled, sums) != said(labels, sums)
    assert max(set(after), key=after.count) == said(relabelled, sums) != max(set(routes), key=routes.count)
    others = [text not in sums for text in labels.texts]
    kept = [text not in sums for text in relabelled.texts]
    assert np.abs(labels.rewards[others] - relabelled.rewards[kept])[np.isfinite(labels.rewards[others])].max() == 0
