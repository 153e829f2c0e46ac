"""Jobs as people read them: a line, a table, a page; and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pointsman.commands.output import cell, notes, out, say, table, usd, visible

if TYPE_CHECKING:
    from pointsman.jobs.kinds import Estimate
    from pointsman.jobs.view import Artifact, JobView, LogLine

STYLES = {"done": "green", "failed": "red", "dead": "bold red", "cancelled": "yellow", "skipped": "yellow"}
PRIVATE = ("checkpoint", "effects", "fence", "dedupe_key")
"""What a job keeps for itself."""


def as_json(job: JobView, artifacts: Sequence[Artifact] | None = None) -> dict[str, Any]:
    """All that is there for others to read."""
    shown = {name: _exact(value) for name, value in asdict(job).items() if name not in PRIVATE}
    return shown if artifacts is None else shown | {"artifacts": [asdict(one) for one in artifacts]}


def _exact(value: Any) -> Any:
    """An amount without the zeros and exponents that its column has: `0`, not `0E-10`."""
    return format(value.normalize(), "f") if isinstance(value, Decimal) else value


def headline(job: JobView) -> str:
    """`done after 3.2 s`, `running: steps, 5 of 20, 2 s left`, `failed: …`."""
    words: str = job.state
    if job.state == "running":
        parts = [job.stage, _progress(job), f"{seconds(job.eta_s)} left" if job.eta_s is not None else None]
        said = ", ".join(part for part in parts if part)
        words += f": {said}" if said else ""
    elif job.reason and job.reason != job.state:
        words += f": {visible(job.reason)}"
    elif job.started_at and job.ended_at:
        words += f" after {seconds((job.ended_at - job.started_at).total_seconds())}"
    return words


def show_list(jobs: Sequence[JobView]) -> None:
    """Two lines for each job, so that an id is never broken."""
    if not jobs:
        say(out(), "no jobs; `pointsman jobs kinds` shows what there is to start")
        return
    for job in jobs:
        say(out(), f"{job.id}  {job.kind}  {headline(job)}", STYLES.get(job.state, ""))
        by = f" by {visible(job.asked_by)}" if job.asked_by else ""
        spent = f", cost {usd(job.cost)}" if job.cost else ""
        say(out(), f"    {_ago(job.created_at)}{by}, queue {job.queue}{spent}", "dim")


def show_job(job: JobView, artifacts: Sequence[Artifact], lines: Sequence[LogLine]) -> None:
    """Everything about one job."""
    console = out()
    say(console, f"{job.kind}  {job.id}", "bold")
    say(console, headline(job), STYLES.get(job.state, ""))
    shown = table("", "")
    shown.show_header = False
    for name, value in _facts(job):
        shown.add_row(cell(name), cell(value))
    console.print(shown)
    for artifact in artifacts:
        say(console, f"file {visible(artifact.name)}: {artifact.hash}{artifact.suffix}, {artifact.size:,} bytes")
    for line in lines:
        show_line(line)


def show_line(line: LogLine) -> None:
    """One line of a job's log."""
    stage = f" {line.stage}" if line.stage else ""
    style = {"error": "red", "warning": "yellow"}.get(line.level, "")
    say(out(), f"{line.at:%H:%M:%S}{stage}  {visible(line.message.rstrip())}", style)


def show_estimate(estimate: Estimate) -> None:
    """What a job will probably take, before it is started."""
    takes = seconds(estimate.seconds) if estimate.seconds is not None else "unknown"
    costs = usd(estimate.cost_usd) if estimate.cost_usd is not None else "unknown"
    say(notes(), f"estimate: time {takes}, cost {costs} ({estimate.basis})", "dim")


def seconds(value: float | None) -> str | None:
    """`40 ms`, `3.2 s`, `12 min`, `5.1 h`."""
    if value is None:
        return None
    if value < 1:
        return f"{value * 1000:.0f} ms"
    if value < 120:
        return f"{value:.1f} s"
    return f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.1f} h"


def _facts(job: JobView) -> list[tuple[str, object]]:
    limit = f" of {usd(job.budget)}" if job.budget is not None else ""
    return [
        ("parameters", ", ".join(f"{name} {value}" for name, value in job.params.items())),
        ("stages done", ", ".join(job.stages_done) or None),
        ("progress", _progress(job)),
        ("cost", f"{usd(job.cost)}{limit}"),
        ("queue, priority", f"{job.queue}, {job.priority}"),
        ("attempt, crashes, losses", f"{job.attempt}, {job.crashes}, {job.losses}"),
        ("worker", job.lease_owner),
        ("asked by", job.asked_by),
        ("created", f"{job.created_at:%Y-%m-%d %H:%M:%S} UTC"),
        ("result", None if job.result is None else ", ".join(f"{k} {v}" for k, v in job.result.items())),
    ]


def _progress(job: JobView) -> str | None:
    if job.done is None:
        return None
    rate = f" at {job.rate:.3g}/s" if job.rate else ""
    return (f"{job.done:,} of {job.total:,}" if job.total else f"{job.done:,}") + rate


def _ago(moment: datetime) -> str:
    age = (datetime.now(UTC) - moment).total_seconds()
    return "just now" if age < 1 else f"{seconds(age)} ago"
