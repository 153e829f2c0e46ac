"""Examples from rollouts: the prompted conductor's plans and random assignments of workers to their steps.

Every plan is carried out before it may teach; those that ended right stay. A random assignment keeps the plan's
shape, so that workers whose cards say too little, or the wrong thing, are tried too. Pools are random k-of-n.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

from distill.conductor.example import PLAN_KEY, Example, weight_of, written
from distill.conductor.pointing import pointing
from distill.conductor.rollouts import Item, Rolled, Scene
from harness.engine.conductor import plan_prompt
from harness.engine.plan.grammar import Plan
from harness.engine.plan.parse import parse
from harness.engine.request import seed_of
from harness.routing.base import Ask, RouterUsage
from pointsman.sandbox import prompts, router_llm
from pointsman.sandbox.tasks import Split, Task, tasks
from pointsman.sandbox.team_tasks import team_tasks


def exam(world: int, split: Split, n: int, families: Sequence[str]) -> list[Task]:
    """`n` tasks, the families in turn; `one_skill` are those of the sandbox's ordinary traffic."""
    teams = {name: team_tasks(world, split, None, [name]) for name in families if name != "one_skill"}
    streams: dict[str, Iterator[Task]] = {**teams, "one_skill": tasks(world, split)}
    return [next(streams[families[number % len(families)]]) for number in range(n)]


def items(exam: Sequence[Task], names: Sequence[str], seed: int, least: int = 2, most: int | None = None) -> list[Item]:
    """A random pool of `least` to `most` workers (None: all) and a seed for every task."""
    rng = Random(f"pools/{seed}")
    made = []
    for task in exam:
        k = rng.randint(min(least, len(names)), min(most or len(names), len(names)))
        offered = tuple(sorted(rng.sample(list(names), k)))
        made.append(Item(task.id, task.prompt, task.verifier, offered, rng.getrandbits(48), task.family))
    return made


def prompted(scene: Scene, item: Item) -> tuple[str, RouterUsage]:
    """What the sandbox's stand-in, as the prompted conductor, writes, and the tokens that it took."""
    prompt = plan_prompt(Ask(item.prompt), max_steps=scene.max_steps)(scene.offered(item.names), _seed(item))
    reply = router_llm.reply(prompt.messages)
    return reply.text, RouterUsage(prompts.prompt_tokens({"messages": prompt.messages}), len(reply.tokens))


def candidates(
    scene: Scene, item: Item, assignments: int, rng: Random, *, point: bool = True
) -> list[tuple[Plan, str]]:
    """(plan, origin): the prompted conductor's, then random assignments of its steps."""
    text, _ = prompted(scene, item)
    parsed = parse(text, scene.asked(item).options, max_steps=scene.max_steps)
    if parsed.plan is None:
        return []
    plan = pointing(parsed.plan, item.prompt) if point else parsed.plan
    made = [(plan, "prompted")]
    for _ in range(assignments):
        steps = tuple(replace(step, worker=rng.choice(item.names)) for step in plan.steps)
        made.append((Plan(steps), "random"))
    return made


def examples(
    scene: Scene, asked: Sequence[Item], *, assignments: int, seed: int, point: bool = True
) -> tuple[list[Example], int]:
    """What ended right, and how many rollouts were made in all."""
    rng = Random(f"assignments/{seed}")
    tried: list[tuple[Item, str, str]] = []
    for item in asked:
        options = scene.asked(item).options
        plans = {
            written(plan, options, scene.max_steps): origin
            for plan, origin in reversed(candidates(scene, item, assignments, rng, point=point))
        }
        tried += [(item, text, origin) for text, origin in plans.items()]
    rolled = scene.roll([(item, text, RouterUsage()) for item, text, _ in tried])
    return kept(
        scene, [(item, text, origin, one) for (item, text, origin), one in zip(tried, rolled, strict=True)]
    ), len(tried)


def outcomes(scene: Scene, asked: Sequence[Item], *, assignments: int, seed: int) -> dict[str, list[float]]:
    """Item id → the outcomes of the prompted conductor's plan and of random assignments, those known."""
    rng = Random(f"outcomes/{seed}")
    tried = [
        (item, written(plan, scene.asked(item).options, scene.max_steps), RouterUsage())
        for item in asked
        for plan, _ in candidates(scene, item, assignments, rng)
    ]
    found: dict[str, list[float]] = {}
    for (item, _, _), one in zip(tried, scene.roll(tried), strict=True):
        if one.earned.known:
            found.setdefault(item.id, []).append(one.earned.outcome)
    return found


def kept(scene: Scene, tried: Sequence[tuple[Item, str, str, Rolled]]) -> list[Example]:
    """An example for each rollout that ended right, weighted by reward and by what the same answer cost at least."""
    right = [one for one in tried if one[3].earned.outcome >= 0.5]
    cheapest: dict[str, float] = {}
    for item, _, _, rolled in right:
        cheapest[item.id] = min(rolled.cost, cheapest.get(item.id, rolled.cost))
    return [
        Example(
            scene.asked(item).messages,
            text,
            item.id,
            rolled.earned.total,
            rolled.cost,
            weight_of(rolled.earned.outcome, rolled.cost, cheapest[item.id]),
            origin,
        )
        for item, text, origin, rolled in right
    ]


def _seed(item: Item) -> int:
    return seed_of(item.seed, PLAN_KEY)
