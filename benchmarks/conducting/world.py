"""One sandbox world for the conductor's benchmark: requests by split, baselines on the held-out ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from distill.conductor import sampling
from distill.conductor.example import Example, written
from distill.conductor.judging import Judged
from distill.conductor.pointing import WHOLE
from distill.conductor.rollouts import Item, Scene, sandbox_scene
from harness.engine.plan.grammar import Plan, Step
from harness.routing.base import NO_USAGE
from pointsman.sandbox.world import CardKind

FAMILIES = ("two_step", "one_skill")
POOLS = (2, 4)
"""Every request is offered so many workers, drawn at random, in an order drawn at random."""


@dataclass(frozen=True)
class Sizes:
    train: int
    validation: int
    held_out: int
    assignments: int


@dataclass(frozen=True, eq=False)
class World:
    seed: int
    scene: Scene
    train: list[Item]
    validation: list[Item]
    held_out: list[Item]
    examples: list[Example]
    two_step: list[bool]
    """Of each held-out item: whether it takes two skills in a row."""


def make_world(seed: int, sizes: Sizes, cards: CardKind) -> World:
    scene = sandbox_scene(seed, cards)
    names = [worker.name for worker in scene.pool.workers]
    exams = {
        split: sampling.exam(seed, split, n, FAMILIES)
        for split, n in (("train", sizes.train), ("validation", sizes.validation), ("held_out", sizes.held_out))
    }
    made = {
        split: sampling.items(exam, names, seed * 3 + number, *POOLS)
        for number, (split, exam) in enumerate(exams.items())
    }
    examples, _ = sampling.examples(scene, made["train"], assignments=sizes.assignments, seed=seed)
    two = [item.family == "two_step" for item in made["held_out"]]
    return World(seed, scene, made["train"], made["validation"], made["held_out"], examples, two)


def prompted(world: World) -> Judged:
    """The stand-in as the prompted conductor: its own prompt, its own plans, its tokens at its price."""
    return Judged(tuple(world.scene.roll([(item, *sampling.prompted(world.scene, item)) for item in world.held_out])))


def best_single(world: World) -> Judged:
    """Of each pool the worker that is best by its mean over all held-out requests of the same family, alone.

    Chosen with hindsight, on the very requests that it is judged by: no baseline could be told more.
    """
    names = [worker.name for worker in world.scene.pool.workers]
    by_worker = {name: alone(world, name) for name in names}
    families: dict[str, list[int]] = defaultdict(list)
    for place, item in enumerate(world.held_out):
        families["two_step" if item.family == "two_step" else item.family].append(place)
    chosen = []
    for places in families.values():
        means = {name: mean(by_worker[name].outcomes[place] for place in places) for name in names}
        for place in places:
            best = max(world.held_out[place].names, key=lambda name: means[name])
            chosen.append((place, by_worker[best].rolled[place]))
    return Judged(tuple(rolled for _, rolled in sorted(chosen, key=lambda pair: pair[0])))


def alone(world: World, name: str) -> Judged:
    """One worker on every held-out request, offered or not."""
    plan = Plan((Step(name, WHOLE),))
    rolls = []
    for item in world.held_out:
        own = Item(item.id, item.prompt, item.verifier, tuple(sorted({*item.names, name})), item.seed, item.family)
        rolls.append((own, written(plan, world.scene.asked(own).options), NO_USAGE))
    return Judged(tuple(world.scene.roll(rolls)))


def of_two_skills(world: World, judged: Judged) -> Judged:
    return Judged(tuple(one for one, two in zip(judged.rolled, world.two_step, strict=True) if two))


def means(judged: Sequence[Judged]) -> float:
    """The share that was right, over all worlds' requests alike."""
    right = [value for one in judged for value in one.outcomes]
    return round(float(mean(right)), 4) if right else 0.0
