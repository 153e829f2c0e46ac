"""Every method from the same start, on the same requests, with as many rollouts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from conducting.world import World

from distill.conductor import controls, grpo, sft
from distill.conductor.checking import load_causal
from distill.conductor.jobs import contested_items
from distill.conductor.judging import Judged, judge
from distill.conductor.plateau import Point

CONTROLS = ("sft", "sft_continued", "expert_iteration", "evolved")


@dataclass(frozen=True)
class Recipe:
    """`sft` is tried at each learning rate; what follows goes on at a third of the best one."""

    sft: sft.ConductorSft
    grpo: grpo.ConductorGrpo
    more_steps: int


@dataclass(frozen=True, eq=False)
class Ran:
    """What the methods came to on held-out requests, and how they got there."""

    judged: dict[str, Judged]
    sft: sft.SftRun
    grpo: grpo.Trained
    contested: int
    seconds: dict[str, float]

    def curves(self) -> dict[str, Any]:
        tried = {f"sft {one.learning_rate:g}": [asdict(point) for point in one.curve] for one in self.sft.tried}
        return tried | {"grpo": [asdict(point) for point in self.grpo.curve]}


def run_all(world: World, base: Path, recipe: Recipe, folder: Path, say: Callable[[str], None]) -> Ran:
    seconds: dict[str, float] = {}

    def look(name: str, point: Point) -> None:
        say(f"world {world.seed}: {name}: step {point.step}: {point.reward:.3f} (right {point.right:.3f})")

    def timed(name: str, work: Callable[[], Any]) -> Any:
        began = time.perf_counter()
        found = work()
        seconds[name] = round(time.perf_counter() - began, 1)
        return found

    watching = sft.Watching(look)
    load = lambda: load_causal(str(base))[:2]  # noqa: E731
    fitted = timed(
        "sft",
        lambda: sft.fit(load, world.examples, world.scene, world.validation, recipe.sft, folder / "sft", watching),
    )
    start = fitted.chosen.folder
    asked = contested_items(world.scene, world.train, world.seed)
    begin = lambda: load_causal(str(start))[:2]  # noqa: E731
    trained, _ = timed(
        "grpo",
        lambda: grpo.train(begin, world.scene, asked, world.validation, recipe.grpo, folder / "grpo", watching),
    )
    budget = controls.Budget(asked, max(1, trained.tally.rollouts), world.seed)
    more = replace(
        recipe.sft,
        learning_rates=(fitted.chosen.learning_rate / 3,),
        steps=recipe.more_steps,
        look_every=max(1, recipe.more_steps // 3),
    )
    continued = timed(
        "sft_continued",
        lambda: controls.continued(
            start, world.examples, world.scene, world.validation, budget, more, folder / "continued", watching
        ),
    )
    own = timed(
        "expert_iteration",
        lambda: controls.expert_iteration(
            start, world.scene, world.validation, budget, more, folder / "expert", watching=watching
        ),
    )
    evolved = timed(
        "evolved", lambda: controls.evolved(start, world.scene, world.validation, budget, folder / "evolved")
    )
    folders = {
        "sft": start,
        "grpo": trained.folder if trained.taught else start,
        "sft_continued": continued.chosen.folder,
        "expert_iteration": own.chosen.folder,
        "evolved": evolved,
    }
    judged = timed("judging", lambda: {name: held_out(world, where) for name, where in folders.items()})
    return Ran(judged, fitted, trained, len(asked), seconds)


def held_out(world: World, folder: Path) -> Judged:
    model, tokenizer, _ = load_causal(str(folder))
    return judge(model, tokenizer, world.scene, world.held_out)
