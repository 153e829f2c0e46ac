"""Forward KL, and a trainer that repeats itself, resumes and stops by held-out reward."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from distill.classic.teacher import soft_labels
from distill.router_model.backbone import BackboneConfig, load_backbone
from distill.router_model.heads import IndexHead
from distill.sft.loop import SftConfig, SftData, train
from distill.sft.loss import forward_kl, soft_targets
from distill.sft.states import CachedStates, TunedStates
from pointsman.errors import UserError


def data(size: int = 200, seed: int = 0) -> SftData:
    """Three arms; the best is told by the largest of the first three columns."""
    rng = np.random.default_rng(seed)
    states = rng.standard_normal((size, 6)).astype(np.float32)
    rewards = np.eye(3)[states[:, :3].argmax(axis=1)]
    rows = np.arange(size)
    return SftData(CachedStates(states), soft_labels(rewards, 0.3), rewards, rows[size // 4 :], rows[: size // 4])


def head() -> IndexHead:
    return IndexHead(6, ["a", "b", "c"])


def test_kl_against_its_definition() -> None:
    logits, targets = torch.tensor([[0.2, 1.0, -1.0]]), torch.tensor([[0.2, 0.5, 0.3]])
    share = torch.softmax(logits, dim=1)
    expected = float((targets * (targets / share).log()).sum())
    assert float(forward_kl(logits, targets)) == pytest.approx(expected, abs=1e-6)
    assert float(forward_kl(targets.log(), targets)) == pytest.approx(0, abs=1e-6)


def test_kl_over_kept_arms_is_that_of_the_smaller_problem() -> None:
    logits, targets = torch.tensor([[0.2, 1.0, -1.0]]), torch.tensor([[0.2, 0.5, 0.3]])
    kept = torch.tensor([[True, False, True]])
    smaller = forward_kl(logits[:, [0, 2]], targets[:, [0, 2]] / 0.5)
    assert float(forward_kl(logits, targets, kept)) == pytest.approx(float(smaller), abs=1e-6)


def test_rows_without_target_or_weight_count_nothing() -> None:
    logits = torch.randn(2, 3, generator=torch.Generator().manual_seed(0))
    targets = torch.tensor([[0.0, 1.0, 0.0], [0.5, 0.5, 0.0]])
    kept = torch.tensor([[True, False, True], [True, True, True]])
    assert float(forward_kl(logits, targets, kept)) == pytest.approx(
        float(forward_kl(logits[1:], targets[1:])), abs=1e-6
    )
    weighted = forward_kl(logits, targets, None, torch.tensor([0.0, 2.0]))
    assert float(weighted) == pytest.approx(float(forward_kl(logits[1:], targets[1:])), abs=1e-6)


def test_targets_are_soft_and_skip_the_untried() -> None:
    found = soft_targets(torch.tensor([[0.5, 0.5, 0.9]]), 0.1, torch.tensor([[True, True, False]]))
    assert found.tolist()[0] == pytest.approx([0.5, 0.5, 0.0])
    with pytest.raises(UserError, match="above 0, got 0"):
        soft_targets(torch.zeros(1, 2), 0)


def test_training_lowers_the_loss_and_finds_the_best_arm() -> None:
    trained = head()
    result = train(trained, data(), SftConfig(epochs=40, batch=32, learning_rate=0.05))
    assert result.log[-1].loss < result.log[0].loss * 0.6
    assert result.held_out_reward > 0.9
    assert result.held_out_reward == max(line.held_out_reward for line in result.log)


def test_a_seed_repeats_itself_and_another_differs() -> None:
    heads = []
    for seed in (1, 1, 2):
        heads.append(head())
        train(heads[-1], data(), SftConfig(epochs=3, batch=32, seed=seed, keep_arms=2))
    assert torch.equal(heads[0].arms, heads[1].arms)
    assert not torch.equal(heads[0].arms, heads[2].arms)


def test_a_resumed_run_gives_the_same_numbers(tmp_path: Path) -> None:
    config = SftConfig(epochs=6, batch=32, patience=9, keep_arms=2)
    whole = head()
    expected = train(whole, data(), config)
    file = tmp_path / "sft.safetensors"

    class Stopped(Exception):
        pass

    def stop(epoch: Any) -> None:
        if epoch.number == 3:
            raise Stopped

    with pytest.raises(Stopped):
        train(head(), data(), config, checkpoint=file, progress=stop)
    resumed = head()
    seen: list[int] = []
    result = train(resumed, data(), config, checkpoint=file, progress=lambda epoch: seen.append(epoch.number))
    assert seen == [4, 5, 6]
    assert result.log == expected.log
    assert torch.equal(resumed.arms, whole.arms)


def test_it_stops_when_the_held_out_reward_no_longer_rises() -> None:
    made = data()
    flat = SftData(made.states, made.targets, np.ones_like(made.rewards), made.training, made.held_out)
    result = train(head(), flat, SftConfig(epochs=50, patience=4))
    assert (result.best, len(result.log)) == (0, 4)


def test_labels_that_are_no_numbers_are_refused() -> None:
    made = data()
    broken = SftData(made.states, made.targets * np.nan, made.rewards, made.training, made.held_out)
    with pytest.raises(UserError, match="soft labels are not finite"):
        train(head(), broken, SftConfig(epochs=1))
    endless = SftData(CachedStates(np.full((200, 6), np.inf)), made.targets, made.rewards, made.training, made.held_out)
    with pytest.raises(UserError, match="the loss is not finite"):
        train(head(), endless, SftConfig(epochs=1))
    with pytest.raises(UserError, match="0 requests to train on and 50 held out"):
        train(head(), SftData(made.states, made.targets, made.rewards, [], made.held_out), SftConfig())


def test_a_tuned_backbone_learns_with_the_head(tiny_qwen: Path, world: Any) -> None:
    from distill.svf import SvfConfig, adapt, choose, layers

    table = world(48, seed=5)
    backbone = load_backbone(BackboneConfig(str(tiny_qwen), None, "penultimate"))
    backbone.model = adapt(backbone.model, SvfConfig(target_modules=choose(backbone.model, layers=[-1])))
    states = TunedStates(backbone, table.texts)
    rows = np.arange(48)
    made = SftData(states, soft_labels(table.rewards, 0.3), table.rewards, rows[8:], rows[:8])
    result = train(IndexHead(backbone.width, table.endpoints), made, SftConfig(epochs=2, batch=20, patience=5))
    assert result.log[1].loss < result.log[0].loss
    assert any(layer.svf_offsets["default"].abs().max() > 0 for _, layer in layers(backbone.model)) or result.best == 0
