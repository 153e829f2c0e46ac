"""The runners of `conductor_data`, `conductor_sft` and `conductor_grpo` jobs.

Training keeps its checkpoints under the data folder, by job, until the job has ended: an attempt after a kill on this
machine goes on from the last whole one, elsewhere it begins anew.
"""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from distill.conductor import grpo, sampling, sft
from distill.conductor.checking import load_causal
from distill.conductor.example import Example, from_table, to_table
from distill.conductor.live import LiveWorkers, file_items
from distill.conductor.plateau import Point
from distill.conductor.reading import read_traces
from distill.conductor.reward import RewardConfig
from distill.conductor.rollouts import Item, Scene, sandbox_scene
from distill.conductor.storing import fetch_folder, job_of, put_folder, read_file
from distill.conductor.tiny import TinyConfig, make_tiny, sandbox_texts
from distill.conductor.traces import TraceConfig, examples_of
from pointsman.jobs.conducting import ConductorData, ConductorGrpoJob, ConductorSftJob
from pointsman.jobs.context import JobContext
from pointsman.pool import Pool
from pointsman.rewards.compute import Window, compute_rewards
from pointsman.rewards.spec import spec_of

EXAMPLES, REPORT, CURVES = "examples.parquet", "report.json", "curves.json"
LEAST_WORKERS = 2


def run_data(context: JobContext, params: ConductorData) -> dict[str, Any]:
    """Makes the examples and keeps them as Parquet."""
    import pyarrow.parquet as pq

    with context.stage("examples"):
        made, told = _logged(context, params) if params.source == "log" else _sampled(params)
        context.log(f"{len(made)} examples of {len({one.group for one in made})} requests")
    if not made:
        context.skip("no_examples")
    with context.stage("store"):
        buffer = io.BytesIO()
        pq.write_table(to_table(made), buffer)
        context.artifacts.put_bytes(EXAMPLES, buffer.getvalue())
        result = {"examples": len(made), "requests": len({one.group for one in made}), "form": params.form, **told}
        context.artifacts.put_bytes(REPORT, json.dumps(result, sort_keys=True).encode())
    return result


def run_sft(context: JobContext, params: ConductorSftJob) -> dict[str, Any]:
    """Fine-tunes; the conductor's folder, merged, and all curves are the job's files."""
    data = job_of(context.engine, context.project_id, params.data, "conductor_data")
    examples = read_examples(context, data)
    form = json.loads(read_file(context.engine, context.place.files(), data, REPORT))["form"]
    folder = _folder(context)
    base = _base(params, folder)
    load_causal(base, params.revision)  # what is wrong with it is said before anything is spent
    scene = sandbox_scene(params.world, params.cards, form=form)
    looked = items_of(scene, params, "validation", params.validation)
    rates = (params.learning_rate / 3, params.learning_rate, params.learning_rate * 3)
    config = sft.ConductorSft(
        rates if params.three_rates else rates[1:2],
        params.steps,
        params.batch,
        params.look_every,
        tuning=params.tuning,
        rank=params.rank,
        seed=params.seed,
    )
    with context.stage("train"):
        run = sft.fit(
            lambda: load_causal(base, params.revision)[:2], examples, scene, looked, config, folder, _watch(context)
        )
        context.artifacts.put_bytes(CURVES, json.dumps([_told(one) for one in run.tried]).encode())
    with context.stage("store"):
        put_folder(context, run.chosen.folder)
    shutil.rmtree(folder, ignore_errors=True)
    return {"tried": [_told(one) for one in run.tried], **_told(run.chosen), "form": form}


def run_grpo(context: JobContext, params: ConductorGrpoJob) -> dict[str, Any]:
    """Trains on; ends `skipped` (`no_signal`) where no request was contested, or none stayed so."""
    start = job_of(context.engine, context.project_id, params.start, "conductor_sft", "conductor_grpo")
    folder = _folder(context)
    begun = fetch_folder(context.engine, context.place.files(), start, folder / "start")
    form = json.loads((begun / "conductor.json").read_text())["form"]
    reward = RewardConfig(params.form_bonus, params.cost_weight)
    tokens = params.max_worker_tokens
    scene = _scene(context, params, form, reward, tokens)
    with context.stage("contested"):
        asked, looked = _requests(context, params, scene)
    config = grpo.ConductorGrpo(
        params.steps, params.groups, params.generations, params.learning_rate, beta=params.beta,
        look_every=params.look_every, patience=params.patience, tuning=params.tuning, max_calls=params.max_calls,
        seed=params.seed,
    )  # fmt: skip
    with context.stage("train"):
        load = lambda: load_causal(str(begun))[:2]  # noqa: E731
        trained, _ = grpo.train(load, scene, asked, looked, config, folder / "grpo", _watch(context))
    if not trained.taught:
        shutil.rmtree(folder, ignore_errors=True)
        context.skip(grpo.NO_SIGNAL)
    with context.stage("store"):
        put_folder(context, trained.folder)
        told = {"curve": [asdict(point) for point in trained.curve], "parts": [dict(one) for one in trained.parts]}
        context.artifacts.put_bytes(CURVES, json.dumps(told).encode())
    shutil.rmtree(folder, ignore_errors=True)
    first, last = trained.curve[0], max(trained.curve, key=lambda point: point.reward)
    result = {"start_reward": first.reward, "reward": last.reward, "step": last.step, "form": form}
    return result | asdict(trained.tally)


def _scene(context: JobContext, params: ConductorGrpoJob, form: Any, reward: RewardConfig, tokens: int) -> Scene:
    if params.file is None:
        return sandbox_scene(params.world, params.cards, form=form, reward=reward, max_worker_tokens=tokens)
    pool = Pool(tuple(one for one in Pool.of(context.config).workers if "embeddings" not in one.capabilities))
    workers = LiveWorkers(context.config, context.settings.secret)
    return Scene(pool, workers, reward, form, max_worker_tokens=tokens)


def _requests(context: JobContext, params: ConductorGrpoJob, scene: Scene) -> tuple[list[Item], list[Item]]:
    """What is trained on, and what is looked at. Of a file all is taken: to find out what is contested costs calls."""
    if params.file is not None:
        names = [worker.name for worker in scene.pool.workers]
        asked, looked = file_items(Path(params.file).expanduser(), names, params.seed)
        context.log(f"{len(asked)} requests, {len(looked)} more to look at")
        return asked, looked[: params.validation]
    asked = contested_items(scene, items_of(scene, params, "train", params.tasks), params.seed)
    context.log(f"{len(asked)} of {params.tasks} requests are contested")
    return asked, items_of(scene, params, "validation", params.validation)


def items_of(scene: Scene, params: ConductorSftJob | ConductorGrpoJob, split: Any, n: int) -> list[Item]:
    """Sandbox tasks of the job's world, each with a random pool."""
    exam = sampling.exam(params.world, split, n, params.families)
    names = [worker.name for worker in scene.pool.workers]
    return sampling.items(exam, names, params.seed * 3 + (split == "validation"), LEAST_WORKERS)


def contested_items(scene: Scene, items: Sequence[Item], seed: int, assignments: int = 3) -> list[Item]:
    """The items of which some plans ended right and some did not, the most even first."""
    tried = sampling.outcomes(scene, items, assignments=assignments, seed=seed)
    by_id = {item.id: item for item in items}
    return [by_id[name] for name in grpo.contested(tried)]


def read_examples(context: JobContext, job_id: str) -> list[Example]:
    """A data job's examples."""
    import pyarrow.parquet as pq

    raw = read_file(context.engine, context.place.files(), job_id, EXAMPLES)
    return from_table(pq.read_table(io.BytesIO(raw)))


def _sampled(params: ConductorData) -> tuple[list[Example], dict[str, Any]]:
    scene = sandbox_scene(params.world, params.cards, form=params.form)
    names = [worker.name for worker in scene.pool.workers]
    exam = sampling.exam(params.world, "train", params.tasks, params.families)
    asked = sampling.items(exam, names, params.seed, LEAST_WORKERS)
    made, tried = sampling.examples(scene, asked, assignments=params.assignments, seed=params.seed, point=params.point)
    return made, {"rollouts": tried}


def _logged(context: JobContext, params: ConductorData) -> tuple[list[Example], dict[str, Any]]:
    spec = spec_of(context.place.config, params.reward)
    with context.engine.begin() as connection:
        compute_rewards(connection, spec, Window(), now=datetime.now(UTC), project=context.project_id)
        traces = read_traces(connection, context.project_id, spec.hash)
    config = TraceConfig(params.least_reward, params.shows, params.form, point=params.point, seed=params.seed)
    made, left_out = examples_of(traces, config)
    return made, {"traces": len(traces), "left_out": left_out}


def _base(params: ConductorSftJob, folder: Path) -> str:
    if params.base != "tiny":
        return params.base
    made = folder / "tiny"
    if not (made / "model.safetensors").exists():
        make_tiny(made, TinyConfig(seed=params.seed), sandbox_texts([params.world]))
    return str(made)


def _folder(context: JobContext) -> Path:
    folder = context.settings.home / "conductor" / context.job_id
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _watch(context: JobContext) -> sft.Watching:
    def look(name: str, point: Point) -> None:
        context.metric(f"{name}: reward", point.step, point.reward)
        context.metric(f"{name}: right", point.step, point.right)
        context.metric(f"{name}: parsed", point.step, point.parse_rate)

    def spend(usd: float) -> None:
        context.spend(Decimal(repr(usd)))

    return sft.Watching(look, context.check, spend)


def _told(one: sft.Fitted) -> dict[str, Any]:
    curve = [asdict(point) for point in one.curve]
    return {"learning_rate": one.learning_rate, "reward": one.reward, "plateau": one.plateau, "curve": curve}
