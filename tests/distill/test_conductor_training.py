"""The conductor's training on a minute model: what is refused before it, mechanics, resumption, repeats, no signal."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from distill.conductor import controls, grpo, judging, rollouts, sampling, sft, tuning
from distill.conductor.checking import check, load_causal
from distill.conductor.generating import generate
from distill.conductor.plateau import Point, best, flat
from distill.conductor.reward import Earned
from distill.conductor.single_turn import HeadGradient, climb
from distill.conductor.tiny import TinyConfig, make_tiny, sandbox_texts
from pointsman.errors import UserError

WORLD = 21
SMALL = TinyConfig(vocabulary=700, width=32, layers=2, heads=2, inner=64, words=50)
PLAN = 'workers = ["A"]\nsubtasks = ["Do the request."]\naccess = ["none"]'


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # two threads of a busy machine wait for each other
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def scene():
    return rollouts.sandbox_scene(WORLD, "truthful")


@pytest.fixture(scope="module")
def asked(scene):
    names = [worker.name for worker in scene.pool.workers]
    return {
        split: sampling.items(sampling.exam(WORLD, split, n, ("one_skill",)), names, 1, 2, 2)
        for split, n in (("train", 12), ("validation", 3))
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_tiny(tmp_path_factory.mktemp("tiny"), SMALL, sandbox_texts([WORLD], 20))


@pytest.fixture(scope="module")
def examples(scene, asked):
    return sampling.examples(scene, asked["train"], assignments=1, seed=1)[0]


def test_the_tiny_model_is_one_of_two_to_eight_million_and_words_it_never_saw_stand_near_their_like(tmp_path):
    made = make_tiny(tmp_path, TinyConfig(), sandbox_texts([WORLD], 20))
    model, tokenizer, identity = load_causal(str(made))
    assert 2e6 < sum(parameter.numel() for parameter in model.parameters()) < 8e6
    assert identity["files"] is not None
    rows = model.get_input_embeddings().weight.detach()

    def like(one, other):
        numbers = tokenizer.convert_tokens_to_ids([f"Ġ{one}", f"Ġ{other}"])
        assert tokenizer.unk_token_id not in numbers
        return float(torch.cosine_similarity(*rows[numbers], dim=0))

    assert like("king", "queen") > like("king", "table") + 0.1


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"chat_template": None}, "expected a chat template"),
        ({"chat_template": "{{ messages.append(1) }}"}, "cannot be used"),
        ({"chat_template": "{{ ''.__class__.__mro__ }}"}, "cannot be used"),
        ({"chat_template": "{% for m in messages %}{{ m['content'] }}{% endfor %}{{ '<a>' if add_generation_prompt }}"},
         "does not begin with"),
        ({"chat_template": "{{ 'fixed' }}"}, "leaves out what is said"),
        ({"pad_token": None}, "expected a pad token"),
        ({"pad_token": "<|im_end|>"}, "are the same"),
        ({"eos_token": None}, "expected an end token"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_tokenizer_is_said_before_training(folder, change, expected):
    model, tokenizer, _ = load_causal(str(folder))
    for name, value in change.items():
        setattr(tokenizer, name, value)
    with pytest.raises(UserError, match=expected):
        check(model, tokenizer)


def test_a_tokenizer_of_another_model_and_one_that_is_missing_are_refused(folder, tmp_path):
    model, tokenizer, _ = load_causal(str(folder))
    tokenizer.add_tokens([f"more{number}" for number in range(5)])
    with pytest.raises(UserError, match="belongs to another model"):
        check(model, tokenizer)
    shutil.copytree(folder, tmp_path / "bare", ignore=shutil.ignore_patterns("tokenizer*"))
    with pytest.raises(UserError, match="expected a tokenizer"):
        load_causal(str(tmp_path / "bare"))


@pytest.mark.parametrize("kind", ["lora", "svf"])
def test_an_adapter_changes_nothing_at_first_and_merges_to_the_same_outputs_with_tied_embeddings(folder, kind):
    plain, _, _ = load_causal(str(folder))
    assert plain.config.tie_word_embeddings
    ids = torch.arange(5, 25)[None]
    before = plain(input_ids=ids).logits.detach()
    model = tuning.tuned(plain, kind, rank=4)
    assert torch.allclose(model(input_ids=ids).logits, before, atol=1e-5)
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter += 0.1 * torch.randn_like(parameter)
    adapted = model(input_ids=ids).logits.detach()
    whole = tuning.merged(model)
    assert float((adapted - before).abs().max()) > 0.01
    assert float((whole(input_ids=ids).logits - adapted).abs().max()) < tuning.AGREEMENT
    assert whole.lm_head.weight is whole.get_input_embeddings().weight


def test_an_adapter_on_a_tied_matrix_is_not_merged(folder):
    from peft import LoraConfig, get_peft_model

    plain, _, _ = load_causal(str(folder))
    model = get_peft_model(plain, LoraConfig(r=2, target_modules=["embed_tokens"], task_type="CAUSAL_LM"))
    with pytest.raises(UserError, match="are tied"):
        tuning.merged(model)


def test_a_batch_of_many_says_what_a_batch_of_one_says(folder, scene, asked):
    model, tokenizer, _ = load_causal(str(folder))
    prompts = [scene.asked(item).messages for item in asked["train"][:4]]
    many = generate(model, tokenizer, prompts, max_new=8, batch=4)
    assert [one.text for one in generate(model, tokenizer, prompts, max_new=8, batch=1)] == [one.text for one in many]
    assert all(one.usage.output_tokens <= 8 for one in many)


def test_a_curve_is_flat_when_its_last_third_adds_nothing():
    rising = [Point(step, step / 10, 0, 1) for step in range(9)]
    assert not flat(rising) and flat([*rising, *[Point(9 + n, 0.8, 0, 1) for n in range(6)]])
    assert not flat([Point(0, 1, 1, 1)] * 5)
    assert best([Point(1, 0.5, 0, 1), Point(2, 0.5, 0, 1), Point(3, 0.2, 0, 1)]).step == 1


@pytest.fixture(scope="module")
def fitted(folder, scene, asked, examples, tmp_path_factory):
    """A run of SFT, its settings and folder: a model that has just learnt to write plans."""
    to, settings = tmp_path_factory.mktemp("fitted"), config(steps=60, look_every=30)
    run = sft.fit(lambda: load_causal(str(folder))[:2], examples, scene, asked["validation"], settings, to)
    return run, settings, to


@pytest.fixture(scope="module")
def started(fitted):
    return fitted[0].chosen.folder


def config(**changes):
    return replace(sft.ConductorSft((0.01,), steps=12, batch=4, look_every=6, warmup=1), **changes)


def test_sft_learns_the_grammar_and_is_not_run_again(fitted, scene, asked, examples):
    run, settings, to = fitted
    model, tokenizer, _ = load_causal(str(run.chosen.folder))
    assert judging.judge(model, tokenizer, scene, asked["validation"]).parse_rate == 1.0
    assert [point.step for point in run.chosen.curve] == [30, 60] and not run.chosen.plateau
    assert not list(to.glob("*/checkpoint-*"))

    def never():
        raise AssertionError("was run again")

    assert sft.fit(never, examples, scene, asked["validation"], settings, to) == run


def weights(folder):
    from safetensors.torch import load_file

    return load_file(Path(folder) / "model.safetensors")


KILLED = """
import os, signal, sys, torch
torch.set_num_threads(1)
sys.path[:0] = {path!r}
from pathlib import Path
from distill.conductor import rollouts, sampling, sft
from distill.conductor.checking import load_causal
scene = rollouts.sandbox_scene({world}, "truthful")
names = [worker.name for worker in scene.pool.workers]
asked = {{split: sampling.items(sampling.exam({world}, split, n, ("one_skill",)), names, 1, 2, 2)
         for split, n in (("train", 12), ("validation", 3))}}
examples = sampling.examples(scene, asked["train"], assignments=1, seed=1)[0]
steps = []
def check():
    steps.append(1)
    if len(steps) == {kill_at}:
        os.kill(os.getpid(), signal.SIGKILL)
settings = sft.ConductorSft((0.01,), steps=12, batch=4, look_every=6, warmup=1)
sft.fit(lambda: load_causal({folder!r})[:2], examples, scene, asked["validation"], settings, Path({to!r}),
        sft.Watching(check=check))
"""


def test_sft_that_was_killed_goes_on_to_the_same_weights(folder, scene, asked, examples, tmp_path):
    """SIGKILL at step 9 of 12; a half-written checkpoint beside the whole one is passed over."""
    script = textwrap.dedent(KILLED).format(
        path=[str(Path.cwd()), str(Path.cwd() / "platform")],
        world=WORLD, kill_at=9, folder=str(folder), to=str(tmp_path / "killed"),
    )  # fmt: skip
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=300, check=False)
    assert ended.returncode == -9, ended.stderr.decode()[-2000:]
    inside = tmp_path / "killed" / "rate-0.01"
    assert sft.last_whole(inside) == str(inside / "checkpoint-6")
    (inside / "checkpoint-9").mkdir()
    steps = []
    load = lambda: load_causal(str(folder))[:2]  # noqa: E731
    watching = sft.Watching(check=lambda: steps.append(1))
    resumed = sft.fit(load, examples, scene, asked["validation"], config(), tmp_path / "killed", watching)
    straight = sft.fit(load, examples, scene, asked["validation"], config(), tmp_path / "straight")
    assert len(steps) == 6
    assert resumed.chosen.curve == straight.chosen.curve
    for name, value in weights(straight.chosen.folder).items():
        assert torch.equal(weights(resumed.chosen.folder)[name], value), name


def small_grpo(**changes):
    return replace(grpo.ConductorGrpo(3, 2, 4, 1e-3, max_new=40, look_every=3, patience=2), **changes)


@pytest.mark.parametrize("kind", ["full", "lora"])
def test_grpo_moves_the_weights_keeps_account_and_repeats_seed_for_seed(started, scene, asked, tmp_path, kind):
    load = lambda: load_causal(str(started))[:2]  # noqa: E731
    runs = [
        grpo.train(load, scene, asked["train"], asked["validation"], small_grpo(tuning=kind), tmp_path / str(number))
        for number in range(2)
    ]
    (one, found), (other, _) = runs
    assert one.curve == other.curve and one.tally == other.tally and one.parts == other.parts
    tally = one.tally
    assert tally.rollouts == 3 * 2 * 4 and tally.live + tally.zero_spread == 6 and tally.usd > 0
    assert one.taught and tally.stopped is None and [point.step for point in one.curve] == [0, 3]
    assert {"outcome", "form", "price"} == set(one.parts[0])
    assert all(example.reward > 0.5 for example in found)
    again, _ = grpo.train(load, scene, asked["train"], asked["validation"], small_grpo(), tmp_path / "0")
    assert again == one  # what had ended is not run again
    load_causal(str(one.folder))


def test_groups_without_spread_or_with_an_unknown_reward_are_dropped_and_counted(scene, asked):
    def rolled(*outcomes):
        return [rollouts.Rolled(Earned(outcome, 0.0, 0.0), 0.1, 1) for outcome in outcomes]

    nan = float("nan")
    assert grpo.spread(rolled(1, 1)) == "zero_spread"
    assert (grpo.spread(rolled(1, 0)), grpo.spread(rolled(1, nan))) == ("live", "unknown")
    answers = rolled(1, 1, 0, 1, nan, 0)

    class Fixed:
        def roll(self, pairs):
            return answers

    tally = grpo.Tally()
    reward = grpo.RolloutReward(Fixed(), asked["train"], tally, small_grpo(generations=2, patience=1, max_calls=5))
    given = reward([None] * 6, [PLAN] * 6, [[1]] * 6, item=[0, 0, 1, 1, 2, 2], tokens=[1] * 6)
    assert given == [0, 0, 0, 1, 0, 0]
    assert (tally.zero_spread, tally.live, tally.unknown, tally.stopped) == (1, 1, 1, "budget")
    assert len(reward.right) == 3


def test_a_saturated_pool_ends_without_a_signal(started, asked, tmp_path):
    """Every worker is right about everything: nothing is contested, and training on it anyway stops by itself."""

    async def right(name, messages, tools):
        return "Answer: right"

    sure = [replace(item, verifier={"kind": "exact", "value": "right"}) for item in asked["train"]]
    base = rollouts.sandbox_scene(WORLD, "truthful", reward=rollouts.RewardConfig(0.0, 0.0))
    scene = replace(base, workers=rollouts.LocalWorkers(right))
    assert grpo.contested({item.id: [1.0, 1.0] for item in sure}) == []
    assert grpo.contested({"a": [1, 0, 0, 0], "b": [0, 1], "c": [0, 0]}) == ["b", "a"]
    empty, _ = grpo.train(lambda: None, scene, [], [], small_grpo(), tmp_path / "none")
    assert empty.tally.stopped == grpo.NO_SIGNAL and not empty.taught
    load = lambda: load_causal(str(started))[:2]  # noqa: E731
    config = small_grpo(steps=20, patience=2, temperature=0.01)
    trained, _ = grpo.train(load, scene, sure, sure[:2], config, tmp_path / "sure")
    assert trained.tally.stopped == grpo.NO_SIGNAL and not trained.taught and trained.tally.rollouts == 16


def test_controls_take_as_many_rollouts_and_leave_a_model_that_loads(started, scene, asked, examples, tmp_path):
    budget = controls.Budget(asked["train"], 16, 1)
    settings = config(steps=6, look_every=6, learning_rates=(1e-3,))
    ended = [
        controls.continued(
            started, examples, scene, asked["validation"], budget, settings, tmp_path / "c"
        ).chosen.folder,
        controls.expert_iteration(started, scene, asked["validation"], budget, settings, tmp_path / "x").chosen.folder,
        controls.evolved(started, scene, asked["validation"], budget, tmp_path / "e", tasks=1),
    ]
    for folder in ended:
        load_causal(str(folder))
    assert json.loads((ended[2] / "conductor.json").read_text())["method"] == "sep-cma-es"


@pytest.mark.parametrize("method", ["reinforce", "grpo"])
def test_a_policy_gradient_finds_who_is_good_at_what(method):
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, 3, 600)
    states = np.eye(3)[kinds] + 0.1 * rng.standard_normal((600, 3))
    rewards = (rng.random((600, 3)) < np.where(np.eye(3)[kinds] > 0, 0.9, 0.3)).astype(float)
    settings = HeadGradient(method, learning_rate=0.1)
    head = climb(states, rewards, np.zeros(9), settings)
    picked = (states @ head.reshape(3, 3).T).argmax(1)
    assert (picked == kinds).mean() > 0.95
    assert np.array_equal(head, climb(states, rewards, np.zeros(9), settings))
