"""A certificate computed again from the log: do its numbers come out, and is what it assumes still so?

It holds while both are true. What cannot be computed any more (rows past retention) is said, and does not count
against the numbers; an assumption that has fallen (another endpoint, an alarm, a retired version) does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from math import isclose, log
from typing import Any

from sqlalchemy import Connection, select, update

from pointsman.drift.alarms import alarms_on
from pointsman.drift.pool import current_pool
from pointsman.errors import NotEvaluable, UserError
from pointsman.ids import is_uuid
from pointsman.pool import epoch_of
from pointsman.promotion.gate_proof import CERTIFICATE, recompute
from pointsman.promotion.offline import Evidence, claim_of, read_known
from pointsman.promotion.register import gate_of, terms_of
from pointsman.promotion.threshold import DIAL, Terms, calibrated, data_hash, numbers_of, samples
from pointsman.rewards.spec import RewardSpec
from pointsman.rewards.store import load_spec

TOLERANCE = 1e-6


@dataclass(frozen=True)
class Checked:
    """`numbers` as they come out now, None where they cannot be computed. `faults` speak against the certificate,
    `remarks` do not."""

    id: str
    claim: str
    holds: bool
    numbers: Mapping[str, Any] | None
    faults: tuple[str, ...]
    remarks: tuple[str, ...]


def recheck(connection: Connection, project: str | None, certificate_id: str, now: datetime) -> Checked:
    """Computes a certificate again and writes down whether it holds. Raises `UserError` where there is none."""
    row = find_certificate(connection, project, certificate_id)
    faults: list[str] = []
    remarks: list[str] = []
    numbers = _again(connection, row, faults, remarks)
    faults += _fallen(connection, row)
    holds = not faults
    connection.execute(update(CERTIFICATE).where(CERTIFICATE.c.id == row.id).values(holds=holds, checked_at=now))
    return Checked(str(row.id), row.claim, holds, numbers, tuple(faults), tuple(remarks))


def find_certificate(connection: Connection, project: str | None, certificate_id: str) -> Any:
    """The row; `project` None: of any."""
    query = select(CERTIFICATE).where(CERTIFICATE.c.id == certificate_id)
    if project is not None:
        query = query.where(CERTIFICATE.c.project_id == project)
    row = connection.execute(query).first() if is_uuid(certificate_id) else None
    if row is None:
        raise UserError(f"there is no certificate {certificate_id!r} here; `pointsman certify` lists them")
    return row


def certificates(connection: Connection, project: str, limit: int = 50) -> list[Any]:
    """Newest first."""
    c = CERTIFICATE.c
    query = select(CERTIFICATE).where(c.project_id == project).order_by(c.id.desc()).limit(limit)
    return list(connection.execute(query))


def proof_of(connection: Connection, project: str, version: str) -> Any | None:
    """The newest certificate that says of this version that it is better than the incumbent, and holds."""
    c = CERTIFICATE.c
    query = select(CERTIFICATE).where(
        c.project_id == project, c.router_version_id == version, c.claim == "better_than_incumbent", c.holds
    )
    return connection.execute(query.order_by(c.id.desc()).limit(1)).first()


def _again(connection: Connection, row: Any, faults: list[str], remarks: list[str]) -> Mapping[str, Any] | None:
    try:
        if row.gate_id is not None:
            return _gate(connection, row, faults, remarks)
        if row.claim == "cheap_routing":
            return _threshold(connection, row, faults)
        return _offline(connection, row, faults, remarks)
    except NotEvaluable as error:
        remarks.append(f"cannot be computed again: {error}")
        return None


def _gate(connection: Connection, row: Any, faults: list[str], remarks: list[str]) -> Mapping[str, Any]:
    gate = gate_of(connection, str(row.project_id), str(row.gate_id))
    again = recompute(connection, gate, row.numbers["rows"])
    faults += again.faults
    if again.data_hash != row.data_hash:
        faults.append("the gate's rows are not those that the certificate was made from")
    needed = -log(terms_of(gate).alpha)
    if again.reached < needed:
        faults.append(f"ln E never reached {needed:.3f}: {again.reached:.3f} at most")
    if again.gone:
        remarks.append(f"{again.gone} of {again.rows} rows are in the gate's record alone: the log has dropped them")
    return {"rows": again.rows, "log_e": again.log_e, "log_e_needed": needed, "log_e_reached": again.reached}


def _offline(connection: Connection, row: Any, faults: list[str], remarks: list[str]) -> Mapping[str, Any] | None:
    if row.evidence is None:
        remarks.append("how the routers chose was not kept with it: computing it again needs the routers")
        return None
    evidence = Evidence.from_json(row.evidence)
    known = read_known(connection, str(row.project_id), evidence, _spec(connection, row))
    made = claim_of(row.claim, evidence, known, row.alpha)
    if not made.holds:
        faults.append("its numbers do not bear it out any more")
    _compare(row.numbers, made.numbers, faults)
    return made.numbers


def _threshold(connection: Connection, row: Any, faults: list[str]) -> Mapping[str, Any]:
    terms = Terms(**row.evidence["terms"])
    spec = load_spec(connection, row.spec_hash)
    found = [
        one for one in samples(connection, str(row.project_id), terms, spec)
        if row.window_start <= one.moment <= row.window_end
    ]  # fmt: skip
    numbers = numbers_of(calibrated(found, terms), terms)
    if data_hash(found) != row.data_hash:
        faults.append("the audited requests of its time are not those that it was made from")
    _compare(row.numbers, numbers, faults)
    return numbers


def _fallen(connection: Connection, row: Any) -> list[str]:
    """What the certificate assumes and is not so any more."""
    project = str(row.project_id)
    fallen = []
    content = current_pool(connection, project)
    if content is not None and epoch_of(content) != row.pool_epoch:
        fallen.append("the pool has changed since: other workers stand behind the names")
    for alarm in alarms_on(connection, project):
        if alarm.kind in ("silent_update", "worker_reward", "input_mix") and alarm.raised_at > row.window_end:
            fallen.append(f"an alarm is on since {alarm.raised_at:%Y-%m-%d}: {alarm.message}")
    if row.claim == "cheap_routing" and not _in_force(connection, row):
        fallen.append("its dial is retired")
    return fallen


def _in_force(connection: Connection, row: Any) -> bool:
    d = DIAL.c
    return (
        connection.execute(select(d.id).where(d.certificate_id == row.id, d.retired_at.is_(None))).first() is not None
    )


def _spec(connection: Connection, row: Any) -> RewardSpec | None:
    return None if row.spec_hash is None else load_spec(connection, row.spec_hash)


def _compare(stored: Mapping[str, Any], again: Mapping[str, Any], faults: list[str]) -> None:
    for name, value in again.items():
        before = stored.get(name)
        if (
            isinstance(value, float)
            and isinstance(before, int | float)
            and not isclose(value, before, abs_tol=TOLERANCE)
        ):
            faults.append(f"{name} comes out as {value:.6f}, stored is {before:.6f}")
