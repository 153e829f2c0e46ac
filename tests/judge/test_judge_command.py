"""`pointsman judge`: a judge's scores beside the truth, as the command line tells it."""

from __future__ import annotations

import json
import random

import pytest
import typer
from typer.testing import CliRunner

from pointsman.commands import judge
from pointsman.config import load_text
from pointsman.identity import DEFAULT_PROJECT_ID
from pointsman.judge.judging import JudgeSpec
from pointsman.pool import Pool

WORKERS = """
[judge]
worker = "a"
[[workers]]
name = "a"
description = "A."
model = "m-a"
base_url = "http://127.0.0.1:9/v1"
"""


@pytest.fixture
def run(tmp_path, database_url):
    file = tmp_path / "pointsman.toml"
    file.write_text(f'[database]\nurl = "{database_url}"\n{WORKERS}')
    environment = {"POINTSMAN_HOME": str(tmp_path), "POINTSMAN_CONFIG": str(file), "COLUMNS": "140", "TERM": "dumb"}

    def invoke(*arguments):
        app = typer.Typer()
        app.callback()(lambda: None)
        judge.register(app)
        return CliRunner(env=environment).invoke(app, ["judge", "--no-ask", *arguments])

    return invoke


def test_it_shows_what_the_judge_says_and_what_is_true(log, run):
    log.project, coin = DEFAULT_PROJECT_ID, random.Random(3)
    config = load_text(WORKERS)
    spec = JudgeSpec.of(config, Pool.of(config))
    assert spec is not None
    scores, right = [], 0
    with log.at_once():
        for minute in range(60):
            good = coin.random() < 0.5
            right += good
            known = {"score": float(good)} if minute % 2 else {}
            decision = log.full(minute, origin="probe", cells=[("a", 0, known)])
            call = log._held["outcome"][-1]["id"]
            scores.append(
                {"judge_hash": spec.hash, "call_id": call, "project_id": log.project, "decision_id": decision,
                 "worker": "a", "judge_worker": "a", "mode": "grade", "score": 0.9 if good else 0.4,
                 "created_at": log.at(minute)}
            )  # fmt: skip
    assert "a has scored nothing of origin probe yet" in run().stdout
    log.write("judge_score", *scores)
    (row,) = json.loads(run("--json").stdout)
    assert (row["worker"], row["verified"], row["rows"]) == ("a", 30, 60)
    share = right / 60
    assert row["judge_units"] > share + 0.1 and row["low"] < share < row["high"]
    shown = run().stdout
    assert "in judge units" in shown and "30 of 60" in shown


def test_without_verified_rows_it_says_what_is_missing(log, run):
    log.project = DEFAULT_PROJECT_ID
    spec = JudgeSpec.of(load_text(WORKERS), Pool.of(load_text(WORKERS)))
    with log.at_once():
        decision = log.full(0, origin="audit", cells=[("a", 0, {})])
        call = log._held["outcome"][-1]["id"]
    log.write(
        "judge_score",
        {"judge_hash": spec.hash, "call_id": call, "project_id": log.project, "decision_id": decision, "worker": "a",
         "judge_worker": "a", "mode": "grade", "score": 0.5, "created_at": log.at(1)},
    )  # fmt: skip
    assert "too few rows of origin audit have both" in str(run("--origin", "audit").exception)
