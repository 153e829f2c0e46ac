"""Teacher, student and card head on a small world; splits, values, mixes, and adding workers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from distill.classic.teacher import TeacherConfig, fit_teacher
from distill.evaluate.adding import MixtureFold, add_by_card, add_by_probes, pooled_ratio
from distill.evaluate.folds import stratified_folds, stratified_split
from distill.evaluate.mixes import cheapest_mix
from distill.evaluate.values import best_single, entropy, gap_closed, oracle, realised, shares
from distill.features.extras import Extras
from distill.recorded import read_table
from distill.router_model.distilling import DistilConfig, card_head, card_mixture, distil
from distill.sft.loop import SftConfig
from distill.table import RewardTable
from pointsman.errors import UserError

SMALL = DistilConfig(TeacherConfig(trees=20, components=4))


def parts(table: RewardTable, extras: Extras) -> tuple[Any, Any]:
    """A stand-in for states (two blunt numbers) and the extras."""
    states = np.array([[len(text) / 50, text.count(" ") / 5, 1, 0, 0] for text in table.texts], np.float32)
    return states, extras.rows(table.texts)


@pytest.fixture(scope="module")
def worlds(world: Any) -> Any:
    taught, fresh = world(700, seed=11), world(400, seed=12)
    extras = Extras.fit(taught.texts, 0)
    return taught, fresh, parts(taught, extras), parts(fresh, extras)


def test_teacher_and_heads_beat_the_best_single(worlds: Any) -> None:
    taught, fresh, (states, extra), (new_states, new_extra) = worlds
    single = best_single(taught.rewards, fresh.rewards).mean()
    fitted = distil(states, extra, taught, 0, SftConfig(epochs=30), SMALL)
    teacher = realised(fresh.rewards, fitted.teacher.scores(new_states, new_extra)).mean()
    rows = np.hstack([new_states, new_extra])
    with torch.no_grad():
        student = realised(fresh.rewards, fitted.head(torch.as_tensor(rows)).numpy()).mean()
    mixture = card_mixture(np.hstack([states, extra]), taught, 0, SMALL)
    head = card_head(mixture, taught.endpoints, 0.03)
    with torch.no_grad():
        scores = head.rewards(torch.as_tensor(rows)).numpy()
    assert np.abs(scores - mixture.scores(rows)).max() < 1e-4
    for value in (teacher, student, realised(fresh.rewards, scores).mean()):
        assert value > single + 0.2


def test_no_label_holds_its_own_reward(worlds: Any) -> None:
    taught, _, (states, extra), _ = worlds
    changed = taught.rewards.copy()
    changed[0] = 1 - changed[0]
    tasks = taught.task_numbers()
    before = fit_teacher(states, extra, taught.rewards, tasks, 0, TeacherConfig(trees=20, components=4, blends=(0.0,)))
    after = fit_teacher(states, extra, changed, tasks, 0, TeacherConfig(trees=20, components=4, blends=(0.0,)))
    assert np.array_equal(before.training[0], after.training[0])
    assert not np.array_equal(before.training, after.training)


def test_without_tasks_clusters_teach(worlds: Any) -> None:
    taught, fresh, (states, extra), (new_states, new_extra) = worlds
    nameless = (), np.full(len(taught), -1)
    teacher = fit_teacher(states, extra, taught.rewards, nameless, 0, TeacherConfig(trees=30, components=4))
    assert teacher.posterior is None
    single = best_single(taught.rewards, fresh.rewards).mean()
    assert realised(fresh.rewards, teacher.scores(new_states, new_extra)).mean() > single + 0.15


def test_a_task_of_one_request_is_in_no_ones_way(worlds: Any) -> None:
    taught, _, (states, extra), (new_states, new_extra) = worlds
    names, numbers = taught.task_numbers()
    rare = (*names, "rare"), np.where(np.arange(len(taught)) == 0, len(names), numbers)
    teacher = fit_teacher(states, extra, taught.rewards, rare, 0, TeacherConfig(trees=20, components=4, blends=(1.0,)))
    assert np.isfinite(teacher.scores(new_states, new_extra)).all()


def test_masking_the_card_head_equals_refitting_without_the_worker(worlds: Any) -> None:
    taught, fresh, (states, extra), (new_states, new_extra) = worlds
    rows, new = np.hstack([states, extra]), np.hstack([new_states, new_extra])
    full = card_mixture(rows, taught, 0, SMALL).scores(new)
    for number, endpoint in enumerate(taught.endpoints):
        rest = card_mixture(rows, taught.without(endpoint), 0, SMALL).scores(new)
        assert np.abs(np.delete(full, number, axis=1) - rest).max() < 1e-9
    available = np.array([False, True, True, True])
    assert (realised(fresh.rewards, full, available) == fresh.rewards[np.arange(400), full[:, 1:].argmax(1) + 1]).all()


def test_folds_part_every_row_once_and_keep_groups() -> None:
    strata = np.repeat([0, 1], [60, 15])
    seen = np.concatenate([other for _, other in stratified_folds(strata, 5, 0)])
    assert sorted(seen.tolist()) == list(range(75))
    for training, other in stratified_folds(strata, 5, 0):
        assert not set(training) & set(other)
        assert np.bincount(strata[other]).tolist() == [12, 3]
    texts = [str(number // 3) for number in range(75)]
    for training, other in stratified_folds(strata, 5, 0, texts):
        assert not {texts[row] for row in training} & {texts[row] for row in other}
    with pytest.raises(UserError, match="9 folds of 3"):
        list(stratified_folds(np.zeros(3, np.int64), 9, 0))
    rest, held = stratified_split(strata, 0.2, 0)
    assert np.bincount(strata[held]).tolist() == [12, 3]
    assert len(rest) == 60


def test_values_by_hand() -> None:
    rewards = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.5]])
    assert realised(rewards, np.array([[1, 0], [0, 1], [0, 1]])).tolist() == [1, 1, 0.5]
    assert best_single(rewards, rewards).tolist() == [1, 0, 1]
    assert oracle(rewards).tolist() == [1, 1, 1]
    gap = gap_closed(np.array([1, 0.5, 1]), np.array([1, 0, 1]), np.ones(3), np.random.default_rng(0), draws=50)
    assert gap.closed == pytest.approx(0.5)
    assert shares(np.array([0, 0, 1, 1]), 3).tolist() == [0.5, 0.5, 0]
    assert entropy(np.array([0.5, 0.5, 0.0])) == pytest.approx(np.log(2))


def test_the_cheapest_mix_saves_where_nothing_is_lost() -> None:
    rng = np.random.default_rng(0)
    easy = rng.random(800) < 0.6
    rewards = np.stack([np.where(easy, 0.95, 0.1), np.full(800, 0.95)], axis=1)
    mix = cheapest_mix(rewards[:400], rewards[:400], rewards[400:], rewards[400:], np.array([1.0, 10.0]))
    assert mix.earned.mean() == pytest.approx(0.95)
    assert mix.paid.mean() == pytest.approx(np.where(easy[400:], 1, 10).mean())


def test_adding_a_worker_by_many_probes_nears_retraining() -> None:
    rng = np.random.default_rng(0)
    values = np.array([[0.9, 0.3, 0.5, 0.6], [0.3, 0.9, 0.5, 0.4], [0.4, 0.4, 0.9, 0.5]])
    types, judged = rng.integers(0, 3, 900), rng.integers(0, 3, 900)

    def drawn(kinds: Any) -> Any:
        return (rng.random((900, 4)) < values[kinds]).astype(float)

    fold = MixtureFold(np.eye(3)[judged], values, drawn(judged), types, drawn(types), np.eye(4))
    ratio = pooled_ratio([add_by_probes(fold, 400, 2, 0)], np.random.default_rng(0), resamples=50)
    assert ratio.value > 0.7
    assert ratio.low <= ratio.value <= ratio.high
    by_card = pooled_ratio([add_by_card(fold)], np.random.default_rng(0), resamples=50)
    assert by_card.value < 0.3


def test_a_recorded_folder_becomes_a_table(tmp_path: Path) -> None:
    queries = [{"id": "q1", "text": "one", "task": "t", "split": "train"}, {"id": "q2", "text": "two"}]
    outcomes = [
        {"query_id": "q1", "model": "b", "score": 1.0},
        {"query_id": "q1", "model": "b", "score": 0.0},
        {"query_id": "q1", "model": "a", "score": 1.0},
    ]
    (tmp_path / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    (tmp_path / "outcomes.jsonl").write_text("\n".join(map(json.dumps, outcomes)))
    (tmp_path / "models.json").write_text('{"a": {"input_price": 1, "output_price": 3}}')
    table = read_table(tmp_path)
    assert [arm.worker for arm in table.arms] == ["a", "b"]
    assert table.rewards.tolist() == [[1.0, 0.5]]
    assert (table.tasks, table.splits, table.arms[0].price) == (("t",), ("train",), 4.0)
