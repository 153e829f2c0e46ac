"""The runner of `labels` jobs: rewards brought up to date, evidence read, labels made, the set stored."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID

from sqlalchemy import Connection

from distill.jobs.found import feature_folder, insert_labels
from distill.labels.estimate import EstimateConfig
from distill.labels.make import LabelConfig, make_labels
from distill.labels.reading import Wanted, read_evidence
from distill.labels.store import LabelSet, to_files
from distill.labels.weighing import Weighing
from pointsman.ids import new_id
from pointsman.jobs.artifacts import hold
from pointsman.jobs.context import JobContext
from pointsman.jobs.learning import Labels
from pointsman.jobs.view import Artifact
from pointsman.pool import Pool, Worker
from pointsman.rewards.compute import Window, compute_rewards
from pointsman.rewards.spec import RewardSpec, spec_of
from pointsman.words import Origin

DATA, MANIFEST = "labels.parquet", "labels.json"


def run(context: JobContext, params: Labels) -> dict[str, Any]:
    """Makes the set; the result names it and tells its report."""
    spec = spec_of(context.place.config, params.reward)
    with context.stage("rewards") as stage:
        if stage.todo and "traffic" in params.origins:
            _rewards(context, spec)
    with context.stage("estimate"):
        labels = _labels(context, params, spec)
        context.log(f"{len(labels)} requests, {len(labels.arms)} workers, by the {labels.notes['method']} method")
    with context.stage("store"):
        data, manifest = to_files(labels)
        files = context.artifacts.put_bytes(DATA, data), context.artifacts.put_bytes(MANIFEST, manifest)
        identity = context.publish("label set", lambda connection: _publish(connection, context, labels, files))
    told = labels.manifest()
    return {
        "label_set": identity,
        **{name: told[name] for name in ("hash", "requests", "parts", "method", "grouped", "caps", "report")},
        "workers": [arm.worker for arm in labels.arms],
    }


def config_of(params: Labels) -> LabelConfig:
    """A job's parameters as the configuration of what makes labels."""
    weighing = Weighing(
        {
            "verifier": 1.0,
            "feedback": params.feedback_weight,
            "judge": params.judge_weight,
            "verdict": params.verdict_weight,
        },
        params.source_cap,
        params.rater_cap,
    )
    estimate = EstimateConfig(params.own_strength, params.doubly_robust_from, seed=params.seed)
    return LabelConfig(
        params.encoder, params.target, params.temperature, params.split, params.least, params.toy, estimate, weighing
    )  # fmt: skip


def _rewards(context: JobContext, spec: RewardSpec) -> None:
    with context.engine.begin() as connection:
        done = compute_rewards(connection, spec, Window(), now=datetime.now(UTC), project=context.project_id)
    context.log(f"{done.written} rewards were new or had changed")


def _labels(context: JobContext, params: Labels, spec: RewardSpec) -> LabelSet:
    workers: tuple[Worker, ...] = ()
    if context.place.config is not None:
        pool = Pool.of(context.place.config)
        workers = tuple(worker for worker in pool.workers if "embeddings" not in worker.capabilities)
    tags = () if params.run is None else (f"probe:{params.run}", f"dataset:{params.run}")
    wanted = Wanted(cast(tuple[Origin, ...], params.origins), spec.hash, workers, tags)
    with context.engine.connect() as connection:
        evidence = read_evidence(connection, context.project_id, wanted)
    context.check()
    return make_labels(evidence, config_of(params), feature_folder(context.settings))


def _publish(connection: Connection, context: JobContext, labels: LabelSet, files: tuple[Artifact, Artifact]) -> str:
    identity = new_id()
    for artifact in files:
        hold(connection, artifact, f"label set {identity}: {artifact.name}")
    values = {
        "id": identity,
        "project_id": UUID(context.project_id),
        "job_id": UUID(context.job_id),
        "hash": labels.hash,
        "rows": len(labels),
        "data_hash": files[0].hash,
        "manifest_hash": files[1].hash,
        "manifest": labels.manifest(),
        "created_at": datetime.now(UTC),
    }
    return insert_labels(connection, values)
