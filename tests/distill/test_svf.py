"""SVF as a PEFT tuner: identity at start, saving, loading, merging, several adapters, counts."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch

from distill.router_model.backbone import Backbone, BackboneConfig, load_backbone
from pointsman.errors import UserError

TEXTS = ["What is 3 plus 4?", "Write a python function", "Who wrote it"]


@pytest.fixture
def backbone(tiny_qwen: Path) -> Backbone:
    return load_backbone(BackboneConfig(str(tiny_qwen), None, "penultimate"))


def adapted(backbone: Backbone, **settings: Any) -> Any:
    from distill.svf import SvfConfig, adapt, choose

    backbone.model = adapt(backbone.model, SvfConfig(target_modules=choose(backbone.model, layers=[1, -1]), **settings))
    return backbone.model


def disturb(model: Any, seed: int = 0) -> None:
    from distill.svf import count_offsets, set_offsets

    generator = torch.Generator().manual_seed(seed)
    set_offsets(model, torch.randn(count_offsets(model), generator=generator) * 0.1)


def test_offset_zero_is_the_base_to_the_bit(backbone: Backbone) -> None:
    before = backbone.states(TEXTS)
    adapted(backbone)
    assert (backbone.states(TEXTS) == before).all()


def test_what_is_trained_is_one_number_per_singular_value(backbone: Backbone) -> None:
    from distill.svf import count_offsets

    model = adapted(backbone)
    # per layer: q 64, k and v 32 each, o 64, gate, up, down 64 each
    assert count_offsets(model) == 2 * (64 + 32 + 32 + 64 + 3 * 64) == 768
    assert sum(p.numel() for p in model.parameters() if p.requires_grad) == 768


def test_saved_loaded_and_disabled(backbone: Backbone, tmp_path: Path) -> None:
    from peft import PeftModel
    from safetensors import safe_open

    before = backbone.states(TEXTS)
    bare = copy.deepcopy(backbone.model)
    disturb(adapted(backbone))
    after = backbone.states(TEXTS)
    assert abs(after - before).max() > 1e-3
    backbone.model.save_pretrained(tmp_path)
    with safe_open(tmp_path / "adapter_model.safetensors", "pt") as saved:
        assert sum(saved.get_tensor(name).numel() for name in saved.keys()) == 768  # noqa: SIM118
    backbone.model = PeftModel.from_pretrained(bare, tmp_path).eval()
    assert abs(backbone.states(TEXTS) - after).max() < 1e-6
    with backbone.model.disable_adapter():
        assert (backbone.states(TEXTS) == before).all()


def test_merge_and_unmerge(backbone: Backbone) -> None:
    model = adapted(backbone)
    disturb(model)
    after = backbone.states(TEXTS)
    model.merge_adapter()
    assert abs(backbone.states(TEXTS) - after).max() < 1e-5
    model.unmerge_adapter()
    assert (backbone.states(TEXTS) == after).all()
    backbone.model = model.merge_and_unload()
    assert not any("svf" in name for name, _ in backbone.model.named_parameters())
    assert abs(backbone.states(TEXTS) - after).max() < 1e-5


def test_two_adapters_keep_apart(backbone: Backbone) -> None:
    from distill.svf import SvfConfig, choose

    before = backbone.states(TEXTS)
    model = adapted(backbone)
    disturb(model)
    first = backbone.states(TEXTS)
    model.add_adapter("second", SvfConfig(target_modules=choose(model, ["q_proj"], [2])))
    model.set_adapter("second")
    assert (backbone.states(TEXTS) == before).all()
    model.set_adapter("default")
    assert (backbone.states(TEXTS) == first).all()


def test_renormalising_keeps_the_sum_of_singular_values(backbone: Backbone) -> None:
    from distill.svf import layers

    model = adapted(backbone, renormalise=True)
    disturb(model)
    _, layer = next(layers(model))
    merged = layer.get_base_layer().weight + layer.delta("default")
    assert float(torch.linalg.svdvals(merged).sum()) == pytest.approx(float(layer.values.sum()), rel=1e-4)


def test_the_merged_matrix_is_u_scaled_s_v(backbone: Backbone) -> None:
    from distill.svf import layers

    model = adapted(backbone, renormalise=False)
    disturb(model)
    _, layer = next(layers(model))
    scaled = layer.left @ torch.diag(layer.values * (1 + layer.svf_offsets["default"])) @ layer.right
    assert torch.allclose(layer.get_base_layer().weight + layer.delta("default"), scaled, atol=1e-5)


def test_gradients_reach_offsets_alone(backbone: Backbone) -> None:
    model = adapted(backbone)
    backbone.forward(*backbone.batch(TEXTS)).pow(2).sum().backward()
    touched = {name for name, p in model.named_parameters() if p.grad is not None and p.grad.abs().sum() > 0}
    assert touched
    assert all("svf_offsets" in name for name in touched)


def test_choosing_refuses_what_is_not_there(backbone: Backbone) -> None:
    from distill.svf import choose

    assert choose(backbone.model, ["q_proj"], [-1]) == ["layers.2.self_attn.q_proj"]
    with pytest.raises(UserError, match=r"3 layers; not found: layers \[7\]"):
        choose(backbone.model, layers=[7])
    with pytest.raises(UserError, match="matrices \\['nothing'\\]"):
        choose(backbone.model, ["nothing"])
