"""The runner of `evaluate` jobs: routers on the untouched part of a label set, with ablations, tables and plots.

Everything that is chosen (the cheap router to beat, the weight of price) is chosen on validation rows; test rows are
looked at once for each job. The whole is `evaluation.json`; tables are CSV, plots PNG.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from distill.arrays import Floats
from distill.evaluate.ablating import adding, mask_and_drop, renamed, worst_regret
from distill.evaluate.comparing import Exam, Scored, compare, frame, per_task
from distill.evaluate.curves import Curve, cost_curve
from distill.evaluate.logged import against_log
from distill.evaluate.plots import Dot, curve, dots
from distill.evaluate.values import realised
from distill.jobs.found import StoredLabels, feature_folder, read_labels, version_of_kind
from distill.jobs.scoring import Judge, classic_scores, judge_of, table_of
from distill.labels.judging import Judged, judged
from distill.labels.make import label_points
from distill.labels.store import LabelSet
from harness.routing.classic_model import Method
from pointsman.errors import UserError
from pointsman.jobs.context import JobContext
from pointsman.jobs.learning import Evaluate
from pointsman.promotion.versions import StoredVersion, in_state
from pointsman.rewards.spec import spec_of

CHEAP: tuple[Method, ...] = ("linear", "mixture", "clusters", "neighbours")


def run(context: JobContext, params: Evaluate) -> dict[str, Any]:
    """Compares; the result is `evaluation.json` without its longest lists."""
    with context.engine.connect() as connection:
        stored = read_labels(connection, context.place.files(), context.project_id, params.labels)
        versions = [version_of_kind(connection, name, "classic", "learned") for name in params.routers] or _newest(
            connection, stored
        )
    folder, cache = context.settings.home / "cache" / "routers", feature_folder(context.settings)
    judges = [judge_of(version, context.place.files(), folder, cache, params.seed) for version in versions]
    with context.stage("compare"):
        told, exam, part = _compare(context, stored.labels, judges, params)
    with context.stage("ablate"):
        if params.ablations:
            told["ablations"] = {one.name: _ablate(context, stored.labels, exam, part, one, params) for one in judges}
    told |= {"label_set": stored.id, "labels": stored.labels.hash, "routers": [version.id for version in versions]}
    with context.stage("store"):
        _store(context, told)
    accepted = [line["router"] for line in told["comparison"] if not line["refused"]]
    context.log(f"accepted: {', '.join(accepted) or 'none'}")
    return {name: told[name] for name in ("label_set", "routers", "basis", "rows", "frame", "cheap")} | {
        "comparison": [{k: v for k, v in line.items() if k != "shares"} for line in told["comparison"]],
        "accepted": accepted,
        "logged_traffic": told["logged_traffic"],
        "matched_quality": {name: one["matched"] for name, one in told["cost"].items()},
        "ablations": {name: one["summary"] for name, one in told.get("ablations", {}).items()},
    }


def _newest(connection: Any, stored: StoredLabels) -> list[StoredVersion]:
    """The newest versions that were trained on this set."""
    found = in_state(connection, ["draft", "candidate", "shadow", "canary", "serving"], 500)
    mine = [
        version
        for version in found
        if version.kind in ("classic", "learned") and version.config.get("notes", {}).get("label_set") == stored.id
    ]
    if not mine:
        raise UserError(f"no router version was trained on label set {stored.id}; `pointsman train` makes one")
    return mine[:5]


def _compare(
    context: JobContext, labels: LabelSet, judges: Sequence[Judge], params: Evaluate
) -> tuple[dict[str, Any], Exam, Judged]:
    part, chosen = judged(labels, "test"), judged(labels, "validation")
    single = int(labels.mean[labels.of("train", "validation")].mean(axis=0).argmax())
    cheap, values = _cheap(labels, part, chosen, params.seed, context)
    best = max(values, key=lambda name: values[name]) if values else None
    exam = Exam(
        rewards=part.rewards,
        episodes=[labels.episodes[row] for row in part.rows],
        tasks=[labels.tasks[row] for row in part.rows],
        workers=[arm.worker for arm in labels.arms],
        single=single,
        cheap=best,
        seed=params.seed,
    )
    endpoints = labels.table().endpoints
    texts = [labels.texts[row] for row in part.rows]
    scored = [Scored(one.name, one.scores(texts, endpoints), one.kind == "classic") for one in judges]
    routers = [*scored, *cheap]
    named = [(one.name, one.scores(list(labels.texts), endpoints)) for one in judges]
    spec = spec_of(context.place.config)
    with context.engine.connect() as connection:
        logged = against_log(connection, labels, spec.hash, named)
    told = {
        "rows": len(part.rows),
        "basis": part.basis,
        "frame": frame(exam),
        "cheap": {"best_on_validation": best, "validation": values},
        "comparison": compare(exam, routers),
        "per_task": per_task(exam, routers),
        "logged_traffic": logged,
        "cost": {one.name: _cost(labels, chosen, one, exam, texts, params.seed) for one in judges},
    }
    return told, exam, part


def _cheap(
    labels: LabelSet, part: Judged, chosen: Judged, seed: int, context: JobContext
) -> tuple[list[Scored], dict[str, float]]:
    """Cheap routers on the judged rows, and what each, fitted on training rows alone, earns on validation rows."""
    from distill.classic.choosing import config_of, estimates
    from distill.classic.text_routers import fit

    training = labels.of("train")
    texts = [labels.texts[row] for row in chosen.rows]
    made: list[Scored] = []
    values: dict[str, float] = {}
    for number, method in enumerate(CHEAP):
        context.check()
        try:
            fitted = fit(estimates(labels).rows(training), config_of(method, len(training)), seed)
            values[method] = round(float(realised(chosen.rewards, fitted.scores(texts, seed)).mean()), 4)
            made.append(Scored(method, classic_scores(labels, method, part.rows.tolist(), seed), True))
        except UserError as error:
            context.log(f"{method}: left out: {error}")
        context.progress(number + 1, len(CHEAP))
    return made, values


def _cost(labels: LabelSet, chosen: Judged, one: Judge, exam: Exam, texts: list[str], seed: int) -> dict[str, Any]:
    prices = [arm.price for arm in labels.arms]
    if any(price is None for price in prices):
        return {"matched": {"not_known": "a worker's price is unknown"}, "points": []}
    endpoints = labels.table().endpoints
    on_validation = one.scores([labels.texts[row] for row in chosen.rows], endpoints)
    found: Curve = cost_curve(
        on_validation, chosen.rewards, one.scores(texts, endpoints), exam.rewards, np.array(prices, np.float64), seed
    )
    return {"matched": found.matched, "points": [list(point) for point in found.points]}


def _ablate(
    context: JobContext, labels: LabelSet, exam: Exam, part: Judged, one: Judge, params: Evaluate
) -> dict[str, Any]:
    endpoints = list(labels.table().endpoints)
    rows = part.rows.tolist()
    texts = [labels.texts[row] for row in rows]

    def scores_of(order: Sequence[str]) -> Floats:
        return one.scores(texts, order)

    workers = mask_and_drop(exam, scores_of(endpoints), labels, one.refit(rows))
    context.check()
    points = label_points(list(labels.texts), "text", params.seed, None)
    cards = label_points([arm.card for arm in labels.arms], "text", params.seed, None)
    cards = cards / np.maximum(np.linalg.norm(cards, axis=1, keepdims=True), 1e-9)
    added = adding(labels, exam, rows, params.probes, params.seed, cards, points)
    moved = renamed(scores_of, endpoints, np.random.default_rng([params.seed, 17]))
    summary = {"worst_mask": worst_regret(workers), "renamed_and_reordered": moved, "added": added}
    return {"summary": summary, "workers": workers}


def _store(context: JobContext, told: dict[str, Any]) -> None:
    put = context.artifacts.put_bytes
    put("evaluation.json", json.dumps(told, indent=1, ensure_ascii=False).encode())
    put("comparison.csv", table_of(told["comparison"]))
    if told["per_task"]:
        put("per_task.csv", table_of(told["per_task"]))
    lines = told["comparison"]
    put("values.png", dots("Value of each router", [_dot(one, "value") for one in lines], "mean reward"))
    put(
        "against_best_single.png",
        dots("Against the best single worker", [_dot(one, "vs_best_single") for one in lines], "difference", 0.0),
    )
    for number, (name, one) in enumerate(told["cost"].items()):
        put(
            f"cost {number}.csv",
            table_of([dict(zip(("weight", "value", "price"), p, strict=True)) for p in one["points"]]),
        )
        if one["points"]:
            points = [(price, value) for _, value, price in one["points"]]
            put(f"cost {number}.png", curve(f"Cost and quality of {name}", points, "USD per million tokens", "reward"))
    for number, (name, one) in enumerate(told.get("ablations", {}).items()):
        put(f"ablations {number}.csv", table_of(one["workers"]))
        marks = [Dot(line["worker"], line["mask_regret"], *line["mask_regret_interval"]) for line in one["workers"]]
        put(f"ablations {number}.png", dots(f"What masking a worker loses: {name}", marks, "difference", 0.0))


def _dot(line: dict[str, Any], name: str) -> Dot:
    return Dot(line["router"], line[name], *line[f"{name}_interval"])
