"""All detectors of a project, and what follows from an alarm: the dial is retired until it is calibrated again."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import numpy as np
from sqlalchemy import Connection, select

from pointsman.drift.alarms import alarms_on
from pointsman.drift.mix import watch_mix
from pointsman.drift.pool import current_pool
from pointsman.drift.rewards import watch_rewards
from pointsman.promotion.serving import PROMOTION, lately_deciding
from pointsman.promotion.threshold import dial_of, retire_dial
from pointsman.rewards.spec import RewardSpec

LOOK_BACK = timedelta(days=30)
GROUND = ("worker_reward", "silent_update", "input_mix")
"""Alarms that say that requests to come are not like those that were calibrated on."""


def watch_workers(connection: Connection, project: str, spec: RewardSpec, now: datetime) -> list[str]:
    """Takes the rewards that are new (`pointsman.rewards.refresh`); the messages of new alarms."""
    content = current_pool(connection, project)
    if content is None:
        return []
    endpoints = {worker: hashes["endpoint"] or "" for worker, hashes in content.items()}
    return watch_rewards(connection, project, spec.hash, endpoints, now)


def watch_inputs(connection: Connection, project: str, now: datetime) -> list[str]:
    """The message of a changed mix, if there is one. The reference begins with what serves, at most a month ago."""
    p = PROMOTION.c
    made = connection.scalar(select(p.made_at).where(p.project_id == project).order_by(p.id.desc()).limit(1))
    since = max(made, now - LOOK_BACK) if made is not None else now - LOOK_BACK
    found = watch_mix(connection, project, since, now, np.random.default_rng(int(now.timestamp())))
    return [f"another mix of requests (AUC {found.auc:.2f})"] if found is not None and found.changed else []


def settle_dial(connection: Connection, project: str, now: datetime) -> str | None:
    """Retires a dial whose ground has moved; why, or None where it may stay."""
    dial = dial_of(connection, project)
    if dial is None:
        return None
    why = _moved(connection, project, dial)
    if why is not None:
        retire_dial(connection, project, f"{why}; calibrate it again: pointsman dial calibrate", now)
    return why


def _moved(connection: Connection, project: str, dial: Any) -> str | None:
    content = current_pool(connection, project)
    if content is not None and content.get(dial.worker, {}).get("endpoint") != dial.endpoint_hash:
        return f"worker {dial.worker} has another endpoint"
    serving = lately_deciding(connection, project, dial.made_at)
    if serving is not None and serving != str(dial.router_version_id):
        return f"router version {serving} serves, and it was calibrated for {dial.router_version_id}"
    for alarm in alarms_on(connection, project):
        about_it = alarm.worker in (None, dial.worker) and alarm.kind in GROUND
        if about_it and alarm.raised_at > dial.made_at:
            return str(alarm.message)
    return None
