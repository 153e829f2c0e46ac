"""Calibrating the dial and turning it off."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from pointsman.actions.actor import Actor, record, require
from pointsman.config import Config
from pointsman.errors import UserError
from pointsman.pool import Pool
from pointsman.promotion import threshold as dial
from pointsman.promotion.serving import incumbent
from pointsman.rewards.spec import spec_of
from pointsman.statistics.threshold import Threshold


@dataclass(frozen=True)
class Calibrated:
    """The dial that is now in force, and what was certified of it."""

    dial_id: str
    version: str
    threshold: Threshold


def calibrate_dial(
    connection: Connection, actor: Actor, project: str, config: Config, now: datetime, *, serving: str | None = None
) -> Calibrated:
    """Certifies a threshold for `[dial]` from audited traffic and puts it in force. `UserError` where it cannot."""
    require(actor, "operator", "calibrate the dial")
    section = config.dial
    if section is None:
        raise UserError("there is no [dial] in the configuration: it names the cheap worker and how often it may fail")
    pool, spec = Pool.of(config), spec_of(config, section.reward)
    version = serving or incumbent(connection, project)
    endpoint = pool.by_name[section.worker].endpoint_hash
    terms = dial.Terms(section.worker, endpoint, version, pool.epoch, section.max_failures, section.delta, section.good)
    found = dial.samples(connection, project, terms, spec)
    threshold = dial.calibrated(found, terms)
    identity = dial.set_dial(connection, project, found, threshold, terms, spec, now, by=actor.name)
    record(
        connection, actor, project, "dial_calibrate", now, subject=identity, detail=dial.numbers_of(threshold, terms)
    )
    return Calibrated(identity, version, threshold)


def turn_off_dial(
    connection: Connection, actor: Actor, project: str, now: datetime, *, reason: str | None = None
) -> bool:
    """The router decides alone again. False where no dial was in force."""
    require(actor, "operator", "turn the dial off")
    was = dial.retire_dial(connection, project, reason or f"turned off by {actor.name}", now)
    if was:
        record(connection, actor, project, "dial_off", now, reason=reason)
    return was
