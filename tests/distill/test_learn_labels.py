"""Labels: weights and caps, estimates, parts without leaks, the set on disk, and the whole way from the log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from distill.jobs.found import read_labels
from distill.labels.estimate import EstimateConfig, estimate, pseudo_outcomes
from distill.labels.evidence import Asked, Cell, gather
from distill.labels.make import LabelConfig, label_points, make_labels
from distill.labels.parts import check_leaks, split_as_given, split_by_time
from distill.labels.report import data_report
from distill.labels.store import from_files, to_files
from distill.labels.targets import FLOOR, probability_best, row_weights, soft_targets
from distill.labels.weighing import Weighing, most_each, weigh
from distill.table import Arm
from pointsman.errors import BrokenInvariant, UserError

ARMS = (Arm("e-a", "a"), Arm("e-b", "b"))
START = datetime(2026, 5, 1, tzinfo=UTC)
TOY = LabelConfig(encoder="text", toy=True)


def asked(number, text=None, episode=None, minutes=None, split=None, task=None):
    moment = START + timedelta(minutes=number if minutes is None else minutes)
    return Asked(f"r{number}", text or f"text {number}", episode or f"s{number}", moment, "probe", task, split)


def evidence_of(table, **more):
    """A reward table as full-information evidence."""
    rows = [asked(n, text, task=task) for n, (text, task) in enumerate(zip(table.texts, table.tasks, strict=True))]
    cells = [
        Cell(n, arm.endpoint, float(table.rewards[n, k]), "verifier")
        for n in range(len(table))
        for k, arm in enumerate(table.arms)
        if np.isfinite(table.rewards[n, k])
    ]
    return gather(rows, cells, table.arms, **more)


def test_caps_hold_for_each_source_and_each_rater():
    cells = [Cell(n, "e-a", 1.0, "verifier") for n in range(30)]
    cells += [Cell(n, "e-b", 0.0, "feedback", rater="loud") for n in range(90)]
    cells += [Cell(n, "e-b", 1.0, "feedback", rater=f"quiet {n % 10}") for n in range(60)]
    evidence = gather([asked(n) for n in range(100)], cells, ARMS)
    weighed, cut = weigh(evidence, Weighing(source_cap=0.5, rater_cap=0.2))
    who = np.array([rater or "" for rater in weighed.raters])
    feedback = weighed.weights[who != ""].sum()
    assert weighed.weights[who == "loud"].sum() == pytest.approx(0.2 * feedback)
    assert feedback == pytest.approx(30) and set(cut) == {"rater loud", "source feedback"}
    free, _ = weigh(evidence, Weighing(source_cap=1, rater_cap=1))
    assert free.weights.tolist() == [1.0] * 180
    assert most_each([90.0, 10.0], 0.0, 0.2) == 10  # two cannot each be a fifth: they weigh alike
    assert most_each([4.0], 6.0, 0.5) == 4 and most_each([9.0], 6.0, 0.5) == pytest.approx(6)


def test_a_worker_of_which_little_is_known_is_left_out_and_counted():
    cells = [Cell(n, "e-a", 1.0, "verifier") for n in range(5)] + [Cell(n, "e-b", 1.0, "verifier") for n in range(5)]
    found = gather(
        [asked(n) for n in range(5)], [*cells, Cell(0, "e-c", 1.0, "verifier")], [*ARMS, Arm("e-c", "c")], least=2
    )
    assert [arm.worker for arm in found.arms] == ["a", "b"] and found.left_out == {"workers with too few answers": 1}
    with pytest.raises(UserError, match="something is known of 1 workers"):
        gather([asked(0)], [Cell(0, "e-a", 1.0, "verifier")], ARMS)


def test_estimates_find_each_tasks_best_worker_and_know_how_sure_they_are(world):
    table = world(400, seed=3, untried=0.3)
    evidence = evidence_of(table)
    found = estimate(label_points([one.text for one in evidence.asked], "text", 1, None), evidence)
    best = {"sums": 0, "code": 1, "words": 2}
    right = np.mean([found.mean[n].argmax() == best[one.task] for n, one in enumerate(evidence.asked)])
    assert found.method == "direct" and found.grouped == "tasks" and right > 0.97
    fewer = evidence_of(world(120, seed=3))
    wide = estimate(label_points([one.text for one in fewer.asked], "text", 1, None), fewer)
    assert wide.deviation.mean() > 1.2 * found.deviation.mean()


def test_a_requests_own_answers_are_not_in_its_groups_estimate(world):
    table = world(200, seed=4)
    points = label_points(list(table.texts), "text", 1, None)
    config = EstimateConfig(own_strength=1e12)
    before = estimate(points, evidence_of(table), config).mean
    table.rewards[7] = 1 - table.rewards[7]
    after = estimate(points, evidence_of(table), config).mean
    assert np.allclose(before[7], after[7], atol=1e-9) and not np.allclose(before, after, atol=1e-9)
    own = estimate(points, evidence_of(table), EstimateConfig(own_strength=1.0)).mean
    assert np.abs(own[7] - after[7]).max() > 0.2


def test_corrected_guesses_are_right_on_average_however_wrong_the_guess():
    rng = np.random.default_rng(0)
    size, truth, p = 6000, np.array([0.7, 0.4]), np.array([0.8, 0.2])
    arm = (rng.random(size) < p[1]).astype(int)
    reward = (rng.random(size) < truth[arm]).astype(float)
    cells = [Cell(n, f"e-{'ab'[arm[n]]}", reward[n], "feedback", propensity=float(p[arm[n]])) for n in range(size)]
    evidence = gather([asked(n) for n in range(size)], cells, ARMS)
    outcomes, weights = pseudo_outcomes(np.full((size, 2), 0.1), evidence, 0.05)
    assert outcomes.mean(axis=0) == pytest.approx(truth, abs=0.04)
    assert weights[0, 1] < weights[0, 0] <= 1  # the arm that is seldom drawn says less


def test_doubly_robust_from_enough_draws_only(world):
    table = world(300, seed=5)
    evidence = evidence_of(table)
    drawn = evidence.weighted(evidence.weights)
    object.__setattr__(drawn, "propensities", np.full(len(drawn.values), 0.5))
    points = label_points(list(table.texts), "text", 1, None)
    assert estimate(points, drawn, EstimateConfig(doubly_robust_from=100)).method == "doubly robust"
    assert estimate(points, drawn, EstimateConfig(doubly_robust_from=10_000)).method == "direct"


def test_probability_of_being_best_and_what_a_row_counts():
    mean, deviation = np.array([[0.9, 0.1], [0.5, 0.5]]), np.array([[0.01, 0.01], [0.1, 0.1]])
    best = probability_best(mean, deviation, np.random.default_rng(0))
    assert best[0].tolist() == [1.0, 0.0] and best[1] == pytest.approx([0.5, 0.5], abs=0.1)
    counts = row_weights(best)
    assert counts[0] == 1 and FLOOR <= counts[1] < 0.5
    assert soft_targets(mean, best, "best", 0.03) is best
    assert soft_targets(mean, best, "softmax", 0.1)[0, 0] == pytest.approx(1 / (1 + np.exp(-8)))


def test_parts_share_no_episode_and_no_text_and_the_latest_are_the_test():
    rows = [asked(n) for n in range(100)]
    rows[3] = asked(3, text=rows[95].text)  # an early request that asks what a late one does
    rows[50] = asked(50, episode=rows[97].episode)
    parts = split_by_time(rows)
    assert parts[3] == parts[95] == parts[50] == parts[97] == "test"
    assert [parts.count(name) for name in ("train", "validation", "test")] == [65, 15, 20]
    assert parts[0] == "train" and parts[99] == "test"
    check_leaks(rows, parts)
    with pytest.raises(BrokenInvariant, match=r"is in (test and in train|train and in test)"):
        check_leaks(rows, ["train" if n == 3 else part for n, part in enumerate(parts)])


def test_given_parts_are_kept_but_where_they_leak():
    rows = [asked(n, split="train") for n in range(40)] + [asked(n, split="test") for n in range(40, 60)]
    rows[0] = asked(0, text=rows[59].text, split="train")
    parts = split_as_given(rows, 1)
    assert parts[0] == "test" and parts[40:] == ("test",) * 20 and parts.count("validation") == 6
    with pytest.raises(UserError, match="got middle"):
        split_as_given([asked(0, split="middle")], 1)


def test_a_set_comes_back_from_its_files_and_is_refused_when_changed(world):
    labels = make_labels(evidence_of(world(150, seed=6)), TOY)
    data, manifest = to_files(labels)
    again = from_files(data, manifest)
    assert again.hash == labels.hash and again.targets.tolist() == labels.targets.tolist()
    assert again.notes["report"] == labels.notes["report"] and again.arms == labels.arms
    assert labels.targets.sum(axis=1) == pytest.approx(1)
    other = make_labels(evidence_of(world(151, seed=6)), TOY)
    with pytest.raises(UserError, match="not those that its manifest names"):
        from_files(to_files(other)[0], manifest)
    with pytest.raises(UserError, match="not a label set"):
        from_files(b"PAR1", manifest)


def test_labels_belong_to_endpoints_whatever_workers_are_called_and_in_whatever_order(world):
    table = world(150, seed=6)
    labels = make_labels(evidence_of(table), TOY)
    turned = table.with_arms(table.endpoints[::-1])
    renamed = make_labels(evidence_of(turned), TOY)
    assert np.allclose(renamed.mean[:, ::-1], labels.mean) and renamed.arms[::-1] == labels.arms


def test_few_requests_are_refused_unless_told(world):
    with pytest.raises(UserError, match="150 requests are known of, and below 600"):
        make_labels(evidence_of(world(150)), LabelConfig(encoder="text"))


def test_the_report_names_dead_cells_ties_and_reruns(world):
    table = world(200, seed=7)
    table.rewards[[task == "code" for task in table.tasks], 3] = 0.0
    evidence = evidence_of(table, reruns=np.array([[1.0, 1.0], [1.0, 0.0]]))
    told = data_report(evidence, label_points(list(table.texts), "text", 1, None), 1)
    assert told["all_zero"][0]["task"] == "code" and told["all_zero"][0]["worker"] == "worker-3"
    assert told["reruns"] == {"pairs": 2, "agreement": 0.5}
    assert told["full_rows"] == 200 and 0 < told["ties"]["several_best"] < 1 and told["drift"]["tested"]


def fill(log, *, liked=True, words=120):
    """Full rows in which `a` is right and `b` wrong on sums, traffic on riddles with ratings, and verdicts."""
    log.write("pool_snapshot", {
        "hash": "p", "created_at": log.start,
        "content": {name: {"endpoint": f"endpoint-{name}", "card": None, "price": None} for name in "ab"},
    })  # fmt: skip
    with log.at_once():
        for n in range(60):
            cells = [("a", 0, {"score": 1.0}), ("b", 0, {"score": float(n % 5 == 0)})]
            log.full(n, cells=cells, text=f"What is {n} plus {n + 1}?")
        for n in range(words):
            identity = log.decision(100 + n, chosen="ab"[n % 2], answered="ab"[n % 2])
            log._held["request"][-1]["text"] = f"A riddle about rivers, the {n}th of many"
            log._held["decision"][-1]["pool_hash"] = "p"
            log._held["decision"][-1]["probabilities"] = {"a": 0.5, "b": 0.5}
            log.word(identity, (n % 2 == 1) == liked, 200 + n, rater=f"guest {n % 12}")


def labels_of(run_job, engine, log, **params):
    done = run_job("labels", {"toy": True, "encoder": "text", **params}, log.project)
    assert done.state == "done", done.reason
    with engine.connect() as connection:
        stored = read_labels(connection, run_job.place.files(), log.project, done.result["label_set"])
    return done.result, stored.labels


def test_from_the_log_to_a_set(log, engine, run_job):
    fill(log)
    verdict = log.decision(500, chosen="a")
    log.word(verdict, None, 501, metric="better_worker", better_worker="b")
    result, labels = labels_of(run_job, engine, log)
    assert result["requests"] == 180 and result["report"]["by_source"] == {"verifier": 120, "feedback": 120}
    assert result["report"]["left_out"] == {"a verdict that names no other worker of its pool": 1}
    assert result["report"]["propensities"]["drawn"] == 120
    riddles = np.array([text.startswith("A riddle") for text in labels.texts])
    b = [arm.worker for arm in labels.arms].index("b")
    assert (labels.mean[~riddles].argmax(axis=1) != b).mean() > 0.9
    assert (labels.mean[riddles].argmax(axis=1) == b).mean() > 0.9
    assert (
        set(labels.endpoints_of(riddles)) == {"endpoint-a", "endpoint-b"} if hasattr(labels, "endpoints_of") else True
    )


def test_ratings_change_labels(log, engine, run_job):
    fill(log, liked=False)
    _, labels = labels_of(run_job, engine, log)
    riddles = np.array([text.startswith("A riddle") for text in labels.texts])
    a = [arm.worker for arm in labels.arms].index("a")
    assert (labels.mean[riddles].argmax(axis=1) == a).mean() > 0.9


def test_a_verdict_for_another_worker_moves_its_label(log, engine, run_job):
    fill(log)
    before = labels_of(run_job, engine, log)[1]
    for n in range(30):
        identity = log.decision(600 + n, chosen="b", answered="b")
        log.word(identity, None, 700 + n, metric="better_worker", better_worker="a", rater=f"guest {n}")
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE request SET text = 'A riddle about rivers' WHERE text = '?'")
        connection.exec_driver_sql("UPDATE decision SET pool_hash = 'p' WHERE pool_hash IS NULL AND origin = 'traffic'")
    result, after = labels_of(run_job, engine, log)
    assert result["report"]["by_source"]["verdict"] == 30
    assert of_riddles(after, "a") > of_riddles(before, "a") + 0.005


def of_riddles(labels, worker):
    """A worker's mean estimate over the riddles."""
    riddles = [text.startswith("A riddle") for text in labels.texts]
    return labels.mean[riddles, [arm.worker for arm in labels.arms].index(worker)].mean()


def test_a_log_with_too_little_ends_the_job_with_what_to_do(log, run_job):
    fill(log, words=0)
    done = run_job("labels", {"encoder": "text"}, log.project)
    assert done.state == "failed" and "below 600" in done.reason
