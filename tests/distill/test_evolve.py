"""sep-CMA-ES: convergence, guards, replay fitness against a slow count, resume, acceptance, the cached tail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distill.evolve.controls import random_search, run_controls
from distill.evolve.guards import check_candidates, ranked
from distill.evolve.loop import EvolveConfig, Generation, evolve
from distill.evolve.replay import Fitness, HeadReplay, Shaping
from distill.evolve.sepcma import SepCma
from distill.evolve.tail import Tail, TunedReplay
from distill.router_model.backbone import BackboneConfig, load_backbone
from pointsman.errors import BrokenInvariant, UserError


class Bowl:
    """-|x - 1|², and on demand a fitness that is broken."""

    def __init__(self, breaks: Any = None) -> None:
        self.breaks = breaks or (lambda values, generation: values)

    def fitness(self, candidates: Any, generation: int) -> Fitness:
        values = self.breaks(-((candidates - 1) ** 2).sum(axis=1), generation)
        return Fitness(values, values)

    def rewards(self, candidate: Any) -> Any:
        return -((candidate - 1) ** 2)


def searched(problem: Any, **settings: Any) -> Any:
    return evolve(problem, Bowl(), Bowl(), np.zeros(8), EvolveConfig(**({"sigma": 0.5, "generations": 60} | settings)))


def test_the_population_is_the_authors() -> None:
    assert SepCma(np.zeros(19_456), 0.03, np.random.default_rng(0)).population == 34


def test_it_converges_where_axes_differ_a_million_fold() -> None:
    """`cmaes` 0.13.1 stands at about 1 after as many evaluations: its rank-one rate is not scaled by (n + 2) / 3."""
    size = 100
    weights = 1e6 ** (np.arange(size) / (size - 1))
    cma = SepCma(np.ones(size), 0.5, np.random.default_rng(0))
    for _ in range(1900):
        candidates = cma.ask()
        cma.tell(candidates, -(candidates**2) @ weights)
    assert (cma.mean**2) @ weights < 1e-8


def test_it_finds_the_top_of_a_bowl() -> None:
    found = searched(Bowl())
    assert np.abs(found.chosen - 1).max() < 0.05
    assert found.accepted
    assert found.difference.low > 0


def test_some_failures_cost_little() -> None:
    def third(values: Any, generation: int) -> Any:
        values[::3] = np.nan
        return values

    found = searched(Bowl(third), generations=80)
    assert found.stopped is None
    assert np.abs(found.chosen - 1).max() < 0.2
    assert all(line.non_finite for line in found.log)


def test_mostly_failures_stop_the_search_where_it_stands() -> None:
    found = searched(Bowl(lambda values, generation: np.full_like(values, np.nan)))
    assert found.stopped == "non_finite"
    assert len(found.log) == 1
    assert np.array_equal(found.chosen, found.start)
    assert not found.accepted


def test_a_flat_fitness_teaches_nothing_and_stops() -> None:
    found = searched(Bowl(lambda values, generation: np.zeros_like(values)), patience=3)
    assert (found.stopped, len(found.log)) == ("flat", 3)
    assert {line.sigma for line in found.log} == {0.5}
    assert np.array_equal(found.chosen, found.start)


def test_huge_fitness_is_only_ranked() -> None:
    found = searched(Bowl(lambda values, generation: values * 1e300))
    assert np.abs(found.chosen - 1).max() < 0.05


def test_ranks_put_failures_last_and_never_divide_by_them() -> None:
    order = ranked(np.array([0.2, np.nan, -np.inf, 0.9]))
    assert order.fitness[1] == order.fitness[2] < 0.2
    assert (order.non_finite, order.flat, order.broken) == (2, False, False)
    assert ranked(np.array([np.nan, np.nan])).broken
    with pytest.raises(BrokenInvariant, match="not finite"):
        check_candidates(np.array([[np.nan]]))


def test_a_resumed_search_gives_the_same_numbers(tmp_path: Path) -> None:
    config = EvolveConfig(sigma=0.5, generations=12, validate_every=3)
    whole = evolve(Bowl(), Bowl(), Bowl(), np.zeros(8), config)
    file = tmp_path / "search.safetensors"

    class Stopped(Exception):
        pass

    def stop(line: Generation) -> None:
        if line.number == 5:
            raise Stopped

    with pytest.raises(Stopped):
        evolve(Bowl(), Bowl(), Bowl(), np.zeros(8), config, checkpoint=file, progress=stop)
    resumed = evolve(Bowl(), Bowl(), Bowl(), np.zeros(8), config, checkpoint=file)
    assert resumed.log == whole.log
    assert np.array_equal(resumed.chosen, whole.chosen)
    file.write_bytes(b"spoiled")
    with pytest.raises(UserError, match="not a checkpoint of ours"):
        evolve(Bowl(), Bowl(), Bowl(), np.zeros(8), config, checkpoint=file)


def replay(**settings: Any) -> tuple[HeadReplay, Any]:
    rng = np.random.default_rng(0)
    states = rng.standard_normal((50, 4)).astype(np.float32)
    return HeadReplay(states, rng.random((50, 3)), **settings), rng.standard_normal((6, 12))


def test_replay_is_the_reward_of_the_arg_max() -> None:
    problem, candidates = replay()
    found = problem.fitness(candidates, 0)
    for candidate, value in zip(candidates, found.pure, strict=True):
        logits = problem.states @ candidate.reshape(3, 4).T
        slow = [problem.rewards_table[row, logits[row].argmax()] for row in range(50)]
        assert value == pytest.approx(np.mean(slow))
        assert problem.rewards(candidate) == pytest.approx(slow)
    assert np.array_equal(found.shaped, found.pure)


def test_shaping_prices_and_entropy() -> None:
    prices = np.array([0.0, 1.0, 4.0])
    problem, candidates = replay(prices=prices, shaping=Shaping(price_weight=0.1, entropy_weight=0.5))
    found = problem.fitness(candidates, 0)
    picks = (problem.states @ candidates[0].reshape(3, 4).T).argmax(axis=1)
    share = np.bincount(picks, minlength=3) / 50
    entropy = -sum(p * np.log(p) for p in share if p)
    assert found.shaped[0] == pytest.approx(found.pure[0] - 0.1 * share @ prices + 0.5 * entropy)


def test_all_candidates_of_a_generation_see_the_same_requests() -> None:
    problem, candidates = replay(sample=10, seed=3)
    twice = np.stack([candidates[0], candidates[0]])
    first, second = problem.fitness(twice, 1).pure
    assert first == second
    assert problem.fitness(twice, 1).pure[0] == first
    assert any(problem.fitness(twice, generation).pure[0] != first for generation in range(2, 6))


def test_replay_refuses_untried_arms() -> None:
    with pytest.raises(UserError, match="a reward of every arm"):
        HeadReplay(np.zeros((1, 2), np.float32), np.array([[np.nan, 1.0]]))


def test_controls_are_worse_than_what_was_found() -> None:
    found = searched(Bowl())
    controls = run_controls(
        Bowl(), Bowl(), np.zeros(8), found.chosen * np.arange(8) / 4, evaluations=64, sigma=0.3, seed=1
    )
    assert controls.start == -1
    best = random_search(Bowl(), np.zeros(8), evaluations=64, sigma=0.3, rng=np.random.default_rng(0))
    assert -1 < Bowl().rewards(best).mean() < Bowl().rewards(found.chosen).mean()


def test_no_gain_is_no_acceptance() -> None:
    class Noise(Bowl):
        def rewards(self, candidate: Any) -> Any:
            return np.random.default_rng(int(abs(candidate.sum()) * 1e6)).random(50)

    found = evolve(Bowl(), Noise(), Noise(), np.ones(8), EvolveConfig(generations=5))
    assert found.difference.low <= 0
    assert not found.accepted


def test_the_cached_tail_gives_the_whole_models_states(tiny_qwen: Path) -> None:
    import torch

    from distill.svf import SvfConfig, adapt, choose, count_offsets, set_offsets

    texts = ["What is 3 plus 4?", "Write a python function that returns 7", "Who", "Add 1 and 2"]
    backbone = load_backbone(BackboneConfig(str(tiny_qwen), None, "penultimate"))
    backbone.model = adapt(backbone.model, SvfConfig(target_modules=choose(backbone.model, layers=[-2, -1])))
    tail = Tail(backbone, texts, depth=2)
    assert np.abs(tail.states() - backbone.states(texts)).max() < 1e-6
    size = count_offsets(backbone.model)
    set_offsets(backbone.model, torch.linspace(-0.3, 0.3, size))
    changed = backbone.states(texts)
    assert np.abs(tail.states() - changed).max() < 1e-5
    problem = TunedReplay(tail, backbone.model, np.eye(4)[:, :2], size)
    candidate = np.concatenate([np.linspace(-0.3, 0.3, size), np.random.default_rng(0).standard_normal(2 * 64)])
    picks = (changed @ candidate[size:].reshape(2, 64).T).argmax(axis=1)
    assert problem.fitness(candidate[None], 0).pure[0] == pytest.approx(np.eye(4)[np.arange(4), picks].mean())
    with pytest.raises(UserError, match="3 layers, 9 were to be run anew"):
        Tail(backbone, texts, depth=9)
