"""Comparison of routers: what speaks against one, ablations, logged traffic, plots, and the whole job."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from distill.evaluate.ablating import mask_and_drop, renamed
from distill.evaluate.comparing import Exam, Scored, compare, frame, per_task
from distill.evaluate.curves import cost_curve
from distill.evaluate.plots import Dot, curve, dots
from distill.jobs.scoring import UNKNOWN, by_endpoint

PROJECT = "018f0000-0000-7000-8000-000000000001"
SIZE = 400


@pytest.fixture(scope="module")
def exam():
    """Two tasks; the first worker is right on one, the second on the other, the third on half of all."""
    rng = np.random.default_rng(0)
    task = rng.random(SIZE) < 0.5
    chance = np.stack([np.where(task, 0.9, 0.4), np.where(task, 0.3, 0.9), np.full(SIZE, 0.5)], axis=1)
    rewards = (rng.random((SIZE, 3)) < chance).astype(float)
    tasks = ["sums" if one else "words" for one in task]
    made = Exam(rewards, list(range(SIZE)), tasks, ("a", "b", "c"), 0, "cheap")
    object.__setattr__(made, "chance", chance)
    return made


def test_a_router_is_refused_where_it_is_not_better_than_what_is_cheaper(exam):
    alone = np.tile([1.0, 0.0, 0.0], (SIZE, 1))
    routers = [
        Scored("good", exam.chance),
        Scored("one worker", alone),
        Scored("cheap", exam.chance + 0.0, cheap=True),
        Scored("worse", exam.rewards.mean(axis=1)[:, None] * 0 + np.random.default_rng(1).random((SIZE, 3))),
    ]
    good, one, cheap, worse = compare(exam, routers)
    assert good["vs_best_single_interval"][0] > 0 and good["vs_cheap"] == 0
    assert good["refused"] == ["it is not shown to be better than the best cheap router"]
    assert "it gives nearly everything to one worker" in one["refused"] and one["entropy"] == 0
    assert cheap["refused"] == [] and cheap["gap_closed"] > 0.3
    assert len(worse["refused"]) == 2 and worse["vs_best_single"] < 0
    told = frame(exam)
    assert told["best_single"] == "a" and told["oracle"] > cheap["value"] > told["random"]


def test_tasks_are_told_apart(exam):
    lines = {line["task"]: line for line in per_task(exam, [Scored("good", exam.chance)])}
    assert sum(line["requests"] for line in lines.values()) == SIZE
    assert lines["words"]["good"] > lines["words"]["best_single"] + 0.3
    assert lines["sums"]["good"] == lines["sums"]["best_single"]


def test_masking_and_dropping_are_told_for_each_worker(exam, world, keep_labels):
    _, labels = keep_labels(world(150, seed=21, arms=3), PROJECT)

    def refit(some):
        kept = [arm.endpoint for arm in some.arms]
        columns = [n for n, arm in enumerate(labels.arms) if arm.endpoint in kept]
        return exam.chance[:, columns]

    lines = mask_and_drop(exam, exam.chance, labels, refit)
    assert [line["mask_regret"] for line in lines] == [0, 0, 0]  # of scores that are right, masking loses nothing
    assert lines[1]["dropped_interval"][0] > 0.1 and lines[2]["dropped"] == 0
    assert lines[1]["masked"] == lines[1]["version_bump"] < 0.75


def test_renaming_and_reordering_change_nothing_and_would_be_seen(exam):
    names = ["e-a", "e-b", "e-c"]
    rng = np.random.default_rng(3)
    assert renamed(lambda order: by_endpoint(exam.chance, names, order), names, rng) == 0
    assert renamed(lambda order: exam.chance, names, np.random.default_rng(3)) > 0.3
    assert by_endpoint(exam.chance, names, ["e-x", "e-b"])[0].tolist() == [UNKNOWN, exam.chance[0, 1]]


def test_price_takes_over_along_the_curve(exam):
    prices = np.array([10.0, 1.0, 0.1])
    found = cost_curve(exam.chance, exam.rewards, exam.chance, exam.rewards, prices, 1)
    weights, values, paid = zip(*found.points, strict=True)
    assert list(paid) == sorted(paid, reverse=True) and paid[-1] == pytest.approx(0.1)
    assert values[0] == max(values) and weights[0] == 0
    assert found.matched["value_difference_interval"][0] > -0.02 and found.matched["price_share"] < 0.7


def test_plots_are_pictures():
    from PIL import Image

    drawn = dots("Values", [Dot("a router", 0.5, 0.4, 0.6), Dot("another", 0.7, 0.7, 0.7)], "reward", 0.0)
    line = curve("Cost", [(1.0, 0.5), (2.0, 0.7), (0.5, 0.3)], "USD", "reward")
    for data in (drawn, line):
        image = Image.open(io.BytesIO(data))
        assert image.format == "PNG" and len(image.convert("RGB").getcolors(100_000) or ()) > 3


def test_the_job_compares_what_was_trained_with_ablations_tables_and_plots(world, keep_labels, run_job, tiny_qwen):
    identity, _ = keep_labels(world(400, seed=22), PROJECT)
    trained = [
        run_job("train", {"labels": identity, "method": "mixture"}, PROJECT),
        run_job("train", {"labels": identity, "kind": "learned", "backbone": str(tiny_qwen)}, PROJECT),
    ]
    versions = [one.result["router_version"] for one in trained]
    done = run_job("evaluate", {"labels": identity, "probes": 20}, PROJECT)
    assert done.state == "done", done.reason
    told = done.result
    assert set(told["routers"]) == set(versions) and told["basis"] == "observed" and told["rows"] == 80
    by_name = {line["router"]: line for line in told["comparison"]}
    classic = by_name[f"classic {versions[0][:8]}"]
    assert classic["value"] > told["frame"]["best_single_value"] and "mixture" in by_name
    assert next(line["not_evaluable"] for line in told["logged_traffic"]).startswith(
        "not evaluable; explore: 0 test rows"
    )
    ablations = told["ablations"][f"classic {versions[0][:8]}"]
    assert ablations["renamed_and_reordered"] == 0 and ablations["worst_mask"]["mask_regret"] < 0.1
    assert ablations["added"]["probes"]["ratio"] > ablations["added"]["card"]["ratio"] - 0.5
    files = {artifact.name: artifact for artifact in _files(run_job, done.id)}
    store = run_job.place.files()
    whole = json.loads(store.read(files["evaluation.json"].hash, ".json"))
    assert whole["labels"] and len(whole["ablations"]) == 2
    lines = list(csv.DictReader(io.StringIO(store.read(files["per_task.csv"].hash, ".csv").decode())))
    assert {line["task"] for line in lines} == {"sums", "code", "words"}
    assert {"values.png", "against_best_single.png", "cost 0.png", "ablations 1.png"} <= set(files)


def _files(run_job, job_id):
    from pointsman.jobs.store import Jobs

    engine = run_job.place.engine("test")
    try:
        return Jobs(engine).artifacts(job_id)
    finally:
        engine.dispose()


def test_a_set_nothing_was_trained_on_says_so(world, keep_labels, run_job):
    identity, _ = keep_labels(world(150, seed=23), PROJECT)
    assert "`pointsman train` makes one" in run_job("evaluate", {"labels": identity}, PROJECT).reason
