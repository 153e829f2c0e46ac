"""Backbones, the token that is read, heads, masks, checkpoints, fingerprints."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from distill.features.extras import Extras
from distill.router_model.backbone import BackboneConfig, default_backbone, load_backbone, resolve
from distill.router_model.checkpoint import LearnedRouter, load_router, save_router
from distill.router_model.dropout import kept_arms
from distill.router_model.fingerprint import (
    Probes,
    adaptive_probes,
    stratified_probes,
    values_from_card,
    values_from_probes,
)
from distill.router_model.heads import CardHead, IndexHead, columns, head_size, masked, shares
from distill.router_model.prompt import PromptConfig, render, shortened
from distill.router_model.reading import read_states, token_numbers
from distill.table import RewardTable
from pointsman.errors import UserError

TEXTS = ["What is 3 plus 4?", "Write a python function that returns 7 of 9, and say why it does so", "Who"]


@pytest.mark.parametrize(
    ("mask", "position", "expected"),
    [
        ([0, 0, 1, 1], "last", 3),
        ([0, 0, 1, 1], "penultimate", 2),
        ([1, 1, 1, 0], "last", 2),
        ([1, 1, 1, 0], "penultimate", 1),
        ([0, 1, 1, 0], "first", 1),
        ([0, 0, 1, 0], "penultimate", 2),
    ],
)
def test_the_token_is_counted_among_the_unmasked(mask: list[int], position: str, expected: int) -> None:
    assert token_numbers(torch.tensor([mask]), position).tolist() == [expected]  # type: ignore[arg-type]


def test_an_empty_row_is_refused_and_mean_ignores_padding() -> None:
    with pytest.raises(UserError, match="no token"):
        token_numbers(torch.tensor([[0, 0]]), "last")
    states = torch.tensor([[[3.0, 4.0], [0.0, 0.0], [9.0, 9.0]]])
    mean = read_states(states, torch.tensor([[1, 1, 0]]), "mean")
    assert mean.tolist()[0] == pytest.approx([0.6, 0.8])


@pytest.mark.parametrize("position", ["penultimate", "last", "mean"])
def test_a_batch_of_one_equals_a_batch_of_many(tiny_qwen: Path, position: str) -> None:
    backbone = load_backbone(BackboneConfig(str(tiny_qwen), None, position))  # type: ignore[arg-type]
    together = backbone.states(TEXTS)
    alone = np.concatenate([backbone.states([text]) for text in TEXTS])
    assert np.abs(together - alone).max() < 1e-5
    assert together.dtype == np.float32


def test_states_are_cached_by_what_made_them(tiny_qwen: Path, tmp_path: Path) -> None:
    backbone = load_backbone(BackboneConfig(str(tiny_qwen), None, "last"))
    first = backbone.states(TEXTS, tmp_path)
    backbone.model = None  # a second model run would fail
    assert np.array_equal(backbone.states(TEXTS[::-1], tmp_path), first[::-1])


def test_a_long_text_loses_its_middle() -> None:
    assert shortened(list(range(10)), 4, 0.67) == [0, 1, 8, 9]
    assert shortened([1, 2], 4, 0.67) == [1, 2]


def test_forms_of_the_prompt(tiny_qwen: Path) -> None:
    tokenizer = load_backbone(BackboneConfig(str(tiny_qwen))).tokenizer
    assert render("ask", "plain", tokenizer) == "ask"
    assert render("ask", "tagged", tokenizer).endswith("Request:\nask\n\nWorker:")
    with pytest.raises(UserError, match="no chat template"):
        render("ask", "chat", tokenizer)


def test_only_safetensors_are_loaded(tiny_qwen: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(tiny_qwen, folder)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(UserError, match=r"expected weights as \.safetensors; it has pytorch_model\.bin, which can run"):
        load_backbone(BackboneConfig(str(folder)))


def test_a_folder_is_known_by_its_files(tiny_qwen: Path, tmp_path: Path) -> None:
    _, first = resolve(str(tiny_qwen), None)
    copied = tmp_path / "elsewhere"
    shutil.copytree(tiny_qwen, copied)
    assert resolve(str(copied), None)[1]["files"] == first["files"]
    (copied / "config.json").write_text((copied / "config.json").read_text().replace("}", " }"))
    assert resolve(str(copied), None)[1]["files"] != first["files"]


def test_the_default_backbone_depends_on_a_gpu() -> None:
    assert default_backbone(True).name == "Qwen/Qwen3-0.6B"
    assert default_backbone(True).position == "penultimate"
    assert default_backbone(False).name == "minilm"


def test_sizes_of_the_heads() -> None:
    seven = [f"e{number}" for number in range(7)]
    assert head_size(IndexHead(1024, seven, roles=True)) == 10_240  # Trinity, Table 6
    assert head_size(IndexHead(1024, seven)) == 7_168
    assert head_size(CardHead(10, ["a", "b"], 3)) == 10 * 3 + 3 + 2 * 3


def test_roles_are_a_softmax_apart() -> None:
    head = IndexHead(4, ["a"], roles=True)
    assert head.role_logits(torch.ones(2, 4)).shape == (2, 3)
    with pytest.raises(UserError, match="trained without roles"):
        IndexHead(4, ["a"]).role_logits(torch.ones(1, 4))


def test_masked_arms_get_nothing_and_the_rest_is_renormalised() -> None:
    logits = torch.tensor([[1.0, 2.0, 3.0]])
    all_shares, rest = shares(logits), shares(logits, torch.tensor([True, True, False]))
    assert rest[0, 2] == 0
    assert rest.sum() == pytest.approx(1)
    assert float(rest[0, 1] / rest[0, 0]) == pytest.approx(float(all_shares[0, 1] / all_shares[0, 0]))
    with pytest.raises(UserError, match="no available worker"):
        masked(logits, torch.tensor([False, False, False]))


def test_an_added_arm_changes_no_other() -> None:
    head = CardHead(4, ["a", "b"], 3)
    torch.nn.init.normal_(head.values)
    torch.nn.init.normal_(head.type_weight)
    states = torch.randn(5, 4)
    more = head.with_arm("c", torch.full((3,), 0.5))
    assert torch.equal(more(states)[:, :2], head(states))
    assert torch.allclose(more.rewards(states)[:, 2], torch.full((5,), 0.5))
    assert columns(more, ["c", "a"]) == [2, 0]
    with pytest.raises(UserError, match="has values already"):
        more.with_arm("c", torch.zeros(3))
    with pytest.raises(UserError, match="knows no endpoint version gone"):
        columns(more, ["gone"])


def test_dropout_keeps_exactly_k_and_all_arms_alike() -> None:
    kept = kept_arms((4000, 5), 2, torch.Generator().manual_seed(0))
    assert kept.sum(dim=1).eq(2).all()
    assert (kept.float().mean(dim=0) - 0.4).abs().max() < 0.04
    assert kept_arms((2, 3), 9, torch.Generator()).all()


@pytest.mark.parametrize("kind", ["index", "card"])
def test_a_checkpoint_comes_back(tiny_qwen: Path, tmp_path: Path, table: RewardTable, kind: str) -> None:
    backbone = load_backbone(BackboneConfig(str(tiny_qwen), None, "penultimate", PromptConfig("tagged")))
    extras = Extras.fit(table.texts, 0) if kind == "card" else None
    width = backbone.width + (extras.width if extras else 0)
    head = CardHead(width, table.endpoints, 3, 0.07) if kind == "card" else IndexHead(width, table.endpoints, True)
    for parameter in head.parameters():
        torch.nn.init.normal_(parameter)
    router = LearnedRouter(backbone, head, 0.5, extras, {"seed": 1})
    first = save_router(tmp_path / "one", router)
    loaded = load_router(tmp_path / "one")
    assert np.abs(loaded.logits(TEXTS) - router.logits(TEXTS)).max() < 1e-4
    assert loaded.head.endpoints == table.endpoints
    assert save_router(tmp_path / "two", loaded) == first


def test_an_adapter_travels_with_the_checkpoint(tiny_qwen: Path, tmp_path: Path) -> None:
    from distill.svf import SvfConfig, adapt, choose, count_offsets, set_offsets

    backbone = load_backbone(BackboneConfig(str(tiny_qwen), None, "last"))
    backbone.model = adapt(backbone.model, SvfConfig(target_modules=choose(backbone.model, layers=[-1])))
    set_offsets(backbone.model, torch.linspace(-0.2, 0.2, count_offsets(backbone.model)))
    head = IndexHead(backbone.width, ["a", "b"])
    torch.nn.init.normal_(head.arms)
    router = LearnedRouter(backbone, head)
    save_router(tmp_path, router)
    assert np.abs(load_router(tmp_path).logits(TEXTS) - router.logits(TEXTS)).max() < 1e-5


def test_loading_refuses_other_tokens_and_other_bytes(tiny_qwen: Path, tmp_path: Path) -> None:
    backbone = load_backbone(BackboneConfig(str(tiny_qwen), None, "last"))
    save_router(tmp_path / "r", LearnedRouter(backbone, IndexHead(backbone.width, ["a"])))
    file = tmp_path / "r" / "learned.json"
    content = json.loads(file.read_text())
    content["identity"]["tokenizer"] = "another"
    file.write_text(json.dumps(content))
    with pytest.raises(UserError, match="not the one this router was trained on: tokenizer was 'another'"):
        load_router(tmp_path / "r")
    (tmp_path / "r" / "head.safetensors").write_bytes(b"x")
    with pytest.raises(UserError, match=r"head\.safetensors: its bytes are not those that were saved"):
        load_router(tmp_path / "r")
    moved = tmp_path / "moved"
    shutil.copytree(tiny_qwen, moved)
    save_router(tmp_path / "s", LearnedRouter(replace(backbone), IndexHead(backbone.width, ["a"])))
    assert load_router(tmp_path / "s", backbone_folder=str(moved)).head.endpoints == ("a",)


def test_probes_pull_a_worker_toward_the_one_it_is_like() -> None:
    rng = np.random.default_rng(0)
    known = np.array([[0.9, 0.2, 0.6], [0.3, 0.8, 0.6]])
    types = np.tile([0, 1, 2], 60)
    truth = known[0][types]
    rewards = (rng.random(180) < truth).astype(float)
    others = (rng.random((180, 2)) < known.T[types]).astype(float)
    values = values_from_probes(Probes(types, rewards, others), known)
    assert np.abs(values.mean - known[0]).max() < 0.1
    few = values_from_probes(Probes(types[:3], rewards[:3], others[:3]), known)
    assert (few.variance > values.variance).all()


def test_a_type_without_probes_gets_the_prior() -> None:
    known = np.array([[0.9, 0.2], [0.3, 0.8]])
    rows = np.zeros(80, np.int64)
    values = values_from_probes(Probes(rows, np.ones(80) * 0.9, np.tile([0.9, 0.3], (80, 1))), known)
    assert values.mean[1] < 0.5, "it is like the first worker on the other type"


def test_probes_are_spread_and_adaptive_ones_keep_the_count() -> None:
    rng = np.random.default_rng(0)
    types = np.repeat([0, 1, 2], [200, 50, 10])
    assert np.bincount(types[stratified_probes(types, 30, rng)]).tolist() == [10, 10, 10]
    assert len(stratified_probes(types, 1000, rng)) == 260
    known = np.array([[0.5, 0.5, 0.5], [0.4, 0.6, 0.2]])
    rewards = (rng.random(260) < 0.55).astype(float)
    others = (rng.random((260, 2)) < known.T[types]).astype(float)
    rows, values = adaptive_probes(types, rewards, others, known, 60, rng)
    assert len(rows) == len(set(rows.tolist())) == 60
    assert np.isfinite(values.mean).all()


def test_a_card_alone_gives_a_mean_of_the_known() -> None:
    known = np.array([[0.9, 0.2], [0.3, 0.8]])
    cards = np.eye(2)
    assert values_from_card(cards[0], cards, known).mean == pytest.approx(known[0], abs=1e-3)
    assert values_from_card(np.zeros(2), cards, known).mean == pytest.approx(known.mean(axis=0))
