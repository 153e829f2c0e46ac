"""The runner of `evolve` jobs: a learned router's index head evolved on replayed rows, or a team's heads on episodes.

On replay the search goes on from a router that was trained, and what it finds becomes a candidate only where held-out
rows show that it is better. On the sandbox's episodes teams are what is searched: parts of a generation are played
wherever a worker is free, and the heads that come out are files of the job, since gateways choose roles by rule.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from distill.arrays import Floats, Integers
from distill.evaluate.values import two_sided
from distill.evolve.controls import run_controls
from distill.evolve.episodes import EpisodeProblem, Play
from distill.evolve.loop import EvolveConfig, Evolved, Generation, evolve
from distill.evolve.replay import HeadReplay
from distill.evolve.sepcma import SepCma
from distill.jobs.found import feature_folder, read_labels, version_of_kind
from distill.jobs.train import publish_router
from distill.labels.judging import judged
from distill.labels.parts import Part
from distill.labels.store import LabelSet
from pointsman.errors import UserError
from pointsman.hashing import content_hash
from pointsman.jobs.context import JobContext
from pointsman.jobs.learning import Evolve
from pointsman.jobs.runners import JobRunner

CHECKPOINT = "search.safetensors"
PLAYS_EACH = 60
"""Episodes of one part: about a second."""


def run(context: JobContext, params: Evolve) -> dict[str, Any]:
    """Searches; the result has the difference on held-out rows with its interval, and whether it was accepted."""
    return _replay(context, params) if params.episodes == "replay" else _sandbox(context, params)


def part(context: JobContext, params: Evolve, item: Any) -> list[float]:
    """Plays some episodes of the sandbox."""
    from distill.evolve.sandbox_team import sandbox_team, team_exam
    from pointsman.sandbox.serve import serving

    plays: list[Play] = [(play[0], tuple(tuple(order) for order in play[1])) for play in item["plays"]]
    tasks = team_exam(params.world, item["split"], item["size"])

    async def played(url: str) -> list[float]:
        async with sandbox_team(params.world, url, tasks, alone=item["alone"]) as team:
            return await team.play(plays)

    with serving(params.world) as url:
        return asyncio.run(played(url))


RUNNER = JobRunner(run, part)


def config_of(params: Evolve) -> EvolveConfig:
    return EvolveConfig(
        generations=params.generations, sigma=params.sigma, population=params.population, seed=params.seed
    )


def _replay(context: JobContext, params: Evolve) -> dict[str, Any]:
    from distill.router_model.checkpoint import load_router, save_router
    from distill.router_model.heads import IndexHead
    from distill.server.models import fetched

    if params.router is None or params.labels is None:
        raise UserError("evolve: replay needs --router, a learned version, and --labels, the set that is replayed")
    with context.engine.connect() as connection:
        version = version_of_kind(connection, params.router, "learned")
        stored = read_labels(connection, context.place.files(), context.project_id, params.labels)
    router = load_router(fetched(version, context.place.files(), context.scratch / "from"))
    head = router.head
    if not isinstance(head, IndexHead):
        raise UserError("evolve: an index head can be evolved, this router has a card head; train with --head index")
    labels = stored.labels
    if labels.table().endpoints != head.endpoints:
        raise UserError("evolve: the label set's workers are not those of the router; train one on this set")
    states = router.states(list(labels.texts), feature_folder(context.settings))
    problems = _problems(labels, states)
    start = head.arms.detach().numpy().astype(np.float64).ravel()
    with context.stage("search"):
        found = evolve(*problems, start, config_of(params), **_kept(context, params))
    with context.stage("judge"):
        told = _told(found, problems, params)
    with context.stage("store"):
        identity = None
        if found.accepted:
            import torch

            with torch.no_grad():
                head.arms.copy_(torch.as_tensor(found.chosen.reshape(head.arms.shape)))
            router.notes = {**router.notes, "evolved_from": version.id, "evolve": asdict(config_of(params))}
            folder = context.scratch / "router"
            save_router(folder, router)
            identity = publish_router(context, "learned", folder, stored, candidate=True, parent=version.id)
    context.artifacts.remove(CHECKPOINT)
    context.log("accepted" if found.accepted else "refused: not shown to be better than what it began from")
    return {"router_version": identity, "from": version.id, "label_set": stored.id, **told}


def _problems(labels: LabelSet, states: Floats) -> tuple[HeadReplay, HeadReplay, HeadReplay]:
    """To search on, to choose by, to judge by: the training rows, and each half of the validation rows."""
    training, other = judged(labels, "train"), judged(labels, "validation")
    if len(other.rows) < 4:
        raise UserError(f"evolve: {len(other.rows)} validation requests are too few to choose and to judge by")

    def problem(rows: Integers, rewards: Floats) -> HeadReplay:
        return HeadReplay(states[rows].astype(np.float32), rewards)

    return (
        problem(training.rows, training.rewards),
        problem(other.rows[::2], other.rewards[::2]),
        problem(other.rows[1::2], other.rewards[1::2]),
    )


def _told(found: Evolved, problems: tuple[HeadReplay, HeadReplay, HeadReplay], params: Evolve) -> dict[str, Any]:
    population = SepCma(found.start, 1, np.random.default_rng(0), params.population).population
    controls = run_controls(
        problems[0], problems[2], found.start, found.chosen,
        evaluations=len(found.log) * population, sigma=params.sigma, seed=params.seed,
    )  # fmt: skip
    return {**_difference(found), "controls": {name: round(value, 4) for name, value in asdict(controls).items()}}


def _difference(found: Evolved) -> dict[str, Any]:
    return {
        "accepted": found.accepted,
        "difference": round(found.difference.estimate, 4),
        "difference_interval": two_sided(found.difference),
        "generations": len(found.log),
        "stopped": found.stopped,
    }


def _kept(context: JobContext, params: Evolve) -> dict[str, Any]:
    """Where the search keeps its state, so that another attempt goes on to the same numbers; and its progress."""
    file = context.scratch / CHECKPOINT
    if context.artifacts.find(CHECKPOINT) is not None:
        file.write_bytes(context.artifacts.read(CHECKPOINT))
        context.log("goes on from the last generation that was kept")

    def progress(line: Generation) -> None:
        context.check()
        context.progress(line.number, params.generations)
        for name in ("shaped_best", "shaped_mean", "pure_best", "pure_mean", "sigma"):
            context.metric(name, line.number, getattr(line, name))
        if line.validation is not None:
            context.metric("validation", line.number, line.validation)
            context.artifacts.put_file(CHECKPOINT, file)

    return {"checkpoint": file, "progress": progress}


def _sandbox(context: JobContext, params: Evolve) -> dict[str, Any]:
    from distill.evolve.imitation import start
    from distill.evolve.sandbox_team import TaskStates, alone_plays, pool_of, team_exam
    from distill.files import save_state

    sizes: dict[Part, int] = {"train": params.tasks, "validation": max(params.tasks // 2, 20), "test": params.tasks}
    splits = {"train": "train", "validation": "validation", "test": "held_out"}
    prompts = {p: [task.prompt for task in team_exam(params.world, splits[p], n)] for p, n in sizes.items()}  # type: ignore[arg-type]
    arms = tuple(sorted(worker.name for worker in pool_of(params.world, "http://127.0.0.1:1").workers))
    states = TaskStates.fit(prompts["train"], params.seed)

    def players(split: str, size: int, alone: bool = False) -> Any:
        return lambda plays: _fanned_out(context, plays, {"split": split, "size": size, "alone": alone})

    problems = {
        p: EpisodeProblem(states.rows(prompts[p]), arms, players(splits[p], sizes[p]), seed=params.seed) for p in sizes
    }
    with context.stage("search"):
        plays = alone_plays(params.tasks, arms)
        earned = players("train", params.tasks, True)(plays)
        alone = np.array(earned).reshape(params.tasks, len(arms))
        begun = start(problems["train"], problems["validation"], alone, params.seed)
        context.log(f"distilled from what workers earn alone: {begun.value:.4f} on validation episodes")
        found = evolve(
            problems["train"], problems["validation"], problems["test"], begun.point, config_of(params),
            **_kept(context, params),
        )  # fmt: skip
    with context.stage("judge"):
        held = problems["test"]
        told = {
            **_difference(found),
            "sft": round(float(held.rewards(begun.point).mean()), 4),
            "evolved": round(float(held.rewards(found.chosen).mean()), 4),
            "episodes_played": sum(problem.played for problem in problems.values()),
        }
    with context.stage("store"):
        file = Path(context.scratch / "team.safetensors")
        save_state(file, {"start": found.start, "chosen": found.chosen}, {"arms": list(arms), "world": params.world})
        context.artifacts.put_file("team.safetensors", file)
    context.artifacts.remove(CHECKPOINT)
    return {"router_version": None, "world": params.world, **told}


def _fanned_out(context: JobContext, plays: Sequence[Play], what: dict[str, Any]) -> list[float]:
    """Plays in parts, here and wherever a worker helps. Its stage is named by what is played, for another attempt."""
    listed = [[row, [list(order) for order in orders]] for row, orders in plays]
    items = [what | {"plays": listed[first : first + PLAYS_EACH]} for first in range(0, len(listed), PLAYS_EACH)]
    stage = f"plays {content_hash(items)[:16]}"
    return [reward for rewards in context.fan_out(stage, items, concurrency=2) for reward in rewards]
