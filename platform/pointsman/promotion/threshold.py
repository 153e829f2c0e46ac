"""The dial: above which margin the cheap worker answers, with a guarantee of how often it fails there.

Calibrated on audited traffic: requests drawn at random at a known rate, which every worker answered in the
background, with the scores that the serving router gave them at the time. A request's margin is the cheap worker's
score less the best other one's. Learn then Test (`pointsman.statistics.threshold`) gives the loosest threshold whose
failure rate is certified; it stands with its certificate, and holds for that router version and that endpoint alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from math import isfinite
from typing import Any

import numpy as np
from sqlalchemy import Connection, Table, insert, select, update

from pointsman.errors import NotEvaluable, UserError
from pointsman.hashing import content_hash
from pointsman.ids import new_id
from pointsman.promotion.gate_proof import CERTIFICATE
from pointsman.promotion.margin import margin
from pointsman.promotion.serving import announce
from pointsman.queries.scope import DECISION
from pointsman.rewards.spec import RewardSpec
from pointsman.rewards.store import save_spec
from pointsman.statistics.threshold import Threshold, cheap_threshold, least_routed
from pointsman.tables import METADATA

DIAL: Table = METADATA.tables["dial"]
METHOD = "Learn then Test (arXiv 2110.01052), fixed sequence, Clopper–Pearson"
ASSUMPTIONS = (
    "requests to come are exchangeable with the audited ones, which were drawn at random",
    "the margin is computed as it was: same router version, same workers in the choice",
    "a failure is a reward below the stated bound",
    "it holds while no drift alarm is on: then calibrate again",
)


@dataclass(frozen=True)
class Terms:
    """What is to be certified: of the requests that `worker` gets, at most `max_failures` may fail."""

    worker: str
    endpoint: str
    version: str
    epoch: str
    max_failures: float
    delta: float
    good: float


@dataclass(frozen=True)
class Sample:
    """An audited request: its margin when it was routed, and what the cheap worker earned on it."""

    decision: str
    moment: datetime
    margin: float
    reward: float


def samples(connection: Connection, project: str, terms: Terms, spec: RewardSpec) -> list[Sample]:
    """The audited requests that this router version routed, oldest first."""
    from pointsman.probing.matrix import full_information

    matrix = full_information(connection, project, ["audit"], workers={terms.endpoint: terms.worker}, spec=spec)
    margins = _margins(connection, project, matrix.requests, terms)
    rewards = matrix.means[:, 0] if len(matrix) else np.zeros(0)
    return [
        Sample(decision, moment, margins[request], float(value))
        for decision, request, moment, rate, value in zip(
            matrix.ids, matrix.requests, matrix.moments, matrix.rates, rewards, strict=True
        )
        if request in margins and rate is not None and isfinite(value)
    ]


def calibrated(found: Sequence[Sample], terms: Terms) -> Threshold:
    """Raises `NotEvaluable` where there are too few requests, or no threshold can be certified."""
    least = least_routed(terms.max_failures, terms.delta)
    if len(found) < least:
        raise NotEvaluable(
            f"{len(found)} audited requests that {terms.version} routed have a reward; at least {least} are needed "
            f"to certify at most {terms.max_failures:g} failures: raise [audit] rate, or run `pointsman audit`, with "
            "a [judge] where no verifier knows what is right"
        )
    margins = [sample.margin for sample in found]
    failed = [sample.reward < terms.good for sample in found]
    threshold = cheap_threshold(margins, failed, terms.max_failures, terms.delta)
    if threshold.value is None:
        raise NotEvaluable(
            f"no threshold is certified: even where the router is surest of {terms.worker}, {len(found)} audited "
            f"requests do not show that at most {terms.max_failures:g} fail"
        )
    return threshold


def set_dial(
    connection: Connection,
    project: str,
    found: Sequence[Sample],
    threshold: Threshold,
    terms: Terms,
    spec: RewardSpec,
    now: datetime,
    *,
    by: str,
) -> str:
    """Puts the threshold in force with its certificate, in place of the one before; the dial's id."""
    if threshold.value is None:
        raise UserError("dial: a threshold that is not certified cannot be set")
    save_spec(connection, spec, now)
    certificate, identity = new_id(), new_id()
    connection.execute(
        insert(CERTIFICATE).values(
            id=certificate,
            project_id=project,
            claim="cheap_routing",
            router_version_id=terms.version,
            alpha=terms.delta,
            method=METHOD,
            window_start=found[0].moment,
            window_end=found[-1].moment,
            assumptions=list(ASSUMPTIONS),
            numbers=numbers_of(threshold, terms),
            data_hash=data_hash(found),
            spec_hash=spec.hash,
            pool_epoch=terms.epoch,
            judge_units=False,
            evidence={"terms": asdict(terms)},
            holds=True,
            created_at=now,
            checked_at=now,
        )
    )
    retire_dial(connection, project, "calibrated again", now)
    connection.execute(
        insert(DIAL).values(
            id=identity,
            project_id=project,
            worker=terms.worker,
            endpoint_hash=terms.endpoint,
            router_version_id=terms.version,
            threshold=threshold.value,
            certificate_id=certificate,
            pool_epoch=terms.epoch,
            made_by=by,
            made_at=now,
        )
    )
    announce(connection, f"dial {identity}")
    return identity


def dial_of(connection: Connection, project: str) -> Any | None:
    """The dial in force."""
    d = DIAL.c
    return connection.execute(select(DIAL).where(d.project_id == project, d.retired_at.is_(None))).first()


def retire_dial(connection: Connection, project: str, reason: str, now: datetime) -> bool:
    """Ends the dial in force: the router decides alone. False where there is none."""
    d = DIAL.c
    mine = update(DIAL).where(d.project_id == project, d.retired_at.is_(None))
    ended = connection.execute(mine.values(retired_at=now, reason=reason)).rowcount > 0
    if ended:
        announce(connection, f"dial of {project} retired")
    return ended


def numbers_of(threshold: Threshold, terms: Terms) -> dict[str, Any]:
    return {
        "threshold": threshold.value, "routed": threshold.routed, "failures": threshold.failures, "rows": threshold.n,
        "upper": threshold.upper, "max_failures": terms.max_failures, "delta": terms.delta, "good": terms.good,
        "cheap_share": threshold.cheap_share, "worker": terms.worker,
    }  # fmt: skip


def data_hash(found: Sequence[Sample]) -> str:
    return content_hash([[one.decision, one.margin, one.reward] for one in found])


def _margins(connection: Connection, project: str, requests: Sequence[str], terms: Terms) -> dict[str, float]:
    """By request, from the scores that the router version gave when it was served."""
    d = DECISION.c
    query = select(d.request_id, d.scores).where(
        d.project_id == project, d.request_id.in_(list(requests)), d.origin == "traffic",
        d.router_version_id == terms.version, d.scores.is_not(None), d.parent_id.is_(None),
    )  # fmt: skip
    found = ((str(row.request_id), margin(row.scores, terms.worker)) for row in connection.execute(query))
    return {request: value for request, value in found if value is not None}
